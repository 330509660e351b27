"""Comparisons, tests of single values, logic and bits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toytorch.core.memory_order import placed
from toytorch.facts.hints import Array, ArrayModule, DType
from toytorch.facts.size import broadcast_pair
from toytorch.ops import aten_words
from toytorch.ops.define import comparison, general, pointwise
from toytorch.ops.elementwise.operand_checks import no_complex, numbers, one_tensor

eq = comparison(
    "eq",
    "Whether operands are equal.",
    formula="self == other",
)
ne = comparison(
    "ne",
    "Whether operands differ.",
    formula="self != other",
)
lt = comparison(
    "lt",
    "Whether self is less.",
    formula="self < other",
    checks=numbers("lt_cpu"),
)
le = comparison(
    "le",
    "Whether self is less or equal.",
    formula="self <= other",
    checks=numbers("le_cpu"),
)
gt = comparison(
    "gt",
    "Whether self is greater.",
    formula="self > other",
    checks=numbers("gt_cpu"),
)
ge = comparison(
    "ge",
    "Whether self is greater or equal.",
    formula="self >= other",
    checks=numbers("ge_cpu"),
)


isnan = pointwise(
    "isnan(Tensor self) -> BoolTensor",
    formula="isnan(self)",
    forms="function method",
    sparse="entries",
    doc="Whether a value is NaN.",
)
isinf = pointwise(
    "isinf(Tensor self) -> BoolTensor",
    formula="isinf(self)",
    forms="function method",
    sparse="entries",
    doc="Whether a value is infinite.",
)
isfinite = pointwise(
    "isfinite(Tensor self) -> BoolTensor",
    formula="isfinite(self)",
    writes=lambda self: int(self.dtype.is_complex),
    forms="function method",
    doc="Whether a value is neither infinite nor NaN.",
)


isposinf = pointwise(
    "isposinf(Tensor self) -> BoolTensor",
    formula="isinf(self) and self > 0",
    forms="function method out",
    sparse="entries",
    doc="Whether a value is +∞.",
    checks=no_complex("isposinf does not support complex inputs."),
    out_type="boolean",
)
isneginf = pointwise(
    "isneginf(Tensor self) -> BoolTensor",
    formula="isinf(self) and self < 0",
    forms="function method out",
    sparse="entries",
    doc="Whether a value is -∞.",
    checks=no_complex("isneginf does not support complex inputs."),
    out_type="boolean",
)


def _no_complex_sign(common: DType, args: Sequence[Any]) -> None:
    if common.is_complex:
        raise NotImplementedError("signbit is not implemented for complex tensors.")


signbit = pointwise(
    "signbit(Tensor self) -> BoolTensor",
    formula="signbit(self)",
    checks=_no_complex_sign,
    forms="function method out",
    sparse="entries",
    doc="Whether the sign bit is set.",
    out_type="boolean",
)


def _same_type(name: str, a: Array, b: Array) -> None:
    if a.dtype != b.dtype:
        from toytorch.facts.dtype import (
            from_numpy_dtype as kind,  # the name means something else in this file
        )

        raise RuntimeError(f"{kind(a.dtype).legacy} did not match {kind(b.dtype).legacy}")


def _isclose(xp: ArrayModule, a: Array, b: Array, rtol: float, atol: float, equal_nan: bool) -> Any:
    _same_type("isclose", a, b)
    broadcast_pair(a.shape, b.shape)
    if rtol < 0 or atol < 0:
        name, value = ("rtol", rtol) if rtol < 0 else ("atol", atol)
        raise RuntimeError(f"{name} must be greater than or equal to zero, but got {value:g}")
    close = placed(a == b, a, b)
    if equal_nan and a.dtype.kind not in "biu":
        close = placed(close | (xp.isnan(a) & xp.isnan(b)), close)
    if rtol == 0 and atol == 0:
        return close
    kind = a.dtype if a.dtype.kind in "fc" else xp.dtype("float32")
    x, y = a.astype(kind), b.astype(kind)
    # NumPy's abs of complex numbers is off by a last digit for one in three.
    size = (lambda z: xp.hypot(z.real, z.imag)) if kind.kind == "c" else xp.abs
    allowed = atol + size(rtol * y)
    difference = size(x - y)
    return placed(close | (xp.isfinite(difference) & (difference <= allowed)), close)


isclose = general(
    "isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, "
    "bool equal_nan=False) -> Tensor",
    _isclose,
    forms="function method",
    upcast=False,
    writes=lambda self, other, rtol, atol, equal_nan: (
        (equal_nan and self.dtype.rank > 1) + (rtol != 0 or atol != 0)
    ),
    doc="Whether |self - other| ≤ atol + rtol·|other|.",
)


logical_not = pointwise(
    "logical_not(Tensor self) -> BoolTensor",
    formula="logical_not(self)",
    promotion="none",
    doc="Whether a value is zero.",
)
logical_and = pointwise(
    "logical_and(Tensor self, Tensor other) -> BoolTensor",
    formula="logical_and(self, other)",
    promotion="none",
    doc="Whether both values are non-zero.",
)
logical_or = pointwise(
    "logical_or(Tensor self, Tensor other) -> BoolTensor",
    formula="logical_or(self, other)",
    promotion="none",
    doc="Whether one of the values is non-zero.",
)
logical_xor = pointwise(
    "logical_xor(Tensor self, Tensor other) -> BoolTensor",
    formula="logical_xor(self, other)",
    promotion="none",
    doc="Whether just one of the values is non-zero.",
)


def _integers(name: str, function: str = "", masks: bool = True) -> Any:
    return one_tensor(function or name, numbers(f"{name}_cpu", 0 if masks else 1, highest=1))


bitwise_not = pointwise(
    "bitwise_not(Tensor self) -> Tensor",
    formula="~self",
    checks=numbers("bitwise_not_cpu", highest=1),
    doc="Every bit flipped.",
    out_type="found",
    out_history="none",
)
bitwise_and = pointwise(
    "bitwise_and(Operand self, Operand other) -> Tensor",
    formula="self & other",
    words={"self": "self"},
    checks=_integers("bitwise_and"),
    overload=aten_words.number_at(1),
    doc="Bits set in both.",
    out_needs="self",
    out_history="none",
)
bitwise_or = pointwise(
    "bitwise_or(Operand self, Operand other) -> Tensor",
    formula="self | other",
    words={"self": "self"},
    checks=_integers("bitwise_or"),
    overload=aten_words.number_at(1),
    doc="Bits set in one of them.",
    out_needs="self",
    out_history="none",
)
bitwise_xor = pointwise(
    "bitwise_xor(Operand self, Operand other) -> Tensor",
    formula="self ^ other",
    words={"self": "self"},
    checks=_integers("bitwise_xor"),
    overload=aten_words.number_at(1),
    doc="Bits set in just one of them.",
    out_needs="self",
    out_history="none",
)


bitwise_left_shift = pointwise(
    "bitwise_left_shift(Operand self, Operand other) -> Tensor",
    formula="shift_left(self, other)",
    words={"self": "self"},
    checks=_integers("lshift", "bitwise_left_shift", masks=False),
    doc="self·2ᵒᵗʰᵉʳ, in bits.",
    out_needs="self",
    out_history="none",
)
bitwise_right_shift = pointwise(
    "bitwise_right_shift(Operand self, Operand other) -> Tensor",
    formula="shift_right(self, other)",
    words={"self": "self"},
    checks=_integers("rshift", "bitwise_right_shift", masks=False),
    doc="self/2ᵒᵗʰᵉʳ rounded down, in bits.",
    out_needs="self",
    out_history="none",
)
