"""Loop unrolling: a short loop of known length is written out.

%n : int = prim::Constant[value=2]()
%y : Tensor = prim::Loop(%n, %true, %x)          %1 : int = prim::Constant[value=0]()
  block0(%i : int, %h : Tensor):                 %2 : Tensor = aten::add(%x, %1)
    %2 : Tensor = aten::add(%h, %i)        →     %3 : int = prim::Constant[value=1]()
    -> (%true, %2)                               %4 : Tensor = aten::add(%2, %3)
"""

from __future__ import annotations

from toytorch.jit.ir import Block, Graph, Node, Value, copy_node, replace
from toytorch.jit.passes.aliases import inner_blocks
from toytorch.jit.passes.inline import rename

ITERATIONS = 8  # the longest loop that is written out
SIZE = 32  # nodes of its body


def unroll(graph: Graph) -> Graph:
    """Writes out loops of at most `ITERATIONS` iterations that nothing can end early, inner ones first."""
    made = graph.copy()
    for block in reversed(inner_blocks(made)):
        change: dict[Value, Value] = {}
        nodes: list[Node] = []
        for node in block.nodes:
            iterations = iterations_of(node)
            if iterations is None:
                nodes.append(node)
            else:
                nodes += written_out(made, node, iterations, change)
        block.nodes = nodes
        replace(made, change)
    return made


def iterations_of(node: Node) -> int | None:
    """How often a short loop runs; None for every other node."""
    if node.kind != "prim::Loop":
        return None
    body = node.blocks[0]
    iterations = node.inputs[0].constant
    if iterations.__class__ is not int or iterations > ITERATIONS or len(list(body.walk())) > SIZE:
        return None
    forever = node.inputs[1].constant is True and body.outputs[0].constant is True
    return max(0, iterations) if forever else None


def written_out(
    graph: Graph, node: Node, iterations: int, change: dict[Value, Value]
) -> list[Node]:
    """The body once for each iteration."""
    body: Block = node.blocks[0]
    carried = node.inputs[2:]
    nodes: list[Node] = []
    for i in range(iterations):
        index = graph.constant(i, node.source)
        nodes.append(index)
        known = dict(zip(body.inputs, [index.output, *carried]))
        for inner in body.nodes:
            copy = copy_node(inner, known)
            rename(graph, copy)
            nodes.append(copy)
        carried = [known.get(v, v) for v in body.outputs[1:]]
    change.update(zip(node.outputs, carried))
    return nodes
