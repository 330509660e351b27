"""Error functions and gamma functions, which NumPy does not have.

What they compute stands in `toytorch.loops.language`: erf and erfc are primitives, the inverse of
erf, lgamma and digamma texts (`defined`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np

from toytorch.backends.base import attempt
from toytorch.core.op import Op
from toytorch.core.tensor import Tensor
from toytorch.facts.dtype import from_numpy_dtype
from toytorch.facts.hints import Array, ArrayModule
from toytorch.loops.formula import Formula, OnePass
from toytorch.loops.language.functions import FUNCTIONS
from toytorch.ops.define import public, special_function
from toytorch.ops.elementwise.operand_checks import numbers

F = TypeVar("F", bound=Callable[..., Any])


def poly(coefficients: tuple[float, ...], x: Any) -> Any:
    """Horner's rule, the highest power first."""
    value = coefficients[0]
    for c in coefficients[1:]:
        value = value * x + c
    return value


def by_number(name: str, *numbers: float, wide: bool = True) -> Callable[[F], F]:
    """A kernel that leaves arrays to `of_numbers` where it can; `wide`: float64 numbers, too."""
    given = tuple(map(float, numbers))

    def around(kernel: F) -> F:
        @functools.wraps(kernel)
        def run(xp: ArrayModule, *arrays: Any) -> Any:
            made = None
            if wide or arrays[0].dtype == np.float32:
                made = of_numbers(xp, name, given, *arrays)
            return kernel(xp, *arrays) if made is None else made

        return cast(F, run)

    return around


def of_numbers(xp: ArrayModule, name: str, numbers: tuple[float, ...], *arrays: Any) -> Any:
    """What the compiled function of the module `of_numbers` gives for these numbers and each element
    of arrays; None where there is none."""
    return attempt(xp, "of_numbers", text, name, numbers, *arrays)


@functools.cache
def text() -> Any:
    """The module, whose tables take 30 ms."""
    from toytorch.ops.special import of_numbers  # seldom needed

    return of_numbers


# Of NumPy's arrays.
digamma_array, trigamma_array = FUNCTIONS["digamma"], FUNCTIONS["trigamma"]
lgamma_array = FUNCTIONS["lgamma"]
TRIGAMMA = OnePass(Formula("trigamma(self, sin(self * pi))", ("self",)), ("self",))
TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)
erf = special_function(
    "erf(Tensor self) -> Tensor",
    formula="erf(self)",
    checks=numbers("erf_vml_cpu"),
    d_self="g * (exp(-(self * self)) * (2 / sqrt(pi)))",
    sparse="entries",
    doc="Error function, 2/√π ∫₀ˣ e^{-t²} dt.",
)
erfc = special_function(
    "erfc(Tensor self) -> Tensor",
    formula="erfc(self)",
    checks=numbers("erfc_vml_cpu"),
    d_self="g * (exp(-(self * self)) * (-2 / sqrt(pi)))",
    doc="1 - erf(x), exact for large x.",
)


erfinv = special_function(
    "erfinv(Tensor self) -> Tensor",
    formula="erfinv(self)",
    checks=numbers("erfinv_vml_cpu"),
    d_self=lambda g, self: g * ((self.erfinv() ** 2).exp() / TWO_OVER_ROOT_PI),
    sparse="entries",
    doc="The inverse of erf.",
)

lgamma = special_function(
    "lgamma(Tensor self) -> Tensor",
    formula="lgamma(self)",
    checks=numbers("lgamma_vml_cpu"),
    d_self=lambda g, self: g * self.digamma(),
    doc="log |Γ(x)|.",
)


digamma = special_function(
    "digamma(Tensor self) -> Tensor",
    formula="digamma(self)",
    checks=numbers("digamma"),
    d_self=lambda g, self: g * self.polygamma(1),
    doc="The derivative of lgamma.",
)


BERNOULLI = (
    *(1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798),
    *(-174611 / 330, 854513 / 138, -236364091 / 2730),
)


def _hurwitz(xp: ArrayModule, s: int, q: Array) -> Any:
    """ζ(s, q) = Σ (q + k)⁻ˢ by the sum of Euler and Maclaurin."""
    total, lost, z = xp.zeros_like(q), xp.zeros_like(q), q
    for _ in range(256):
        low = z < 10 + 2 * s  # the series begins where its terms fall fast
        if not low.any():
            break
        term = z**-s - lost  # with what the additions before have rounded off (Kahan)
        more = total + term
        rounded = xp.where(xp.isfinite(more), (more - total) - term, 0.0)
        total, lost = xp.where(low, more, total), xp.where(low, rounded, lost)
        z = xp.where(low, z + 1, z)
    power = z**-s
    rest, term = power / 2 - lost, s * power / z
    for j, b in enumerate(BERNOULLI[:7], 1):
        rest = rest + b * term / math.factorial(2 * j)
        term = term * (s + 2 * j - 1) * (s + 2 * j) / (z * z)
    return total + (power * z / (s - 1) + rest)


def at_the_ends(xp: ArrayModule, value: Array, s: Any, q: Array) -> Any:
    """ζ(s, q) where the sum says nothing, as PyTorch has it: infinite at 0, -1, …, 0 where its first
    term is none any more, and no number at infinity."""
    value = xp.where((q <= 0) & (q == xp.floor(q)), np.inf, value)
    value = xp.where((q > 0) & (q**-s == 0), 0, value)
    return xp.where(xp.isposinf(q), np.nan, value)


def _polygamma(xp: ArrayModule, a: Array, n: int) -> Any:
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    if a.dtype.kind == "c":
        kind = from_numpy_dtype(a.dtype).legacy
        raise NotImplementedError(f"\"polygamma\" not implemented for '{kind}'")
    if n == 0:
        return digamma_array(a)
    if n == 1:
        made = TRIGAMMA(a)
        return trigamma_array(a, xp.sin(a * a.dtype.type(math.pi))) if made is None else made
    x = a.astype(np.float64)
    poles = (x <= 0) & (x == xp.floor(x))
    sums = xp.where(poles, xp.inf, _hurwitz(xp, n + 1, xp.where(poles, 1.0, x)))
    sums = at_the_ends(xp, sums, n + 1, x)
    return ((-1) ** (n + 1) * math.factorial(n) * sums).astype(a.dtype)


polygamma_of: Op = special_function(
    "polygamma(Tensor self, int n) -> Tensor",
    _polygamma,
    forms="method inplace out",
    d_self=lambda g, self, n: g * polygamma_of.function(self, n + 1),
    doc="The n-th derivative of digamma.",
)


@public("polygamma", tensor_first=False)
def polygamma(n: int, input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The n-th derivative of digamma.

    >>> polygamma(1, Tensor([1.])) * 6 / math.pi ** 2
    tensor([1.])
    """
    return polygamma_of.function(input, n, out=out)
