"""Ops that choose between operands, hold values within limits, or go from one to another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from toytorch.backends.generic import every
from toytorch.core.arguments import is_number
from toytorch.core.op import Op
from toytorch.core.scalars import raise_overflow
from toytorch.facts import dtype as types
from toytorch.facts.hints import Array, ArrayModule, DType
from toytorch.ops import aten_words
from toytorch.ops.define import pointwise
from toytorch.ops.elementwise.operand_checks import no_bool, no_complex

# -- choice between operands ----------------------------------------------------------------------


def _larger(name: str, over: str, doc: str) -> Op:
    """`maximum`, or where the other sign stands `over`, `minimum`."""
    under = "<" if over == ">" else ">"
    return pointwise(
        f"{name}(Tensor self, Tensor other) -> Tensor",
        formula=f"{name}(self, other)",
        forms="function method out",
        d_self=f"0 if self {under} other else g / 2 if self == other else g",
        d_other=f"0 if self {over} other else g / 2 if self == other else g",
        checks=no_complex(f"{name} not implemented for complex tensors."),
        doc=f"The {doc} operand; NaN where either is. Ties share the gradient.",
    )


def _larger_number(name: str, over: str, doc: str) -> Op:
    return pointwise(
        f"{name}(Tensor self, Tensor other) -> Tensor",
        formula=f"{name}(self, other)",
        forms="function method out",
        checks=no_complex(f"{name} not implemented for complex tensors."),
        d_self=f"g if self {over}= other or isnan(other) else 0",
        d_other=f"0 if self {over}= other or isnan(other) else g",
        doc=f"The {doc} operand; a number where only one is NaN.",
    )


maximum, minimum = _larger("maximum", ">", "larger"), _larger("minimum", "<", "smaller")
fmax, fmin = _larger_number("fmax", ">", "larger"), _larger_number("fmin", "<", "smaller")


NAME = "clamp"
NO_COMPLEX = "clamp is not supported for complex types"


def _no_kernel(name: str, common: DType) -> Exception:
    return NotImplementedError(f"\"{name}_cpu\" not implemented for '{common.legacy}'")


# The least and the largest number that stands for an element of a short type: of bytes, also below 0.
REACH = {kind: (1 - (1 << n), (1 << n) - 1) for kind, n in ((types.uint8, 8), (types.uint16, 16))}
REACH |= {
    kind: (-(1 << n), (1 << n) - 1)
    for kind, n in ((types.int8, 7), (types.int16, 15), (types.int32, 31))
}


def _refuse_beyond(common: DType, args: Sequence[Any]) -> None:
    """Refuses a limit that is no element of a short type; in other places integers wrap."""
    low, high = REACH[common]
    for limit in args[1:]:
        if limit.__class__ is int and not low <= limit <= high:
            raise_overflow(common.name)


def _check_limits(common: DType, args: Sequence[Any], which: str) -> None:
    """What PyTorch refuses: complex numbers, and truth values where a limit is a number; `which`
    limits there are ends the name of its kernel: "_min", "_max", "" for both."""
    if 0 < common.rank < 3:
        return _refuse_beyond(common, args) if common in REACH else None
    as_tensors = all(hasattr(a, "dtype") for a in args[1:] if a is not None)
    if args[0].dtype.is_complex and not (which and as_tensors):
        raise NotImplementedError(NO_COMPLEX)
    if common.is_complex and as_tensors:
        raise _no_kernel(("maximum" if which == "_min" else "minimum") if which else NAME, common)
    if common.is_complex:
        raise NotImplementedError(NO_COMPLEX)
    if common is types.bool and not as_tensors:
        raise _no_kernel(f"{NAME}{which}_scalar", common)


def _check_clamp(common: DType, args: Sequence[Any]) -> None:
    least, most = args[1:]
    if least is None and most is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if least.__class__ is not most.__class__ and not (least is None or most is None):
        numbers = [not hasattr(v, "dtype") for v in (least, most)]
        if any(numbers) and not all(map(is_number, (least, most))):
            raise TypeError("clamp() received an invalid combination of arguments")
    if 0 < common.rank < 3 and complex not in (least.__class__, most.__class__):
        return _refuse_beyond(common, args) if common in REACH else None
    if args[0].dtype.rank == 2 and (least.__class__ is complex or most.__class__ is complex):
        raise RuntimeError("value cannot be converted to type double without overflow")
    if args[0].dtype.is_complex:
        raise NotImplementedError(NO_COMPLEX)
    which = "_max" if least is None else "_min" if most is None else ""
    _check_limits(common, args, which)
    if not which and common is types.bool:
        raise _no_kernel(NAME, common)


clamp = pointwise(
    "clamp(Tensor self, Operand? min=None, Operand? max=None) -> Tensor",
    formula="""
        x = self if min is None else maximum(min, self)
        x if max is None else minimum(max, x)
    """,
    variant=lambda self, min, max: 0 if hasattr(min, "dtype") or hasattr(max, "dtype") else 1,
    checks=_check_clamp,
    d_self="""
        inside = g if min is None else g if self >= min else 0
        inside if max is None else inside if self <= max else 0
    """,
    d_min="(g if self < min else 0) if max is None else g if self < min and min < max else 0",
    d_max="(g if self > max else 0) if min is None else g if self > max or max < min else 0",
    out_type="found beside numbers",
    overload=aten_words.limits,
    doc="Values held between a lower and an upper limit.",
)
clamp_min = pointwise(
    "clamp_min(Tensor self, Operand min) -> Tensor",
    formula="maximum(min, self)",
    d_self="g if self >= min else 0",
    d_min="g if self < min else 0",
    variant=lambda self, min: 1 if hasattr(min, "dtype") else 0,
    checks=lambda common, args: _check_limits(common, args, "_min"),
    out_type="found beside numbers",
    doc="Values held above a limit.",
)
clamp_max = pointwise(
    "clamp_max(Tensor self, Operand max) -> Tensor",
    formula="minimum(max, self)",
    d_self="g if self <= max else 0",
    d_max="g if self > max else 0",
    variant=lambda self, max: 1 if hasattr(max, "dtype") else 0,
    checks=lambda common, args: _check_limits(common, args, "_max"),
    out_type="found beside numbers",
    doc="Values held below a limit.",
)


def _one_dtype(common: Any, args: Sequence[Any]) -> None:
    kinds = args[0]._dtype, getattr(args[1], "dtype", None)
    if kinds[0] is common is kinds[1] and common.rank > 1 and args[2].__class__ is float:
        return  # the usual case
    for name, a in zip(("end", "weight"), args[1:]):
        if name == "weight" and not getattr(a, "ndim", 0):
            continue  # as a number
        if getattr(a, "dtype", args[0].dtype) is not args[0].dtype:
            raise RuntimeError(
                f"expected dtype {types.IN_C[args[0].dtype.name]} for `{name}` but got "
                f"dtype {types.IN_C[a.dtype.name]}"
            )
    if common.rank < 2:
        kernel = "tensor" if hasattr(args[2], "dtype") else "scalar"
        raise NotImplementedError(f"\"lerp_kernel_{kernel}\" not implemented for '{common.legacy}'")


lerp = pointwise(
    "lerp(Tensor self, Tensor end, Operand weight) -> Tensor",
    formula="self + weight * (end - self) if abs(weight) < 0.5 else end - (end - self) * (1 - weight)",
    promotion="tensors",
    wide_number="weight",
    checks=_one_dtype,
    variant=lambda self, end, weight: 1 if hasattr(weight, "dtype") else 0,
    d_self="g * (1 - weight)",
    d_end="g * weight",
    d_weight="g * (end - self)",
    overload=aten_words.number_at(2),
    doc="The point between self and end at the fraction weight.",
)


addcmul = pointwise(
    "addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    of_pairs=True,
    formula="self + value * tensor1 * tensor2",
    checks=no_bool("addcmul_cpu_out"),
    d_self="g",
    d_tensor1="g * (value * tensor2)",
    d_tensor2="g * (value * tensor1)",
    spreads="tensor1",
    doc="self + value·tensor1·tensor2.",
    older=True,
)


def _no_integer_quotient(common: Any, args: Sequence[Any]) -> None:
    if all(a.dtype.rank < 2 for a in args[1:3]):
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported, and in a future  "
            "release addcdiv will perform a true division of tensor1 and tensor2."
        )


addcdiv = pointwise(
    "addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    formula="self + value * tensor1 / tensor2",
    checks=_no_integer_quotient,
    d_self="g",
    d_tensor1="g * value / tensor2",
    d_tensor2="-g * (value * tensor1 / (tensor2 * tensor2))",
    spreads="tensor1",
    doc="self + value·tensor1/tensor2.",
    older=True,
)


def _nan_to_num(
    xp: ArrayModule, a: Array, nan: float | None, posinf: float | None, neginf: float | None
) -> Any:
    kind = types.from_numpy_dtype(a.dtype)
    if kind.rank < 2:
        return a.copy()
    if kind.is_complex:
        made = a.copy()
        made.real = _nan_to_num(xp, a.real, nan, posinf, neginf)
        made.imag = _nan_to_num(xp, a.imag, nan, posinf, neginf)
        return made
    if a.__class__ is np.ndarray and every(np.isfinite(a)):
        return a.copy()
    limits = types.finfo(kind)
    made = xp.where(xp.isnan(a), a.dtype.type(nan or 0.0), a)
    made = xp.where(a == xp.inf, a.dtype.type(limits.max if posinf is None else posinf), made)
    return xp.where(a == -xp.inf, a.dtype.type(limits.min if neginf is None else neginf), made)


nan_to_num = pointwise(
    "nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor",
    _nan_to_num,
    promotion="none",
    d_self=lambda g, self: g * (self.isfinite()).to(g.dtype),
    of_reals="nan_to_num",
    overlap=lambda self, *_: self.dtype.rank < 2,  # of which nothing is written
    out_rows=lambda self, *_: self.dtype.rank < 2,
    memory="kept",
    sparse="entries",
    out_type="same",
    doc="NaN and infinities replaced by numbers.",
)
