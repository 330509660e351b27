"""Common subexpressions: what is computed twice is computed once.

%2 : Tensor = aten::exp(%x)
%3 : Tensor = aten::exp(%x)           →    %2 : Tensor = aten::exp(%x)
%4 : Tensor = aten::mul(%2, %3)            %4 : Tensor = aten::mul(%2, %2)
"""

from __future__ import annotations

from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.jit.ir import Block, Graph, Node, Value, replace
from toytorch.jit.passes.aliases import Aliases, holds_memory


def eliminate_common_subexpressions(graph: Graph) -> Graph:
    """Merges pure nodes of equal operation, inputs and attributes.

    Two results in memory of their own stay two where somebody could tell: where one is written to,
    or is seen outside. Nodes that read memory that is written to stay as well.
    """
    made = graph.copy()
    aliases = Aliases(made)
    change: dict[Value, Value] = {}
    visit(made, {}, aliases, change)
    replace(made, change)
    return made


def visit(
    block: Block, outer: dict[Any, Node], aliases: Aliases, change: dict[Value, Value]
) -> None:
    """Merges nodes of a block with earlier ones and with those of the blocks around it."""
    seen = dict(outer)
    kept = []
    for node in block.nodes:
        for inner in node.blocks:
            visit(inner, seen, aliases, change)
        if node.blocks or not mergeable(node, aliases):
            kept.append(node)
            continue
        inputs = tuple(change.get(v, v) for v in node.inputs)
        key = (node.kind, inputs, attributes_key(node), str([v.type for v in node.outputs]))
        first = seen.setdefault(key, node)
        if first is node:
            kept.append(node)
        else:
            change.update(zip(node.outputs, first.outputs))
    block.nodes = kept


def mergeable(node: Node, aliases: Aliases) -> bool:
    """Whether a node may be one with its like."""
    if node.is_constant:
        value = node.attributes["value"]
        return not isinstance(value, (list, dict)) and node.output not in aliases.returned
    if node.kind == "prim::GetAttr":
        return not aliases.sets_attributes and node.output not in aliases.returned
    if not node.kind.startswith("aten::") or not node.pure or not node.outputs:
        return False
    if not all(map(aliases.quiet, node.inputs)):
        return False
    if node.is_view and not node.record.many:  # type: ignore[union-attr]  # a view has a record
        return aliases.quiet(node.output) and node.output not in aliases.returned
    return all(map(aliases.private, node.outputs)) or not any(
        holds_memory(v.type) for v in node.outputs
    )


def attributes_key(node: Node) -> tuple[Any, ...]:
    """What tells nodes of equal inputs apart."""
    return tuple(
        (name, key_of(value)) for name, value in sorted(node.attributes.items()) if name != "_scope"
    )


def key_of(value: object) -> Any:
    """Equal for values that cannot be told apart: 0.0 and -0.0, 1 and True can."""
    if isinstance(value, Tensor):
        return id(value)
    if isinstance(value, tuple):
        return (tuple, *map(key_of, value))
    return value.__class__, repr(value)
