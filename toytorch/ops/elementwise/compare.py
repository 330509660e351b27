"""Comparisons, tests of single values, logic and bits."""

from __future__ import annotations

from typing import Any

from toytorch.facts.size import broadcast_pair
from toytorch.ops.define import comparison, general, pointwise
from toytorch.ops.elementwise.operand_checks import one_tensor


def _ordered(name: str) -> Any:
    def check(common: Any, args: Any) -> None:
        if common.is_complex:
            raise NotImplementedError(f"\"{name}_cpu\" not implemented for '{common.legacy}'")

    return check


eq = comparison("eq", "equal", "Whether operands are equal.", expr="self == other")
ne = comparison("ne", "not_equal", "Whether operands differ.", expr="self != other")
lt = comparison("lt", "less", "Whether self is less.", expr="self < other", checks=_ordered("lt"))
le = comparison(
    "le",
    "less_equal",
    "Whether self is less or equal.",
    expr="self <= other",
    checks=_ordered("le"),
)
gt = comparison(
    "gt", "greater", "Whether self is greater.", expr="self > other", checks=_ordered("gt")
)
ge = comparison(
    "ge",
    "greater_equal",
    "Whether self is greater or equal.",
    expr="self >= other",
    checks=_ordered("ge"),
)


def _test(name: str, otherwise: bool) -> Any:
    def kernel(xp: Any, a: Any) -> Any:
        return getattr(xp, name)(a) if a.dtype.kind in "fc" else xp.full(a.shape, otherwise)

    return kernel


isnan = pointwise(
    "isnan(Tensor self) -> BoolTensor",
    _test("isnan", False),
    expr="self != self",
    inplace=False,
    cost="cheap",
    sparse="entries",
    doc="Whether a value is NaN.",
)
isinf = pointwise(
    "isinf(Tensor self) -> BoolTensor",
    _test("isinf", False),
    expr="isinf(self)",
    inplace=False,
    sparse="entries",
    doc="Whether a value is infinite.",
)
isfinite = pointwise(
    "isfinite(Tensor self) -> BoolTensor",
    _test("isfinite", True),
    expr="isfinite(self)",
    inplace=False,
    doc="Whether a value is neither infinite nor NaN.",
)


def _isposinf(xp: Any, a: Any) -> Any:
    return a == xp.inf if a.dtype.kind == "f" else xp.zeros(a.shape, bool)


def _isneginf(xp: Any, a: Any) -> Any:
    return a == -xp.inf if a.dtype.kind == "f" else xp.zeros(a.shape, bool)


isposinf = pointwise(
    "isposinf(Tensor self) -> BoolTensor",
    _isposinf,
    expr="self == inf",
    inplace=False,
    sparse="entries",
    doc="Whether a value is +∞.",
    checks=_ordered("isposinf"),
)
isneginf = pointwise(
    "isneginf(Tensor self) -> BoolTensor",
    _isneginf,
    expr="self == -inf",
    inplace=False,
    sparse="entries",
    doc="Whether a value is -∞.",
    checks=_ordered("isneginf"),
)
signbit = pointwise(
    "signbit(Tensor self) -> BoolTensor",
    lambda xp, a: xp.signbit(a) if a.dtype.kind == "f" else a < 0,
    expr="signbit(self)",
    inplace=False,
    sparse="entries",
    doc="Whether the sign bit is set.",
)


def _same_type(name: str, a: Any, b: Any) -> None:
    if a.dtype != b.dtype:
        from toytorch.facts.dtype import from_numpy_dtype as kind

        raise RuntimeError(f"{kind(a.dtype).legacy} did not match {kind(b.dtype).legacy}")


def _isclose(xp: Any, a: Any, b: Any, rtol: float, atol: float, equal_nan: bool) -> Any:
    _same_type("isclose", a, b)
    broadcast_pair(a.shape, b.shape)
    if rtol < 0 or atol < 0:
        name, value = ("rtol", rtol) if rtol < 0 else ("atol", atol)
        raise RuntimeError(f"{name} must be greater than or equal to zero, but got {value:g}")
    close = a == b
    if equal_nan and a.dtype.kind in "fc":
        close = close | (xp.isnan(a) & xp.isnan(b))
    if rtol == 0 and atol == 0:
        return close
    kind = a.dtype if a.dtype.kind in "fc" else xp.dtype("float32")
    x, y = a.astype(kind), b.astype(kind)
    allowed = atol + xp.abs(rtol * y)
    difference = xp.abs(x - y)
    return close | (xp.isfinite(difference) & (difference <= allowed))


isclose = general(
    "isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, "
    "bool equal_nan=False) -> Tensor",
    _isclose,
    out=False,
    upcast=False,
    doc="Whether |self - other| ≤ atol + rtol·|other|.",
)


def _both_bool(name: str) -> Any:
    def kernel(xp: Any, *arrays: Any) -> Any:
        return getattr(xp, name)(*arrays)

    return kernel


logical_not = pointwise(
    "logical_not(Tensor self) -> BoolTensor",
    _both_bool("logical_not"),
    promotion="none",
    expr="!self",
    cost="cheap",
    doc="Whether a value is zero.",
)
logical_and = pointwise(
    "logical_and(Tensor self, Tensor other) -> BoolTensor",
    _both_bool("logical_and"),
    promotion="none",
    expr="self && other",
    cost="cheap",
    doc="Whether both values are non-zero.",
)
logical_or = pointwise(
    "logical_or(Tensor self, Tensor other) -> BoolTensor",
    _both_bool("logical_or"),
    promotion="none",
    expr="self || other",
    cost="cheap",
    doc="Whether one of the values is non-zero.",
)
logical_xor = pointwise(
    "logical_xor(Tensor self, Tensor other) -> BoolTensor",
    _both_bool("logical_xor"),
    promotion="none",
    expr="!self != !other",
    doc="Whether just one of the values is non-zero.",
)


def _integers(name: str, function: str = "") -> Any:
    def check(common: Any, args: Any) -> None:
        if common.rank > 1:
            raise NotImplementedError(f"\"{name}_cpu\" not implemented for '{common.legacy}'")

    return one_tensor(function or name, check)


def _invertible(common: Any, args: Any) -> None:
    if common.rank > 1:
        raise TypeError(
            "~ (operator.invert) is only implemented on integer and Boolean-type tensors"
        )


bitwise_not = pointwise(
    "bitwise_not(Tensor self) -> Tensor",
    "invert",
    expr="~self",
    checks=_invertible,
    doc="Every bit flipped.",
)
bitwise_and = pointwise(
    "bitwise_and(Operand self, Operand other) -> Tensor",
    "bitwise_and",
    expr="self & other",
    checks=_integers("bitwise_and"),
    doc="Bits set in both.",
)
bitwise_or = pointwise(
    "bitwise_or(Operand self, Operand other) -> Tensor",
    "bitwise_or",
    expr="self | other",
    checks=_integers("bitwise_or"),
    doc="Bits set in one of them.",
)
bitwise_xor = pointwise(
    "bitwise_xor(Operand self, Operand other) -> Tensor",
    "bitwise_xor",
    expr="self ^ other",
    checks=_integers("bitwise_xor"),
    doc="Bits set in just one of them.",
)


def _shift(name: str) -> Any:
    def kernel(xp: Any, a: Any, b: Any) -> Any:
        bits = 8 * a.dtype.itemsize
        inside = (b >= 0) & (b < bits)
        shifted = getattr(xp, name)(a, xp.where(inside, b, 0).astype(a.dtype))
        beyond = a.dtype.type(0)
        if name == "right_shift":
            beyond = xp.where(a < 0, -1, 0).astype(a.dtype)
        return xp.where(inside, shifted, beyond)

    return kernel


bitwise_left_shift = pointwise(
    "bitwise_left_shift(Operand self, Operand other) -> Tensor",
    _shift("left_shift"),
    expr="self << other",
    checks=_integers("lshift", "bitwise_left_shift"),
    doc="self·2ᵒᵗʰᵉʳ, in bits.",
)
bitwise_right_shift = pointwise(
    "bitwise_right_shift(Operand self, Operand other) -> Tensor",
    _shift("right_shift"),
    expr="self >> other",
    checks=_integers("rshift", "bitwise_right_shift"),
    doc="self/2ᵒᵗʰᵉʳ rounded down, in bits.",
)
