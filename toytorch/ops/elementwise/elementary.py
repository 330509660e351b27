"""Elementary functions of each element: roots, exponentials, logarithms, trigonometry, rounding."""

from __future__ import annotations

import math
from typing import Any

from toytorch.loops.elementwise import Loop
from toytorch.ops.define import pointwise

LARGE = 1 << 16  # elements, from which a loop of our own (twice as fast) is worth compiling


def looped(name: str) -> Any:
    """The array module's function; for large arrays a compiled loop."""
    loop = Loop(f"y = {name}(x)", arrays="y x")

    def kernel(xp: Any, a: Any) -> Any:
        made = loop.of(xp, a) if a.size >= LARGE else None
        return getattr(xp, name)(a) if made is None else made

    return kernel


# -- powers, exponentials and logarithms ----------------------------------------------------------

sqrt = pointwise(
    "sqrt(Tensor self) -> Tensor",
    looped("sqrt"),
    expr="sqrt(self)",
    promotion="float",
    d_self="g / (2 * result)",
    sparse="entries",
    doc="Square root.",
)
rsqrt = pointwise(
    "rsqrt(Tensor self) -> Tensor",
    lambda xp, a: 1 / xp.sqrt(a),
    expr="1 / sqrt(self)",
    promotion="float",
    d_self=lambda g, result: -0.5 * g * result**3,
    doc="1/√x.",
)
exp = pointwise(
    "exp(Tensor self) -> Tensor",
    looped("exp"),
    expr="exp(self)",
    promotion="float",
    d_self="g * result",
    cost="expensive",
    doc="eˣ.",
)
exp2 = pointwise(
    "exp2(Tensor self) -> Tensor",
    "exp2",
    expr="exp2(self)",
    promotion="float",
    d_self=lambda g, result: g * result * math.log(2),
    cost="expensive",
    doc="2ˣ.",
)
expm1 = pointwise(
    "expm1(Tensor self) -> Tensor",
    looped("expm1"),
    expr="expm1(self)",
    promotion="float",
    d_self=lambda g, result: g * (result + 1),
    cost="expensive",
    sparse="entries",
    doc="eˣ - 1, exact near 0.",
)
log = pointwise(
    "log(Tensor self) -> Tensor",
    looped("log"),
    expr="log(self)",
    promotion="float",
    d_self=lambda g, self: g / self,
    cost="expensive",
    doc="Natural logarithm.",
)
log2 = pointwise(
    "log2(Tensor self) -> Tensor",
    "log2",
    expr="log2(self)",
    promotion="float",
    d_self=lambda g, self: g / (self * math.log(2)),
    cost="expensive",
    doc="Logarithm to base 2.",
)
log10 = pointwise(
    "log10(Tensor self) -> Tensor",
    "log10",
    expr="log10(self)",
    promotion="float",
    d_self=lambda g, self: g / (self * math.log(10)),
    cost="expensive",
    doc="Logarithm to base 10.",
)
log1p = pointwise(
    "log1p(Tensor self) -> Tensor",
    "log1p",
    expr="log1p(self)",
    promotion="float",
    d_self=lambda g, self: g / (self + 1),
    cost="expensive",
    sparse="entries",
    doc="log(1 + x), exact near 0.",
)


def _logaddexp(xp: Any, a: Any, b: Any) -> Any:
    if a.dtype.kind != "c":
        return xp.logaddexp(a, b)
    top = xp.where(a.real > b.real, a, b)
    return top + xp.log(xp.exp(a - top) + xp.exp(b - top))


logaddexp = pointwise(
    "logaddexp(Tensor self, Tensor other) -> Tensor",
    _logaddexp,
    expr="log(exp(self) + exp(other))",
    promotion="float",
    inplace=False,
    d_self=lambda g, self, other: g * (self - other).sigmoid(),
    d_other=lambda g, self, other: g * (other - self).sigmoid(),
    doc="log(eᵃ + eᵇ) without overflow.",
)
hypot = pointwise(
    "hypot(Tensor self, Tensor other) -> Tensor",
    "hypot",
    expr="sqrt(self * self + other * other)",
    promotion="default",
    d_self=lambda g, self, result: g * (self / result),
    d_other=lambda g, other, result: g * (other / result),
    doc="√(a² + b²).",
)

# -- trigonometry ---------------------------------------------------------------------------------

sin = pointwise(
    "sin(Tensor self) -> Tensor",
    looped("sin"),
    expr="sin(self)",
    promotion="float",
    d_self=lambda g, self: g * self.cos(),
    cost="expensive",
    sparse="entries",
    doc="Sine of an angle in radians.",
)
cos = pointwise(
    "cos(Tensor self) -> Tensor",
    "cos",
    expr="cos(self)",
    promotion="float",
    d_self=lambda g, self: g * -self.sin(),
    cost="expensive",
    doc="Cosine of an angle in radians.",
)
tan = pointwise(
    "tan(Tensor self) -> Tensor",
    "tan",
    expr="tan(self)",
    promotion="float",
    d_self=lambda g, result: g * (1 + result * result),
    cost="expensive",
    sparse="entries",
    doc="Tangent.",
)
asin = pointwise(
    "asin(Tensor self) -> Tensor",
    "arcsin",
    expr="asin(self)",
    promotion="float",
    d_self=lambda g, self: g * (1 - self * self).rsqrt(),
    sparse="entries",
    doc="Inverse sine.",
)
acos = pointwise(
    "acos(Tensor self) -> Tensor",
    "arccos",
    expr="acos(self)",
    promotion="float",
    d_self=lambda g, self: g * -(1 - self * self).rsqrt(),
    doc="Inverse cosine.",
)
atan = pointwise(
    "atan(Tensor self) -> Tensor",
    "arctan",
    expr="atan(self)",
    promotion="float",
    d_self=lambda g, self: g / (self * self + 1),
    cost="expensive",
    sparse="entries",
    doc="Inverse tangent.",
)
sinh = pointwise(
    "sinh(Tensor self) -> Tensor",
    "sinh",
    expr="sinh(self)",
    promotion="float",
    d_self=lambda g, self: g * self.cosh(),
    sparse="entries",
    doc="Hyperbolic sine.",
)
cosh = pointwise(
    "cosh(Tensor self) -> Tensor",
    "cosh",
    expr="cosh(self)",
    promotion="float",
    d_self=lambda g, self: g * self.sinh(),
    doc="Hyperbolic cosine.",
)
tanh = pointwise(
    "tanh(Tensor self) -> Tensor",
    looped("tanh"),
    expr="tanh(self)",
    promotion="float",
    d_self="g * (1 - result * result)",
    cost="expensive",
    sparse="entries",
    doc="Hyperbolic tangent.",
)
asinh = pointwise(
    "asinh(Tensor self) -> Tensor",
    "arcsinh",
    expr="asinh(self)",
    promotion="float",
    d_self=lambda g, self: g * (self * self + 1).rsqrt(),
    sparse="entries",
    doc="Inverse hyperbolic sine.",
)
acosh = pointwise(
    "acosh(Tensor self) -> Tensor",
    "arccosh",
    expr="acosh(self)",
    promotion="float",
    d_self=lambda g, self: g * ((self - 1).rsqrt() * (self + 1).rsqrt()),
    doc="Inverse hyperbolic cosine.",
)
atanh = pointwise(
    "atanh(Tensor self) -> Tensor",
    "arctanh",
    expr="atanh(self)",
    promotion="float",
    d_self=lambda g, self: g / (1 - self * self),
    sparse="entries",
    doc="Inverse hyperbolic tangent.",
)


def _atan2_share(g: Any, self: Any, other: Any) -> Any:
    size = self * self + other * other
    return (g / size).masked_fill(size == 0, 0)


atan2 = pointwise(
    "atan2(Tensor self, Tensor other) -> Tensor",
    "arctan2",
    expr="atan2(self, other)",
    promotion="float",
    d_self=lambda g, self, other: _atan2_share(g, self, other) * other,
    d_other=lambda g, self, other: _atan2_share(g, self, other) * -self,
    doc="The angle of the point (other, self).",
)

# -- rounding -------------------------------------------------------------------------------------


def _rounding(name: str) -> Any:
    def kernel(xp: Any, a: Any) -> Any:
        return getattr(xp, name)(a) if a.dtype.kind == "f" else a + 0

    return kernel


floor = pointwise(
    "floor(Tensor self) -> Tensor",
    _rounding("floor"),
    expr="floor(self)",
    d_self=lambda g: g.new_zeros(g.shape),
    sparse="entries",
    doc="The largest integer not above.",
)
ceil = pointwise(
    "ceil(Tensor self) -> Tensor",
    _rounding("ceil"),
    expr="ceil(self)",
    d_self=lambda g: g.new_zeros(g.shape),
    sparse="entries",
    doc="The smallest integer not below.",
)
trunc = pointwise(
    "trunc(Tensor self) -> Tensor",
    _rounding("trunc"),
    expr="trunc(self)",
    d_self=lambda g: g.new_zeros(g.shape),
    sparse="entries",
    doc="The integer part, towards zero.",
)


def _round(xp: Any, a: Any, decimals: int = 0) -> Any:
    if a.dtype.kind != "f":
        return a + 0
    if decimals == 0:
        return xp.round(a)
    scale = a.dtype.type(10.0 ** abs(decimals))
    return xp.round(a * scale) / scale if decimals > 0 else xp.round(a / scale) * scale


round = pointwise(
    "round(Tensor self, *, int decimals=0) -> Tensor",
    _round,
    expr="round(self)",
    d_self=lambda g: g.new_zeros(g.shape),
    sparse="entries",
    doc="The nearest integer; halves go to the even one.",
)
frac = pointwise(
    "frac(Tensor self) -> Tensor",
    lambda xp, a: a - xp.trunc(a),
    expr="self - trunc(self)",
    d_self=lambda g: g,
    sparse="entries",
    doc="The part after the point.",
)
