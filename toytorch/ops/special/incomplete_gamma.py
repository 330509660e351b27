"""Incomplete gamma functions, the multivariate gamma function, Hurwitz's zeta function."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from toytorch.facts.hints import Array, ArrayModule, DType
from toytorch.loops.language.functions import erfc
from toytorch.ops.define import public, special_function
from toytorch.ops.elementwise.operand_checks import number_place, numbers, one_tensor, only_floats
from toytorch.ops.special.error_gamma import (
    BERNOULLI,
    at_the_ends,
    by_number,
    lgamma_array,
    of_numbers,
    poly,
)

# log Γ(2 + t) is t times a series of these powers: 1 - γ, then (-1)ᵏ·(ζ(k) - 1)/k.
NEAR_TWO = (
    0.42278433509846713939, 0.322467033424113218, -0.0673523010531980951, 0.0205808084277845479,
    -0.00738555102867398527, 0.00289051033074152329, -0.00119275391170326098, 0.000509669524743042422,
    -0.00022315475845357938, 9.94575127818085337e-5, -4.49262367381331417e-5, 2.05072127756706916e-5,
    -9.4394882752683959e-6, 4.3748667899074878e-6, -2.03921575380136624e-6, 9.55141213040741983e-7,
    -4.49246919876456604e-7, 2.12071848055546659e-7, -1.00432248239680996e-7, 4.76981016936398057e-8,
    -2.27110946089431649e-8, 1.08386592148969541e-8, -5.18347504197004666e-9, 2.48367454380247832e-9,
    -1.19214014058609121e-9, 5.73136724167886201e-10, -2.75952288512423315e-10, 1.33047643742444895e-10,
)  # fmt: skip

if TYPE_CHECKING:
    from toytorch.core.tensor import Tensor


# -- incomplete gamma functions -------------------------------------------------------------------

VAST = 1e10  # above, the integrand's exponent has no digits left
LARGE = 100.0  # above, the series take too long and the integrand is a narrow bell


@functools.cache
def quadrature() -> Any:
    """Gauss' nodes and weights; NumPy imports its polynomials when they are first named."""
    return np.polynomial.legendre.leggauss(64)


def _series(xp: ArrayModule, a: Array, x: Array) -> Any:
    """a·P(a, x) for x ≤ a + 1 over the factor in front: Σ xⁿ / ((a+1)…(a+n))."""
    term = total = xp.ones_like(x)
    low = a
    for _ in range(400):
        low = low + 1
        term = term * x / low
        total = total + term
        if not (term > total * 1e-17).any():
            break
    return total


def _fraction(xp: ArrayModule, a: Array, x: Array) -> Any:
    """Q(a, x) for x > a + 1, over the factor in front: Legendre's continued fraction, from its end,
    which rounds less than from its beginning."""
    count = 20 + int(110 / float(x.min())) + int(min(a.max(), 150)) if x.size else 0
    value = x + (2 * count + 1) - a
    for n in range(count, 0, -1):
        value = x + (2 * n - 1) - a - n * (n - a) / value
    return 1 / value


def _small_upper(xp: ArrayModule, a: Array, x: Array, logarithm: Array) -> Any:
    """Q(a, x) for a < 1/2 and x ≤ a + 1, where it is the small difference of P from 1:
    1 - x^a/Γ(1+a)·(1 + a·Σ (-x)ⁿ/(n!(a+n))), of which the logarithm in front is given."""
    term, total = xp.ones_like(x), xp.zeros_like(x)
    for n in range(1, 24):
        term = term * x / -n
        total = total + term / (a + n)
    return -xp.expm1(logarithm) - xp.exp(logarithm) * (a * total)


def _bell(xp: ArrayModule, a: Array, x: Array) -> Any:
    """Q(a, x), or P(a, x) below the top, for large a: Gauss' quadrature over the side of the bell
    that x cuts off."""
    top, width = a - 1, xp.sqrt(a - 1)
    above = x > top
    far = xp.where(
        above,
        xp.maximum(top + 12 * width, x + 8 * width),
        xp.maximum(0.0, xp.minimum(top - 12 * width, x - 8 * width)),
    )
    half = (far - x) / 2
    total = 0.0
    for node, weight in zip(*quadrature()):
        t = xp.maximum(x + half * (node + 1), 1e-300)
        total = total + weight * xp.exp(top * (xp.log(t) - xp.log(top)) - (t - top))
    scale = xp.exp(top * (xp.log(top) - 1) - lgamma_array(a))
    return total * xp.abs(half) * scale


def _front(xp: ArrayModule, a: Array, x: Array) -> Any:
    """x^a·e^{-x}/Γ(a), by a power where that has no digits to lose, else by logarithms."""
    power = xp.abs(a * xp.log(x)) < 600
    plain = power & (a <= LARGE) & (x < 600)
    z, product = xp.where(plain, a, 1.0), xp.ones_like(a)
    for _ in range(int(LARGE)):
        high = z > 2
        if not high.any():
            break
        z = xp.where(high, z - 1, z)
        product = xp.where(high, product * z, product)
    gamma = xp.exp(lgamma_array(z)) * product
    base = xp.where(plain, x, 1.0)
    made = base ** xp.where(plain, a, 0.0) * xp.exp(-base) / gamma
    return xp.where(plain, made, xp.exp(a * xp.log(x) - x - lgamma_array(a)))


def _normal(xp: ArrayModule, a: Array, x: Array, lower: bool) -> Any:
    """Q(a, x), or P(a, x), where a is so large that the bell is a normal distribution but for the
    first term of Temme's expansion."""
    off = (x - a) / a
    z = off * xp.sqrt(xp.maximum(1 - 2 / 3 * off, 0)) * xp.sqrt(a / 2)
    skew = xp.exp(-z * z) / (3 * xp.sqrt(2 * math.pi * a))
    half = erfc(-z if lower else z) / 2
    return half + skew if lower else half - skew


def _upper(xp: ArrayModule, a: Array, x: Array, lower: bool) -> Any:
    """Q(a, x), or P(a, x)."""
    with np.errstate(all="ignore"):
        a, x = xp.broadcast_arrays(a.astype(np.float64), x.astype(np.float64))
        safe_a = xp.where((a > 0) & xp.isfinite(a), a, 1.0)
        safe_x = xp.where((x > 0) & xp.isfinite(x), x, 1.0)
        bell = (safe_a > LARGE) & (xp.abs(safe_x - safe_a) < 0.4 * safe_a)
        b, y = xp.where(bell, 1.0, safe_a), xp.where(bell, 1.0, safe_x)
        tiny = b < 1  # then Γ(a + 1) = a·Γ(a) is what has digits
        near = xp.where(tiny, b, 0.0)
        small = xp.minimum(near, 0.5)
        log_gamma = xp.where(
            near < 0.5,
            small * poly(NEAR_TWO[::-1], small) - xp.log1p(small),
            lgamma_array(1 + near),
        )
        logarithm = near * xp.log(y) - log_gamma
        front = _front(xp, b, y)
        front_a = xp.where(tiny, xp.exp(logarithm) * xp.exp(-y), front / b)
        below = y < b + 1
        p = front_a * _series(xp, b, xp.minimum(y, b + 1))
        q = xp.where(tiny, b * front_a, front) * _fraction(xp, b, xp.maximum(y, b + 1))
        if tiny.any():
            rest = _small_upper(xp, near, xp.minimum(y, 2.0), logarithm)
            exact = below & tiny & (rest < 0.5)
            p, q = xp.where(exact, 1 - rest, p), xp.where(exact, rest, q)
            below = (below & ~exact) | (exact & lower)
        value = xp.where(below, p if lower else 1 - p, 1 - q if lower else q)
        if bell.any():
            middle = xp.where(bell, safe_a, LARGE)
            side = _bell(xp, middle, xp.where(bell, safe_x, LARGE))
            above = safe_x > middle - 1
            share = xp.where(above == lower, 1 - side, side)
            value = xp.where(bell, share, value)
            vast = bell & (safe_a > VAST)
            if vast.any():
                value = xp.where(vast, _normal(xp, safe_a, safe_x, lower), value)
        zero, one = (0.0, 1.0) if lower else (1.0, 0.0)
        value = xp.where(x == 0, zero, value)
        value = xp.where((a == 0) & (x > 0), one, value)
        value = xp.where(xp.isposinf(x), one, xp.where(xp.isposinf(a), zero, value))
        bad = (
            (a < 0)
            | (x < 0)
            | (xp.isnan(a) & (x != 0) & ~xp.isposinf(x))  # which PyTorch asks for first
            | xp.isnan(x)
            | ((a == 0) & (x == 0))
            | (xp.isinf(a) & xp.isinf(x))
        )
        return xp.where(bad, np.nan, value)


def _incomplete(lower: bool) -> Any:
    @by_number("incomplete_gamma", lower)
    def kernel(xp: ArrayModule, a: Array, x: Array) -> Any:
        return _upper(xp, a, x, lower).astype(a.dtype)

    return kernel


def _density(self: Tensor, other: Any) -> Any:
    """The derivative of P(a, x) by x."""
    return ((self - 1) * other.log() - other - self.lgamma()).exp()


def _no_shape_derivative(name: str) -> Any:
    def refuse(g: Tensor) -> Any:
        raise NotImplementedError(f"the derivative for '{name}' is not implemented.")

    return refuse


igamma = special_function(
    "igamma(Tensor self, Tensor other) -> Tensor",
    _incomplete(True),
    promotion="default",
    checks=only_floats("igamma_cpu"),
    d_self=_no_shape_derivative("igamma: input"),
    d_other=lambda g, self, other: g * _density(self, other),
    doc="P(a, x) = ∫₀ˣ tᵃ⁻¹e⁻ᵗ dt / Γ(a).",
)
igammac = special_function(
    "igammac(Tensor self, Tensor other) -> Tensor",
    _incomplete(False),
    promotion="default",
    checks=only_floats("igammac_cpu"),
    d_self=_no_shape_derivative("igammac: input"),
    d_other=lambda g, self, other: -g * _density(self, other),
    doc="Q(a, x) = 1 - P(a, x).",
)

# -- multivariate gamma ---------------------------------------------------------------------------


def _mvlgamma(xp: ArrayModule, a: Array, p: int) -> Any:
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    made = of_numbers(xp, "mvlgamma", (float(p),), a)
    if made is not None:
        return made
    x = a.astype(np.float64)
    total: Any = p * (p - 1) * math.log(math.pi) / 4
    for i in range(p):
        total = total + lgamma_array(x - i / 2)
    return total.astype(a.dtype)


def _no_truth_values(common: DType, args: Sequence[Any]) -> None:
    if args[0].dtype.rank == 0:
        raise RuntimeError("The input tensor may not be a boolean tensor.")
    if common.is_complex:
        raise NotImplementedError(f"\"arange_cpu\" not implemented for '{common.legacy}'")


def _mvlgamma_slope(self: Tensor, p: int) -> Any:
    slope = self.digamma()
    for i in range(1, p):
        slope = slope + (self - i / 2).digamma()
    return slope


mvlgamma = special_function(
    "mvlgamma(Tensor self, int p) -> Tensor",
    _mvlgamma,
    checks=_no_truth_values,
    d_self=lambda g, self, p: g * _mvlgamma_slope(self, p),
    apart="never",
    memory="rows",
    doc="log Γ_p(x) = log π^{p(p-1)/4} + Σ_{i<p} log Γ(x - i/2).",
)
public("special.multigammaln")(mvlgamma.function)

# -- zeta -----------------------------------------------------------------------------------------


@by_number("zeta", False, wide=False)
@by_number("zeta", True)
def _zeta(xp: ArrayModule, s: Array, q: Array) -> Any:
    """ζ(s, q) = Σ (q + k)⁻ˢ by the sum of Euler and Maclaurin."""
    with np.errstate(all="ignore"):
        x, z = xp.broadcast_arrays(s.astype(np.float64), q.astype(np.float64))
        total, lost, shifted = xp.zeros_like(z), xp.zeros_like(z), z
        whole = z == xp.floor(z)
        enough = 10 + xp.clip(xp.where(xp.isnan(x), 2.0, x), 2.0, 40.0)  # then the terms fall fast
        lowest = xp.where(xp.isfinite(z), enough - z, 0.0)
        for _ in range(int(min(max(float(lowest.max()), 0), 4096)) + 1 if z.size else 0):
            low = shifted < enough
            term = shifted**-x - lost  # with what the additions before have rounded off (Kahan)
            more = total + term
            rounded = xp.where(xp.isfinite(more), (more - total) - term, 0.0)
            total, lost = xp.where(low, more, total), xp.where(low, rounded, lost)
            shifted = xp.where(low, shifted + 1, shifted)
        power = shifted**-x
        rest, term = power * shifted / (x - 1) + (power / 2 - lost), x * power / shifted
        for j, b in enumerate(BERNOULLI, 1):
            rest = rest + b * term / float(math.factorial(2 * j))
            term = term * (x + 2 * j - 1) * (x + 2 * j) / (shifted * shifted)
        value = xp.where(xp.isposinf(shifted) | xp.isposinf(x), total, total + rest)
        # A negative base to a broken power is no number; at the poles q = 0, -1, … it is infinite.
        value = xp.where((z <= 0) & ~whole & (x != xp.floor(x)), np.nan, value)
        value = at_the_ends(xp, value, x, z)
        if np.result_type(s.dtype, q.dtype) == np.float64:
            value = xp.where((z > 0) & (z**-x == 0), np.nan, value)  # 0/0, as PyTorch's sum has it
        value = xp.where(xp.isposinf(x) & (z > 0), xp.where(z < 1, np.inf, np.nan), value)
        value = xp.where(xp.isnan(x) | xp.isnan(z), np.nan, value)
        value = xp.where((z <= 0) & whole, np.inf, value)
        value = xp.where(x == 1, np.inf, xp.where(x < 1, np.nan, value))
        return value.astype(np.result_type(s.dtype, q.dtype))


zeta = special_function(
    "special_zeta(Operand self, Operand other) -> Tensor",
    _zeta,
    forms="function out",
    words={"self": "self"},
    checks=one_tensor("special_zeta", numbers("zeta_cpu", halves=False)),
    d_self=_no_shape_derivative("zeta"),
    d_other=lambda g, self, other: g * (-self * zeta_of(self + 1, other)),
    variant=number_place,
    doc="Hurwitz's zeta function, ζ(s, q) = Σₖ (q + k)⁻ˢ.",
)


def zeta_of(s: Any, q: Array) -> Any:
    """`special.zeta`, for its own derivative."""
    return zeta.function(s, q)
