"""Floating-point numbers taken apart and put together, and formulas with care at their edges."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from toytorch.core import write
from toytorch.core.op import Op
from toytorch.core.scalars import NUMBERS
from toytorch.core.tensor import Tensor
from toytorch.facts import dtype as types
from toytorch.facts.hints import Array, ArrayModule, DType
from toytorch.facts.schema import wrong_argument
from toytorch.facts.size import broadcast_pair
from toytorch.ops.define import general, of_floats, on_tensors, pointwise, public, underived
from toytorch.ops.elementwise import arithmetic as elementwise
from toytorch.ops.elementwise.operand_checks import (
    no_complex,
    number_place,
    numbers,
    one_tensor,
    only_floats,
)
from toytorch.ops.named_results import public_with_names
from toytorch.ops.queries import result_type

# -- bits of a number -----------------------------------------------------------------------------


copysign = of_floats(
    "copysign(Tensor self, Operand other) -> Tensor",
    formula="copysign(self, other)",
    d_self="0 if self == 0 else g * (result / self)",
    d_other="0",
    variant=lambda self, other: 0 if hasattr(other, "dtype") else 1,
    doc="|self| with the sign of other.",
)
nextafter = pointwise(
    "nextafter(Tensor self, Tensor other) -> Tensor",
    formula="nextafter(self, other)",
    upcast=False,
    in_halves=True,
    checks=only_floats("nextafter_cpu"),
    d_self="0 if self == other else g",
    d_other="0",
    doc="The next number that can be represented, towards other.",
)


def _frexp(xp: ArrayModule, a: Array) -> Any:
    if a.dtype.kind != "f":
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    mantissa, exponent = xp.frexp(a)
    return mantissa, exponent.astype(np.int32)


frexp = general(
    "frexp(Tensor self) -> (Tensor mantissa, Tensor exponent)",
    _frexp,
    forms="out",
    d_self=lambda gs, result1: gs[0] / result1.exp2(),
    memory="kept",
    out_type="part",
    doc="m and e with self = m·2ᵉ and 1/2 ≤ |m| < 1.",
)
public_with_names(frexp)


def _power(x: Tensor, other: Tensor) -> Tensor:
    """2ᵒᵗʰᵉʳ as `ldexp` multiplies x by it: of whole numbers in the floating type of x."""
    if other.dtype.rank < 2 <= x.dtype.rank:
        if other.dtype is types.bool and not x.dtype.is_complex:
            broadcast_pair(x.shape, other.shape)
            # PyTorch's refusal, in its words.
            raise NotImplementedError("\"ldexp_cpu_exp\" not implemented for 'Bool'")
        return elementwise.pow.function(2.0, other.to(x.dtype.to_real()))
    if x.dtype.is_complex and other.dtype is types.float16 and other.ndim:
        # PyTorch has no power of complex halves: its class and words
        raise NotImplementedError("\"pow\" not implemented for 'ComplexHalf'")
    plain = x.dtype.rank < 2 or x.dtype is types.float32
    base: Any = 2.0 if plain else other.new_full((), 2.0, dtype=x.dtype)  # a tensor's type counts
    return elementwise.pow.function(base, other)


@public("ldexp", method=True)
def ldexp(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """input·2ᵒᵗʰᵉʳ.

    >>> ldexp(Tensor([1.5]), Tensor([3]))
    tensor([12.])
    """
    if not isinstance(other, Tensor):
        raise wrong_argument("ldexp", "other", 2, "Tensor", other)
    return elementwise.mul.function(input, _power(input, other).contiguous(), out=out)


@public(method=True)
def ldexp_(self: Tensor, other: Tensor) -> Tensor:
    """In-place form of `ldexp`."""
    return write.inplace(elementwise.mul, (self, _power(self, other)))


def _need_one_type(common: DType, args: Sequence[Any]) -> None:
    if any(a.dtype.is_complex for a in args):
        raise RuntimeError("heaviside is not yet implemented for complex tensors.")
    if any(a.dtype is not args[0].dtype for a in args):
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")


heaviside = pointwise(
    "heaviside(Tensor self, Tensor values) -> Tensor",
    formula="values if self == 0 else (1 if self > 0 else 0)",
    checks=_need_one_type,
    node="NotImplemented",
    d_self=underived("aten::heaviside"),
    d_values=underived("aten::heaviside"),
    out_type="alike",
    doc="0 below 0, 1 above, and values at 0.",
)

# -- angles ---------------------------------------------------------------------------------------

DEGREE, LN2 = math.pi / 180, math.log(2)
NO_ANGLE = no_complex("deg2rad and rad2deg are not supported for complex tensors.")


deg2rad = of_floats(
    "deg2rad(Tensor self) -> Tensor",
    formula="self * (pi / 180)",
    checks=NO_ANGLE,
    d_self="g * (pi / 180)",
    sparse="entries",
    doc="Degrees to radians.",
)
rad2deg = of_floats(
    "rad2deg(Tensor self) -> Tensor",
    formula="self * (180 / pi)",
    checks=NO_ANGLE,
    d_self="g * (180 / pi)",
    sparse="entries",
    doc="Radians to degrees.",
)


sinc = of_floats(
    "sinc(Tensor self) -> Tensor",
    formula="1 if self == 0 else sin(pi * self) / (pi * self)",
    d_self="""
        x = pi * self
        0 if self * x == 0 else g * ((x * cos(x) - sin(x)) / (self * x))
    """,
    doc="sin(πx)/(πx), and 1 at 0.",
)

# -- logarithms -----------------------------------------------------------------------------------


logaddexp2 = pointwise(
    "logaddexp2(Tensor self, Tensor other) -> Tensor",
    formula="logaddexp2(self, other)",
    forms="function method out",
    checks=only_floats("logaddexp2_cpu"),
    d_self="g * sigmoid((self - other) * log(2))",
    d_other="g * sigmoid((other - self) * log(2))",
    doc="log₂(2ᵃ + 2ᵇ) without overflow.",
)


logit = of_floats(
    "logit(Tensor self, float? eps=None) -> Tensor",
    formula="""
        p = self if eps is None else maximum(self, eps) if self < eps else minimum(self, 1 - eps)
        log(p / (1 - p))
    """,
    in_halves=True,
    narrow="eps",
    d_self="""
        slope = g / (abs(self) * (1 - self))
        anywhere = nan if self < 0 or self > 1 else slope
        anywhere if eps is None or eps < 0 else 0 if self < eps or self > 1 - eps else slope
    """,
    checks=only_floats("logit_cpu"),
    doc="log(x/(1 - x)), the inverse of sigmoid.",
)


xlogy: Op = of_floats(
    "xlogy(Operand self, Operand other) -> Tensor",
    formula="0 if self == 0 and not isnan(other) else self * log(other)",
    in_halves=True,
    d_self="0 if self == 0 and other <= 0 else xlogy(g, other)",
    words={"self": "self"},
    checks=one_tensor("xlogy", numbers("xlogy_cpu")),
    d_other="g * (self / other)",
    variant=number_place,
    doc="self·log(other), and 0 where self is 0.",
)
xlog1py: Op = of_floats(
    "special_xlog1py(Operand self, Operand other) -> Tensor",
    formula="0 if self == 0 and not isnan(other) else self * log1p(other)",
    in_halves=True,
    d_self="0 if self == 0 and other <= -1 else special_xlog1py(g, other)",
    words={"self": "self"},
    checks=one_tensor("special_xlog1py", numbers("xlog1py_cpu")),
    d_other="g * (self / (other + 1))",
    variant=number_place,
    doc="self·log(1 + other), and 0 where self is 0.",
)


entr = of_floats(
    "special_entr(Tensor self) -> Tensor",
    formula="self if isnan(self) else -inf if self < 0 else 0 if self == 0 else -self * log(self)",
    checks=numbers("entr_cpu"),
    d_self="g * (-log(self) - 1)",
    doc="The entropy -x·log x; -∞ below 0.",
)

# -- powers ---------------------------------------------------------------------------------------


def _double(value: Any) -> Any:
    wide = types.complex128 if result_type(value, 0).is_complex else types.float64
    return (
        value.to(wide)
        if isinstance(value, Tensor)
        else complex(value)
        if wide.is_complex
        else float(value)
    )


@public("float_power", tensor_first=False, numbers={"input": "self"})
def float_power(input: Any, exponent: Any, *, out: Tensor | None = None) -> Tensor:
    """inputᵉˣᵖᵒⁿᵉⁿᵗ in double precision.

    >>> float_power(Tensor([2, 3]), 2)
    tensor([4., 9.], dtype=torch.float64)
    """
    kinds = (Tensor, *NUMBERS)
    if (
        not isinstance(input, kinds)
        or not isinstance(exponent, kinds)
        or not (isinstance(input, Tensor) or isinstance(exponent, Tensor))
    ):
        raise TypeError(
            "float_power() received an invalid combination of arguments - got "
            f"({type(input).__name__}, {type(exponent).__name__})"
        )
    base, power = _double(input), _double(exponent)
    wide = result_type(base, power)
    if out is not None and out.dtype is not wide:
        raise RuntimeError(
            f"the output given to float_power has dtype {out.dtype.legacy} but the "
            f"operation's result requires dtype {wide.legacy}"
        )
    return elementwise.pow.function(base, power, out=out)


on_tensors(float_power=float_power)


@public(method=True)
def float_power_(self: Tensor, exponent: Any) -> Tensor:
    """In-place form of `float_power`."""
    wide = result_type(_double(self), _double(exponent))
    if self.dtype is not wide:
        raise RuntimeError(
            f"the base given to float_power_ has dtype {self.dtype.legacy} but the "
            f"operation's result requires dtype {wide.legacy}"
        )
    return write.inplace(elementwise.pow, (self, _double(exponent)))
