"""Algebra: what arithmetic says is nothing to do.

    %1 : Float(3) = aten::neg(%x)
    %2 : Float(3) = aten::neg(%1)         →    %3 : Float(3) = aten::tanh(%x)
    %3 : Float(3) = aten::tanh(%2)

Only what holds to the last bit: `x + 0` is left alone for floats, since -0.0 + 0 is 0.0, and
`exp(log(x))` for everything.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from toytorch.jit import types
from toytorch.jit.codegen_types import constant
from toytorch.jit.ir import Graph, Node, Value, replace
from toytorch.jit.passes.aliases import Aliases, inner_blocks
from toytorch.jit.passes.dce import eliminate_dead_code


def simplify_algebra(graph: Graph) -> Graph:
    """Replaces results by operands that equal them in value, type, shape and strides.

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
            rewrite = RULES.get(node.record.name)
            if rewrite is None or node.output in aliases.returned:
                continue
            found = rewrite(node)
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
    value = constant(v)
    return value if value.__class__ in (int, float, bool) else None


def _product(node: Node) -> Value | None:
    """x * 1 and 1 * x."""
    a, b = node.inputs
    return a if number(b) == 1 else b if number(a) == 1 else None


def _quotient(node: Node) -> Value | None:
    """x / 1 and x ** 1."""
    rounded = len(node.inputs) > 2 and constant(node.inputs[2]) is not None
    return node.inputs[0] if number(node.inputs[1]) == 1 and not rounded else None


def _sum(node: Node) -> Value | None:
    """x + 0 of integers, x + -0.0 of floats; x - 0 and x - 0.0 of both."""
    x, zero = node.inputs[0], number(node.inputs[1])
    if zero is None or zero != 0 or not isinstance(x.type, types.Tensor) or x.type.dtype is None:
        return None
    alpha = number(node.inputs[2]) if len(node.inputs) > 2 else 1
    if alpha is None or not math.isfinite(alpha):
        return None
    negative = math.copysign(1.0, zero) * math.copysign(1.0, alpha) < 0
    added = node.record is not None and node.record.name == "add"
    exact = not (x.type.dtype.is_floating_point or x.type.dtype.is_complex)
    return x if exact or (negative == added and not x.type.dtype.is_complex) else None


def _undone(node: Node) -> Value | None:
    """neg(neg(x)), t(t(x))."""
    inner = producer(node.inputs[0], node.kind)
    return inner.inputs[0] if inner is not None else None


def _transposed(node: Node) -> Value | None:
    """The same two dimensions exchanged twice."""
    inner = producer(node.inputs[0], node.kind)
    if inner is None:
        return None
    n = rank(node.output)
    pairs = [{_dim(v, n) for v in m.inputs[1:3]} for m in (node, inner)]
    return inner.inputs[0] if None not in pairs[0] and pairs[0] == pairs[1] else None


def _permuted(node: Node) -> Value | None:
    """A permutation and its inverse."""
    inner = producer(node.inputs[0], node.kind)
    if inner is None:
        return None
    second, first = (constant(m.inputs[1]) for m in (node, inner))
    n = rank(node.output)
    if not isinstance(first, tuple) or not isinstance(second, tuple):
        return None
    return inner.inputs[0] if [first[d] % n for d in second] == list(range(n)) else None


def _reshaped(node: Node) -> Value | None:
    """view(view(x, …), …) back to the shape of x; else the first view is skipped over."""
    x = node.inputs[0]
    while (inner := producer(x, node.kind)) is not None and contiguous(inner.inputs[0]):
        x = inner.inputs[0]
        if same_type(x.type, node.output.type):
            return x
    if x is not node.inputs[0] and contiguous(x):
        node.inputs[0] = x
    return None


def _cast(node: Node) -> Value | None:
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


def rank(v: Value) -> int:
    """How many dimensions a value has."""
    return len(v.type.shape or ()) if isinstance(v.type, types.Tensor) else 0


def _dim(v: Value, n: int) -> int | None:
    d = number(v)
    return None if d is None or not n else int(d) % n


RULES: dict[str, Callable[[Node], Value | None]] = {
    "mul": _product,
    "div": _quotient,
    "pow": _quotient,
    "add": _sum,
    "sub": _sum,
    "neg": _undone,
    "t": _undone,
    "transpose": _transposed,
    "permute": _permuted,
    "view": _reshaped,
    "_unsafe_view": _reshaped,
    "_to_copy": _cast,
}
