"""Comparisons, tests of single values, logic and bits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toytorch.core.memory_order import placed
from toytorch.core.op import Op
from toytorch.facts.dtype import from_numpy_dtype
from toytorch.facts.hints import Array, ArrayModule, DType
from toytorch.facts.size import broadcast_pair
from toytorch.ops import aten_words
from toytorch.ops.define import comparison, in_own_type, pointwise
from toytorch.ops.elementwise.operand_checks import no_complex, numbers, one_tensor

eq = comparison("eq", "==", "Whether operands are equal.")
ne = comparison("ne", "!=", "Whether operands differ.")
lt = comparison("lt", "<", "Whether self is less.", checks=numbers("lt_cpu"))
le = comparison("le", "<=", "Whether self is less or equal.", checks=numbers("le_cpu"))
gt = comparison("gt", ">", "Whether self is greater.", checks=numbers("gt_cpu"))
ge = comparison("ge", ">=", "Whether self is greater or equal.", checks=numbers("ge_cpu"))


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


def _infinite(name: str, sign: str, doc: str) -> Op:
    return pointwise(
        f"{name}(Tensor self) -> BoolTensor",
        formula=f"isinf(self) and self {sign} 0",
        forms="function method out",
        sparse="entries",
        doc=doc,
        checks=no_complex(f"{name} does not support complex inputs."),
        out_type="boolean",
    )


isposinf = _infinite("isposinf", ">", "Whether a value is +∞.")
isneginf = _infinite("isneginf", "<", "Whether a value is -∞.")


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


def _isclose(xp: ArrayModule, a: Array, b: Array, rtol: float, atol: float, equal_nan: bool) -> Any:
    if a.dtype != b.dtype:
        one, other = (from_numpy_dtype(v.dtype).legacy for v in (a, b))
        raise RuntimeError(f"{one} did not match {other}")
    broadcast_pair(a.shape, b.shape)
    if not (rtol >= 0 and atol >= 0):
        name, value = ("atol", atol) if rtol >= 0 else ("rtol", rtol)
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


isclose = in_own_type(
    "isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, "
    "bool equal_nan=False) -> Tensor",
    _isclose,
    forms="function method",
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


def _logical(name: str, doc: str) -> Op:
    return pointwise(
        f"{name}(Tensor self, Tensor other) -> BoolTensor",
        formula=f"{name}(self, other)",
        promotion="none",
        doc=doc,
    )


logical_and = _logical("logical_and", "Whether both values are non-zero.")
logical_or = _logical("logical_or", "Whether one of the values is non-zero.")
logical_xor = _logical("logical_xor", "Whether just one of the values is non-zero.")


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


def _bits(name: str, formula: str, doc: str, shifts: str = "") -> Op:
    """An op of bits; of `shifts`, PyTorch's kernel has this name, and overloads are told as elsewhere."""
    return pointwise(
        f"{name}(Operand self, Operand other) -> Tensor",
        formula=formula,
        words={"self": "self"},
        checks=_integers(shifts or name, name, masks=not shifts),
        overload=None if shifts else aten_words.number_at(1),
        doc=doc,
        out_needs="self",
        out_history="none",
    )


bitwise_and = _bits("bitwise_and", "self & other", "Bits set in both.")
bitwise_or = _bits("bitwise_or", "self | other", "Bits set in one of them.")
bitwise_xor = _bits("bitwise_xor", "self ^ other", "Bits set in just one of them.")
bitwise_left_shift = _bits(
    "bitwise_left_shift", "shift_left(self, other)", "self·2ᵒᵗʰᵉʳ, in bits.", "lshift"
)
bitwise_right_shift = _bits(
    "bitwise_right_shift",
    "shift_right(self, other)",
    "self/2ᵒᵗʰᵉʳ rounded down, in bits.",
    "rshift",
)
