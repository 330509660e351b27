"""Floating-point numbers taken apart and put together, and formulas with care at their edges."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from toytorch.core import dispatch
from toytorch.core.dispatch import NUMBERS
from toytorch.core.op import Op
from toytorch.core.tensor import Tensor
from toytorch.facts import dtype as types
from toytorch.ops.define import define, pointwise, public, underived
from toytorch.ops.elementwise import arithmetic as elementwise
from toytorch.ops.elementwise.operand_checks import no_complex, one_tensor, only_floats
from toytorch.ops.named_results import public_with_names
from toytorch.ops.queries import result_type

# -- bits of a number -----------------------------------------------------------------------------


def _copysign_self(g: Any, self: Any, result: Any) -> Any:
    return g * (result / self).masked_fill(self == 0, 0)


copysign = pointwise(
    "copysign(Tensor self, Operand other) -> Tensor",
    "copysign",
    expr="copysign(self, other)",
    promotion="float",
    d_self=_copysign_self,
    d_other=lambda g: g.new_zeros(g.shape),
    doc="|self| with the sign of other.",
)
nextafter = pointwise(
    "nextafter(Tensor self, Tensor other) -> Tensor",
    "nextafter",
    upcast=False,
    expr="nextafter(self, other)",
    checks=only_floats("nextafter"),
    d_self=lambda g, self, other: g.masked_fill(self == other, 0),
    d_other=lambda g: g.new_zeros(g.shape),
    doc="The next number that can be represented, towards other.",
)


def _frexp(xp: Any, a: Any) -> Any:
    if a.dtype.kind != "f":
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    mantissa, exponent = xp.frexp(a)
    return mantissa, exponent.astype(np.int32)


frexp = define(
    "frexp(Tensor self) -> (Tensor mantissa, Tensor exponent)",
    _frexp,
    kind="general",
    results=(True, False),
    function=False,
    method=False,
    d_self=lambda gs, result1: gs[0] / result1.exp2(),
    doc="m and e with self = m·2ᵉ and 1/2 ≤ |m| < 1.",
)
public_with_names(frexp)


def _as_exponent(x: Tensor, other: Tensor) -> Tensor:
    """`other`, where it is whole numbers, in the floating type of x."""
    whole = other.dtype.rank < 2 <= x.dtype.rank
    return other.to(x.dtype.to_real()) if whole else other


@public("ldexp", method=True)
def ldexp(input: Tensor, other: Any, *, out: Any = None) -> Tensor:
    """input·2ᵒᵗʰᵉʳ.

    >>> ldexp(Tensor([1.5]), Tensor([3]))
    tensor([12.])
    """
    if not isinstance(other, Tensor):
        raise TypeError(
            f"ldexp(): argument 'other' (position 2) must be Tensor, not {type(other).__name__}"
        )
    power: Any = elementwise.pow.function(2.0, _as_exponent(input, other))
    return elementwise.mul.function(input, power, out=out)


@public(method=True)
def ldexp_(self: Tensor, other: Any) -> Tensor:
    """In-place form of `ldexp`."""
    power: Any = elementwise.pow.function(2.0, _as_exponent(self, other))
    return dispatch.inplace(elementwise.mul, (self, power))


def _need_one_type(common: Any, args: Any) -> None:
    if any(a.dtype.is_complex for a in args):
        raise RuntimeError("heaviside is not yet implemented for complex tensors.")
    if args[0].dtype is not args[1].dtype:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")


def _heaviside(xp: Any, a: Any, values: Any) -> Any:
    return xp.where(a == 0, values, (a > 0).astype(a.dtype))


heaviside = pointwise(
    "heaviside(Tensor self, Tensor values) -> Tensor",
    _heaviside,
    expr="self == 0 ? values : self > 0",
    checks=_need_one_type,
    node="NotImplemented",
    d_self=underived("aten::heaviside"),
    d_values=underived("aten::heaviside"),
    doc="0 below 0, 1 above, and values at 0.",
)

# -- angles ---------------------------------------------------------------------------------------

DEGREE, LN2 = math.pi / 180, math.log(2)
NO_ANGLE = no_complex("deg2rad and rad2deg are not supported for complex tensors.")


deg2rad = pointwise(
    "deg2rad(Tensor self) -> Tensor",
    lambda xp, a: a * a.dtype.type(DEGREE),
    expr="self * pi / 180",
    promotion="float",
    checks=NO_ANGLE,
    d_self=lambda g: g.deg2rad(),
    sparse="entries",
    doc="Degrees to radians.",
)
rad2deg = pointwise(
    "rad2deg(Tensor self) -> Tensor",
    lambda xp, a: a * a.dtype.type(1 / DEGREE),
    expr="self * 180 / pi",
    promotion="float",
    checks=NO_ANGLE,
    d_self=lambda g: g.rad2deg(),
    sparse="entries",
    doc="Radians to degrees.",
)


def _sinc(xp: Any, a: Any) -> Any:
    x = a * a.dtype.type(math.pi)
    zero = x == 0
    return xp.where(zero, a.dtype.type(1), xp.sin(x) / xp.where(zero, a.dtype.type(1), x))


def _sinc_gradient(g: Any, self: Any) -> Any:
    x = self * math.pi
    square = self * x
    slope = (x * x.cos() - x.sin()) / square
    return (g * slope).masked_fill(square == 0, 0)


sinc = pointwise(
    "sinc(Tensor self) -> Tensor",
    _sinc,
    expr="sin(pi * self) / (pi * self)",
    promotion="float",
    d_self=_sinc_gradient,
    doc="sin(πx)/(πx), and 1 at 0.",
)

# -- logarithms -----------------------------------------------------------------------------------


logaddexp2 = pointwise(
    "logaddexp2(Tensor self, Tensor other) -> Tensor",
    "logaddexp2",
    expr="log2(exp2(self) + exp2(other))",
    promotion="float",
    inplace=False,
    checks=only_floats("logaddexp2"),
    d_self=lambda g, self, other: g * ((self - other) * LN2).sigmoid(),
    d_other=lambda g, self, other: g * ((other - self) * LN2).sigmoid(),
    doc="log₂(2ᵃ + 2ᵇ) without overflow.",
)


def _logit(xp: Any, a: Any, eps: Any) -> Any:
    if eps is not None:
        a = xp.clip(a, a.dtype.type(eps), a.dtype.type(1 - eps))
    return xp.log(a / (1 - a))


def _logit_gradient(g: Any, self: Any, eps: Any) -> Any:
    slope = g / (self * (1 - self))
    if eps is None:
        return slope.masked_fill((self < 0) | (self > 1), math.nan)
    return slope.masked_fill((self < eps) | (self > 1 - eps), 0)


logit = pointwise(
    "logit(Tensor self, float? eps=None) -> Tensor",
    _logit,
    promotion="float",
    expr="log(self / (1 - self))",
    d_self=_logit_gradient,
    checks=only_floats("logit"),
    doc="log(x/(1 - x)), the inverse of sigmoid.",
)


def _x_times(name: str) -> Any:
    def kernel(xp: Any, a: Any, b: Any) -> Any:
        product = a * getattr(xp, name)(b)
        return xp.where((a == 0) & ~xp.isnan(b), a.dtype.type(0), product)

    return kernel


def _xlogy_self(g: Any, self: Any, other: Any) -> Any:
    return xlogy.function(g, other).masked_fill((self == 0) & (other <= 0), 0)


def _xlog1py_self(g: Any, self: Any, other: Any) -> Any:
    return xlog1py.function(g, other).masked_fill((self == 0) & (other <= -1), 0)


xlogy: Op = pointwise(
    "xlogy(Operand self, Operand other) -> Tensor",
    _x_times("log"),
    expr="self * log(other)",
    promotion="float",
    d_self=_xlogy_self,
    checks=one_tensor("xlogy"),
    d_other=lambda g, self, other: g * (self / other),
    doc="self·log(other), and 0 where self is 0.",
)
xlog1py: Op = pointwise(
    "special_xlog1py(Operand self, Operand other) -> Tensor",
    _x_times("log1p"),
    expr="self * log1p(other)",
    promotion="float",
    d_self=_xlog1py_self,
    method=False,
    inplace=False,
    checks=one_tensor("special_xlog1py"),
    d_other=lambda g, self, other: g * (self / (other + 1)),
    doc="self·log(1 + other), and 0 where self is 0.",
)


def _entr(xp: Any, a: Any) -> Any:
    inside = -a * xp.log(xp.where(a > 0, a, 1))
    return xp.where(a < 0, a.dtype.type(-np.inf), xp.where(xp.isnan(a), a, inside))


entr = pointwise(
    "special_entr(Tensor self) -> Tensor",
    _entr,
    expr="-self * log(self)",
    promotion="float",
    method=False,
    inplace=False,
    d_self=lambda g, self: g * (-(self.log()) - 1),
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


@public("float_power", tensor_first=False)
def float_power(input: Any, exponent: Any, *, out: Any = None) -> Tensor:
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


Tensor.float_power = float_power  # type: ignore[attr-defined]


@public(method=True)
def float_power_(self: Tensor, exponent: Any) -> Tensor:
    """In-place form of `float_power`."""
    wide = result_type(_double(self), _double(exponent))
    if self.dtype is not wide:
        raise RuntimeError(
            f"the base given to float_power_ has dtype {self.dtype.legacy} but the "
            f"operation's result requires dtype {wide.legacy}"
        )
    return dispatch.inplace(elementwise.pow, (self, _double(exponent)))
