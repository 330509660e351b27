"""Ops of each element by itself: arithmetic, complex numbers, sigmoid and relu.

For y = f(x) with a gradient g of y, the gradient of x is g·f'(x). The rules below are written for
real numbers; for complex ones Node.apply conjugates around them, which turns g·f'(x) into
g·conj(f'(x)). Rules that look at the conjugate itself say `holomorphic=False`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from toytorch.backends.generic import some
from toytorch.core.op import Op
from toytorch.core.tensor import Tensor
from toytorch.facts import dtype as types
from toytorch.facts.hints import Array, ArrayModule, DType, Scalar
from toytorch.ops import aten_words, flops
from toytorch.ops.define import of_floats, pointwise, underived
from toytorch.ops.elementwise.operand_checks import no_bool, numbers, one_tensor

# -- arithmetic -----------------------------------------------------------------------------------


def _no_bool(hint: str) -> Any:
    def check(common: DType, args: Sequence[Any]) -> None:
        if common is types.bool:
            raise RuntimeError(hint)

    return check


def _check_alpha(common: Any, args: Sequence[Any]) -> None:
    alpha = args[2]
    if alpha.__class__ is complex and not common.is_complex:
        raise RuntimeError(
            "For non-complex input tensors, argument alpha must not be a complex number."
        )
    if isinstance(alpha, bool) and common is not types.bool:
        raise RuntimeError("Boolean alpha only supported for Boolean results.")
    if isinstance(alpha, complex) and not common.is_complex:
        raise RuntimeError(
            "For non-complex input tensors, argument alpha must not be a complex number."
        )
    if isinstance(alpha, float) and common.rank < 2:
        raise RuntimeError(
            "For integral input tensors, argument alpha must not be a floating point number."
        )


def _check_difference(common: DType, args: Sequence[Any]) -> None:
    """Refuses to subtract where an operand is a mask."""
    if common is types.bool:
        raise RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the "
            "`^` or `logical_xor()` operator instead."
        )
    if any(getattr(a, "dtype", None) is types.bool or a.__class__ is bool for a in args[:2]):
        raise RuntimeError(
            "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying "
            "to invert a mask, use the `~` or `logical_not()` operator instead."
        )
    _check_alpha(common, args)


add = pointwise(
    "add(Operand self, Operand other, *, Scalar alpha=1) -> Tensor",
    of_pairs=True,
    formula="self + alpha * other",
    reflected="__radd__",
    checks=_check_alpha,
    narrow="alpha",
    d_self="g",
    d_other="g * alpha",
    flops=flops.elements,
    identity={"other": -0.0},
    spreads="other",
    doc="Sum, self + alpha·other.",
    older="factor first",
)
sub = pointwise(
    "sub(Operand self, Operand other, *, Scalar alpha=1) -> Tensor",
    of_pairs=True,
    formula="self - alpha * other",
    checks=_check_difference,
    narrow="alpha",
    d_self="g",
    d_other="-g * alpha",
    identity={"other": 0.0},
    spreads="-other",
    doc="Difference, self - alpha·other.",
    older="factor first",
)
rsub = pointwise(
    "rsub(Tensor self, Operand other, *, Scalar alpha=1) -> Tensor",
    of_pairs=True,
    formula="other - alpha * self",
    checks=_check_difference,
    variant=lambda self, other, *rest: 0 if hasattr(other, "dtype") else 1,
    forms="function",
    narrow="alpha",
    d_self="-g * alpha",
    d_other="g",
    memory="second",
    spreads="-self",
    older=True,
    overload=aten_words.number_at(1),
    doc="Difference the other way round, other - alpha·self.",
)
mul = pointwise(
    "mul(Operand self, Operand other) -> Tensor",
    of_pairs=True,
    formula="self * other",
    d_self="g * other",
    d_other="g * self",
    wide_number="other",
    flops=flops.elements,
    identity={"self": 1, "other": 1},
    doc="Elementwise product.",
)


div = of_floats(
    "div(Operand self, Operand other) -> Tensor",
    formula="self / other",
    wide_number="other",
    d_self="g / other",
    d_other="-g * ((self / other) / other)",
    identity={"other": 1},
    doc="Quotient; integers are divided as floating-point numbers.",
)


div_floor = pointwise(
    "div.floor(Operand self, Operand other) -> Tensor",
    formula="floordiv(self, other)",
    checks=no_bool("div_floor_cpu"),
    forms="function out",
    d_self="0",
    d_other="0",
    wide_number="other",
    node="DivBackward2",
    variant=lambda self, other: 2 if hasattr(other, "dtype") else 3,
    doc="Quotient rounded down.",
)
div_trunc = pointwise(
    "div.trunc(Operand self, Operand other) -> Tensor",
    formula="truncdiv(self, other)",
    in_halves=True,
    checks=no_bool("div_trunc_cpu"),
    forms="function out",
    d_self="0",
    d_other="0",
    wide_number="other",
    node="DivBackward2",
    variant=lambda self, other: 2 if hasattr(other, "dtype") else 3,
    doc="Quotient rounded towards zero.",
)
floor_divide = pointwise(
    "floor_divide(Operand self, Operand other) -> Tensor",
    formula="floordiv(self, other)",
    checks=no_bool("div_floor_cpu"),
    wide_number="other",
    node="NotImplemented",
    d_self=underived("aten::floor_divide"),
    d_other=underived("aten::floor_divide"),
    overload="default",
    doc="Quotient rounded down.",
)


def _remainder_of(self: Scalar | Tensor, other: Scalar | Tensor) -> int | str:
    """Which of PyTorch's overloads: of a number by a tensor there is no derivative."""
    if not hasattr(self, "dtype"):
        return "Scalar_Tensor"
    return 1 if hasattr(other, "dtype") else 0


remainder = pointwise(
    "remainder(Operand self, Operand other) -> Tensor",
    formula="remainder(self, other)",
    in_halves=True,
    words={"self": "self"},
    checks=one_tensor("remainder", no_bool("remainder_cpu")),
    d_self="g",
    d_other="-g * floordiv(self, other)",
    variant=_remainder_of,
    overload=aten_words.divided,
    doc="Remainder with the sign of the divisor, as Python's %.",
    out_needs="self",
)
fmod = pointwise(
    "fmod(Tensor self, Operand other) -> Tensor",
    formula="fmod(self, other)",
    in_halves=True,
    checks=no_bool("fmod_cpu"),
    d_self="g",
    d_other="-g * truncdiv(self, other)",
    variant=lambda self, other: 1 if hasattr(other, "dtype") else 0,
    overload=aten_words.number_at(1),
    doc="Remainder with the sign of the dividend, as C's fmod.",
)


def _pow_self(g: Tensor, self: Tensor, other: Scalar | Tensor) -> Any:
    if isinstance(other, (int, float, complex)):
        return g.new_zeros(g.shape) if other == 0 else g * (other * self ** (other - 1))
    return (g * (other * self ** (other - 1))).masked_fill(other == 0, 0)


def _pow_other(g: Tensor, self: Tensor | Scalar, other: Tensor, result: Tensor) -> Any:
    if isinstance(self, (int, float, complex)) and self != 0:
        if not isinstance(self, complex) and self > 0:
            return g * (result * math.log(self))
        return g * result * other.new_tensor(self).log()
    zero = (other.real >= 0) & (other.imag == 0) if other.dtype.is_complex else other >= 0
    if isinstance(self, (int, float, complex)):
        return g * (result * -math.inf).masked_fill(zero, 0)
    slope = result * self.to(result.dtype).log()
    return g * slope.masked_fill(zero & (self == 0), 0)


def _no_fraction(common: DType, args: Sequence[Any]) -> None:
    if common is types.bool and args[1].__class__ is not bool:  # those are a copy, or ones
        raise NotImplementedError("\"pow\" not implemented for 'Bool'")
    if isinstance(args[1], int) and args[1] < 0 and common.rank < 2:
        raise RuntimeError("Integers to negative integer powers are not allowed.")


def _pow_variant(self: Tensor | Scalar, other: Scalar | Tensor) -> int:
    return 0 if not hasattr(other, "dtype") else 1 if hasattr(self, "dtype") else 2


pow = pointwise(
    "pow(Operand self, Operand other) -> Tensor",
    formula="pow(self, other)",
    variant=_pow_variant,
    checks=one_tensor("pow", _no_fraction),
    d_self=_pow_self,
    d_other=_pow_other,
    halves="halves pow",
    words={"self": "self", "exponent": "other"},
    memory="tensor first",
    identity={"other": 1},
    overload=aten_words.both,
    doc="Power, selfᵒᵗʰᵉʳ.",
)
neg = pointwise(
    "neg(Tensor self) -> Tensor",
    of_pairs=True,
    formula="-self",
    d_self="-g",
    checks=_no_bool(
        "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to "
        "invert a mask, use the `~` or `logical_not()` operator instead."
    ),
    sparse="sums",
    own_inverse=True,
    doc="Negative.",
    out_type="found",
)
reciprocal = of_floats(
    "reciprocal(Tensor self) -> Tensor",
    formula="reciprocal(self)",
    d_self="-g * (result * result)",
    doc="1/x.",
)
square = pointwise(
    "square(Tensor self) -> Tensor",
    formula="square(self)",
    promotion="count",
    d_self="g * (2 * self)",
    node="PowBackward0",
    sparse="entries",
    doc="x².",
)


abs = pointwise(
    "abs(Tensor self) -> Tensor",
    of_pairs=True,
    formula="abs(self)",
    holomorphic=False,
    d_self="g * sign(self)",
    sparse="entries",
    checks=no_bool("abs_cpu"),
    doc="Absolute value; the modulus of complex numbers.",
    out_type="modulus",
)


def _sgn_gradient(g: Tensor, self: Tensor, result: Tensor) -> Any:
    if not self.dtype.is_complex:
        return g.new_zeros(g.shape)
    size = self.abs()
    zero = size == 0
    return (g / size - result * (g / size * result.conj()).real).masked_fill(zero, 0)


sgn = pointwise(
    "sgn(Tensor self) -> Tensor",
    of_pairs=True,
    formula="sign(self)",
    holomorphic=False,
    d_self=_sgn_gradient,
    sparse="entries",
    doc="x/|x|, and 0 at 0.",
    out_type="found",
)


def _no_complex_sign(common: DType, args: Sequence[Any]) -> None:
    if common.is_complex:
        raise NotImplementedError(
            "Unlike NumPy, torch.sign is not intended to support complex "
            "numbers. Please use torch.sgn instead."
        )


sign = pointwise(
    "sign(Tensor self) -> Tensor",
    formula="sign(self)",
    checks=_no_complex_sign,
    d_self="0",
    sparse="entries",
    doc="-1, 0 or 1.",
    out_type="found",
)

# -- integers -------------------------------------------------------------------------------------

gcd = pointwise(
    "gcd(Tensor self, Tensor other) -> Tensor",
    formula="gcd(self, other)",
    checks=numbers("gcd_cpu", lowest=1, highest=1),
    doc="The greatest common divisor.",
    out_history="none",
)
lcm = pointwise(
    "lcm(Tensor self, Tensor other) -> Tensor",
    formula="lcm(self, other)",
    checks=numbers("lcm_cpu", lowest=1, highest=1),
    doc="The least common multiple.",
    out_history="none",
)


# -- complex numbers ------------------------------------------------------------------------------


def _angle(xp: ArrayModule, a: Array) -> Any:
    if a.dtype.kind == "c":
        return xp.angle(a)
    made = (a < 0) * a.dtype.type(math.pi)
    if a.__class__ is np.ndarray and not some(a != a):
        return made
    return xp.where(xp.isnan(a), a, made)


conj_physical = pointwise(
    "conj_physical(Tensor self) -> Tensor",
    lambda xp, a: xp.conjugate(a) if a.dtype.kind == "c" else a.copy(),
    of_pairs=True,
    holomorphic=False,
    forms="inplace out",
    overlap=lambda self: not self.dtype.is_complex,
    d_self=lambda g: g.conj(),
    sparse="sums",
    doc="Complex conjugate.",
    out_type="found",
    out_history="none",
)
angle = of_floats(
    "angle(Tensor self) -> Tensor",
    _angle,
    forms="function method out",
    holomorphic=False,
    d_self=lambda g, self: _angle_gradient(g, self),
    doc="Argument, in radians.",
)


def _angle_gradient(g: Tensor, self: Tensor) -> Any:
    if not self.dtype.is_complex:
        return g.new_zeros(g.shape)
    size = self.abs()
    i = self.new_tensor(1j)
    return ((g / size) * i * self.sgn()).masked_fill(size == 0, 0)


# -- activations ----------------------------------------------------------------------------------


sigmoid = of_floats(
    "sigmoid(Tensor self) -> Tensor",
    formula="1 / (1 + exp(-self))",
    d_self="g * ((1 - result) * result)",
    rounds_once="bfloat16",
    doc="1/(1 + e⁻ˣ).",
)


def _no_relu(common: DType, args: Sequence[Any]) -> None:
    if common is types.bool:
        raise RuntimeError("Boolean inputs not supported for relu")
    if common.is_complex:
        raise NotImplementedError("clamp is not supported for complex types")


relu = pointwise(
    "relu(Tensor self) -> Tensor",
    formula="maximum(0, self)",
    checks=_no_relu,
    d_self="relu_backward(g, result)",
    sparse="entries",
    doc="max(x, 0); Nair and Hinton 2010.",
    forms="function method inplace",
)


relu_backward: Op = pointwise(
    "relu_backward(Tensor self, Tensor other) -> Tensor",
    formula="0 if other <= 0 else self",
    forms="out",
    d_self="relu_backward(g, other)",
    d_other="0",
    doc="Gradient of relu: 0 where the result, other, is 0, and self elsewhere.",
)
