"""Elementary functions of each element: roots, exponentials, logarithms, trigonometry, rounding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toytorch.core.op import Op
from toytorch.facts.hints import DType
from toytorch.ops.define import of_floats, pointwise
from toytorch.ops.elementwise.operand_checks import numbers, real_numbers

# -- powers, exponentials and logarithms ----------------------------------------------------------

sqrt = of_floats(
    "sqrt(Tensor self) -> Tensor",
    formula="sqrt(self)",
    d_self="g / (2 * result)",
    sparse="entries",
    doc="Square root.",
)
rsqrt = of_floats(
    "rsqrt(Tensor self) -> Tensor",
    formula="rsqrt(self)",
    d_self="-0.5 * g * result * result * result",
    doc="1/√x.",
)
exp = of_floats(
    "exp(Tensor self) -> Tensor",
    formula="exp(self)",
    d_self="g * result",
    doc="eˣ.",
)
exp2 = of_floats(
    "exp2(Tensor self) -> Tensor",
    formula="exp2(self)",
    d_self="g * result * log(2)",
    doc="2ˣ.",
)
expm1 = of_floats(
    "expm1(Tensor self) -> Tensor",
    formula="expm1(self)",
    d_self="g * (result + 1)",
    sparse="entries",
    doc="eˣ - 1, exact near 0.",
)
log = of_floats(
    "log(Tensor self) -> Tensor",
    formula="log(self)",
    d_self="g / self",
    doc="Natural logarithm.",
)
log2 = of_floats(
    "log2(Tensor self) -> Tensor",
    formula="log2(self)",
    d_self="g / (self * log(2))",
    doc="Logarithm to base 2.",
)
log10 = of_floats(
    "log10(Tensor self) -> Tensor",
    formula="log10(self)",
    d_self="g / (self * log(10))",
    doc="Logarithm to base 10.",
)
log1p = of_floats(
    "log1p(Tensor self) -> Tensor",
    formula="log1p(self)",
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

sin = of_floats(
    "sin(Tensor self) -> Tensor",
    formula="sin(self)",
    d_self="g * cos(self)",
    sparse="entries",
    doc="Sine of an angle in radians.",
)
cos = of_floats(
    "cos(Tensor self) -> Tensor",
    formula="cos(self)",
    d_self="g * -sin(self)",
    doc="Cosine of an angle in radians.",
)
tan = of_floats(
    "tan(Tensor self) -> Tensor",
    formula="tan(self)",
    d_self="g * (1 + result * result)",
    sparse="entries",
    doc="Tangent.",
)
asin = of_floats(
    "asin(Tensor self) -> Tensor",
    formula="asin(self)",
    d_self="g * rsqrt(1 - self * self)",
    sparse="entries",
    doc="Inverse sine.",
)
acos = of_floats(
    "acos(Tensor self) -> Tensor",
    formula="acos(self)",
    d_self="g * -rsqrt(1 - self * self)",
    doc="Inverse cosine.",
)
atan = of_floats(
    "atan(Tensor self) -> Tensor",
    formula="atan(self)",
    d_self="g / (self * self + 1)",
    sparse="entries",
    doc="Inverse tangent.",
)
sinh = of_floats(
    "sinh(Tensor self) -> Tensor",
    formula="sinh(self)",
    d_self="g * cosh(self)",
    sparse="entries",
    doc="Hyperbolic sine.",
)
cosh = of_floats(
    "cosh(Tensor self) -> Tensor",
    formula="cosh(self)",
    d_self="g * sinh(self)",
    doc="Hyperbolic cosine.",
)
tanh = of_floats(
    "tanh(Tensor self) -> Tensor",
    formula="tanh(self)",
    d_self="g * (1 - result * result)",
    sparse="entries",
    rounds_once="float16 bfloat16",
    doc="Hyperbolic tangent.",
)
asinh = of_floats(
    "asinh(Tensor self) -> Tensor",
    formula="asinh(self)",
    d_self="g * rsqrt(self * self + 1)",
    sparse="entries",
    lost="inplace version of asinh",
    doc="Inverse hyperbolic sine.",
)
acosh = of_floats(
    "acosh(Tensor self) -> Tensor",
    formula="acosh(self)",
    d_self=lambda g, self: (  # of complex numbers, the root of the square has another sign
        g * ((self - 1).rsqrt() * (self + 1).rsqrt())
        if self.dtype.is_complex
        else g * (self * self - 1).rsqrt()
    ),
    lost="inplace version of acosh",
    doc="Inverse hyperbolic cosine.",
)
atanh = of_floats(
    "atanh(Tensor self) -> Tensor",
    formula="atanh(self)",
    d_self="g / (1 - self * self)",
    sparse="entries",
    lost="inplace version of atanh",
    doc="Inverse hyperbolic tangent.",
)


atan2 = of_floats(
    "atan2(Tensor self, Tensor other) -> Tensor",
    formula="atan2(self, other)",
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


def _rounded(name: str, doc: str) -> Op:
    return pointwise(
        f"{name}(Tensor self) -> Tensor",
        formula=f"{name}(self)",
        d_self="0",
        sparse="entries",
        checks=real_numbers(name),
        doc=doc,
        out_type="found",
    )


floor = _rounded("floor", "The largest integer not above.")
ceil = _rounded("ceil", "The smallest integer not below.")
trunc = _rounded("trunc", "The integer part, towards zero.")


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
