"""Ops of each element by itself: arithmetic, complex numbers, sigmoid and relu.

For y = f(x) with a gradient g of y, the gradient of x is g·f'(x). The rules below are written for
real numbers; for complex ones Node.apply conjugates around them, which turns g·f'(x) into
g·conj(f'(x)). Rules that look at the conjugate itself say `holomorphic=False`.
"""

from __future__ import annotations

import math
from typing import Any

from toytorch.core.op import Op
from toytorch.facts import dtype as types
from toytorch.loops.elementwise import Loop
from toytorch.loops.runtime.jit import SMALLEST
from toytorch.ops import flops
from toytorch.ops.define import pointwise, underived
from toytorch.ops.elementwise.operand_checks import one_tensor

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
        raise RuntimeError(
            "Subtraction, the `-` operator, with a bool tensor is not supported. If "
            "you are trying to invert a mask, use the `~` or `logical_not()` "
            "operator instead."
        )


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
        raise RuntimeError(
            "For integral input tensors, argument alpha must not be a floating point number."
        )


def _scaled(g: Any, alpha: Any) -> Any:
    return g if alpha == 1 else g * alpha


SUB_BOOL = (
    "Subtraction, the `-` operator, with two bool tensors is not supported. Use the "
    "`^` or `logical_xor()` operator instead."
)

add = pointwise(
    "add(Operand self, Operand other, *, Scalar alpha=1) -> Tensor",
    _add,
    plain="add",
    expr="self + alpha * other",
    reflected="__radd__",
    d_self="g",
    d_other="g if alpha == 1 else g * alpha",
    cost="cheap",
    flops=flops.elements,
    identity={"other": -0.0},
    doc="Sum, self + alpha·other.",
)
sub = pointwise(
    "sub(Operand self, Operand other, *, Scalar alpha=1) -> Tensor",
    _sub,
    plain="subtract",
    expr="self - alpha * other",
    checks=_no_mask,
    d_self="g",
    d_other="-g if alpha == 1 else -g * alpha",
    cost="cheap",
    identity={"other": 0.0},
    doc="Difference, self - alpha·other.",
)
rsub = pointwise(
    "rsub(Tensor self, Operand other, *, Scalar alpha=1) -> Tensor",
    lambda xp, a, b, alpha=1: _sub(xp, b, a, alpha),
    expr="other - alpha * self",
    checks=_no_mask,
    variant=_scalar_variant(1, 0),
    inplace=False,
    method=False,
    d_self=lambda g, alpha: -_scaled(g, alpha),
    d_other=lambda g: g,
    cost="cheap",
    doc="Difference the other way round, other - alpha·self.",
)
mul = pointwise(
    "mul(Operand self, Operand other) -> Tensor",
    "multiply",
    expr="self * other",
    d_self="g * other",
    d_other="g * self",
    cost="cheap",
    flops=flops.elements,
    identity={"self": 1, "other": 1},
    doc="Elementwise product.",
)


div = pointwise(
    "div(Operand self, Operand other) -> Tensor",
    "divide",
    expr="self / other",
    promotion="float",
    d_self="g / other",
    d_other="-g * ((self / other) / other)",
    identity={"other": 1},
    doc="Quotient; integers are divided as floating-point numbers.",
)


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


div_floor = pointwise(
    "div.floor(Operand self, Operand other) -> Tensor",
    _floor_divide,
    expr="floor(self / other)",
    method=False,
    inplace=False,
    d_self=lambda g: g.new_zeros(g.shape),
    d_other=lambda g: g.new_zeros(g.shape),
    node="DivBackward1",
    doc="Quotient rounded down.",
)
div_trunc = pointwise(
    "div.trunc(Operand self, Operand other) -> Tensor",
    _trunc_divide,
    expr="trunc(self / other)",
    method=False,
    inplace=False,
    d_self=lambda g: g.new_zeros(g.shape),
    d_other=lambda g: g.new_zeros(g.shape),
    node="DivBackward1",
    doc="Quotient rounded towards zero.",
)
floor_divide = pointwise(
    "floor_divide(Operand self, Operand other) -> Tensor",
    _floor_divide,
    expr="floor(self / other)",
    node="NotImplemented",
    d_self=underived("aten::floor_divide"),
    d_other=underived("aten::floor_divide"),
    doc="Quotient rounded down.",
)


def _remainder(xp: Any, a: Any, b: Any) -> Any:
    if a.dtype.kind in "iub" and not xp.all(b):
        raise RuntimeError("ZeroDivisionError")
    return xp.remainder(a, b)


def _fmod(xp: Any, a: Any, b: Any) -> Any:
    if a.dtype.kind in "iub" and not xp.all(b):
        raise RuntimeError("ZeroDivisionError")
    return xp.fmod(a, b)


remainder = pointwise(
    "remainder(Operand self, Operand other) -> Tensor",
    _remainder,
    checks=one_tensor("remainder"),
    expr="self - other * floor(self / other)",
    d_self=lambda g: g,
    d_other=lambda g, self, other: -g * self.div(other, rounding_mode="floor"),
    doc="Remainder with the sign of the divisor, as Python's %.",
)
fmod = pointwise(
    "fmod(Tensor self, Operand other) -> Tensor",
    _fmod,
    expr="self - other * trunc(self / other)",
    d_self=lambda g: g,
    d_other=lambda g, self, other: -g * self.div(other, rounding_mode="trunc"),
    doc="Remainder with the sign of the dividend, as C's fmod.",
)


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
        return g.new_zeros(g.shape) if other == 0 else g * (other * self ** (other - 1))
    return (g * (other * self ** (other - 1))).masked_fill(other == 0, 0)


def _pow_other(g: Any, self: Any, other: Any, result: Any) -> Any:
    if not hasattr(self, "log"):
        if self == 0:
            return (g * 0).masked_fill(other < 0, math.nan) if not other.dtype.is_complex else g * 0
        return (
            g * (result * math.log(self))
            if isinstance(self, (int, float)) and self > 0
            else g * result * _log_of(self, other)
        )
    zero = (self == 0) & (
        ((other.real >= 0) & (other.imag == 0)) if other.dtype.is_complex else other >= 0
    )
    return (g * (result * self.to(result.dtype).log())).masked_fill(zero, 0)


def _log_of(value: Any, like: Any) -> Any:
    return like.new_tensor(value).log()


def _no_fraction(common: Any, args: Any) -> None:
    if isinstance(args[1], int) and args[1] < 0 and common.rank < 2:
        raise RuntimeError("Integers to negative integer powers are not allowed.")


def _pow_variant(self: Any, other: Any) -> int:
    return 0 if not hasattr(other, "dtype") else 1 if hasattr(self, "dtype") else 2


pow = pointwise(
    "pow(Operand self, Operand other) -> Tensor",
    _pow,
    expr="pow(self, other)",
    variant=_pow_variant,
    checks=one_tensor("pow", _no_fraction),
    d_self=_pow_self,
    d_other=_pow_other,
    words={"exponent": "other"},
    cost="expensive",
    identity={"other": 1},
    doc="Power, selfᵒᵗʰᵉʳ.",
)
neg = pointwise(
    "neg(Tensor self) -> Tensor",
    "negative",
    expr="-self",
    d_self="-g",
    checks=_no_bool(
        "Negation, the `-` operator, on a bool tensor is not "
        "supported. If you are trying to invert a mask, use the `~` or "
        "`logical_not()` operator instead."
    ),
    cost="cheap",
    sparse="sums",
    own_inverse=True,
    doc="Negative.",
)
reciprocal = pointwise(
    "reciprocal(Tensor self) -> Tensor",
    "reciprocal",
    expr="1 / self",
    promotion="float",
    d_self="-g * (result * result)",
    doc="1/x.",
)
square = pointwise(
    "square(Tensor self) -> Tensor",
    lambda xp, a: xp.square(a if a.dtype.kind != "b" else a.astype("int64")),
    plain="square",
    promotion="count",
    expr="self * self",
    d_self="g * (2 * self)",
    node="PowBackward0",
    cost="cheap",
    sparse="entries",
    doc="x².",
)


def _abs_gradient(g: Any, self: Any) -> Any:
    return g * self.sgn()


abs = pointwise(
    "abs(Tensor self) -> Tensor",
    "absolute",
    expr="abs(self)",
    holomorphic=False,
    d_self=_abs_gradient,
    cost="cheap",
    sparse="entries",
    doc="Absolute value; the modulus of complex numbers.",
)


def _sgn(xp: Any, a: Any) -> Any:
    if a.dtype.kind == "c":
        size = xp.absolute(a)
        return xp.where(size == 0, 0, a / xp.where(size == 0, 1, size)).astype(a.dtype)
    return _sign(xp, a)


def _sgn_gradient(g: Any, self: Any, result: Any) -> Any:
    if not self.dtype.is_complex:
        return g.new_zeros(g.shape)
    size = self.abs()
    zero = size == 0
    return (g / size - result * (g / size * result.conj()).real).masked_fill(zero, 0)


def _sign(xp: Any, a: Any) -> Any:
    if a.dtype.kind == "c":
        raise NotImplementedError(
            "Unlike NumPy, torch.sign is not intended to support complex "
            "numbers. Please use torch.sgn instead."
        )
    if a.dtype.kind == "b":
        return a.copy()
    s = xp.sign(a)
    return xp.where(xp.isnan(a), 0, s) if a.dtype.kind == "f" else s


sgn = pointwise(
    "sgn(Tensor self) -> Tensor",
    _sgn,
    expr="sign(self)",
    holomorphic=False,
    d_self=_sgn_gradient,
    sparse="entries",
    doc="x/|x|, and 0 at 0.",
)
sign = pointwise(
    "sign(Tensor self) -> Tensor",
    _sign,
    expr="sign(self)",
    d_self=lambda g: g.new_zeros(g.shape),
    cost="cheap",
    sparse="entries",
    doc="-1, 0 or 1.",
)

# -- complex numbers ------------------------------------------------------------------------------


def _conjugate(xp: Any, a: Any) -> Any:
    return xp.conjugate(a) if a.dtype.kind == "c" else a.copy()


def _angle(xp: Any, a: Any) -> Any:
    if a.dtype.kind == "c":
        return xp.angle(a)
    return xp.where(xp.isnan(a), a, xp.where(a < 0, a.dtype.type(math.pi), a.dtype.type(0)))


conj_physical = pointwise(
    "conj_physical(Tensor self) -> Tensor",
    _conjugate,
    expr="conj(self)",
    holomorphic=False,
    method=False,
    function=False,
    d_self=lambda g: g.conj(),
    sparse="sums",
    doc="Complex conjugate.",
)
angle = pointwise(
    "angle(Tensor self) -> Tensor",
    _angle,
    expr="angle(self)",
    promotion="float",
    inplace=False,
    holomorphic=False,
    d_self=lambda g, self: _angle_gradient(g, self),
    doc="Argument, in radians.",
)


def _angle_gradient(g: Any, self: Any) -> Any:
    if not self.dtype.is_complex:
        return g.new_zeros(g.shape)
    size = self.abs()
    i = self.new_tensor(1j)
    return ((g / size) * i * self.sgn()).masked_fill(size == 0, 0)


# -- activations ----------------------------------------------------------------------------------


SIGMOID = Loop("y = 1 / (1 + exp(-x))", arrays="y x")


def _sigmoid(xp: Any, a: Any) -> Any:
    y = SIGMOID.of(xp, a)
    if y is not None:
        return y
    return xp.reciprocal(1 + xp.exp(-a))


sigmoid = pointwise(
    "sigmoid(Tensor self) -> Tensor",
    _sigmoid,
    expr="1 / (1 + exp(-self))",
    promotion="float",
    d_self="g * ((1 - result) * result)",
    cost="expensive",
    doc="1/(1 + e⁻ˣ).",
)


def _no_relu(common: Any, args: Any) -> None:
    if common is types.bool:
        raise RuntimeError("Boolean inputs not supported for relu")
    if common.is_complex:
        raise NotImplementedError("clamp is not supported for complex types")


RELU = Loop("y = maximum(x, 0)", arrays="y x")
RELU_BACKWARD = Loop("z = 0 if y <= 0 else g", arrays="z g y")  # NaN passes, as in PyTorch


def _relu(xp: Any, a: Any) -> Any:
    if a.size >= SMALLEST:
        y = RELU.of(xp, a)
        if y is not None:
            return y
    return xp.maximum(a, 0)


relu = pointwise(
    "relu(Tensor self) -> Tensor",
    _relu,
    checks=_no_relu,
    expr="max(self, 0)",
    d_self="relu_backward(g, result)",
    cost="cheap",
    sparse="entries",
    doc="max(x, 0); Nair and Hinton 2010.",
)


def _relu_backward(xp: Any, g: Any, y: Any) -> Any:
    z = RELU_BACKWARD.of(xp, g, y)
    if z is not None:
        return z
    return xp.where(y <= 0, 0, g).astype(g.dtype, copy=False)


relu_backward: Op = pointwise(
    "relu_backward(Tensor self, Tensor other) -> Tensor",
    _relu_backward,
    method=False,
    function=False,
    inplace=False,
    expr="other <= 0 ? 0 : self",
    d_self="relu_backward(g, other)",
    doc="Gradient of relu: 0 where the result, other, is 0, and self elsewhere.",
)
