"""Canonical form: equal programs as equal text.

%weight.1 : Tensor = aten::t(%w) # model.py:7:0     →    %1 : Tensor = aten::t(%0)
"""

from __future__ import annotations

from toytorch.jit.ir import Block, Graph


def canonical(graph: Graph) -> Graph:
    """Numbers all values in their order and forgets where nodes come from.

    Two graphs do the same in the same order if their canonical texts are equal.
    """
    made = graph.copy()
    made._names, made._next = set(), 0
    visit(made, made)
    return made


def visit(graph: Graph, block: Block) -> None:
    """Names the values of a block, and those of its blocks where they stand."""
    for v in block.inputs:
        v.name = graph.new_name()
    for node in block.nodes:
        node.source = None
        node.attributes.pop("_scope", None)
        for name, inner in node.attributes.items():
            if isinstance(inner, Graph):
                node.attributes[name] = canonical(inner)
        for inner_block in node.blocks:
            visit(graph, inner_block)
        for v in node.outputs:
            v.name = graph.new_name()
