"""What a graph writes to, and which of its nodes must keep their order."""

from __future__ import annotations

from toytorch.jit.ir import Graph, Node, Value


def written_values(graph: Graph) -> set[Value]:
    """Values in memory that some node writes to: everything that shares it."""
    roots: dict[Value, Value] = {}
    for node in graph.nodes:
        record = node.record
        plain = (
            record is not None and record.kind in ("pointwise", "reduction") and (not node.writes)
        )
        if not plain and node.inputs:
            for out in node.outputs:
                roots[out] = roots.get(node.inputs[0], node.inputs[0])
    bad = {roots.get(n.inputs[0], n.inputs[0]) for n in graph.nodes if n.writes}
    return bad | {v for v, r in roots.items() if r in bad}


def effects(graph: Graph, written: set[Value]) -> dict[int, Node]:
    """For each node that writes, draws random numbers or touches what is written to, the one of
    them before it: these keep their order."""
    found: dict[int, Node] = {}
    last: Node | None = None
    for node in graph.nodes:
        if not node.removable or any(v in written for v in (*node.inputs, *node.outputs)):
            if last is not None:
                found[id(node)] = last
            last = node
    return found
