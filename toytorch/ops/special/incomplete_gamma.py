"""Incomplete gamma functions, the multivariate gamma function, Hurwitz's zeta function."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from toytorch.facts.hints import Array, ArrayModule
from toytorch.ops.define import public, special_function
from toytorch.ops.elementwise.operand_checks import number_place, numbers, one_tensor, only_floats
from toytorch.ops.special.error_gamma import BERNOULLI, at_the_ends, lgamma_array

if TYPE_CHECKING:
    from toytorch.core.tensor import Tensor


# -- incomplete gamma functions -------------------------------------------------------------------

LARGE = 100.0  # above, the series take too long and the integrand is a narrow bell


@functools.cache
def quadrature() -> Any:
    """Gauss' nodes and weights; NumPy imports its polynomials when they are first named."""
    return np.polynomial.legendre.leggauss(64)


def _series(xp: ArrayModule, a: Array, x: Array) -> Any:
    """P(a, x) for x ≤ a + 1: Σ xⁿ / (a(a+1)…(a+n)), times the factor in front."""
    term = 1 / a
    total, low = term, a
    for _ in range(400):
        low = low + 1
        term = term * x / low
        total = total + term
        if not (term > total * 1e-17).any():
            break
    return total


def _fraction(xp: ArrayModule, a: Array, x: Array) -> Any:
    """Q(a, x) for x > a + 1: Legendre's continued fraction by Lentz's rule, times the factor."""
    b = x + 1 - a
    c, d = xp.full_like(x, 1e300), 1 / b
    value = d
    for n in range(1, 400):
        step = -n * (n - a)
        b = b + 2
        d = 1 / xp.where(step * d + b == 0, 1e-300, step * d + b)
        c = b + step / c
        value = value * (d * c)
        if not (xp.abs(d * c - 1) > 1e-16).any():
            break
    return value


def _bell(xp: ArrayModule, a: Array, x: Array) -> Any:
    """Q(a, x) for large a: Gauss' quadrature over the side of the bell that x cuts off."""
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
    scale = xp.exp(top * (xp.log(top) - 1) - lgamma_array(xp, a))
    area = total * half * scale
    return xp.where(above, area, 1 + area)  # below the top, half < 0: area is -P


def _upper(xp: ArrayModule, a: Array, x: Array, lower: bool) -> Any:
    """Q(a, x), or P(a, x)."""
    with np.errstate(all="ignore"):
        a, x = xp.broadcast_arrays(a.astype(np.float64), x.astype(np.float64))
        safe_a = xp.where((a > 0) & xp.isfinite(a), a, 1.0)
        safe_x = xp.where((x > 0) & xp.isfinite(x), x, 1.0)
        front = xp.exp(safe_a * xp.log(safe_x) - safe_x - lgamma_array(xp, safe_a))
        below = safe_x < safe_a + 1
        small = xp.minimum(safe_a, LARGE)
        p = front * _series(xp, small, xp.minimum(safe_x, small + 1))
        q = front * _fraction(xp, small, xp.maximum(safe_x, small + 1))
        value = xp.where(below, p if lower else 1 - p, 1 - q if lower else q)
        if (safe_a > LARGE).any():
            side = _bell(xp, xp.maximum(safe_a, LARGE), safe_x)
            value = xp.where(safe_a > LARGE, 1 - side if lower else side, value)
        zero, one = (0.0, 1.0) if lower else (1.0, 0.0)
        value = xp.where(x == 0, xp.where(a > 0, zero, one), value)
        value = xp.where((a == 0) & (x > 0), one, value)
        value = xp.where(xp.isposinf(x), one, xp.where(xp.isposinf(a), zero, value))
        bad = (
            (a < 0)
            | (x < 0)
            | xp.isnan(a)
            | xp.isnan(x)
            | ((a == 0) & (x == 0))
            | (xp.isinf(a) & xp.isinf(x))
        )
        return xp.where(bad, np.nan, value)


def _incomplete(lower: bool) -> Any:
    def kernel(xp: ArrayModule, a: Array, x: Array) -> Any:
        return _upper(xp, a, x, lower).astype(a.dtype)

    return kernel


def _density(self: Tensor, other: Any) -> Any:
    """The derivative of P(a, x) by x."""
    return ((self - 1) * other.log() - other - self.lgamma()).exp()


def _no_shape_derivative(name: str) -> Any:
    def refuse(g: Tensor) -> Any:
        raise NotImplementedError(f"the derivative for '{name}: self' is not implemented.")

    return refuse


igamma = special_function(
    "igamma(Tensor self, Tensor other) -> Tensor",
    _incomplete(True),
    promotion="default",
    checks=only_floats("igamma"),
    d_self=_no_shape_derivative("igamma"),
    d_other=lambda g, self, other: g * _density(self, other),
    doc="P(a, x) = ∫₀ˣ tᵃ⁻¹e⁻ᵗ dt / Γ(a).",
)
igammac = special_function(
    "igammac(Tensor self, Tensor other) -> Tensor",
    _incomplete(False),
    promotion="default",
    checks=only_floats("igammac"),
    d_self=_no_shape_derivative("igammac"),
    d_other=lambda g, self, other: -g * _density(self, other),
    doc="Q(a, x) = 1 - P(a, x).",
)

# -- multivariate gamma ---------------------------------------------------------------------------


def _mvlgamma(xp: ArrayModule, a: Array, p: int) -> Any:
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    x = a.astype(np.float64)
    total: Any = p * (p - 1) * math.log(math.pi) / 4
    for i in range(p):
        total = total + lgamma_array(xp, x - i / 2)
    return total.astype(a.dtype)


def _mvlgamma_slope(self: Tensor, p: int) -> Any:
    slope = self.digamma()
    for i in range(1, p):
        slope = slope + (self - i / 2).digamma()
    return slope


mvlgamma = special_function(
    "mvlgamma(Tensor self, int p) -> Tensor",
    _mvlgamma,
    promotion="float",
    d_self=lambda g, self, p: g * _mvlgamma_slope(self, p),
    memory="rows",
    doc="log Γ_p(x) = log π^{p(p-1)/4} + Σ_{i<p} log Γ(x - i/2).",
)
public("special.multigammaln")(mvlgamma.function)

# -- zeta -----------------------------------------------------------------------------------------


def _zeta(xp: ArrayModule, s: Array, q: Array) -> Any:
    """ζ(s, q) = Σ (q + k)⁻ˢ by the sum of Euler and Maclaurin."""
    with np.errstate(all="ignore"):
        x, z = xp.broadcast_arrays(s.astype(np.float64), q.astype(np.float64))
        total = xp.zeros_like(z)
        whole = z == xp.floor(z)
        lowest = float(xp.where(xp.isfinite(z), z, 12).min()) if z.size else 12
        steps = int(min(max(12 - lowest, 0), 4096))
        shifted = z
        for _ in range(steps):
            low = shifted < 12
            total = xp.where(low, total + shifted**-x, total)
            shifted = xp.where(low, shifted + 1, shifted)
        rest = shifted ** (1 - x) / (x - 1) + shifted**-x / 2
        term = x * shifted ** (-x - 1)
        for j, b in enumerate(BERNOULLI, 1):
            rest = rest + b * term / math.factorial(2 * j)
            term = term * (x + 2 * j - 1) * (x + 2 * j) / (shifted * shifted)
        value = xp.where(xp.isposinf(shifted) | xp.isposinf(x), total, total + rest)
        # A negative base to a broken power is no number; at the poles q = 0, -1, … it is infinite.
        value = xp.where((z <= 0) & ~whole & (x != xp.floor(x)), np.nan, value)
        value = at_the_ends(xp, value, x, z)
        value = xp.where(x == 1, np.inf, xp.where(x < 1, np.nan, value))
        return xp.where(xp.isnan(x) | xp.isnan(z), np.nan, value).astype(
            np.result_type(s.dtype, q.dtype)
        )


zeta = special_function(
    "special_zeta(Operand self, Operand other) -> Tensor",
    _zeta,
    promotion="float",
    method=False,
    inplace=False,
    checks=one_tensor("special_zeta", numbers("zeta_cpu", halves=False)),
    d_self=_no_shape_derivative("special_zeta"),
    d_other=lambda g, self, other: g * (-self * zeta_of(self + 1, other)),
    variant=number_place,
    doc="Hurwitz's zeta function, ζ(s, q) = Σₖ (q + k)⁻ˢ.",
)


def zeta_of(s: Any, q: Array) -> Any:
    """`special.zeta`, for its own derivative."""
    return zeta.function(s, q)
