"""Error functions and gamma functions, which NumPy does not have.

erf and erfc follow W. J. Cody, "Rational Chebyshev approximations for the error function",
Math. Comp. 23 (1969); the gamma functions use Stirling's series after shifting the argument up.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from toytorch.core.op import Op
from toytorch.core.tensor import Tensor
from toytorch.facts.hints import Array, ArrayModule
from toytorch.ops.define import public, special_function
from toytorch.ops.elementwise.operand_checks import numbers

# Coefficients of Cody's three approximations: |x| ≤ 0.46875, ≤ 4, and above.
ERF_P = (
    1.85777706184603153e-1,
    3.16112374387056560e0,
    1.13864154151050156e2,
    3.77485237685302021e2,
    3.20937758913846947e3,
)
ERF_Q = (
    1.0,
    2.36012909523441209e1,
    2.44024637934444173e2,
    1.28261652607737228e3,
    2.84423683343917062e3,
)
ERFC_P = (
    2.15311535474403846e-8,
    5.64188496988670089e-1,
    8.88314979438837594e0,
    6.61191906371416295e1,
    2.98635138197400131e2,
    8.81952221241769090e2,
    1.71204761263407058e3,
    2.05107837782607147e3,
    1.23033935479799725e3,
)
ERFC_Q = (
    1.0,
    1.57449261107098347e1,
    1.17693950891312499e2,
    5.37181101862009858e2,
    1.62138957456669019e3,
    3.29079923573345963e3,
    4.36261909014324716e3,
    3.43936767414372164e3,
    1.23033935480374942e3,
)
TAIL_P = (
    1.63153871373020978e-2,
    3.05326634961232344e-1,
    3.60344899949804439e-1,
    1.25781726111229246e-1,
    1.60837851487422766e-2,
    6.58749161529837803e-4,
)
TAIL_Q = (
    1.0,
    2.56852019228982242e0,
    1.87295284992346047e0,
    5.27905102951428412e-1,
    6.05183413124413191e-2,
    2.33520497626869185e-3,
)


def poly(coefficients: tuple[float, ...], x: Any) -> Any:
    """Horner's rule, the highest power first."""
    value = coefficients[0]
    for c in coefficients[1:]:
        value = value * x + c
    return value


def erfcx_above(xp: ArrayModule, x: Array) -> Any:
    """e^{x²}·erfc(x) for x ≥ 0.46875."""
    safe = xp.minimum(x, 4.0)
    middle = poly(ERFC_P, safe) / poly(ERFC_Q, safe)
    safe = xp.maximum(x, 4.0)
    inverse = 1 / (safe * safe)
    tail = (1 / math.sqrt(math.pi) - inverse * poly(TAIL_P, inverse) / poly(TAIL_Q, inverse)) / safe
    return xp.where(x <= 4, middle, tail)


TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)
erf = special_function(
    "erf(Tensor self) -> Tensor",
    formula="erf(self)",
    promotion="float",
    checks=numbers("erf_vml_cpu"),
    d_self="g * (exp(-(self * self)) * (2 / sqrt(pi)))",
    sparse="entries",
    doc="Error function, 2/√π ∫₀ˣ e^{-t²} dt.",
)
erfc = special_function(
    "erfc(Tensor self) -> Tensor",
    formula="erfc(self)",
    promotion="float",
    checks=numbers("erfc_vml_cpu"),
    d_self="g * (exp(-(self * self)) * (-2 / sqrt(pi)))",
    doc="1 - erf(x), exact for large x.",
)


erfinv = special_function(
    "erfinv(Tensor self) -> Tensor",
    formula="erfinv(self)",
    promotion="float",
    checks=numbers("erfinv_vml_cpu"),
    d_self=lambda g, result: g * ((result * result).exp() / TWO_OVER_ROOT_PI),
    sparse="entries",
    doc="The inverse of erf.",
)

STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
DIGAMMA = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)


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


def numbers_of(text: str) -> tuple[float, ...]:
    """The numbers that a text lists."""
    return tuple(map(float, text.split()))


# log Γ(1.28125 + h) by powers of h; log |Γ| around the doubles beside its zeros between -3 and -2.
BETWEEN = numbers_of("""
    -0.10480177068453483 -0.19067148202524817 0.5785772028350291 -0.20745466845135754
    0.10564749592466643 -0.06191867420622959 0.03903011793279363 -0.025690201201800794
    0.017393419460116234 -0.012010526889564565 0.008414999003926164 -0.005962255672686033
    0.004262315297419654 -0.0030694366645082926 0.002223993271658208 -0.001619857065989819
    0.0011851700419877984 -0.0008705607997775743 0.0006416986611754041 -0.00047447164106319647
    0.0003518006809541349
""")
ZEROS = {
    -2.4570247382208006: numbers_of("""
        5.619192358950097e-17 1.5156034480216576 4.8583209516339965 1.4112911430779813
        8.721782583815347 5.800414566599878 24.82494212189408 24.03882306229298
        82.22915682704257 100.6481235455117 296.4364135076134 425.1798456843826
        1130.4578581775138 1811.2054188018735 4487.2184531890025
"""),
    -2.7476826467274127: numbers_of("""
        1.733509244024501e-16 -1.9143501856116005 9.575189475709672 -20.095134916842625
        62.6272827135138 -194.76615530344657 646.9059997129297 -2193.1127764806292
        7610.39798665835 -26804.578420618196 95617.45164335004 -344497.59343483427
        1251567.4465251055 -4578716.594581739 16850484.270697452
"""),
}


def lgamma_array(xp: ArrayModule, a: Array) -> Any:
    """log |Γ| of every element."""
    x = a.astype(np.float64)
    z = xp.where(x < 0, 1 - x, x)
    value = xp.where(z < 14, _lgamma_below(xp, xp.minimum(z, 14.0)), _lgamma_above(xp, z))
    turn = -xp.log(xp.abs(xp.sin(math.pi * (x - xp.rint(x)))) / math.pi)
    value = xp.where(x < 0, turn - value, value)
    if (x < -2).any():  # beside a zero the difference has no digits left
        for zero, powers in ZEROS.items():
            h = xp.clip(x - zero, -0.02, 0.02)
            value = xp.where(xp.abs(h) < 0.02, poly(powers[::-1], h), value)
    value = xp.where(xp.abs(x) < 1e-17, -xp.log(xp.abs(x)), value)
    value = xp.where((x <= 0) & (x == xp.floor(x)), xp.inf, value)
    return xp.where(xp.isinf(x), xp.inf, value).astype(a.dtype)


def _lgamma_below(xp: ArrayModule, z: Array) -> Any:
    """log Γ from 0 to 14, exact beside its zeros at 1 and 2: Γ(z) = (z-1)…(z-n)·Γ(z-n)."""
    product = xp.ones_like(z)
    for _ in range(12):
        high = z > 2.5
        if not high.any():
            break
        z = xp.where(high, z - 1, z)
        product = xp.where(high, product * z, product)
    tiny, low = z < 0.5, z < 1.47
    t = xp.where(tiny, z, xp.where(low, z - 1, z - 2))
    near = t * poly(NEAR_TWO[::-1], t) + xp.log(product)
    near = near - xp.where(low, xp.log1p(t), 0.0)
    between = (z > 1.1) & low
    near = xp.where(between, poly(BETWEEN[::-1], xp.where(between, z, 1.28125) - 1.28125), near)
    return near - xp.where(tiny, xp.log(xp.where(tiny, z, 1.0)), 0.0)


def _lgamma_above(xp: ArrayModule, z: Array) -> Any:
    """log Γ from 14 on, by Stirling's series."""
    z = xp.maximum(z, 14.0)
    series = poly(STIRLING[::-1], 1 / (z * z)) / z
    return (z - 0.5) * (xp.log(z) - 1) + (0.5 * math.log(2 * math.pi) - 0.5 + series)


lgamma = special_function(
    "lgamma(Tensor self) -> Tensor",
    lgamma_array,
    promotion="float",
    checks=numbers("lgamma_vml_cpu"),
    d_self=lambda g, self: g * self.digamma(),
    doc="log |Γ(x)|.",
)


def digamma_array(xp: ArrayModule, a: Array) -> Any:
    x = a.astype(np.float64)
    z = xp.where(x < 0.5, 1 - x, x)
    total = xp.zeros_like(z)
    for _ in range(10):
        low = z < 10
        total = xp.where(low, total - 1 / z, total)
        z = xp.where(low, z + 1, z)
    inverse = 1 / (z * z)
    value = total + xp.log(z) - 0.5 / z - inverse * poly(DIGAMMA[::-1], inverse)
    fraction = x - xp.rint(x)
    value = xp.where(x < 0.5, value - math.pi / xp.tan(math.pi * fraction), value)
    value = xp.where((x < 0) & (fraction == 0), xp.nan, value)
    value = xp.where(x == 0, xp.copysign(xp.inf, -x), value)
    return xp.where(xp.isposinf(x), x, value).astype(a.dtype)


digamma = special_function(
    "digamma(Tensor self) -> Tensor",
    digamma_array,
    promotion="float",
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
    if n == 0:
        return digamma_array(xp, a)
    x = a.astype(np.float64)
    poles = (x <= 0) & (x == xp.floor(x)) if n > 1 else x < 0.5
    sums = xp.where(poles, xp.inf, _hurwitz(xp, n + 1, xp.where(poles, 1.0, x)))
    if n > 1:
        sums = at_the_ends(xp, sums, n + 1, x)
    value = (-1) ** (n + 1) * math.factorial(n) * sums
    if n == 1:  # far below 0 the reflection is shorter than the sum
        sine = xp.sin(a.dtype.type(math.pi) * a).astype(np.float64)
        reflected = (math.pi / sine) ** 2 - _hurwitz(xp, 2, xp.where(x < 0.5, 1 - x, 1.0))
        value = xp.where(x < 0.5, reflected, value)
    return value.astype(a.dtype)


polygamma_of: Op = special_function(
    "polygamma(Tensor self, int n) -> Tensor",
    _polygamma,
    promotion="float",
    function=False,
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
