"""Memory planning: which result may take the memory of an operand nobody needs any more."""

from __future__ import annotations

from collections.abc import Sequence

from toytorch.jit import types
from toytorch.jit.ir import Node, Value


def last_uses(
    inputs: Sequence[Value], nodes: Sequence[Node], outputs: Sequence[Value]
) -> dict[int, list[Value]]:
    """For the place of each node, the values that are used there for the last time."""
    last: dict[Value, int] = {}
    for i, node in enumerate(nodes):
        for v in (*node.inputs, *node.outputs):
            last[v] = i
    kept = set(outputs) | set(inputs)
    found: dict[int, list[Value]] = {}
    for v, i in last.items():
        if v not in kept and not v.is_constant:
            found.setdefault(i, []).append(v)
    return found


def reusable(
    inputs: Sequence[Value], nodes: Sequence[Node], outputs: Sequence[Value]
) -> dict[Value, Value]:
    """result → operand in whose memory it is written.

    The operand was made in this function by an op that gives fresh memory, has the result's shape,
    strides and type, is used here for the last time, and nothing shares its memory.
    """
    shared = aliased(nodes) | set(inputs) | set(outputs)
    last = {v: i for i, vs in last_uses(inputs, nodes, outputs).items() for v in vs}
    found: dict[Value, Value] = {}
    for i, node in enumerate(nodes):
        record = node.record
        if record is None or record.kind != "pointwise" or node.writes:
            continue
        out = node.output
        for v in node.inputs:
            if last.get(v) == i and v not in shared and same_memory(v, out) and fresh(v):
                found[out] = v
                break
    return found


def aliased(nodes: Sequence[Node]) -> set[Value]:
    """Values whose memory somebody else may share: what views are taken of, lists hold, ops that
    are no plain computation give."""
    found: set[Value] = set()
    for node in nodes:
        record = node.record
        plain = node.kind == "prim::FusionGroup" or (
            record is not None and not node.writes and (record.kind in ("pointwise", "reduction"))
        )
        if not plain:
            found.update(node.inputs)
            found.update(node.outputs)
    return found


def fresh(v: Value) -> bool:
    """Whether a value has memory of its own: a ufunc always makes some."""
    return v.node is not None and (
        v.node.kind == "prim::FusionGroup"
        or (
            v.node.record is not None
            and v.node.record.kind == "pointwise"
            and isinstance(v.node.record.kernel, str)
        )
    )


def same_memory(a: Value, b: Value) -> bool:
    """Whether one fits exactly where the other is."""
    x, y = a.type, b.type
    return (
        isinstance(x, types.Tensor)
        and isinstance(y, types.Tensor)
        and (x.shape, x.strides, x.dtype) == (y.shape, y.strides, y.dtype)
    )
