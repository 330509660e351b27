"""Ops that choose between operands, hold values within limits, or go from one to another."""

from __future__ import annotations

from typing import Any

import numpy as np

from toytorch.core.tensor import wrap
from toytorch.facts import dtype as types
from toytorch.facts import state
from toytorch.loops.elementwise import Loop
from toytorch.ops.define import pointwise

# -- choice between operands ----------------------------------------------------------------------


def _half_on_tie(g: Any, wins: Any, ties: Any) -> Any:
    return (g * wins.to(g.dtype)) + g * ties.to(g.dtype) / 2


def _max_self(g: Any, self: Any, other: Any) -> Any:
    return _half_on_tie(g, self > other, self == other)


def _max_other(g: Any, self: Any, other: Any) -> Any:
    return _half_on_tie(g, other > self, self == other)


def _no_complex(name: str) -> Any:
    def check(common: Any, args: Any) -> None:
        if common.is_complex:
            raise RuntimeError(f"{name} not implemented for complex tensors.")

    return check


maximum = pointwise(
    "maximum(Tensor self, Tensor other) -> Tensor",
    "maximum",
    inplace=False,
    expr="max(self, other)",
    d_self=_max_self,
    d_other=_max_other,
    checks=_no_complex("maximum"),
    cost="cheap",
    doc="The larger operand; NaN where either is. Ties share the gradient.",
)
minimum = pointwise(
    "minimum(Tensor self, Tensor other) -> Tensor",
    "minimum",
    inplace=False,
    expr="min(self, other)",
    d_self=lambda g, self, other: _max_other(g, self, other),
    d_other=lambda g, self, other: _max_self(g, self, other),
    checks=_no_complex("minimum"),
    cost="cheap",
    doc="The smaller operand; NaN where either is. Ties share the gradient.",
)
fmax = pointwise(
    "fmax(Tensor self, Tensor other) -> Tensor",
    "fmax",
    inplace=False,
    expr="fmax(self, other)",
    checks=_no_complex("fmax"),
    d_self=lambda g, self, other: g.masked_fill(~((self >= other) | other.isnan()), 0),
    d_other=lambda g, self, other: g.masked_fill((self >= other) | other.isnan(), 0),
    doc="The larger operand; a number where only one is NaN.",
)
fmin = pointwise(
    "fmin(Tensor self, Tensor other) -> Tensor",
    "fmin",
    inplace=False,
    expr="fmin(self, other)",
    checks=_no_complex("fmin"),
    d_self=lambda g, self, other: g.masked_fill(~((self <= other) | other.isnan()), 0),
    d_other=lambda g, self, other: g.masked_fill((self <= other) | other.isnan(), 0),
    doc="The smaller operand; a number where only one is NaN.",
)


CLAMP = {
    (True, True): Loop("y = minimum(maximum(x, low), high)", "y x", "low high"),
    (True, False): Loop("y = maximum(x, low)", "y x", "low"),
    (False, True): Loop("y = minimum(x, high)", "y x", "high"),
}
INSIDE = {
    (True, True): Loop("dx = g if x >= low and x <= high else 0", "dx g x", "low high"),
    (True, False): Loop("dx = g if x >= low else 0", "dx g x", "low"),
    (False, True): Loop("dx = g if x <= high else 0", "dx g x", "high"),
}


def _clamp(xp: Any, a: Any, low: Any, high: Any) -> Any:
    if low is None and high is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if a.dtype.kind == "c":
        raise RuntimeError("clamp is not supported for complex types")
    limits = [v for v in (low, high) if v is not None]
    if all(not v.ndim and v.dtype == a.dtype for v in limits):
        made = CLAMP[low is not None, high is not None].of(xp, a, *map(float, limits))
        if made is not None:
            return made
    a = a if low is None else xp.maximum(a, low)
    return a if high is None else xp.minimum(a, high)


def _inside(self: Any, min: Any, max: Any) -> Any:
    mask = self == self
    mask = mask if min is None else mask & (self >= min)
    return mask if max is None else mask & (self <= max)


def _clamp_gradient(g: Any, self: Any, min: Any, max: Any) -> Any:
    limits = [v for v in (min, max) if v is not None]
    if (
        not state.local.grad
        and state.shortcut is not state.SLOW
        and not any(hasattr(v, "dtype") for v in limits)
        and self._array.__class__ is np.ndarray
    ):
        made = INSIDE[min is not None, max is not None].of(
            np, g._array, self._array, *map(float, limits)
        )
        if made is not None:
            return wrap(made)
    return g * _inside(self, min, max).to(g.dtype)


def _clamp_variant(self: Any, min: Any, max: Any) -> int:
    return 0 if hasattr(min, "dtype") or hasattr(max, "dtype") else 1


clamp = pointwise(
    "clamp(Tensor self, Operand? min=None, Operand? max=None) -> Tensor",
    _clamp,
    variant=_clamp_variant,
    expr="min(max(self, min), max)",
    d_self=_clamp_gradient,
    d_min=lambda g, self, min, max: (
        g * ((self < min) if max is None else (self < min) & (min < max)).to(g.dtype)
    ),
    d_max=lambda g, self, min, max: (
        g * ((self > max) if min is None else (self > max) | (max < min)).to(g.dtype)
    ),
    cost="cheap",
    doc="Values held between a lower and an upper limit.",
)
clamp_min = pointwise(
    "clamp_min(Tensor self, Operand min) -> Tensor",
    "maximum",
    expr="max(self, min)",
    d_self=lambda g, self, min: g * (self >= min).to(g.dtype),
    d_min=lambda g, self, min: g * (self < min).to(g.dtype),
    cost="cheap",
    doc="Values held above a limit.",
)
clamp_max = pointwise(
    "clamp_max(Tensor self, Operand max) -> Tensor",
    "minimum",
    expr="min(self, max)",
    d_self=lambda g, self, max: g * (self <= max).to(g.dtype),
    d_max=lambda g, self, max: g * (self > max).to(g.dtype),
    cost="cheap",
    doc="Values held below a limit.",
)


def _lerp(xp: Any, a: Any, b: Any, w: Any) -> Any:
    return xp.where(xp.abs(w) < 0.5, a + w * (b - a), b - (b - a) * (1 - w))


def _one_dtype(common: Any, args: Any) -> None:
    for name, a in zip(("end", "weight"), args[1:]):
        if name == "weight" and not getattr(a, "ndim", 0):
            continue  # as a number
        if getattr(a, "dtype", args[0].dtype) is not args[0].dtype:
            from toytorch.ops.linalg.matmul import C_NAMES

            raise RuntimeError(
                f"expected dtype {C_NAMES[args[0].dtype.name]} for `{name}` but got "
                f"dtype {C_NAMES[a.dtype.name]}"
            )


lerp = pointwise(
    "lerp(Tensor self, Tensor end, Operand weight) -> Tensor",
    _lerp,
    checks=_one_dtype,
    variant=lambda self, end, weight: 1 if hasattr(weight, "dtype") else 0,
    expr="self + weight * (end - self)",
    d_self=lambda g, weight: g * (1 - weight),
    d_end=lambda g, weight: g * weight,
    d_weight=lambda g, self, end: g * (end - self),
    doc="The point between self and end at the fraction weight.",
)


def _times(xp: Any, value: Any, array: Any) -> Any:
    return array if value == 1 else array * xp.asarray(value).astype(array.dtype)


addcmul = pointwise(
    "addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    lambda xp, a, b, c, value: a + _times(xp, value, b) * c,
    expr="self + value * tensor1 * tensor2",
    d_self=lambda g: g,
    d_tensor1=lambda g, tensor2, value: g * (tensor2 * value),
    d_tensor2=lambda g, tensor1, value: g * (tensor1 * value),
    cost="expensive",
    doc="self + value·tensor1·tensor2.",
)


def _no_integer_quotient(common: Any, args: Any) -> None:
    if all(a.dtype.rank < 2 for a in args[1:3]):
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported, and in a future  "
            "release addcdiv will perform a true division of tensor1 and tensor2."
        )


def _addcdiv(xp: Any, a: Any, b: Any, c: Any, value: Any) -> Any:
    return a + _times(xp, value, b) / c


addcdiv = pointwise(
    "addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    _addcdiv,
    expr="self + value * tensor1 / tensor2",
    checks=_no_integer_quotient,
    d_self=lambda g: g,
    d_tensor1=lambda g, tensor2, value: g * (value / tensor2),
    d_tensor2=lambda g, tensor1, tensor2, value: -g * (value * tensor1 / (tensor2 * tensor2)),
    cost="expensive",
    doc="self + value·tensor1/tensor2.",
)


def _nan_to_num(xp: Any, a: Any, nan: Any, posinf: Any, neginf: Any) -> Any:
    kind = types.from_numpy_dtype(a.dtype)
    if kind.rank < 2:
        return a.copy()
    if kind.is_complex:
        made = a.copy()
        made.real = _nan_to_num(xp, a.real, nan, posinf, neginf)
        made.imag = _nan_to_num(xp, a.imag, nan, posinf, neginf)
        return made
    limits = types.finfo(kind)
    made = xp.where(xp.isnan(a), a.dtype.type(nan or 0.0), a)
    made = xp.where(a == xp.inf, a.dtype.type(limits.max if posinf is None else posinf), made)
    return xp.where(a == -xp.inf, a.dtype.type(limits.min if neginf is None else neginf), made)


nan_to_num = pointwise(
    "nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor",
    _nan_to_num,
    expr="nan_to_num(self)",
    promotion="none",
    d_self=lambda g, self: g * (self.isfinite()).to(g.dtype),
    sparse="entries",
    doc="NaN and infinities replaced by numbers.",
)
