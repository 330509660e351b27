"""Ops of each element by itself: arithmetic, exponentials, trigonometry, rounding, activations.

For y = f(x) with a gradient g of y, the gradient of x is g·f'(x). The rules below are written for
real numbers; for complex ones Node.apply conjugates around them, which turns g·f'(x) into
g·conj(f'(x)). Rules that look at the conjugate itself say `holomorphic=False`.
"""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np

import toytorch.core.dtype as types
from toytorch.backends.native import SMALLEST, Loop
from toytorch.core.op import Op
from toytorch.ops.define import pointwise
from toytorch.ops.operands import one_tensor

# -- arithmetic -----------------------------------------------------------------------------------


def _no_bool(hint: str) -> Any:
    def check(common: Any, args: Any) -> None:
        if common is types.bool:
            raise RuntimeError(hint)
    return check


def _no_mask(common: Any, args: Any) -> None:
    """Refuses to subtract where an operand is a mask."""
    if common is types.bool:
        raise RuntimeError(SUB_BOOL)
    if any(getattr(a, "dtype", None) is types.bool or a.__class__ is bool for a in args[:2]):
        raise RuntimeError("Subtraction, the `-` operator, with a bool tensor is not supported. If "
                           "you are trying to invert a mask, use the `~` or `logical_not()` "
                           "operator instead.")


def _scalar_variant(number: int, tensor: int) -> Any:
    """The overload of (Tensor, number) and of (Tensor, Tensor)."""
    return lambda self, other, *rest: tensor if hasattr(other, "dtype") else number


def _add(xp: Any, a: Any, b: Any, alpha: Any = 1) -> Any:
    if alpha == 1:
        return xp.add(a, b)
    _check_alpha(a, b, alpha)
    return xp.add(a, xp.multiply(b, xp.asarray(alpha).astype(b.dtype)))


def _sub(xp: Any, a: Any, b: Any, alpha: Any = 1) -> Any:
    if alpha == 1:
        return xp.subtract(a, b)
    _check_alpha(a, b, alpha)
    return xp.subtract(a, xp.multiply(b, xp.asarray(alpha).astype(b.dtype)))


def _check_alpha(a: Any, b: Any, alpha: Any) -> None:
    if isinstance(alpha, bool) and a.dtype != bool:
        raise RuntimeError("Boolean alpha only supported for Boolean results.")
    if isinstance(alpha, float) and a.dtype.kind in "biu":
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating "
                           "point number.")


def _scaled(g: Any, alpha: Any) -> Any:
    return g if alpha == 1 else g * alpha


SUB_BOOL = ("Subtraction, the `-` operator, with two bool tensors is not supported. Use the "
            "`^` or `logical_xor()` operator instead.")

add = pointwise("add(Operand self, Operand other, *, Scalar alpha=1) -> Tensor", _add, plain="add",
                expr="self + alpha * other", reflected="__radd__",
                d_self="g", d_other="g if alpha == 1 else g * alpha",
                doc="Sum, self + alpha·other.")
sub = pointwise("sub(Operand self, Operand other, *, Scalar alpha=1) -> Tensor", _sub,
                plain="subtract",
                expr="self - alpha * other", checks=_no_mask,
                d_self="g", d_other="-g if alpha == 1 else -g * alpha",
                doc="Difference, self - alpha·other.")
rsub = pointwise("rsub(Tensor self, Operand other, *, Scalar alpha=1) -> Tensor",
                 lambda xp, a, b, alpha=1: _sub(xp, b, a, alpha), expr="other - alpha * self",
                 checks=_no_mask, variant=_scalar_variant(1, 0), inplace=False, method=False,
                 d_self=lambda g, alpha: -_scaled(g, alpha), d_other=lambda g: g,
                 doc="Difference the other way round, other - alpha·self.")
mul = pointwise("mul(Operand self, Operand other) -> Tensor", "multiply", expr="self * other",
                d_self="g * other", d_other="g * self",
                doc="Elementwise product.")


div = pointwise("div(Operand self, Operand other) -> Tensor", "divide", expr="self / other",
                promotion="float", d_self="g / other",
                d_other="-g * ((self / other) / other)",
                doc="Quotient; integers are divided as floating-point numbers.")


def _floor_divide(xp: Any, a: Any, b: Any) -> Any:
    if a.dtype.kind in "iub":
        if not xp.all(b):
            raise RuntimeError("ZeroDivisionError")
        return xp.floor_divide(a, b)
    q = xp.floor_divide(a, b)
    return xp.where(b == 0, a / b, q) if a.dtype.kind == "f" else q


def _trunc_divide(xp: Any, a: Any, b: Any) -> Any:
    if a.dtype.kind in "iub":
        if not xp.all(b):
            raise RuntimeError("ZeroDivisionError")
        q = xp.floor_divide(a, b)
        return q + ((q < 0) & (q * b != a)).astype(q.dtype)
    return xp.trunc(a / b)


div_floor = pointwise("div.floor(Operand self, Operand other) -> Tensor", _floor_divide,
                      expr="floor(self / other)", method=False, inplace=False,
                      d_self=lambda g: g * 0, d_other=lambda g: g * 0,
                      node="DivBackward1", doc="Quotient rounded down.")
div_trunc = pointwise("div.trunc(Operand self, Operand other) -> Tensor", _trunc_divide,
                      expr="trunc(self / other)", method=False, inplace=False,
                      d_self=lambda g: g * 0, d_other=lambda g: g * 0,
                      node="DivBackward1", doc="Quotient rounded towards zero.")
floor_divide = pointwise("floor_divide(Operand self, Operand other) -> Tensor", _floor_divide,
                         expr="floor(self / other)", doc="Quotient rounded down.")


def _remainder(xp: Any, a: Any, b: Any) -> Any:
    if a.dtype.kind in "iub" and not xp.all(b):
        raise RuntimeError("ZeroDivisionError")
    return xp.remainder(a, b)


def _fmod(xp: Any, a: Any, b: Any) -> Any:
    if a.dtype.kind in "iub" and not xp.all(b):
        raise RuntimeError("ZeroDivisionError")
    return xp.fmod(a, b)


remainder = pointwise("remainder(Operand self, Operand other) -> Tensor", _remainder,
                      checks=one_tensor("remainder"),
                      expr="self - other * floor(self / other)", d_self=lambda g: g,
                      d_other=lambda g, self, other: -g * self.div(other, rounding_mode="floor"),
                      doc="Remainder with the sign of the divisor, as Python's %.")
fmod = pointwise("fmod(Tensor self, Operand other) -> Tensor", _fmod,
                 expr="self - other * trunc(self / other)", d_self=lambda g: g,
                 d_other=lambda g, self, other: -g * self.div(other, rounding_mode="trunc"),
                 doc="Remainder with the sign of the dividend, as C's fmod.")


def _pow(xp: Any, a: Any, b: Any) -> Any:
    if a.dtype.kind in "iu":
        if xp.any(b < 0):
            with_zero = xp.power(a, xp.maximum(b, 0))
            ones = xp.where(xp.abs(a) == 1, xp.power(a, xp.abs(b)), 0)
            return xp.where(b < 0, ones, with_zero).astype(a.dtype)
        return xp.power(a, b)
    if a.dtype.kind == "b":
        return xp.logical_or(a, xp.logical_not(b))
    if b.ndim == 0 and b.dtype.kind == "f":  # the powers that have a cheaper name
        if b == 2:
            return xp.multiply(a, a)
        if b == 3:
            return xp.multiply(xp.multiply(a, a), a)
        if b == 0.5:
            return xp.sqrt(a)
        if b == -1:
            return xp.reciprocal(a)
    return xp.power(a, b)


def _pow_self(g: Any, self: Any, other: Any) -> Any:
    if isinstance(other, (int, float, complex)):
        return g * 0 if other == 0 else g * (other * self ** (other - 1))
    return (g * (other * self ** (other - 1))).masked_fill(other == 0, 0)


def _pow_other(g: Any, self: Any, other: Any, result: Any) -> Any:
    if not hasattr(self, "log"):
        if self == 0:
            return (g * 0).masked_fill(other < 0, math.nan) if not other.dtype.is_complex else g * 0
        return g * (result * math.log(self)) if isinstance(self, (int, float)) and self > 0 \
            else g * result * _log_of(self, other)
    zero = (self == 0) & (((other.real >= 0) & (other.imag == 0)) if other.dtype.is_complex
                          else other >= 0)
    return (g * (result * self.to(result.dtype).log())).masked_fill(zero, 0)


def _log_of(value: Any, like: Any) -> Any:
    return like.new_tensor(value).log()


def _no_fraction(common: Any, args: Any) -> None:
    if isinstance(args[1], int) and args[1] < 0 and common.rank < 2:
        raise RuntimeError("Integers to negative integer powers are not allowed.")


def _pow_variant(self: Any, other: Any) -> int:
    return 0 if not hasattr(other, "dtype") else 1 if hasattr(self, "dtype") else 2


pow = pointwise("pow(Operand self, Operand other) -> Tensor", _pow, expr="pow(self, other)",
                variant=_pow_variant, checks=one_tensor("pow", _no_fraction),
                d_self=_pow_self, d_other=_pow_other, doc="Power, selfᵒᵗʰᵉʳ.")
neg = pointwise("neg(Tensor self) -> Tensor", "negative", expr="-self", d_self="-g",
                checks=_no_bool("Negation, the `-` operator, on a bool tensor is not "
                                "supported. If you are trying to invert a mask, use the `~` or "
                                "`logical_not()` operator instead."), doc="Negative.")
reciprocal = pointwise("reciprocal(Tensor self) -> Tensor", "reciprocal", expr="1 / self",
                       promotion="float", d_self="-g * (result * result)",
                       doc="1/x.")
square = pointwise("square(Tensor self) -> Tensor",
                   lambda xp, a: xp.square(a if a.dtype.kind != "b" else a.astype("int64")),
                   plain="square", promotion="count", expr="self * self",
                   d_self="g * (2 * self)",
                   node="PowBackward0", doc="x².")


def _abs_gradient(g: Any, self: Any) -> Any:
    return g * self.sgn()


abs = pointwise("abs(Tensor self) -> Tensor", "absolute", expr="abs(self)", holomorphic=False,
                d_self=_abs_gradient, doc="Absolute value; the modulus of complex numbers.")


def _sgn(xp: Any, a: Any) -> Any:
    if a.dtype.kind == "c":
        size = xp.absolute(a)
        return xp.where(size == 0, 0, a / xp.where(size == 0, 1, size)).astype(a.dtype)
    return _sign(xp, a)


def _sgn_gradient(g: Any, self: Any, result: Any) -> Any:
    if not self.dtype.is_complex:
        return g * 0
    size = self.abs()
    zero = size == 0
    return (g / size - result * (g / size * result.conj()).real).masked_fill(zero, 0)


def _sign(xp: Any, a: Any) -> Any:
    if a.dtype.kind == "c":
        raise RuntimeError("Unlike NumPy, torch.sign doesn't support complex numbers.")
    if a.dtype.kind == "b":
        return a.copy()
    s = xp.sign(a)
    return xp.where(xp.isnan(a), 0, s) if a.dtype.kind == "f" else s


sgn = pointwise("sgn(Tensor self) -> Tensor", _sgn, expr="sign(self)", holomorphic=False,
                d_self=_sgn_gradient, doc="x/|x|, and 0 at 0.")
sign = pointwise("sign(Tensor self) -> Tensor", _sign, expr="sign(self)", d_self=lambda g: g * 0,
                 doc="-1, 0 or 1.")

# -- powers, exponentials and logarithms ----------------------------------------------------------

sqrt = pointwise("sqrt(Tensor self) -> Tensor", "sqrt", expr="sqrt(self)", promotion="float",
                 d_self="g / (2 * result)", doc="Square root.")
rsqrt = pointwise("rsqrt(Tensor self) -> Tensor", lambda xp, a: 1 / xp.sqrt(a),
                  expr="1 / sqrt(self)", promotion="float",
                  d_self=lambda g, result: -0.5 * g * result ** 3, doc="1/√x.")
exp = pointwise("exp(Tensor self) -> Tensor", "exp", expr="exp(self)", promotion="float",
                d_self="g * result", doc="eˣ.")
exp2 = pointwise("exp2(Tensor self) -> Tensor", "exp2", expr="exp2(self)", promotion="float",
                 d_self=lambda g, result: g * result * math.log(2), doc="2ˣ.")
expm1 = pointwise("expm1(Tensor self) -> Tensor", "expm1", expr="expm1(self)", promotion="float",
                  d_self=lambda g, result: g * (result + 1), doc="eˣ - 1, exact near 0.")
log = pointwise("log(Tensor self) -> Tensor", "log", expr="log(self)", promotion="float",
                d_self=lambda g, self: g / self, doc="Natural logarithm.")
log2 = pointwise("log2(Tensor self) -> Tensor", "log2", expr="log2(self)", promotion="float",
                 d_self=lambda g, self: g / (self * math.log(2)), doc="Logarithm to base 2.")
log10 = pointwise("log10(Tensor self) -> Tensor", "log10", expr="log10(self)", promotion="float",
                  d_self=lambda g, self: g / (self * math.log(10)), doc="Logarithm to base 10.")
log1p = pointwise("log1p(Tensor self) -> Tensor", "log1p", expr="log1p(self)", promotion="float",
                  d_self=lambda g, self: g / (self + 1), doc="log(1 + x), exact near 0.")


def _logaddexp_share(g: Any, a: Any, result: Any) -> Any:
    return g * (a - result).exp().masked_fill(result == -math.inf, 0)


def _logaddexp(xp: Any, a: Any, b: Any) -> Any:
    if a.dtype.kind != "c":
        return xp.logaddexp(a, b)
    top = xp.where(a.real > b.real, a, b)
    return top + xp.log(xp.exp(a - top) + xp.exp(b - top))


logaddexp = pointwise("logaddexp(Tensor self, Tensor other) -> Tensor", _logaddexp,
                      expr="log(exp(self) + exp(other))", promotion="float", inplace=False,
                      d_self=lambda g, self, result: _logaddexp_share(g, self, result),
                      d_other=lambda g, other, result: _logaddexp_share(g, other, result),
                      doc="log(eᵃ + eᵇ) without overflow.")
hypot = pointwise("hypot(Tensor self, Tensor other) -> Tensor", "hypot",
                  expr="sqrt(self * self + other * other)", promotion="default",
                  d_self=lambda g, self, result: g * (self / result),
                  d_other=lambda g, other, result: g * (other / result), doc="√(a² + b²).")

# -- trigonometry ---------------------------------------------------------------------------------

sin = pointwise("sin(Tensor self) -> Tensor", "sin", expr="sin(self)", promotion="float",
                d_self=lambda g, self: g * self.cos(), doc="Sine of an angle in radians.")
cos = pointwise("cos(Tensor self) -> Tensor", "cos", expr="cos(self)", promotion="float",
                d_self=lambda g, self: g * -self.sin(), doc="Cosine of an angle in radians.")
tan = pointwise("tan(Tensor self) -> Tensor", "tan", expr="tan(self)", promotion="float",
                d_self=lambda g, result: g * (1 + result * result), doc="Tangent.")
asin = pointwise("asin(Tensor self) -> Tensor", "arcsin", expr="asin(self)", promotion="float",
                 d_self=lambda g, self: g * (1 - self * self).rsqrt(), doc="Inverse sine.")
acos = pointwise("acos(Tensor self) -> Tensor", "arccos", expr="acos(self)", promotion="float",
                 d_self=lambda g, self: g * -(1 - self * self).rsqrt(), doc="Inverse cosine.")
atan = pointwise("atan(Tensor self) -> Tensor", "arctan", expr="atan(self)", promotion="float",
                 d_self=lambda g, self: g / (self * self + 1), doc="Inverse tangent.")
sinh = pointwise("sinh(Tensor self) -> Tensor", "sinh", expr="sinh(self)", promotion="float",
                 d_self=lambda g, self: g * self.cosh(), doc="Hyperbolic sine.")
cosh = pointwise("cosh(Tensor self) -> Tensor", "cosh", expr="cosh(self)", promotion="float",
                 d_self=lambda g, self: g * self.sinh(), doc="Hyperbolic cosine.")
tanh = pointwise("tanh(Tensor self) -> Tensor", "tanh", expr="tanh(self)", promotion="float",
                 d_self="g * (1 - result * result)",
                 doc="Hyperbolic tangent.")
asinh = pointwise("asinh(Tensor self) -> Tensor", "arcsinh", expr="asinh(self)",
                  promotion="float", d_self=lambda g, self: g * (self * self + 1).rsqrt(),
                  doc="Inverse hyperbolic sine.")
acosh = pointwise("acosh(Tensor self) -> Tensor", "arccosh", expr="acosh(self)",
                  promotion="float",
                  d_self=lambda g, self: g * ((self - 1).rsqrt() * (self + 1).rsqrt()),
                  doc="Inverse hyperbolic cosine.")
atanh = pointwise("atanh(Tensor self) -> Tensor", "arctanh", expr="atanh(self)",
                  promotion="float", d_self=lambda g, self: g / (1 - self * self),
                  doc="Inverse hyperbolic tangent.")


def _atan2_share(g: Any, self: Any, other: Any) -> Any:
    size = self * self + other * other
    return (g / size).masked_fill(size == 0, 0)


atan2 = pointwise("atan2(Tensor self, Tensor other) -> Tensor", "arctan2",
                  expr="atan2(self, other)", promotion="float",
                  d_self=lambda g, self, other: _atan2_share(g, self, other) * other,
                  d_other=lambda g, self, other: _atan2_share(g, self, other) * -self,
                  doc="The angle of the point (other, self).")

# -- rounding -------------------------------------------------------------------------------------


def _rounding(name: str) -> Any:
    def kernel(xp: Any, a: Any) -> Any:
        return getattr(xp, name)(a) if a.dtype.kind == "f" else a + 0
    return kernel


floor = pointwise("floor(Tensor self) -> Tensor", _rounding("floor"), expr="floor(self)",
                  d_self=lambda g: g * 0, doc="The largest integer not above.")
ceil = pointwise("ceil(Tensor self) -> Tensor", _rounding("ceil"), expr="ceil(self)",
                 d_self=lambda g: g * 0, doc="The smallest integer not below.")
trunc = pointwise("trunc(Tensor self) -> Tensor", _rounding("trunc"), expr="trunc(self)",
                  d_self=lambda g: g * 0, doc="The integer part, towards zero.")


def _round(xp: Any, a: Any, decimals: int = 0) -> Any:
    if a.dtype.kind != "f":
        return a + 0
    if decimals == 0:
        return xp.round(a)
    scale = a.dtype.type(10.0 ** builtins.abs(decimals))
    return xp.round(a * scale) / scale if decimals > 0 else xp.round(a / scale) * scale


round = pointwise("round(Tensor self, *, int decimals=0) -> Tensor", _round, expr="round(self)",
                  d_self=lambda g: g * 0, doc="The nearest integer; halves go to the even one.")
frac = pointwise("frac(Tensor self) -> Tensor", lambda xp, a: a - xp.trunc(a),
                 expr="self - trunc(self)", d_self=lambda g: g, doc="The part after the point.")

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


maximum = pointwise("maximum(Tensor self, Tensor other) -> Tensor", "maximum", inplace=False,
                    expr="max(self, other)", d_self=_max_self, d_other=_max_other,
                    checks=_no_complex("maximum"),
                    doc="The larger operand; NaN where either is. Ties share the gradient.")
minimum = pointwise("minimum(Tensor self, Tensor other) -> Tensor", "minimum", inplace=False,
                    expr="min(self, other)",
                    d_self=lambda g, self, other: _max_other(g, self, other),
                    d_other=lambda g, self, other: _max_self(g, self, other),
                    checks=_no_complex("minimum"),
                    doc="The smaller operand; NaN where either is. Ties share the gradient.")
fmax = pointwise("fmax(Tensor self, Tensor other) -> Tensor", "fmax", inplace=False,
                 expr="fmax(self, other)", checks=_no_complex("fmax"),
                 d_self=lambda g, self, other: g.masked_fill(~((self >= other) | other.isnan()), 0),
                 d_other=lambda g, self, other: g.masked_fill((self >= other) | other.isnan(), 0),
                 doc="The larger operand; a number where only one is NaN.")
fmin = pointwise("fmin(Tensor self, Tensor other) -> Tensor", "fmin", inplace=False,
                 expr="fmin(self, other)", checks=_no_complex("fmin"),
                 d_self=lambda g, self, other: g.masked_fill(~((self <= other) | other.isnan()), 0),
                 d_other=lambda g, self, other: g.masked_fill((self <= other) | other.isnan(), 0),
                 doc="The smaller operand; a number where only one is NaN.")


def _clamp(xp: Any, a: Any, low: Any, high: Any) -> Any:
    if low is None and high is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if a.dtype.kind == "c":
        raise RuntimeError("clamp is not supported for complex types")
    a = a if low is None else xp.maximum(a, low)
    return a if high is None else xp.minimum(a, high)


def _inside(self: Any, min: Any, max: Any) -> Any:
    mask = self == self
    mask = mask if min is None else mask & (self >= min)
    return mask if max is None else mask & (self <= max)


def _clamp_variant(self: Any, min: Any, max: Any) -> int:
    return 0 if hasattr(min, "dtype") or hasattr(max, "dtype") else 1


clamp = pointwise("clamp(Tensor self, Operand? min=None, Operand? max=None) -> Tensor", _clamp,
                  variant=_clamp_variant,
                  expr="min(max(self, min), max)",
                  d_self=lambda g, self, min, max: g * _inside(self, min, max).to(g.dtype),
                  d_min=lambda g, self, min, max: g * ((self < min) if max is None else
                                                       (self < min) & (min < max)).to(g.dtype),
                  d_max=lambda g, self, min, max: g * ((self > max) if min is None else
                                                       (self > max) | (max < min)).to(g.dtype),
                  doc="Values held between a lower and an upper limit.")
clamp_min = pointwise("clamp_min(Tensor self, Operand min) -> Tensor", "maximum",
                      expr="max(self, min)",
                      d_self=lambda g, self, min: g * (self >= min).to(g.dtype),
                      d_min=lambda g, self, min: g * (self < min).to(g.dtype),
                      doc="Values held above a limit.")
clamp_max = pointwise("clamp_max(Tensor self, Operand max) -> Tensor", "minimum",
                      expr="min(self, max)",
                      d_self=lambda g, self, max: g * (self <= max).to(g.dtype),
                      d_max=lambda g, self, max: g * (self > max).to(g.dtype),
                      doc="Values held below a limit.")


def _lerp(xp: Any, a: Any, b: Any, w: Any) -> Any:
    return xp.where(xp.abs(w) < 0.5, a + w * (b - a), b - (b - a) * (1 - w))


def _one_dtype(common: Any, args: Any) -> None:
    for name, a in zip(("end", "weight"), args[1:]):
        if getattr(a, "dtype", args[0].dtype) is not args[0].dtype:
            from toytorch.ops.matmul import C_NAMES
            raise RuntimeError(f"expected dtype {C_NAMES[args[0].dtype.name]} for `{name}` but got "
                               f"dtype {C_NAMES[a.dtype.name]}")


lerp = pointwise("lerp(Tensor self, Tensor end, Operand weight) -> Tensor", _lerp,
                 checks=_one_dtype,
                 variant=lambda self, end, weight: 1 if hasattr(weight, "dtype") else 0,
                 expr="self + weight * (end - self)",
                 d_self=lambda g, weight: g * (1 - weight), d_end=lambda g, weight: g * weight,
                 d_weight=lambda g, self, end: g * (end - self),
                 doc="The point between self and end at the fraction weight.")


def _times(xp: Any, value: Any, array: Any) -> Any:
    return array if value == 1 else array * xp.asarray(value).astype(array.dtype)


addcmul = pointwise(
    "addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    lambda xp, a, b, c, value: a + _times(xp, value, b) * c,
    expr="self + value * tensor1 * tensor2", d_self=lambda g: g,
    d_tensor1=lambda g, tensor2, value: g * (tensor2 * value),
    d_tensor2=lambda g, tensor1, value: g * (tensor1 * value),
    doc="self + value·tensor1·tensor2.")


def _addcdiv(xp: Any, a: Any, b: Any, c: Any, value: Any) -> Any:
    if a.dtype.kind in "iub":
        raise RuntimeError("Integer division with addcdiv is no longer supported, and in a future  "
                           "release addcdiv will perform a true division of tensor1 and tensor2.")
    return a + _times(xp, value, b) / c


addcdiv = pointwise(
    "addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor", _addcdiv,
    expr="self + value * tensor1 / tensor2", d_self=lambda g: g,
    d_tensor1=lambda g, tensor2, value: g * (value / tensor2),
    d_tensor2=lambda g, tensor1, tensor2, value: -g * (value * tensor1 / (tensor2 * tensor2)),
    doc="self + value·tensor1/tensor2.")


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
    _nan_to_num, expr="nan_to_num(self)", promotion="none",
    d_self=lambda g, self: g * (self.isfinite()).to(g.dtype),
    doc="NaN and infinities replaced by numbers.")

# -- complex numbers ------------------------------------------------------------------------------


def _conjugate(xp: Any, a: Any) -> Any:
    return xp.conjugate(a) if a.dtype.kind == "c" else a.copy()


def _angle(xp: Any, a: Any) -> Any:
    if a.dtype.kind == "c":
        return xp.angle(a)
    return xp.where(xp.isnan(a), a, xp.where(a < 0, a.dtype.type(math.pi), a.dtype.type(0)))


conj_physical = pointwise("conj_physical(Tensor self) -> Tensor", _conjugate, expr="conj(self)",
                          holomorphic=False, method=False, function=False,
                          d_self=lambda g: g.conj(), doc="Complex conjugate.")
angle = pointwise("angle(Tensor self) -> Tensor", _angle, expr="angle(self)", promotion="float",
                  inplace=False, holomorphic=False,
                  d_self=lambda g, self: _angle_gradient(g, self), doc="Argument, in radians.")


def _angle_gradient(g: Any, self: Any) -> Any:
    if not self.dtype.is_complex:
        return g * 0
    size = self.abs()
    i = self.new_tensor(1j)
    return ((g / size) * i * self.sgn()).masked_fill(size == 0, 0)


# -- activations ----------------------------------------------------------------------------------


def _sigmoid(xp: Any, a: Any) -> Any:
    return xp.reciprocal(1 + xp.exp(-a))


sigmoid = pointwise("sigmoid(Tensor self) -> Tensor", _sigmoid, expr="1 / (1 + exp(-self))",
                    promotion="float", d_self="g * ((1 - result) * result)",
                    doc="1/(1 + e⁻ˣ).")
def _no_relu(common: Any, args: Any) -> None:
    if common is types.bool:
        raise RuntimeError("Boolean inputs not supported for relu")
    if common.is_complex:
        raise NotImplementedError("clamp is not supported for complex types")


RELU = Loop("y = maximum(x, 0)", arrays="y x")
RELU_BACKWARD = Loop("z = g if y > 0 else 0", arrays="z g y")


def _relu(xp: Any, a: Any) -> Any:
    if a.size >= SMALLEST and xp is np:
        y = np.empty_like(a)
        if RELU(y, a):
            return y
    return xp.maximum(a, 0)


relu = pointwise("relu(Tensor self) -> Tensor", _relu, checks=_no_relu,
                 expr="max(self, 0)", d_self="relu_backward(g, result)",
                 doc="max(x, 0); Nair and Hinton 2010.")
def _relu_backward(xp: Any, g: Any, y: Any) -> Any:
    if g.size >= SMALLEST and xp is np:
        z = np.empty_like(y)
        if RELU_BACKWARD(z, g, y):
            return z
    return xp.where(y > 0, g, 0).astype(g.dtype, copy=False)


relu_backward: Op = pointwise(
    "relu_backward(Tensor self, Tensor other) -> Tensor", _relu_backward, method=False,
    function=False, inplace=False, expr="other > 0 ? self : 0",
    d_self="relu_backward(g, other)",
    doc="Gradient of relu: self where the result, other, is above 0.")
