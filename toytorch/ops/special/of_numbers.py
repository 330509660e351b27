"""Special functions of one number at a time, for which each number takes as many steps as it asks for.

Every value is a float64 number, and the statements are `if`, `while` and `return`, so that processors
(`kernels/sequential.py`) and graphics cards (`backends/cupy_numbers.py`) can have this text compiled.
None of the ways that are taken has coefficients of others:

    Taylor polynomials        Kₙ and Ai around places that lie close together (`taylor`)
    series of Jₙ              Yₙ near 0 (Neumann), with Jₙ by the recurrence downwards (Miller)
    Hankel's expansions       far out, where their error is below e^{-2x}
    recurrences               polynomials: p₀ = 1, a line p₁, and pₖ₊₁ of x, pₖ and pₖ₋₁
"""

from __future__ import annotations

import math

import numpy as np

from toytorch.ops.special import taylor

EULER = 0.57721566490153286061
LOG_2, LOG_PI = math.log(2), math.log(math.pi)
STEP = 0.25  # from one polynomial to the next
FAR, ORDER_K = 25.0, 19  # from FAR on the expansions are exact to the last digits
EDGE, ORDER = 10.0, 16  # as these, of Airy's function
ZERO_Y = 0.8935769662791675  # the double beside the first zero of Y₀
ROWS_K = round((FAR - 1) / STEP) + 1
K0, K1 = (tuple(taylor.table_k(n, STEP, ROWS_K, ORDER_K).ravel().tolist()) for n in (0, 1))
AIRY = tuple(taylor.table_airy(STEP, round(EDGE / STEP) + 1, ORDER).ravel().tolist())
BESIDE_ZERO = tuple(taylor.zero_of_y(ZERO_Y).ravel().tolist())
ZERO_ORDER = len(BESIDE_ZERO)
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
VAST = 1e10  # above, the integrand's exponent has no digits left
LARGE = 100.0  # above, the series take too long and the integrand is a narrow bell
NODES, WEIGHTS = (tuple(v.tolist()) for v in np.polynomial.legendre.leggauss(64))  # Gauss'
BERNOULLI = (
    *(1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798),
    *(-174611 / 330, 854513 / 138, -236364091 / 2730),
)
NEAR_ORDER = len(NEAR_TWO)
HURWITZ = tuple(b / float(math.factorial(2 * j)) for j, b in enumerate(BERNOULLI, 1))
HURWITZ_ORDER = len(HURWITZ)

# -- Bessel functions -------------------------------------------------------------------------------


def modified_bessel_k(order: float, scaled: float, x: float) -> float:
    """Kₙ(x), times e^x where that is asked for."""
    if x != x or x < 0:
        return math.nan
    if x == 0:
        return math.inf
    if x < 1:
        factor = math.exp(x) if scaled == 1 else 1.0
        if order == 0:
            return near_k0(x) * factor
        return near_k1(x) * factor
    if x <= FAR:
        row = math.floor((x - 1) / STEP + 0.5)
        at, h, value = row * ORDER_K + ORDER_K - 1, x - (1 + row * STEP), 0.0
        while at >= row * ORDER_K:
            value = value * h + (K0[int(at)] if order == 0 else K1[int(at)])
            at -= 1
    else:
        value, k = 1.0, 29.0
        while k > 0:
            value = 1 + value * hankel(order, k) / x
            k -= 1
        value = value * math.sqrt(math.pi / (2 * x))
    return value if scaled == 1 else value * math.exp(-x)


def near_k0(x: float) -> float:
    """K₀ = -(log x/2 + γ)·I₀ + Σ (x²/4)ᵏ/k!² · (1 + 1/2 + … + 1/k)"""
    logarithm = math.log(x) + (EULER - LOG_2)
    total, term, harmonic, k = -logarithm, 1.0, 0.0, 1.0
    while k < 14:
        term = term * (x * x / 4) / (k * k)
        harmonic += 1 / k
        total += term * (harmonic - logarithm)
        k += 1
    return total


def near_k1(x: float) -> float:
    """K₁ = 1/x + Σ x/2·(x²/4)ᵏ/(k!(k+1)!) · (log x/2 + γ - …)"""
    low = x if x > 1e-308 else 1e-308
    logarithm = math.log(low) + (EULER - LOG_2)
    total, term, harmonic, k = 0.0, 1.0, 0.0, 0.0
    while k < 14:
        total += term * (logarithm - (2 * harmonic + 1 / (k + 1)) / 2)
        harmonic += 1 / (k + 1)
        term = term * (low * low / 4) / ((k + 1) * (k + 2))
        k += 1
    return 1 / low + low / 2 * total


def hankel(order: float, k: float) -> float:
    """What takes the term before to the k-th of the expansion at infinity, over x."""
    return (4 * order * order - (2 * k - 1) * (2 * k - 1)) / (8 * k)


def bessel_y(order: float, x: float) -> float:
    """Yₙ(x)."""
    if x != x or x < 0:
        return math.nan
    if x == 0:
        return -math.inf
    if x < 1e-5:
        logarithm = math.log(x) + (EULER - LOG_2)
        if order == 0:
            return 2 / math.pi * (logarithm + (1 - logarithm) * x * x / 4)
        return -2 / (math.pi * x) + x / math.pi * (logarithm - 0.5)
    if order == 0 and abs(x - ZERO_Y) < 0.1:
        k, value = ZERO_ORDER - 1.0, 0.0
        while k >= 0:
            value = value * (x - ZERO_Y) + BESIDE_ZERO[int(k)]
            k -= 1
        return value
    if x < FAR:
        return near_y(order, x)
    return far_y(order, x)


def far_y(order: float, x: float) -> float:
    """A wave of slowly changing height and phase."""
    s, c = math.sin(x), math.cos(x)
    cosine = c + s if order == 0 else s - c
    sine = s - c if order == 0 else -(s + c)
    phase = hankel(order, 1.0) / x * alternating(order, 2.0, x)
    return math.sqrt(1 / (math.pi * x)) * (alternating(order, 1.0, x) * sine + phase * cosine)


def alternating(order: float, first: float, x: float) -> float:
    """1 - aₖaₖ₊₁/x²·(1 - …), from its end."""
    total, k = 1.0, first + 26
    while k >= first:
        total = 1 - hankel(order, k) * hankel(order, k + 1) / (x * x) * total
        k -= 2
    return total


def near_y(order: float, x: float) -> float:
    """Neumann's series of Jₖ, and those by the recurrence downwards."""
    above, now, norm, series, first = 0.0, 1e-300, 0.0, 0.0, 1e-300
    half = 13 + math.floor(0.9 * x)  # Jₖ is nothing beside J₀ from twice that on
    odd = half - 2 * math.floor(half / 2)
    k, even, sign = 2 * half, 1.0, 1 - 2 * odd if order == 0 else 2 * odd - 1
    while k >= 0:
        if even == 1:
            norm += now if k == 0 else 2 * now
        if even != order and k > 1:
            j = math.floor(k / 2)
            series += sign * (1 / j if order == 0 else k / (j * (j + 1))) * now
            sign = -sign
        if k == 1:
            first = now
        if k > 0:
            above, now = now, 2 * k / x * now - above
            if abs(now) > 1e250:
                above, now, norm = above * 1e-250, now * 1e-250, norm * 1e-250
                series, first = series * 1e-250, first * 1e-250
        k, even = k - 1, 1 - even
    logarithm = math.log(x) + (EULER - LOG_2)
    if order == 0:
        return 2 / math.pi * (logarithm * (now / norm) - 2 * (series / norm))
    return 2 / math.pi * ((logarithm - 1) * first / norm - now / norm / x - series / norm)


def airy(x: float) -> float:
    """Ai(x)."""
    if x != x or abs(x) == math.inf:
        return math.nan
    if x > 200:
        return 0.0
    if x > EDGE:
        return far_airy(x)
    if x < -EDGE:
        size = -x if x > -1e100 else 1e100
        zeta = 2 / 3 * math.pow(size, 1.5)
        wave = airy_terms(1.0, zeta) * math.cos(zeta - math.pi / 4)
        wave += airy_ratio(0.0) / zeta * airy_terms(2.0, zeta) * math.sin(zeta - math.pi / 4)
        return wave / (math.sqrt(math.pi) * math.pow(size, 0.25))
    row = math.floor((x + EDGE) / STEP + 0.5)
    k, h, value = row * ORDER + ORDER - 1, x - (row * STEP - EDGE), 0.0
    while k >= row * ORDER:
        value = value * h + AIRY[int(k)]
        k -= 1
    return value


def airy_ratio(k: float) -> float:
    """What takes the k-th coefficient of the expansions to the next."""
    return (6 * k + 1) * (6 * k + 3) * (6 * k + 5) / (216 * (k + 1) * (2 * k + 1))


def airy_terms(first: float, zeta: float) -> float:
    """Every second term of them with alternating signs, from the end."""
    total, k = 1.0, first + 26
    while k >= first:
        total = 1 - airy_ratio(k - 1) * airy_ratio(k) / (zeta * zeta) * total
        k -= 2
    return total


def far_airy(x: float) -> float:
    """Ai on the right; its exponential asks for all digits of 2/3·√x³ before the point, too."""
    root = math.sqrt(x)
    rest = ((x - root * root) - lost(root, root)) / (2 * root)
    zeta = 2 * (x * root) / 3
    back = (2 * (x * root) - zeta * 3) - lost(zeta, 3.0)
    rest = (back + 2 * (lost(x, root) + x * rest)) / 3
    total, k = 1.0, 28.0
    while k >= 0:
        total = 1 - airy_ratio(k) / zeta * total
        k -= 1
    scale = math.exp(-zeta) / (2 * math.sqrt(math.pi))
    return scale * (1 - rest) * total / math.sqrt(root)


def lost(a: float, b: float) -> float:
    """What the rounding of a·b loses (Dekker 1971)."""
    a1, b1 = a * 134217729 - (a * 134217729 - a), b * 134217729 - (b * 134217729 - b)
    return ((a1 * b1 - a * b) + a1 * (b - b1) + (a - a1) * b1) + (a - a1) * (b - b1)


# -- incomplete gamma functions, zeta ---------------------------------------------------------------


FRACTION = 1.1  # where a continued fraction takes few enough terms


def incomplete_gamma(lower: float, a: float, x: float) -> float:
    """Q(a, x), or P(a, x)."""
    zero = 0.0 if lower == 1 else 1.0
    if a < 0 or x < 0 or x != x or (a == 0 and x == 0) or (a == math.inf and x == math.inf):
        return math.nan
    if x == math.inf:
        return 1 - zero
    if x == 0:
        return zero
    if a != a:
        return math.nan
    if a == 0:
        return 1 - zero
    if a == math.inf:
        return zero
    if a > VAST and abs(x - a) < 0.4 * a:
        return normal(lower, a, x)
    if a > LARGE and abs(x - a) < 0.4 * a:
        side = bell(a, x)
        if lower == 1:
            return 1 - side if x > a - 1 else side
        return side if x > a - 1 else 1 - side
    if a < 1:  # then Γ(a + 1) = a·Γ(a) is what has digits
        logarithm = a * math.log(x) - near_gamma(a)
        scaled = math.exp(logarithm) * math.exp(-x)
        front = a * scaled
        if x < FRACTION:
            rest = small_upper(a, x, logarithm)
            if rest < 0.5:
                return 1 - rest if lower == 1 else rest
    else:
        front = front_of(a, x)
        scaled = front / a
    if x < a or x < FRACTION:
        p = scaled * series(a, x)
        return p if lower == 1 else 1 - p
    q = front * fraction(a, x)
    return 1 - q if lower == 1 else q


def near_gamma(a: float) -> float:
    """log Γ(1 + a) for a < 1."""
    if a >= 0.5:
        return math.lgamma(1 + a)
    total, k = 0.0, NEAR_ORDER - 1.0
    while k >= 0:
        total = total * a + NEAR_TWO[int(k)]
        k -= 1
    return a * total - math.log1p(a)


def series(a: float, x: float) -> float:
    """a·P(a, x) for x below a over the factor in front: Σ xⁿ / ((a+1)…(a+n))."""
    term, total, n = 1.0, 1.0, 1.0
    while term > total * 1e-17 and n <= 400:
        term = term * x / (a + n)
        total += term
        n += 1
    return total


def fraction(a: float, x: float) -> float:
    """Q(a, x) for x > a, over the factor in front: Legendre's continued fraction."""
    n = 20 + math.floor(110 / x) + math.floor(a if a < 150 else 150)
    value = x + (2 * n + 1) - a
    while n > 0:
        value = x + (2 * n - 1) - a - n * (n - a) / value
        n -= 1
    return 1 / value


def small_upper(a: float, x: float, logarithm: float) -> float:
    """Q(a, x) for a < 1 and x < 1.1, where it is the small difference of P from 1."""
    term, total, n = 1.0, 0.0, 1.0
    while n < 24:
        term = term * x / -n
        total += term / (a + n)
        n += 1
    return -math.expm1(logarithm) - math.exp(logarithm) * (a * total)


def bell(a: float, x: float) -> float:
    """Q(a, x), or P(a, x) below the top, for large a: Gauss' quadrature."""
    top, width = a - 1, math.sqrt(a - 1)
    if x > top:
        far = top + 12 * width if 12 * width > x - top + 8 * width else x + 8 * width
    else:
        far = top - 12 * width if top - 12 * width < x - 8 * width else x - 8 * width
        far = far if far > 0 else 0.0
    half, total, k = (far - x) / 2, 0.0, 0.0
    while k < 64:
        t = x + half * (NODES[int(k)] + 1)
        t = t if t > 1e-300 else 1e-300
        total += WEIGHTS[int(k)] * math.exp(top * (math.log(t) - math.log(top)) - (t - top))
        k += 1
    scale = math.exp(top * (math.log(top) - 1) - math.lgamma(a))
    return total * abs(half) * scale


def front_of(a: float, x: float) -> float:
    """x^a·e^{-x}/Γ(a), by a power where that has no digits to lose, else by logarithms."""
    if abs(a * math.log(x)) < 600 and a <= LARGE and x < 600:
        z, product = a, 1.0
        while z > 2:
            z -= 1
            product *= z
        return math.pow(x, a) * math.exp(-x) / (math.exp(math.lgamma(z)) * product)
    return math.exp(a * math.log(x) - x - math.lgamma(a))


def normal(lower: float, a: float, x: float) -> float:
    """Where the bell is a normal distribution but for the first term of Temme's expansion."""
    off = (x - a) / a
    square = 1 - 2 / 3 * off
    z = off * math.sqrt(square if square > 0 else 0.0) * math.sqrt(a / 2)
    skew = math.exp(-z * z) / (3 * math.sqrt(2 * math.pi * a))
    half = math.erfc(-z if lower == 1 else z) / 2
    return half + skew if lower == 1 else half - skew


def mvlgamma(p: float, x: float) -> float:
    """log Γ_p(x)."""
    total, i = p * (p - 1) * LOG_PI / 4, 0.0
    while i < p:
        total += math.lgamma(x - i / 2)
        i += 1
    return total


def scaled_zeta(scale: float, s: float, q: float) -> float:
    """ζ(s, q) times a number."""
    return scale * zeta(0, s, q)


def zeta(wide: float, s: float, q: float) -> float:
    """ζ(s, q) = Σ (q + k)⁻ˢ by the sum of Euler and Maclaurin; `wide` of float64 numbers."""
    whole = 1.0 if q == math.floor(q) else 0.0
    if s == 1:
        return math.inf
    if s < 1:
        return math.nan
    if q <= 0 and whole == 1:
        return math.inf
    if s != s or q != q:
        return math.nan
    if s == math.inf and q > 0:
        return math.inf if q < 1 else 1.0 if q == 1 else math.nan
    first = math.pow(q, -s)
    if wide == 1 and q > 0 and first == 0:
        return math.nan  # 0/0, as PyTorch's sum has it
    if q == math.inf:
        return math.nan
    if q > 0 and first == 0:
        return 0.0
    if q <= 0 and s != math.floor(s):
        return math.nan
    total, lost, z, k = 0.0, 0.0, q, 0.0
    enough = 10 + (2 if s < 2 else s if s < 200 else 200)  # then the terms fall fast
    while z < enough and k <= 4096:
        term = math.pow(z, -s) - lost  # with what the additions before have rounded off (Kahan)
        more = total + term
        lost = (more - total) - term if abs(more) < math.inf else 0.0
        total, z, k = more, z + 1, k + 1
    if s == math.inf:
        return total
    power = math.pow(z, -s)
    rest, term, j = power * z / (s - 1) + (power / 2 - lost), s * power / z, 1.0
    while j <= HURWITZ_ORDER:
        rest += HURWITZ[int(j - 1)] * term
        term = term * (s + 2 * j - 1) * (s + 2 * j) / (z * z)
        j += 1
    return total + rest


# -- orthogonal polynomials -------------------------------------------------------------------------

HERMITE_H, HERMITE_HE, LAGUERRE, LEGENDRE = 4, 5, 6, 7  # before these, Chebyshev's: T, U, V, W
MOST, OF_INTEGERS = 3.4028234663852886e38, 2.0**63  # of float32; of int64


def polynomial(wide: float, family: float, shifted: float, x: float, degree: float) -> float:
    """The one of a degree, by the recurrence; `wide` of float64 numbers."""
    if degree != degree or degree <= -1 or degree >= OF_INTEGERS:
        return 0.0
    if family >= HERMITE_H and family <= HERMITE_HE and degree > (512 if wide == 1 else 128):
        return math.nan  # PyTorch gives up
    n, off = math.floor(abs(degree)), 0.0  # off: what roundings have lost, used where `wide`
    if n == 0:
        return 1.0
    if shifted == 1:
        x, off = 2 * x - 1, rest(2 * x, -1.0)
    slope = -1 if family == LAGUERRE else 2 if family >= 1 and family <= HERMITE_H else 1
    constant = -1 if family == 2 else 1 if family == 3 or family == LAGUERRE else 0
    before, now, k = 1.0, slope * x + constant, 1.0
    off_before, off_now = 0.0, finite(rest(slope * x, constant) + slope * off)
    # pₖ₊₁ = ((a·x + b)·pₖ - c·pₖ₋₁) / d, in which each of a, b, c, d is (its value at 0) + (a step)·k
    a, a_step = slope_of_first(family), 2 if family == LEGENDRE else 0
    b, b_step = 1 if family == LAGUERRE else 0, 2 if family == LAGUERRE else 0
    c = 1 if family < HERMITE_H else 0
    c_step = 2 if family == HERMITE_H else 1 if family > HERMITE_H else 0
    while k < n and now == now:
        a_k, b_k, c_k = a + a_step * k, b + b_step * k, c + c_step * k
        factor = a_k * x + b_k
        top, d = factor * now - c_k * before, 1.0
        made = top
        if family >= LAGUERRE:
            d = k + 1
            made = top / d
        if wide == 1:
            lost_factor = lost(a_k, x) + rest(a_k * x, b_k) + a_k * off
            lost_top = rest(factor * now, -(c_k * before))
            lost_top += lost(factor, now) + factor * off_now + lost_factor * now
            lost_top -= lost(c_k, before) + c_k * off_before
            lost_top += (top - made * d) - lost(made, d)
            off_before, off_now = off_now, finite(lost_top / d)
        before, now, k = now, made, k + 1
        if wide != 1 and abs(now) > MOST:  # infinite in PyTorch, and from then on often NaN
            now = math.inf if now > 0 else -math.inf
    return now + off_now if wide == 1 else now


def slope_of_first(family: float) -> float:
    """a at 0."""
    if family == LAGUERRE:
        return -1
    return 1 if family >= HERMITE_HE else 2


def rest(a: float, b: float) -> float:
    """What the rounding of a + b loses (Knuth)."""
    total = a + b
    added = total - a
    return (a - (total - added)) + (b - added)


def finite(x: float) -> float:
    """A correction; none beside numbers that leave it no room."""
    return x if abs(x) < 1e290 else 0.0
