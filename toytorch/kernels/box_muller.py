"""Two normal numbers from two uniform ones in float32 (Box and Muller 1958), with the polynomials of
Moshier's Cephes library, whose order of roundings is part of the result.

`pair` is written over a few words (`fma`, `choose`, …), which NumPy's arrays (`Arrays`) and the
vectors of compiled code (`kernels/mersenne.py`) both answer to.

>>> first, second = pair(Arrays(), np.float32([0.5]), np.float32([0.25]), 0.0, 1.0)
>>> bool(abs(first[0]) < 1e-7)  # √(2·log 2) times the cosine of a quarter of a turn
True
>>> round(float(second[0]), 6)  # and its sine
1.17741
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from toytorch.facts.hints import Array

SQRT_HALF = math.sqrt(0.5)
LOG = (
    7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
    -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1,
)  # fmt: skip
LOG_TWO = (-2.12194440e-4, 0.693359375)  # log 2 in two parts
QUARTERS = (-0.78515625, -2.4187564849853515625e-4, -3.77489497744594108e-8)  # -π/4 in three
SIN = (-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)
COS = (2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)


def pair(m: Any, u1: object, u2: object, mean: object, std: object) -> tuple[Any, Any]:
    """√(-2·log(1 - u1)) times cosine and sine of 2π·u2, times std, plus mean."""
    radius = m.sqrt(m.mul(-2.0, log(m, m.sub(1.0, u1))))
    sin, cos = sin_cos(m, m.mul(2 * math.pi, u2))
    return tuple(m.fma(m.mul(radius, f), std, mean) for f in (cos, sin))


def polynomial(m: Any, x: object, coefficients: tuple[float, ...]) -> Any:
    """The polynomial whose highest coefficient comes first."""
    made = m.fma(coefficients[0], x, coefficients[1])
    for c in coefficients[2:]:
        made = m.fma(made, x, c)
    return made


def log(m: Any, x: object) -> Any:
    """The logarithm of normal numbers above 0."""
    x, e = m.parts(x)
    low = m.less(x, SQRT_HALF)
    more = m.choose(low, x, 0.0)
    x = m.add(m.sub(x, 1.0), more)
    e = m.choose(low, m.sub(e, 1.0), e)
    z = m.mul(x, x)
    y = m.mul(polynomial(m, x, LOG), x)
    y = m.fma(y, z, m.mul(e, LOG_TWO[0]))
    y = m.fma(z, -0.5, y)
    return m.fma(e, LOG_TWO[1], m.add(x, y))


def sin_cos(m: Any, x: object) -> tuple[Any, Any]:
    """Sine and cosine of angles from 0 to 8192."""
    n, whole = m.even(m.mul(x, 4 / math.pi))
    for part in QUARTERS:
        x = m.fma(whole, part, x)
    z = m.mul(x, x)
    cos = m.mul(polynomial(m, z, COS), z)
    cos = m.add(m.fma(cos, z, m.mul(z, -0.5)), 1.0)
    sin = m.mul(polynomial(m, z, SIN), z)
    sin = m.fma(sin, x, x)
    turned = m.has(n, 2)  # by a quarter, which makes the one the other
    sine = m.negated(m.has(n, 4), m.choose(turned, cos, sin))
    cosine = m.negated(m.has(m.plus(n, 2), 4), m.choose(turned, sin, cos))
    return sine, cosine


class Arrays:
    """The words of `pair` for NumPy's arrays of float32."""

    sqrt = staticmethod(np.sqrt)

    def real(self, x: Array | float) -> Any:
        return np.float32(x) if isinstance(x, (int, float)) else x

    def fma(self, x: Array | float, y: Array | float, z: Array | float) -> Any:
        """x·y + z with one rounding: the product is exact in float64."""
        x, y, z = (np.asarray(self.real(v), np.float64) for v in (x, y, z))
        return (x * y + z).astype(np.float32)

    def add(self, x: Array | float, y: Array | float) -> Any:
        return self.real(x) + self.real(y)

    def sub(self, x: Array | float, y: Array | float) -> Any:
        return self.real(x) - self.real(y)

    def mul(self, x: Array | float, y: Array | float) -> Any:
        return self.real(x) * self.real(y)

    def less(self, x: Array, y: float) -> Any:
        return x < np.float32(y)

    def choose(self, where: Array, x: Array | float, y: Array | float) -> Any:
        return np.where(where, self.real(x), self.real(y))

    def parts(self, x: Array) -> tuple[Any, Any]:
        """x = m·2ᵉ with m in [1/2, 1)."""
        m, e = np.frexp(x)
        return m, e.astype(np.float32)

    def even(self, x: Array) -> tuple[Any, Any]:
        """The even number next to x ≥ 0, as an integer and as a real number."""
        n = (x.astype(np.int32) + 1) & ~1
        return n, n.astype(np.float32)

    def has(self, n: Array, bit: int) -> Any:
        return (n & bit) != 0

    def plus(self, n: Array, k: int) -> Any:
        return n + k

    def negated(self, where: Array, x: Array) -> Any:
        return np.where(where, -x, x)
