"""Bessel functions of orders 0 and 1, and the Airy function.

Iₙ and Jₙ are texts of the loop language (`toytorch.loops.language.defined`). For the others three
ways are taken, none of them with coefficients of others:

    Taylor polynomials        Kₙ and Ai around places that lie close together (`taylor`)
    series of Jₙ              Yₙ near 0 (Neumann), with Jₙ by the recurrence downwards (Miller)
    Hankel's expansions       far out, where their error is below e^{-2x}
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from toytorch.core.op import Op
from toytorch.facts.hints import Array, ArrayModule
from toytorch.ops.define import special_function
from toytorch.ops.elementwise.operand_checks import numbers
from toytorch.ops.special.error_gamma import by_number

if TYPE_CHECKING:
    from toytorch.core.tensor import Tensor


EULER = 0.57721566490153286061
STEP = 0.25  # from one polynomial to the next
ORDER_K = 19
FAR = 25.0  # from here on the expansions are exact to the last digits


def hankel(xp: ArrayModule, order: int, inverse: Array) -> list[Any]:
    """The terms aₖ(n)·x⁻ᵏ of the expansions at infinity."""
    terms, mu = [xp.ones_like(inverse)], 4 * order * order
    for k in range(1, 30):
        terms.append(terms[-1] * inverse * ((mu - (2 * k - 1) ** 2) / (8 * k)))
    return terms


def from_the_end(terms: list[Any]) -> Any:
    """The sum of terms that fall: only the last addition rounds in the place that counts."""
    total = terms[-1]
    for term in terms[-2::-1]:
        total = total + term
    return total


def evaluated(xp: ArrayModule, table: Array, start: float, step: float, x: Array) -> Any:
    """The function of a table at every element, which lie in its range."""
    table = xp.asarray(table)
    row = xp.clip(xp.rint((x - start) / step), 0, len(table) - 1).astype(np.int64)
    h = x - (start + row * step)
    total = table[row, -1]
    for k in range(table.shape[1] - 2, -1, -1):
        total = total * h + table[row, k]
    return total


# -- modified functions I -------------------------------------------------------------------------


def _i1_slope(self: Tensor, result: Tensor) -> Any:
    """I₁' = I₀ - I₁/x, and 1/2 at 0."""
    zero = self == 0
    return (self.i0() - result / self.masked_fill(zero, 1)).masked_fill(zero, 0.5)


def _i1e_slope(self: Tensor, result: Any) -> Any:
    zero = self == 0
    safe = self.masked_fill(zero, 1)
    return (i0e.function(self) - result * (self.sgn() + safe.reciprocal())).masked_fill(zero, 0.5)


i0 = special_function(
    "i0(Tensor self) -> Tensor",
    formula="bessel_i0(self)",
    checks=numbers("i0_vml_cpu"),
    d_self=lambda g, self: g * i1.function(self),
    doc="The modified Bessel function I₀.",
)
i0e: Op = special_function(
    "special_i0e(Tensor self) -> Tensor",
    formula="bessel_i0e(self)",
    checks=numbers("i0e_cpu"),
    forms="function out",
    d_self=lambda g, self, result: g * (i1e.function(self) - self.sgn() * result),
    node="SpecialI0EBackward0",
    doc="e^{-|x|}·I₀(x).",
)
i1: Op = special_function(
    "special_i1(Tensor self) -> Tensor",
    formula="bessel_i1(self)",
    checks=numbers("i1_cpu"),
    forms="function out",
    d_self=lambda g, self, result: g * _i1_slope(self, result),
    doc="The modified Bessel function I₁.",
)
i1e: Op = special_function(
    "special_i1e(Tensor self) -> Tensor",
    formula="bessel_i1e(self)",
    checks=numbers("i1e_cpu"),
    forms="function out",
    d_self=lambda g, self, result: g * _i1e_slope(self, result),
    node="SpecialI1EBackward0",
    doc="e^{-|x|}·I₁(x).",
)
for _name, _order in (("i0", 0), ("i1", 1)):
    special_function(
        f"special_modified_bessel_{_name}(Tensor self) -> Tensor",
        formula=f"bessel_i{_order}(self)",
        checks=numbers(f"modified_bessel_{_name}_cpu", halves=False),
        forms="function out",
        doc=f"The modified Bessel function I{'₀₁'[_order]}.",
    )

# -- modified functions K -------------------------------------------------------------------------


@cache
def _table_k(order: int) -> Any:
    from toytorch.ops.special import taylor  # and decimal numbers with it: seldom needed

    return taylor.table_k(order, STEP, round((FAR - 1) / STEP) + 1, ORDER_K)


def scaled_k(xp: ArrayModule, order: int, x: Array) -> Any:
    """e^x·Kₙ(x) for x > 0."""
    low = xp.clip(x, 1e-308, 1.0)
    quarter = low * low / 4
    logarithm = xp.log(low) + (EULER - math.log(2))
    term, harmonic = xp.ones_like(low), 0.0
    if order == 0:  # K₀ = -(log x/2 + γ)·I₀ + Σ (x²/4)ᵏ/k!² · (1 + 1/2 + … + 1/k)
        total = -logarithm
        for k in range(1, 14):
            term = term * quarter / (k * k)
            harmonic += 1 / k
            total = total + term * (harmonic - logarithm)
    else:  # K₁ = 1/x + Σ x/2·(x²/4)ᵏ/(k!(k+1)!) · (log x/2 + γ - …)
        total = xp.zeros_like(low)
        for k in range(14):
            total = total + term * (logarithm - (2 * harmonic + 1 / (k + 1)) / 2)
            harmonic += 1 / (k + 1)
            term = term * quarter / ((k + 1) * (k + 2))
        total = 1 / low + low / 2 * total
    middle = evaluated(xp, _table_k(order), 1.0, STEP, xp.where(x >= 1, xp.minimum(x, FAR), 1.0))
    far = xp.maximum(x, FAR)
    series = from_the_end(hankel(xp, order, 1 / far)) * xp.sqrt(math.pi / (2 * far))
    return xp.where(x < 1, total * xp.exp(low), xp.where(x <= FAR, middle, series))


def _modified_k(order: int, scaled: bool) -> Any:
    @by_number("modified_bessel_k", order, scaled)
    def kernel(xp: ArrayModule, a: Array) -> Any:
        x = a.astype(np.float64)
        value = scaled_k(xp, order, x)
        if not scaled:
            value = value * xp.exp(-xp.maximum(x, 0))
        value = xp.where(x == 0, np.inf, value)
        return xp.where((x < 0) | xp.isnan(x), np.nan, value).astype(a.dtype)

    return kernel


for _order in (0, 1):
    special_function(
        f"special_modified_bessel_k{_order}(Tensor self) -> Tensor",
        _modified_k(_order, False),
        checks=numbers(f"modified_bessel_k{_order}_cpu", halves=False),
        forms="function out",
        doc=f"The modified Bessel function K{'₀₁'[_order]}.",
    )
    special_function(
        f"special_scaled_modified_bessel_k{_order}(Tensor x) -> Tensor",
        _modified_k(_order, True),
        checks=numbers(f"scaled_modified_bessel_k{_order}_cpu", halves=False),
        forms="function out",
        doc=f"eˣ·K{'₀₁'[_order]}(x).",
    )

# -- J and Y --------------------------------------------------------------------------------------


def _far_y(xp: ArrayModule, order: int, x: Array) -> Any:
    """Yₙ for x ≥ FAR: a wave of slowly changing height and phase."""
    terms = hankel(xp, order, 1 / x)
    p = from_the_end([(-1) ** (k // 2) * terms[k] for k in range(0, 30, 2)])
    q = from_the_end([(-1) ** (k // 2) * terms[k] for k in range(1, 30, 2)])
    # sin and cos of x - π/4 - nπ/2, from those of x, so that no digit of x is lost.
    s, c = xp.sin(x), xp.cos(x)
    cosine, sine = ((c + s, s - c), (s - c, -(s + c)))[order]
    return xp.sqrt(1 / (math.pi * x)) * (p * sine + q * cosine)


def _near_y(xp: ArrayModule, order: int, x: Array) -> Any:
    """Yₙ for 0 < x < FAR by Neumann's series of Jₖ, and those by the recurrence downwards."""
    above, now = xp.zeros_like(x), xp.full_like(x, 1e-300)
    norm, series, first = xp.zeros_like(x), xp.zeros_like(x), now
    for k in range(70, -1, -1):  # now is proportional to Jₖ
        if k % 2 == 0:
            norm = norm + (now if k == 0 else 2 * now)
        if k % 2 == order and k > 1:
            j = k // 2
            weight = 1 / j if order == 0 else k / (j * (j + 1))
            series = series + (-1) ** j * weight * now
        if k == 1:
            first = now
        if k:
            above, now = now, 2 * k / x * now - above
            big = xp.abs(now) > 1e250
            if big.any():
                scale = xp.where(big, 1e-250, 1.0)
                above, now, norm, series = above * scale, now * scale, norm * scale, series * scale
                first = first * scale
    j0, series = now / norm, series / norm
    logarithm = xp.log(x) + (EULER - math.log(2))
    if order == 0:
        return 2 / math.pi * (logarithm * j0 - 2 * series)
    return 2 / math.pi * ((logarithm - 1) * first / norm - j0 / x - series)


ZERO_Y = 0.8935769662791675  # the double beside the first zero of Y₀


@cache
def _zero_of_y() -> Any:
    from toytorch.ops.special import taylor  # as above

    return taylor.zero_of_y(ZERO_Y)


def _bessel_y(order: int) -> Any:
    @by_number("bessel_y", order)
    def kernel(xp: ArrayModule, a: Array) -> Any:
        x = a.astype(np.float64)
        tiny = x < 1e-5
        near = _near_y(xp, order, xp.clip(x, 1e-5, FAR))
        if not order:  # beside its zero the series cancels
            beside = xp.abs(x - ZERO_Y) < 0.1
            zero = evaluated(xp, _zero_of_y(), ZERO_Y, 1.0, xp.where(beside, x, ZERO_Y))
            near = xp.where(beside, zero, near)
        safe = xp.clip(x, 5e-324, 1e-5)
        logarithm = xp.log(safe) + (EULER - math.log(2))
        start = (
            2 / math.pi * (logarithm + (1 - logarithm) * safe * safe / 4)
            if order == 0
            else -2 / (math.pi * safe) + safe / math.pi * (logarithm - 0.5)
        )
        far = _far_y(xp, order, xp.maximum(x, FAR))
        value = xp.where(tiny, start, xp.where(x < FAR, near, far))
        value = xp.where(x == 0, -np.inf, value)
        return xp.where((x < 0) | xp.isnan(x), np.nan, value).astype(a.dtype)

    return kernel


for _order in (0, 1):
    special_function(
        f"special_bessel_j{_order}(Tensor self) -> Tensor",
        formula=f"bessel_j{_order}(self)",
        checks=numbers(f"bessel_j{_order}_cpu", halves=False),
        forms="function out",
        doc=f"The Bessel function J{'₀₁'[_order]}.",
    )
    special_function(
        f"special_bessel_y{_order}(Tensor self) -> Tensor",
        _bessel_y(_order),
        checks=numbers(f"bessel_y{_order}_cpu", halves=False),
        forms="function out",
        doc=f"The Bessel function Y{'₀₁'[_order]}.",
    )


special_function(
    "special_spherical_bessel_j0(Tensor x) -> Tensor",
    formula="0.0 if isinf(x) else 1.0 if x == 0 else sin(x) / x",
    checks=numbers("spherical_bessel_j0_cpu", halves=False),
    forms="function out",
    doc="The spherical Bessel function j₀, sin(x)/x.",
)

# -- Airy's function ------------------------------------------------------------------------------

EDGE, ORDER, SPLIT = 10.0, 16, 134217729.0


def _product(a: Any, b: Any) -> tuple[Any, Any]:
    """a·b and what its rounding lost (Dekker 1971), for numbers that are not huge."""
    p = a * b
    (a1, a2), (b1, b2) = ((h, v - h) for v in (a, b) for h in [v * SPLIT - (v * SPLIT - v)])
    return p, ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2


def _two_thirds(x: Array) -> tuple[Any, Any]:
    """2/3·√x³ and the rest, since its exponential asks for all digits before the point, too."""
    root = x**0.5
    square, lost = _product(root, root)
    rest = ((x - square) - lost) / (2 * root)
    cube, lost = _product(x, root)
    third = 2 * cube / 3
    back, more = _product(third, 3.0)
    return third, ((2 * cube - back) - more + 2 * (lost + x * rest)) / 3


def _airy_far(xp: ArrayModule, x: Any) -> Any:
    """Ai for x ≥ EDGE."""
    zeta, rest = _two_thirds(x)
    u, terms = 1.0, []
    for k in range(30):
        terms.append((-1) ** k * u / zeta**k)
        u *= (6 * k + 1) * (6 * k + 3) * (6 * k + 5) / (216 * (k + 1) * (2 * k + 1))
    scale = xp.exp(-zeta) / (2 * math.sqrt(math.pi))
    return scale * (1 - rest) * from_the_end(terms) / xp.sqrt(xp.sqrt(x))


@cache
def _airy_table() -> Any:
    from toytorch.ops.special import taylor  # as above

    return taylor.table_airy(STEP, round(EDGE / STEP) + 1, ORDER)


@by_number("airy")
def _airy(xp: ArrayModule, a: Array) -> Any:
    x = a.astype(np.float64)
    total = evaluated(xp, _airy_table(), -EDGE, STEP, xp.where(xp.abs(x) <= EDGE, x, 0.0))
    right = _airy_far(xp, xp.clip(x, EDGE, 200.0))
    size = xp.clip(-x, EDGE, 1e100)
    zeta, u, p, q = 2 / 3 * size**1.5, 1.0, 0.0, 0.0
    for k in range(30):  # the same coefficients with alternating signs, on a wave
        sign = (-1) ** (k // 2) * u
        p, q = (p + sign / zeta**k, q) if k % 2 == 0 else (p, q + sign / zeta**k)
        u *= (6 * k + 1) * (6 * k + 3) * (6 * k + 5) / (216 * (k + 1) * (2 * k + 1))
    wave = p * xp.cos(zeta - math.pi / 4) + q * xp.sin(zeta - math.pi / 4)
    left = wave / (math.sqrt(math.pi) * size**0.25)
    value = xp.where(x > EDGE, xp.where(x > 200, 0.0, right), xp.where(x < -EDGE, left, total))
    return xp.where(xp.isnan(x) | xp.isinf(x), np.nan, value).astype(a.dtype)


special_function(
    "special_airy_ai(Tensor x) -> Tensor",
    _airy,
    checks=numbers("airy_ai_cpu", halves=False),
    forms="function out",
    doc="Airy's function Ai, a solution of y'' = xy.",
)
