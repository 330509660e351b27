"""Samples of special functions: of the normal distribution, gamma, Bessel, Airy, polynomials."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.ops.samples.base import (
    INF,
    NAN,
    S,
    Sample,
    V,
    bf16,
    const,
    entry,
    f16,
    f32,
    f64,
    i64,
    layouts,
    t,
    unary,
)  # fmt: skip
from tests.oracle import names

unary("special.erfcx", -2, 4, slack=10)
unary("special.ndtr", -3, 3, slack=10)
unary("special.log_ndtr", -4, 3, slack=10)
unary("special.ndtri", 0.1, 0.9, slack=10, special=False)
unary("special.entr", 0.1, 2)
unary("special.i0e", -3, 3, slack=10)
unary("special.i1", 0.2, 3, slack=10, special=False)
unary("special.i1e", 0.2, 3, slack=10, special=False)
for _name in names("special.expit special.exp2 special.expm1 special.erf special.erfc special.i0"):
    unary(_name, forms=False)
for _name in names("special.digamma special.psi special.gammaln special.log1p"):
    unary(_name, 0.3, 5, slack=10, forms=False)
unary("special.erfinv", -0.9, 0.9, slack=10, forms=False)
unary("special.logit", 0.1, 0.9, forms=False)
unary("special.sinc", 0.2, 2, slack=10, forms=False)
unary("special.round", forms=False, exact=True)


def _values(low: float, high: float, edges: list[float]) -> Callable[[], Iterator[Sample]]:
    """PyTorch has no derivatives of these."""

    def draw() -> Iterator[Sample]:
        for x in layouts(low, high):
            yield V(x)
        for d in (f32, i64):
            yield V(t((3, 4), d, max(low, 1), high))
        yield V(const(edges))
        yield V(const([30.0, 100.0, 1e4]))

    return draw


# Within the ranges where PyTorch's own approximations are good to the last digits.
ANYWHERE = [0.0, -0.0, NAN, 1.0, 2.0, 4.5]
for _name in names("bessel_j0 bessel_j1 modified_bessel_i0 modified_bessel_i1 spherical_bessel_j0"):
    entry(f"special.{_name}", _values(-4, 4, [*ANYWHERE, -1.5]), slack=100, forms=False)
for _name in names(
    "bessel_y0 bessel_y1 modified_bessel_k0 modified_bessel_k1 scaled_modified_bessel_k0 "
    "scaled_modified_bessel_k1"
):
    entry(f"special.{_name}", _values(0.1, 4, [*ANYWHERE, -1.5, 1e-9]), slack=100, forms=False)
entry("special.airy_ai", _values(-1.9, 8, [*ANYWHERE, INF]), slack=100, forms=False)


def _polynomial() -> Iterator[Sample]:
    degree = const([-1, 0, 1, 2, 5, 9], i64)
    yield V(t((4, 6)), degree)
    yield V(t((6,), layout="strided"), degree)
    yield V(const([[1.0], [-1.0], [0.0]]), degree)
    yield V(t((6,), f32), degree.to(f32))
    yield V(t((3, 4)), 4)
    yield V(0.5, degree)
    yield V(t((0, 6)), degree)


for _name in names("t u v w"):
    for _shifted in ("", "shifted_"):
        entry(f"special.{_shifted}chebyshev_polynomial_{_name}", _polynomial, slack=100)
for _name in names("hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l "
                   "legendre_polynomial_p"):  # fmt: skip
    entry(f"special.{_name}", _polynomial, slack=100)


def _incomplete() -> Iterator[Sample]:
    a, x = t((3, 4), f64, 0.2, 6), t((3, 4), f64, 0.1, 9)
    yield V(a, x)
    yield V(a[0], x)
    yield V(t((3, 4), f32, 0.2, 6), t((4,), f32, 0.1, 9))
    yield V(const([150.0, 150.0, 150.0, 1e4]), const([120.0, 150.0, 200.0, 1.01e4]))
    yield V(const([0.0, 1.0, 0.0, INF, 1.0, -1.0, NAN]), const([1.0, 0.0, 0.0, 1.0, INF, 1.0, 1.0]))


for _name in names("igamma igammac special.gammainc special.gammaincc"):
    entry(_name, _incomplete, slack=1000, forms="." not in _name)


def _mvlgamma() -> Iterator[Sample]:
    for p in (1, 2, 4):
        yield S(t((3, 4), f64, 2, 6), p)
        yield S(t((), f64, 2, 6), p)
        for d in (f16, bf16, f32):
            yield Sample((t((3,), d, 2, 6), p), second=False)
    yield V(t((3,), i64, 3, 6), 2)
    yield V(t((0,), f64), 1)


entry("mvlgamma", _mvlgamma, slack=100)
entry("special.multigammaln", _mvlgamma, slack=100)


def _zeta() -> Iterator[Sample]:
    yield V(t((3, 4), f64, 1.2, 5), t((4,), f64, 0.5, 6))
    yield V(t((3,), f32, 1.2, 5), t((3,), f32, 0.5, 6))
    yield V(2, t((3,), f64, 0.5, 6))
    yield V(t((3,), f64, 1.5, 5), 1.5)
    yield V(const([1.0, 0.5, 2.0, 2.0, 2.5, NAN]), const([1.0, 1.0, 0.0, -1.5, -1.5, 1.0]))


entry("special.zeta", _zeta, slack=100)


def _xlog1py() -> Iterator[Sample]:
    yield S(t((3, 4), f64, 0.2, 2), t((4,), f64, -0.5, 2))
    yield Sample((t((3, 4), f32, 0.2, 2), t((4,), f32, -0.5, 2)), second=False)
    yield S(t((3,)), 0.5)
    yield S(2, t((3,), f64, -0.5, 2))
    yield V(const([0.0, 0.0, 1.0, 2.0]), const([-1.0, NAN, -1.0, 0.0]))
    yield V(const([0, 1], i64), const([1, 2], i64))


entry("special.xlog1py", _xlog1py)


def _polygamma() -> Iterator[Sample]:
    for n in (0, 1, 3):
        yield Sample((n, t((3, 4), f64, 0.5, 4)), second=False)


entry("special.polygamma", _polygamma, slack=100, forms=False)


def _softmax() -> Iterator[Sample]:
    yield S(t((3, 4)), 1)
    yield V(t((3, 4), f32), 0, dtype=f64)


for _name in ("special.softmax", "special.log_softmax"):
    entry(_name, _softmax, forms=False)
entry("special.logsumexp", lambda: iter([S(t((3, 4)), 1), S(t((3, 4)), (0, 1))]), forms=False)
entry("special.xlogy", lambda: iter([S(t((3,), f64, 0.2, 2), t((3,), f64, 0.2, 2))]), forms=False)
