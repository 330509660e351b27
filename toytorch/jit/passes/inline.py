"""Inlining: the graph of a called function or method in the place of its call."""

from __future__ import annotations

from toytorch.jit.ir import Block, Graph, Node, Value, copy_node, each_block, replace


def inline(graph: Graph) -> Graph:
    """Puts the body of every prim::CallFunction and prim::CallMethod where the call stands."""
    made = graph.copy()
    changed: dict[Value, Value] = {}
    for block in list(each_block(made)):
        inline_block(made, block, changed)
    replace(made, changed)
    return made


def inline_block(graph: Graph, block: Block, changed: dict[Value, Value]) -> None:
    """Inlines the calls of one block; notes what stands for their results from now on."""
    nodes = []
    for node in block.nodes:
        if node.kind not in ("prim::CallFunction", "prim::CallMethod") or (
            "Subgraph" not in node.attributes
        ):  # Python runs it
            nodes.append(node)
            continue
        body: Graph = node.attributes["Subgraph"]
        inner = inline(body)
        known: dict[Value, Value] = dict(zip(inner.inputs, node.inputs))
        for n in inner.nodes:
            copy = copy_node(n, known)
            called(copy, node)
            rename(graph, copy)
            nodes.append(copy)
        changed.update({out: known.get(v, v) for out, v in zip(node.outputs, inner.outputs)})
    block.nodes = nodes


def called(node: Node, call: Node) -> None:
    """Lets a node, and those inside, know where their function was called, and in what contexts."""
    if node.source is not None:
        node.source = node.source.called_from(call.source)
    if node.computes:
        outer, inner = (n.attributes.get("autocast", ()) for n in (call, node))
        node.attributes |= {k: True for k in ("no_grad",) if k in call.attributes}
        node.attributes |= {"autocast": (*outer, *inner)} if outer else {}
    for block in node.blocks:
        for n in block.nodes:
            called(n, call)


def rename(graph: Graph, node: object) -> None:
    """Gives the values of a node from another graph names of this one."""
    assert isinstance(node, Node)
    for v in node.outputs:
        v.name = graph.new_name("" if v.name.isdigit() else v.name.split(".")[0])
    for b in node.blocks:
        for v in b.inputs:
            v.name = graph.new_name("" if v.name.isdigit() else v.name.split(".")[0])
        for n in b.nodes:
            rename(graph, n)
