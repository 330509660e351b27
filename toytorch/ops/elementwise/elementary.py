"""Elementary functions of each element: roots, exponentials, logarithms, trigonometry, rounding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toytorch.facts.hints import DType
from toytorch.ops.define import pointwise
from toytorch.ops.elementwise.operand_checks import numbers, real_numbers

# -- powers, exponentials and logarithms ----------------------------------------------------------

sqrt = pointwise(
    "sqrt(Tensor self) -> Tensor",
    formula="sqrt(self)",
    promotion="float",
    d_self="g / (2 * result)",
    sparse="entries",
    doc="Square root.",
)
rsqrt = pointwise(
    "rsqrt(Tensor self) -> Tensor",
    formula="rsqrt(self)",
    promotion="float",
    d_self="-0.5 * g * result * result * result",
    doc="1/√x.",
)
exp = pointwise(
    "exp(Tensor self) -> Tensor",
    formula="exp(self)",
    promotion="float",
    d_self="g * result",
    doc="eˣ.",
)
exp2 = pointwise(
    "exp2(Tensor self) -> Tensor",
    formula="exp2(self)",
    promotion="float",
    d_self="g * result * log(2)",
    doc="2ˣ.",
)
expm1 = pointwise(
    "expm1(Tensor self) -> Tensor",
    formula="expm1(self)",
    promotion="float",
    d_self="g * (result + 1)",
    sparse="entries",
    doc="eˣ - 1, exact near 0.",
)
log = pointwise(
    "log(Tensor self) -> Tensor",
    formula="log(self)",
    promotion="float",
    d_self="g / self",
    doc="Natural logarithm.",
)
log2 = pointwise(
    "log2(Tensor self) -> Tensor",
    formula="log2(self)",
    promotion="float",
    d_self="g / (self * log(2))",
    doc="Logarithm to base 2.",
)
log10 = pointwise(
    "log10(Tensor self) -> Tensor",
    formula="log10(self)",
    promotion="float",
    d_self="g / (self * log(10))",
    doc="Logarithm to base 10.",
)
log1p = pointwise(
    "log1p(Tensor self) -> Tensor",
    formula="log1p(self)",
    promotion="float",
    d_self="g / (self + 1)",
    sparse="entries",
    node="Log1PBackward0",
    doc="log(1 + x), exact near 0.",
)


logaddexp = pointwise(
    "logaddexp(Tensor self, Tensor other) -> Tensor",
    formula="logaddexp(self, other)",
    forms="function method out",
    checks=numbers("logaddexp_cpu", lowest=2, highest=3),
    d_self="g * sigmoid(self - other)",
    d_other="g * sigmoid(other - self)",
    doc="log(eᵃ + eᵇ) without overflow.",
)
hypot = pointwise(
    "hypot(Tensor self, Tensor other) -> Tensor",
    formula="hypot(self, other)",
    checks=numbers("hypot_cpu", lowest=2, highest=3),
    d_self="g * (self / result)",
    d_other="g * (other / result)",
    doc="√(a² + b²).",
)

# -- trigonometry ---------------------------------------------------------------------------------

sin = pointwise(
    "sin(Tensor self) -> Tensor",
    formula="sin(self)",
    promotion="float",
    d_self="g * cos(self)",
    sparse="entries",
    doc="Sine of an angle in radians.",
)
cos = pointwise(
    "cos(Tensor self) -> Tensor",
    formula="cos(self)",
    promotion="float",
    d_self="g * -sin(self)",
    doc="Cosine of an angle in radians.",
)
tan = pointwise(
    "tan(Tensor self) -> Tensor",
    formula="tan(self)",
    promotion="float",
    d_self="g * (1 + result * result)",
    sparse="entries",
    doc="Tangent.",
)
asin = pointwise(
    "asin(Tensor self) -> Tensor",
    formula="asin(self)",
    promotion="float",
    d_self="g * rsqrt(1 - self * self)",
    sparse="entries",
    doc="Inverse sine.",
)
acos = pointwise(
    "acos(Tensor self) -> Tensor",
    formula="acos(self)",
    promotion="float",
    d_self="g * -rsqrt(1 - self * self)",
    doc="Inverse cosine.",
)
atan = pointwise(
    "atan(Tensor self) -> Tensor",
    formula="atan(self)",
    promotion="float",
    d_self="g / (self * self + 1)",
    sparse="entries",
    doc="Inverse tangent.",
)
sinh = pointwise(
    "sinh(Tensor self) -> Tensor",
    formula="sinh(self)",
    promotion="float",
    d_self="g * cosh(self)",
    sparse="entries",
    doc="Hyperbolic sine.",
)
cosh = pointwise(
    "cosh(Tensor self) -> Tensor",
    formula="cosh(self)",
    promotion="float",
    d_self="g * sinh(self)",
    doc="Hyperbolic cosine.",
)
tanh = pointwise(
    "tanh(Tensor self) -> Tensor",
    formula="tanh(self)",
    promotion="float",
    d_self="g * (1 - result * result)",
    sparse="entries",
    rounds_once="float16 bfloat16",
    doc="Hyperbolic tangent.",
)
asinh = pointwise(
    "asinh(Tensor self) -> Tensor",
    formula="asinh(self)",
    promotion="float",
    d_self="g * rsqrt(self * self + 1)",
    sparse="entries",
    lost="inplace version of asinh",
    doc="Inverse hyperbolic sine.",
)
acosh = pointwise(
    "acosh(Tensor self) -> Tensor",
    formula="acosh(self)",
    promotion="float",
    d_self=lambda g, self: (  # of complex numbers, the root of the square has another sign
        g * ((self - 1).rsqrt() * (self + 1).rsqrt())
        if self.dtype.is_complex
        else g * (self * self - 1).rsqrt()
    ),
    lost="inplace version of acosh",
    doc="Inverse hyperbolic cosine.",
)
atanh = pointwise(
    "atanh(Tensor self) -> Tensor",
    formula="atanh(self)",
    promotion="float",
    d_self="g / (1 - self * self)",
    sparse="entries",
    lost="inplace version of atanh",
    doc="Inverse hyperbolic tangent.",
)


atan2 = pointwise(
    "atan2(Tensor self, Tensor other) -> Tensor",
    formula="atan2(self, other)",
    promotion="float",
    d_self="""
        size = self * self + other * other
        (0 if size == 0 else g / size) * other
    """,
    d_other="""
        size = self * self + other * other
        (0 if size == 0 else g / size) * -self
    """,
    doc="The angle of the point (other, self).",
)

# -- rounding -------------------------------------------------------------------------------------


floor = pointwise(
    "floor(Tensor self) -> Tensor",
    formula="floor(self)",
    d_self="0",
    sparse="entries",
    checks=real_numbers("floor"),
    doc="The largest integer not above.",
    out_type="found",
)
ceil = pointwise(
    "ceil(Tensor self) -> Tensor",
    formula="ceil(self)",
    d_self="0",
    sparse="entries",
    checks=real_numbers("ceil"),
    doc="The smallest integer not below.",
    out_type="found",
)
trunc = pointwise(
    "trunc(Tensor self) -> Tensor",
    formula="trunc(self)",
    d_self="0",
    sparse="entries",
    checks=real_numbers("trunc"),
    doc="The integer part, towards zero.",
    out_type="found",
)


_numbers_to_round = numbers("round_vml_cpu", lowest=1)


def _check_round(common: DType, args: Sequence[Any]) -> None:
    if args[1] and common.rank < 2:  # there are no decimals
        raise NotImplementedError(f"\"round_cpu\" not implemented for '{common.legacy}'")
    _numbers_to_round(common, args)


round = pointwise(
    "round(Tensor self, *, int decimals=0) -> Tensor",
    formula="""
        scale = 10.0 ** abs(decimals)
        round(self) if decimals == 0 else round(self * scale) / scale if decimals > 0 else round(self / scale) * scale
    """,
    d_self="0",
    variant=lambda self, decimals: 1 if decimals else 0,
    sparse="entries",
    checks=_check_round,
    doc="The nearest integer; halves go to the even one.",
    out_type="found",
)
frac = pointwise(
    "frac(Tensor self) -> Tensor",
    formula="self - trunc(self)",
    d_self="g",
    sparse="entries",
    checks=numbers("frac_cpu", lowest=2),
    doc="The part after the point.",
    out_type="found",
)
