"""Functions that the language states in its own words: one text each, for every generator.

A primitive that stands here has no instructions of its own. NumPy's function of it is the text run
as Python, a compiled loop has its steps in place (`parse.steps_of`), CUDA C has them as a
`__device__` function. The words of a text are those of programs, without the signs that NumPy's
arrays refuse (`if`, `and`, `not`); `polynomial(NAME, r)` is Horner's scheme with a row of
`special_coefficients`. It reads `x`, a function of two numbers `z` as well, and assigns `y`.

    >>> print(DEFINED["ndtri"].text("float32").splitlines()[0])
    q = x - 0.5
"""

from __future__ import annotations

from dataclasses import dataclass

WIDE = "float64"
LN2 = 0.6931471805599453


@dataclass(frozen=True)
class Defined:
    """What a function is.

    wide    the lines for float64 numbers
    narrow  those for float32 numbers, where these are not computed in float64 as well
    reads   the names of its arguments
    """

    wide: str
    narrow: str = ""
    reads: str = "x"

    def text(self, type: str) -> str:
        """The lines for arguments of a type."""
        chosen = self.wide if type == WIDE else self.narrow or wide_inside(self.wide, self.reads)
        lines = map(str.strip, chosen.strip().splitlines())
        return "\n".join(line for line in lines if line)


def wide_inside(text: str, reads: str = "x") -> str:
    """A text for float32 numbers that computes in float64."""
    widened = "\n".join(f"{name} = {WIDE}({name})" for name in reads)
    return f"{widened}\n{text}\ny = float32(y)"


# The inverse of erf and of Φ. In the middle they are x times a ratio of polynomials of 0.85² - x², as
# in M. J. Wichura, "Algorithm AS 241", Applied Statistics 37 (1988), from whom the limit 0.85 is, too.
# In the tails, where y is left of 1 or 0, s = √(-log y) is close, and a ratio of polynomials of s or
# 1/s is taken off. The polynomials are chosen before the division, so there is one.
ERFINV = """
    size = abs(x)
    near = size < 0.85
    r = 0.7225 - x * x
    s = sqrt(-log((1 - size) / 2))
    {tail}
    above = where(near, size * polynomial(ERFINV_ABOVE, r), above)
    below = where(near, polynomial(ERFINV_BELOW, r), below)
    ratio = above / below
    y = where(near, ratio, s - ratio)
    y = copysign(where(size == 1, inf, y), x)
"""
NDTRI = """
    q = x - 0.5
    near = abs(q) < 0.425
    r = 0.7225 - 4 * (q * q)
    least = minimum(x, 1 - x)
    s = sqrt(-log(least))
    {tail}
    above = where(near, abs(q) * polynomial(NDTRI_ABOVE, r), above)
    below = where(near, polynomial(ERFINV_BELOW, r), below)
    ratio = above / below
    y = where(near, ratio, 1.4142135623730951 * (s - ratio))
    y = where(least == 0, inf, y)
    y = where(q < 0, -y, y)
"""
NARROW_TAIL = """
    v = s - 1.6
    above = polynomial(TAIL_ABOVE, v)
    below = polynomial(TAIL_BELOW, v)
"""
WIDE_TAIL = """
    u = 1 / s
    v = u - 0.25
    w = u - 0.03125
    far = s > 4
    above = where(far, polynomial(FAR_ABOVE, w), polynomial(MIDDLE_ABOVE, v))
    below = where(far, polynomial(FAR_BELOW, w), polynomial(MIDDLE_BELOW, v))
"""
# log |Γ|. For a = |x| < 4 it is r(r - 1) times a ratio of polynomials, with r = a - 1 or, where a is
# small, r = a and the logarithm of a off; beyond, Stirling's formula with the rest that Binet's integral
# gives. Γ(-a)·Γ(a) = -π/(a·sin πa) does the rest. The zeros between -3 and -2 have polynomials of their own.
LGAMMA = """
    a = abs(x)
    tiny = a < 0.75
    high = a >= 4
    back = x < 0
    f = abs(a - round(a))
    q = f * f
    sine = f * polynomial(SINE{short}, q)
    r = where(tiny, a, a - 1)
    r = minimum(r, 3)
    {low}
    logarithm = log(a)
    v = 1 / a
    {rest}
    above = (a - 0.5) * (logarithm - 1) + (0.4189385332046727 + v * rest)
    own = where(tiny, low - logarithm, where(high, above, low))
    turned = log(where(tiny, sine, a * sine) * 0.3183098861837907)
    turned = where(tiny, -turned - low, -turned - own)
    {zeros}
    turned = where(f == 0, inf, turned)
    y = where(back, turned, own)
    y = where(a == inf, inf, y)
"""
LGAMMA_ZEROS = """
    other = x < -2.6
    h = where(other, x + 2.7476826467274127, x + 2.4570247382208006)
    zero = where(other, polynomial(ZERO_SECOND, h), polynomial(ZERO_FIRST, h))
    turned = where(abs(h) < 0.02, zero, turned)
"""
LGAMMA_WIDE = LGAMMA.format(
    short="",
    low="low = r * (r - 1) * (polynomial(LGAMMA_ABOVE, r) / polynomial(LGAMMA_BELOW, r)) + 0",
    rest="w = v * v\nrest = polynomial(BINET_ABOVE, w) / polynomial(BINET_BELOW, w)",
    zeros=LGAMMA_ZEROS,
)
LGAMMA_NARROW = LGAMMA.format(
    short="_SHORT",
    low="low = r * (r - 1) * (polynomial(LGAMMA_SHORT_ABOVE, r) / polynomial(LGAMMA_SHORT_BELOW, r)) + 0",
    rest="w = v * v\nrest = polynomial(BINET_SHORT, w)",
    zeros="",
)
# ψ, by its value 10 or more places above (Euler and Maclaurin) and ψ(1 - x) - ψ(x) = π/tan πx.
DIGAMMA = """
    z = where(x < 0.5, 1 - x, x)
    total = 0 * z
    {shifts}
    v = 1 / z
    w = v * v
    total = total + log(z) - 0.5 * v - w * polynomial(DIGAMMA_SERIES, w)
    f = x - round(x)
    size = abs(f)
    rest = 0.5 - size
    tangent = size * polynomial(SINE, size * size) / (rest * polynomial(SINE, rest * rest))
    turned = total - copysign(3.141592653589793 / tangent, f)
    y = where(x < 0.5, turned, total)
    y = where(f == 0, where(x < 0, nan, y), y)
    y = where(x == 0, copysign(inf, -x), y)
    y = where(x == inf, x, y)
"""
DIGAMMA_SHIFT = """
    low = z < 10
    total = where(low, total - 1 / z, total)
    z = where(low, z + 1, z)
"""
# The derivative of digamma: Σ (z + k)⁻² up to 10, and the series of Euler and Maclaurin from there; left
# of ½ by reflection, with z = sin(πx), which is given because PyTorch has it in the type of x.
TRIGAMMA = """
    low = x < 0.5
    q = where(low, 1 - x, x)
    total = q * 0
    {shifts}
    v = 1 / (q * q)
    rest = 1 / 6 - v * (1 / 30 - v * (1 / 42 - v * (1 / 30 - v * (5 / 66 - v * (691 / 2730 - v * 7 / 6)))))
    total = total + (1 + 0.5 / q + v * rest) / q
    turned = 3.141592653589793 / z
    y = where(low, turned * turned - total, where(x == inf, 0, total))
"""
TRIGAMMA_SHIFT = """
    near = q < 10
    total = where(near, total + 1 / (q * q), total)
    q = where(near, q + 1, q)
"""
# I₀ and I₁: to 8 a polynomial of x², beyond e^x/√x times one of 1/x.
MODIFIED = """
    a = abs(x)
    near = polynomial(I{order}_NEAR, minimum(a * a, 64)){factor}
    big = maximum(a, 8)
    t = 16 / big - 1
    far = polynomial(I{order}_FAR, t) / sqrt(big)
    {value}
    {sign}
"""
UNSCALED = """
    most = minimum(a, 700)
    far = far * exp(most) * exp(a - most)
    y = where(a <= 8, near, far)
"""
SCALED = "y = where(a <= 8, near * exp(-a), far)"


def modified(order: int, value: str) -> str:
    """The text of I₀ or I₁."""
    odd = order == 1
    sign = "y = where(x < 0, -y, y)" if odd else ""  # of -0 it is 0, as in PyTorch
    return MODIFIED.format(order=order, factor=" * a" if odd else "", value=value, sign=sign)


# J₀ and J₁: to 5 a polynomial of x² times x² - z², with z the first zero in two parts; beyond, a wave
# whose height and phase are ratios of polynomials of 1/x². Its sine and cosine are made of those of x,
# so that no digit of x is lost.
BESSEL = """
    a = abs(x)
    q = minimum(a * a, 25)
    near = ((a - {zero}) - {lost}) * (a + {zero}) * polynomial(J{order}_NEAR, q){factor}
    big = maximum(a, 5)
    v = 1 / big
    w = v * v
    p = polynomial(J{order}_P_ABOVE, w) / polynomial(J{order}_P_BELOW, w)
    r = polynomial(J{order}_Q_ABOVE, w) / polynomial(J{order}_Q_BELOW, w) * v
    sine = sin(big)
    cosine = cos(big)
    {turned}
    far = sqrt(v) * 0.5641895835477563 * (p * along - r * across)
    y = where(a < 5, near, far)
    {sign}
"""
FIRST_ZEROS = (
    (2.404825557695773, -1.176691651530894e-16),
    (3.8317059702075125, -1.5269184090088067e-16),
)


def bessel(order: int) -> str:
    """The text of J₀ or J₁."""
    zero, lost = FIRST_ZEROS[order]
    if order:
        turned = "along = sine - cosine\nacross = -(sine + cosine)"
        sign = "y = where(x < 0, -y, where(x == 0, x, y))"
    else:
        turned, sign = "along = sine + cosine\nacross = sine - cosine", ""
    return BESSEL.format(
        order=order, zero=zero, lost=lost, factor=" * a" if order else "", turned=turned, sign=sign
    )


# e^{x²}·erfc(x)
ERFCX = """
    far = maximum(x, 0.45)
    t = (far - 3.75) / (far + 3.75)
    v = 1 / (far * far)
    middle = polynomial(ERFCX_MIDDLE, t) / (1 + 2 * far)
    beyond = polynomial(ERFCX_SERIES, v) / far
    low = minimum(x, 0.5)
    y = where(x < 0.5, exp(low * low) * erfc(low), where(x < 25, middle, beyond))
"""
# log Φ(x): from erfcx where erfc alone would be 0
LOG_NDTR = """
    low = minimum(x, -1)
    tail = log(erfcx(low * -0.7071067811865476) / 2) - 0.5 * (low * low)
    high = log1p(-0.5 * erfc(maximum(x, -1) * 0.7071067811865476))
    y = where(x < -1, tail, high)
"""
# log(eˣ + eᶻ) and log₂(2ˣ + 2ᶻ): the larger, and log(1 + r) for what the other adds to it, where r is
# at most 1. Two infinities have no difference. float32's are computed in float64, since the sum may all
# but cancel.
LOGADDEXP = """
    r = exp{base}(-abs(x - z))
    rest = r * polynomial(LOG_ABOVE_ONE, r){unit}
    y = maximum(x, z) + where(x == z, {alike}, rest)
"""
# √(x² + z²). The squares of float32 numbers are at home in float64; those of float64 are kept from
# overflow and underflow by a power of two. An infinite number is enough, whatever is beside it.
HYPOT = """
    y = sqrt(x * x + z * z)
    y = where(fmax(abs(x), abs(z)) == inf, inf, y)
"""
HYPOT_WIDE = """
    most = fmax(abs(x), abs(z))
    up = where(most < 1e-150, 4.149515568880993e+180, 1)
    scale = where(most > 1e150, 2.409919865102884e-181, up)
    x = x * scale
    z = z * scale
    y = sqrt(x * x + z * z) / scale
    y = where(most == inf, inf, y)
"""
DEFINED = {
    "lgamma": Defined(LGAMMA_WIDE, wide_inside(LGAMMA_NARROW)),
    "bessel_i0": Defined(modified(0, UNSCALED)),
    "bessel_i0e": Defined(modified(0, SCALED)),
    "bessel_i1": Defined(modified(1, UNSCALED)),
    "bessel_i1e": Defined(modified(1, SCALED)),
    "bessel_j0": Defined(bessel(0)),
    "bessel_j1": Defined(bessel(1)),
    "erfcx": Defined(ERFCX),
    "log_ndtr": Defined(LOG_NDTR),
    "digamma": Defined(DIGAMMA.format(shifts=DIGAMMA_SHIFT * 10)),
    "trigamma": Defined(TRIGAMMA.format(shifts=TRIGAMMA_SHIFT * 10), reads="xz"),
    "erfinv": Defined(ERFINV.format(tail=WIDE_TAIL), ERFINV.format(tail=NARROW_TAIL)),
    "ndtri": Defined(NDTRI.format(tail=WIDE_TAIL), NDTRI.format(tail=NARROW_TAIL)),
    "logaddexp": Defined(LOGADDEXP.format(base="", unit="", alike=LN2), reads="xz"),
    "logaddexp2": Defined(LOGADDEXP.format(base=2, unit=f" * {1 / LN2}", alike=1), reads="xz"),
    "hypot": Defined(HYPOT_WIDE, wide_inside(HYPOT, "xz"), "xz"),
}
