"""Algebra: what arithmetic says is nothing to do.

    %1 : Float(3) = aten::neg(%x)
    %2 : Float(3) = aten::neg(%1)         →    %3 : Float(3) = aten::tanh(%x)
    %3 : Float(3) = aten::tanh(%2)

Only what holds to the last bit: `x + 0` is left alone for floats, since -0.0 + 0 is 0.0, and
`exp(log(x))` for everything.
"""

from __future__ import annotations

import math
from typing import Any

from toytorch.core.op import Op
from toytorch.jit import types
from toytorch.jit.fuser.lower import moved_axes
from toytorch.jit.ir import Graph, Node, Value, replace
from toytorch.jit.passes.aliases import Aliases, inner_blocks
from toytorch.jit.passes.dce import eliminate_dead_code
from toytorch.loops import Unsupported


def simplify_algebra(graph: Graph) -> Graph:
    """Replaces results by operands that equal them in value, type, shape and strides.

    Which these are follows from the records: `identity`, `own_inverse`, the kind of views.

    The operand's memory then stands where memory of its own stood, so neither may be written to,
    and the result may not be seen outside. Needs a graph that knows shapes.
    """
    made = graph.copy()
    aliases = Aliases(made)
    for block in inner_blocks(made):
        change: dict[Value, Value] = {}
        for node in block.nodes:
            node.inputs = [change.get(v, v) for v in node.inputs]
            if node.record is None or node.writes or len(node.outputs) != 1:
                continue
            if node.output in aliases.returned:
                continue
            found = operand_of(node, node.record)
            if found is not None and replaceable(node.output, found, aliases):
                change[node.output] = found
        replace(made, change)
    return eliminate_dead_code(made)


def replaceable(old: Value, new: Value, aliases: Aliases) -> bool:
    """Whether `new` may stand where `old` stood."""
    if not same_type(old.type, new.type) or not aliases.quiet(new) or not aliases.quiet(old):
        return False
    return aliases.private(old) or aliases.root(old) is aliases.root(new)


def same_type(a: types.Type, b: types.Type) -> bool:
    """Whether two tensors have the same dtype, shape and strides, all of them known."""
    return (
        isinstance(a, types.Tensor)
        and isinstance(b, types.Tensor)
        and a.shape is not None
        and (a.strides is not None)
        and (a.dtype, a.shape, a.strides, a.device) == (b.dtype, b.shape, b.strides, b.device)
    )


def number(v: Value) -> Any:
    """A constant number, else None."""
    value = v.constant
    return value if value.__class__ in (int, float, bool) else None


def operand_of(node: Node, op: Op) -> Value | None:
    """The operand that equals the result of a node, if there is one."""
    if op.identity:
        return without_identity(node, op)
    if op.own_inverse:
        inner = producer(node.inputs[0], node.kind)
        return None if inner is None else inner.inputs[0]
    if op.kind == "view":
        return moved_back(node) or viewed_back(node, op)
    return cast_back(node) if op.fused == "self" else None


def without_identity(node: Node, op: Op) -> Value | None:
    """x of x * 1, x / 1 and x ** 1; of x + -0.0 and x - 0.0 for floats, with any 0 for integers."""
    for name, identity in op.identity.items():
        place = op.schema.index[name]
        x, given = node.inputs[1 - place], number(node.inputs[place])
        if isinstance(x.type, types.Tensor) and given is not None and given == identity:
            return x if identity or adds_nothing(node, x.type, given, identity) else None
    return None


def adds_nothing(node: Node, kind: types.Tensor, zero: Any, identity: float) -> bool:
    """Whether a zero has the sign that matters: -0.0 + 0.0 is 0.0, and -0.0 + -0.0 is -0.0."""
    alpha = number(node.inputs[2]) if len(node.inputs) > 2 else 1
    if alpha is None or not math.isfinite(alpha) or kind.dtype is None or kind.dtype.is_complex:
        return False
    sign = math.copysign(1.0, zero) * math.copysign(1.0, alpha)
    return not kind.dtype.is_floating_point or sign == math.copysign(1.0, identity)


def moved_back(node: Node) -> Value | None:
    """Where dimensions were before one view moved them and another moved them back: t(t(x))."""
    inner = node.inputs[0].node
    if inner is None or inner.record is None or inner.record.kind != "view":
        return None
    x = inner.inputs[0]
    try:
        second, first = moved_axes(node), moved_axes(inner)
    except Unsupported:
        return None
    found = [None if d is None else first[d] for d in second]
    shape = x.type.shape if isinstance(x.type, types.Tensor) else None
    if shape is None or len(shape) != len(found):
        return None
    return x if all(n == 1 or d == k for k, (d, n) in enumerate(zip(found, shape))) else None


def viewed_back(node: Node, op: Op) -> Value | None:
    """view(view(x, …), …) back to the shape of x; else the first view is skipped over."""
    x = node.inputs[0]
    while (
        op.absorbs and (inner := producer(x, node.kind)) is not None and contiguous(inner.inputs[0])
    ):
        x = inner.inputs[0]
        if same_type(x.type, node.output.type):
            return x
    if x is not node.inputs[0] and contiguous(x):
        node.inputs[0] = x
    return None


def cast_back(node: Node) -> Value | None:
    """A cast there and back through a wider type; a cast to the type that is there."""
    x = node.inputs[0]
    if same_type(x.type, node.output.type):
        return x
    inner = producer(x, node.kind)
    if inner is None or not isinstance(x.type, types.Tensor):
        return None
    source = inner.inputs[0]
    return source if wider(x.type, source.type) else None


def wider(a: types.Tensor, b: types.Type) -> bool:
    """Whether every number of b's type has its own place in a's."""
    if not isinstance(b, types.Tensor) or a.dtype is None or b.dtype is None:
        return False
    order = (
        ("bfloat16", "float32", "float64"),
        ("float16", "float32", "float64"),
        ("int8", "int16", "int32", "int64"),
        ("bool", "uint8", "int16", "int32", "int64"),
    )
    return any(
        a.dtype.name in row
        and b.dtype.name in row
        and row.index(a.dtype.name) > row.index(b.dtype.name)
        for row in order
    )


def producer(v: Value, kind: str) -> Node | None:
    """The node that makes a value, if it is of that kind."""
    return v.node if v.node is not None and v.node.kind == kind and v.node.inputs else None


def contiguous(v: Value) -> bool:
    """Whether a value's elements lie one behind the other."""
    t = v.type
    if not isinstance(t, types.Tensor) or t.shape is None or t.strides is None:
        return False
    step = 1
    for n, s in zip(reversed(t.shape), reversed(t.strides)):
        if n != 1 and s != step:
            return False
        step *= n
    return True
