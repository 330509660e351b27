"""Dead-code elimination: what nobody uses and nobody would notice is not computed."""

from __future__ import annotations

from toytorch.jit.ir import Block, Graph, Value


def eliminate_dead_code(graph: Graph) -> Graph:
    """Drops nodes without effect whose results are not used.

    A write is kept while the memory it writes to can be seen: it is an input's, or is used later.
    """
    made = graph.copy()
    needed: set[Value] = set()
    _visit(made, needed)
    return made


def _visit(block: Block, needed: set[Value]) -> None:
    needed.update(block.outputs)
    kept = []
    for node in reversed(block.nodes):
        if node.removable and not any(v in needed for v in node.outputs):
            continue
        if node.kind == "prim::Loop":  # what an iteration gives may be what the next one needs
            before = -1
            while before != len(needed):
                before = len(needed)
                _collect(node.blocks[0], needed)
        for inner in node.blocks:
            _visit(inner, needed)
        needed.update(node.inputs)
        kept.append(node)
    block.nodes = kept[::-1]


def _collect(block: Block, needed: set[Value]) -> None:
    """Adds everything a block uses."""
    needed.update(block.outputs)
    for node in block.walk():
        needed.update(node.inputs)
        for inner in node.blocks:
            needed.update(inner.outputs)
