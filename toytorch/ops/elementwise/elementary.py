"""Elementary functions of each element: roots, exponentials, logarithms, trigonometry, rounding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toytorch.core.op import Op
from toytorch.facts.hints import DType
from toytorch.ops.define import of_floats, pointwise
from toytorch.ops.elementwise.operand_checks import numbers, real_numbers


def _elementary(name: str, **fields: Any) -> Op:
    """A function that is a word of the language of formulas; integers become floats first."""
    return of_floats(f"{name}(Tensor self) -> Tensor", formula=f"{name}(self)", **fields)


# -- powers, exponentials and logarithms ----------------------------------------------------------

sqrt = _elementary("sqrt", d_self="g / (2 * result)", sparse="entries", doc="Square root.")
rsqrt = _elementary("rsqrt", d_self="-0.5 * g * result * result * result", doc="1/√x.")
exp = _elementary("exp", d_self="g * result", doc="eˣ.")
exp2 = _elementary("exp2", d_self="g * result * log(2)", doc="2ˣ.")
expm1 = _elementary(
    "expm1", d_self="g * (result + 1)", sparse="entries", doc="eˣ - 1, exact near 0."
)
log = _elementary("log", d_self="g / self", doc="Natural logarithm.")
log2 = _elementary("log2", d_self="g / (self * log(2))", doc="Logarithm to base 2.")
log10 = _elementary("log10", d_self="g / (self * log(10))", doc="Logarithm to base 10.")
log1p = _elementary(
    "log1p",
    d_self="g / (self + 1)",
    sparse="entries",
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

sin = _elementary(
    "sin", d_self="g * cos(self)", sparse="entries", doc="Sine of an angle in radians."
)
cos = _elementary("cos", d_self="g * -sin(self)", doc="Cosine of an angle in radians.")
tan = _elementary("tan", d_self="g * (1 + result * result)", sparse="entries", doc="Tangent.")
asin = _elementary(
    "asin", d_self="g * rsqrt(1 - self * self)", sparse="entries", doc="Inverse sine."
)
acos = _elementary("acos", d_self="g * -rsqrt(1 - self * self)", doc="Inverse cosine.")
atan = _elementary("atan", d_self="g / (self * self + 1)", sparse="entries", doc="Inverse tangent.")
sinh = _elementary("sinh", d_self="g * cosh(self)", sparse="entries", doc="Hyperbolic sine.")
cosh = _elementary("cosh", d_self="g * sinh(self)", doc="Hyperbolic cosine.")
tanh = _elementary(
    "tanh",
    d_self="g * (1 - result * result)",
    sparse="entries",
    rounds_once="float16 bfloat16",
    doc="Hyperbolic tangent.",
)
asinh = _elementary(
    "asinh",
    d_self="g * rsqrt(self * self + 1)",
    sparse="entries",
    lost="inplace version of asinh",
    doc="Inverse hyperbolic sine.",
)
acosh = _elementary(
    "acosh",
    d_self=lambda g, self: (  # of complex numbers, the root of the square has another sign
        g * ((self - 1).rsqrt() * (self + 1).rsqrt())
        if self.dtype.is_complex
        else g * (self * self - 1).rsqrt()
    ),
    lost="inplace version of acosh",
    doc="Inverse hyperbolic cosine.",
)
atanh = _elementary(
    "atanh",
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
