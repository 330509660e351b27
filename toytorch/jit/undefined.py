"""A backward graph where some results' gradients never came.

Nobody may have used a result. Its gradient is then no zero but nothing at all: zero times an infinite
derivative would be NaN, and PyTorch leaves such paths out. Whatever a backward graph computes of
gradients is linear in them, so what would be computed of nothing is nothing, and a sum with nothing
is the other term.
"""

from __future__ import annotations

from collections.abc import Sequence

from toytorch.jit.ir import Graph, Value, copy_node
from toytorch.jit.passes.dce import eliminate_dead_code
from toytorch.ops.elementwise.arithmetic import add


def without(
    graph: Graph, tangents: Sequence[Value], missing: Sequence[Value]
) -> tuple[Graph, list[bool]] | None:
    """The graph without some of its tangents, which stay its inputs, and which outputs are left.

    None where something takes a gradient that is there together with one that is not, and is no sum.
    """
    made = Graph(graph.name)
    known: dict[Value, Value] = {v: made.add_input(v.type, v.name) for v in graph.inputs}
    late, gone = set(tangents), set(missing)
    for node in graph.nodes:
        given = [v for v in node.inputs if v in late and v not in gone]
        lost = [v for v in node.inputs if v in gone]
        if given or lost:
            late.update(node.outputs)
        if lost and given:
            if node.op is not add or constant(node.inputs[2]) != 1:
                return None
            known[node.output] = known[given[0]]
        elif lost:
            gone.update(node.outputs)
        else:
            made.nodes.append(copy_node(node, known))
    made._names.update(v.name for n in made.nodes for v in n.outputs)
    left = [v not in gone for v in graph.outputs]
    made.outputs = [known[v] for v, there in zip(graph.outputs, left) if there]
    return eliminate_dead_code(made), left


def constant(value: Value) -> object:
    """What a value is in every run; None where it is computed."""
    return None if value.node is None else value.node.attributes.get("value")
