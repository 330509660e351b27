"""The functions that are measured, and what they are in mpmath's words.

A reference takes and gives mpmath's numbers; where it raises, or gives a complex number or NaN, there
is no true value, and results have to be PyTorch's: NaN, or an infinity of its sign. None says nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from tests.oracle import torch

mp: Any = pytest.importorskip(
    "mpmath", reason="the reference of functions comes with PyTorch's sympy"
)

Number = Any  # mpmath has no types
EXACT = 160  # bits that references are computed with, unless they ask for more


@dataclass(frozen=True)
class Function:
    """A function of one or two numbers on both packages, and its reference."""

    call: Callable[..., Any]  # (module, *tensors) -> tensor
    true: Callable[..., Number]
    operands: int = 1
    slow: bool = False  # a reference that takes long: fewer points
    near: tuple[float, ...] = ()  # zeros, poles and seams, around which points are set
    orders: tuple[int, ...] = field(
        default=()
    )  # whole numbers that the first operand is drawn from
    least: float = -float("inf")  # below it PyTorch counts up to 9 by ones, and ends never


def root(f: Callable[[Number], Number], slope: Callable[[Number], Number], start: float) -> Number:
    """Where f is 0, by Newton's rule from a start that is good to some digits."""
    x = mp.mpf(start)
    for _ in range(8):
        step = f(x) / slope(x)
        x -= step
        if abs(step) <= abs(x) * mp.mpf(2) ** -120:
            return x
    raise ValueError("no root")


def erfinv(y: Number) -> Number:
    if abs(y) >= 1 or y == 0:
        return mp.sign(y) * (mp.inf if y else 0) if abs(y) <= 1 else mp.nan
    if abs(y) < 1e-100:
        return y * mp.sqrt(mp.pi) / 2
    start = torch.erfinv(torch.tensor(float(y), dtype=torch.float64)).item()
    half = 2 / mp.sqrt(mp.pi)
    return root(lambda x: mp.erf(x) - y, lambda x: half * mp.exp(-x * x), start)


def ndtri(p: Number) -> Number:
    if not 0 < p < 1:
        return -mp.inf if p == 0 else mp.inf if p == 1 else mp.nan
    start = torch.special.ndtri(torch.tensor(float(p), dtype=torch.float64)).item()
    if p == 0.5:
        return mp.mpf(0)
    return root(lambda x: mp.log(mp.ncdf(x) / p), lambda x: mp.npdf(x) / mp.ncdf(x), start)


def precisely(bits: int, f: Callable[..., Number]) -> Callable[..., Number]:
    """A reference in which much cancels."""

    def more(*args: Number) -> Number:
        with mp.workprec(bits):
            return f(*args)

    return more


def sigmoid(x: Number) -> Number:
    return 1 / (1 + mp.exp(-x)) if x > -1e5 else mp.exp(x)


def softplus(x: Number) -> Number:
    return x if x > 20 else mp.log1p(mp.exp(x))


def true_softplus(x: Number) -> Number:
    return mp.log1p(mp.exp(x)) if x < 1e4 else x


def log_ndtr(x: Number) -> Number:
    if x < -1e5:
        series = 1 - 1 / x**2 + 3 / x**4
        return -x * x / 2 - mp.log(-x) - mp.log(2 * mp.pi) / 2 + mp.log(series)
    return mp.log1p(-mp.ncdf(-x)) if x > 0 else mp.log(mp.ncdf(x))


def erfcx(x: Number) -> Number:
    if x > 1e5:
        return (1 - 1 / (2 * x * x) + 3 / (4 * x**4)) / (x * mp.sqrt(mp.pi))
    if x < -200:
        return mp.inf
    return mp.exp(x * x) * mp.erfc(x)


def chebyshev(kind: str) -> Callable[[Number, Number], Number]:
    """Chebyshev's polynomials by their recurrence, of degree n at x."""

    def value(x: Number, n: Number) -> Number:
        a, b = mp.mpf(1), {"t": x, "u": 2 * x, "v": 2 * x - 1, "w": 2 * x + 1}[kind]
        for _ in range(int(n)):
            a, b = b, 2 * x * b - a
        return a

    return value


def shifted(kind: str) -> Callable[[Number, Number], Number]:
    return lambda x, n: chebyshev(kind)(2 * x - 1, n)


def remainder(x: Number, y: Number) -> Number:
    return x - y * mp.floor(x / y)


def fmod(x: Number, y: Number) -> Number:
    q = x / y
    return x - y * (mp.floor(q) if q > 0 else mp.ceil(q))


def power(x: Number, y: Number) -> Number:
    if x == 0:
        return mp.nan if y <= 0 else mp.mpf(0)
    if y != mp.floor(y) and x < 0:
        return mp.nan
    size = mp.exp(y * mp.log(abs(x)))
    return -size if x < 0 and mp.fmod(y, 2) != 0 else size


def logaddexp(base: Number) -> Callable[[Number, Number], Number]:
    def value(x: Number, y: Number) -> Number:
        most, least = max(x, y), min(x, y)
        if most - least > 1e5:
            return most
        return most + mp.log1p(mp.power(base, least - most)) / mp.log(base)

    return value


def times_log(x: Number, y: Number) -> Number:
    return mp.mpf(0) if x == 0 else x * mp.log(y)


def gamma_part(upper: bool) -> Callable[[Number, Number], Number]:
    def value(a: Number, x: Number) -> Number:
        if not (0 < a < 300 and 0 <= x < 300):
            return None
        return mp.gammainc(a, x, mp.inf, True) if upper else mp.gammainc(a, 0, x, True)

    return value


def plain(name: str) -> Callable[..., Any]:
    """A function by its name: `torch.erf`, `torch.special.erfcx`, `torch.nn.functional.gelu`."""

    def call(m: Any, *args: Any, **options: Any) -> Any:
        found = m
        for part in name.split("."):
            found = getattr(found, part)
        return found(*args, **options)

    return call


def gelu_tanh(x: Number) -> Number:
    return x * sigmoid(mp.sqrt(8 / mp.pi) * (x + mp.mpf("0.044715") * x**3))


def bounded(f: Callable[[Number], Number], most: float) -> Callable[[Number], Number]:
    """A reference that is asked up to a size only: beyond, mpmath takes hours, and nothing is said."""
    return lambda x: f(x) if abs(x) <= most else None


PI, LN2 = mp.pi, mp.log(2)
ZEROS_J = (2.404825557695773, 5.520078110286311, 3.831705970207512, 7.015586669815619)
ZEROS_Y = (0.8935769662791675, 3.957678419314858, 2.197141326031017, 5.429681040794135)
POLES = (0.0, -1.0, -2.0, -3.0, -10.0, 1.0, 2.0, 1.4616321449683623, -0.504083008264455)
STEPS = (np.pi, np.pi / 2, 2 * np.pi, -np.pi, 100 * np.pi, 1e5 * np.pi)
U = Function
FUNCTIONS: dict[str, Function] = {
    "sqrt": U(plain("sqrt"), mp.sqrt),
    "rsqrt": U(plain("rsqrt"), lambda x: 1 / mp.sqrt(x)),
    "reciprocal": U(plain("reciprocal"), lambda x: 1 / x),
    "square": U(plain("square"), lambda x: x * x),
    "deg2rad": U(plain("deg2rad"), lambda x: x * mp.pi / 180),
    "rad2deg": U(plain("rad2deg"), lambda x: x * 180 / mp.pi),
    "exp": U(plain("exp"), mp.exp),
    "exp2": U(plain("exp2"), lambda x: mp.power(2, x)),
    "expm1": U(plain("expm1"), mp.expm1),
    "log": U(plain("log"), mp.log, near=(1.0,)),
    "log2": U(plain("log2"), lambda x: mp.log(x) / mp.log(2), near=(1.0, 2.0)),
    "log10": U(plain("log10"), lambda x: mp.log(x) / mp.log(10), near=(1.0, 10.0)),
    "log1p": U(plain("log1p"), mp.log1p, near=(-1.0,)),
    "sin": U(plain("sin"), mp.sin, near=STEPS),
    "cos": U(plain("cos"), mp.cos, near=STEPS),
    "tan": U(plain("tan"), mp.tan, near=STEPS),
    "asin": U(plain("asin"), mp.asin, near=(0.5,)),
    "acos": U(plain("acos"), mp.acos, near=(0.5,)),
    "atan": U(plain("atan"), mp.atan),
    "sinh": U(plain("sinh"), mp.sinh),
    "cosh": U(plain("cosh"), mp.cosh),
    "tanh": U(plain("tanh"), bounded(mp.tanh, 1e4)),
    "asinh": U(plain("asinh"), mp.asinh),
    "acosh": U(plain("acosh"), mp.acosh),
    "atanh": U(plain("atanh"), mp.atanh),
    "sinc": U(plain("sinc"), mp.sincpi, near=(1.0, 2.0, 7.0)),
    "sigmoid": U(plain("sigmoid"), sigmoid),
    "logit": U(plain("logit"), lambda x: mp.log(x / (1 - x)), near=(0.5,)),
    "erf": U(plain("erf"), bounded(mp.erf, 1e3)),
    "erfc": U(plain("erfc"), bounded(mp.erfc, 1e3)),
    "erfcx": U(plain("special.erfcx"), erfcx),
    "erfinv": U(plain("erfinv"), precisely(400, erfinv), slow=True),
    "ndtr": U(plain("special.ndtr"), bounded(mp.ncdf, 1e3)),
    "ndtri": U(
        plain("special.ndtri"), precisely(400, ndtri), slow=True, near=(0.5, 0.1353352832366127)
    ),
    "log_ndtr": U(plain("special.log_ndtr"), precisely(800, log_ndtr)),
    "lgamma": U(
        plain("lgamma"),
        lambda x: mp.log(abs(mp.gamma(x))) if x < 100 else mp.loggamma(x),
        near=(*POLES, -2.457024738220800, -2.747682646727412, 2.5, 13.0),
    ),
    "digamma": U(plain("digamma"), bounded(mp.digamma, 1e10), near=POLES),
    "polygamma 1": U(
        lambda m, x: m.polygamma(1, x), bounded(lambda x: mp.psi(1, x), 50), slow=True, near=POLES
    ),
    "polygamma 2": U(
        lambda m, x: m.polygamma(2, x),
        bounded(lambda x: mp.psi(2, x), 50),
        slow=True,
        near=POLES,
        least=-50.0,
    ),
    "polygamma 5": U(
        lambda m, x: m.polygamma(5, x),
        bounded(lambda x: mp.psi(5, x), 50),
        slow=True,
        near=POLES,
        least=-50.0,
    ),
    "mvlgamma 2": U(
        lambda m, x: m.mvlgamma(x, 2),
        lambda x: (
            mp.log(mp.pi) / 2 + mp.log(abs(mp.gamma(x) * mp.gamma(x - mp.mpf(0.5))))
            if x < 100
            else mp.log(mp.pi) / 2 + mp.loggamma(x) + mp.loggamma(x - mp.mpf(0.5))
        ),
        slow=True,
        near=(1.5, 2.0),
    ),
    "i0": U(plain("i0"), bounded(lambda x: mp.besseli(0, x), 1e3)),
    "i0e": U(
        plain("special.i0e"), bounded(lambda x: mp.besseli(0, x) * mp.exp(-abs(x)), 1e4), slow=True
    ),
    "i1": U(plain("special.i1"), bounded(lambda x: mp.besseli(1, x), 1e3)),
    "i1e": U(
        plain("special.i1e"), bounded(lambda x: mp.besseli(1, x) * mp.exp(-abs(x)), 1e4), slow=True
    ),
    "modified_bessel_i0": U(
        plain("special.modified_bessel_i0"), bounded(lambda x: mp.besseli(0, x), 1e3), slow=True
    ),
    "modified_bessel_i1": U(
        plain("special.modified_bessel_i1"), bounded(lambda x: mp.besseli(1, x), 1e3), slow=True
    ),
    "modified_bessel_k0": U(
        plain("special.modified_bessel_k0"),
        bounded(lambda x: mp.besselk(0, x) if x > 0 else mp.nan, 1e3),
        slow=True,
        near=(2.0,),
    ),
    "modified_bessel_k1": U(
        plain("special.modified_bessel_k1"),
        bounded(lambda x: mp.besselk(1, x) if x > 0 else mp.nan, 1e3),
        slow=True,
        near=(2.0,),
    ),
    "scaled_modified_bessel_k0": U(
        plain("special.scaled_modified_bessel_k0"),
        bounded(lambda x: mp.besselk(0, x) * mp.exp(x) if x > 0 else mp.nan, 1e3),
        slow=True,
        near=(2.0,),
    ),
    "scaled_modified_bessel_k1": U(
        plain("special.scaled_modified_bessel_k1"),
        bounded(lambda x: mp.besselk(1, x) * mp.exp(x) if x > 0 else mp.nan, 1e3),
        slow=True,
        near=(2.0,),
    ),
    "bessel_j0": U(
        plain("special.bessel_j0"),
        bounded(lambda x: mp.besselj(0, x), 1e6),
        slow=True,
        near=ZEROS_J,
    ),
    "bessel_j1": U(
        plain("special.bessel_j1"),
        bounded(lambda x: mp.besselj(1, x), 1e6),
        slow=True,
        near=ZEROS_J,
    ),
    "bessel_y0": U(
        plain("special.bessel_y0"),
        bounded(lambda x: mp.bessely(0, x) if x > 0 else mp.nan, 1e6),
        slow=True,
        near=ZEROS_Y,
    ),
    "bessel_y1": U(
        plain("special.bessel_y1"),
        bounded(lambda x: mp.bessely(1, x) if x > 0 else mp.nan, 1e6),
        slow=True,
        near=ZEROS_Y,
    ),
    "spherical_bessel_j0": U(
        plain("special.spherical_bessel_j0"),
        lambda x: mp.sin(x) / x if x else mp.mpf(1),
        near=STEPS,
    ),
    "airy_ai": U(
        plain("special.airy_ai"),
        bounded(mp.airyai, 100),
        slow=True,
        near=(-2.338107410459767, -4.087949444130971),
    ),
    "entr": U(plain("special.entr"), lambda x: -x * mp.log(x) if x > 0 else mp.nan, near=(1.0,)),
    "gelu": U(plain("nn.functional.gelu"), bounded(lambda x: x * mp.ncdf(x), 1e3)),
    "gelu tanh": U(
        lambda m, x: m.nn.functional.gelu(x, approximate="tanh"), bounded(gelu_tanh, 50)
    ),
    "silu": U(plain("nn.functional.silu"), lambda x: x * sigmoid(x)),
    "mish": U(plain("nn.functional.mish"), bounded(lambda x: x * mp.tanh(true_softplus(x)), 1e4)),
    "softplus": U(plain("nn.functional.softplus"), softplus),
    "log_sigmoid": U(plain("nn.functional.logsigmoid"), lambda x: -true_softplus(-x)),
    "elu": U(plain("nn.functional.elu"), lambda x: x if x > 0 else mp.expm1(x)),
    "celu 2": U(
        lambda m, x: m.nn.functional.celu(x, 2.0), lambda x: x if x > 0 else 2 * mp.expm1(x / 2)
    ),
    "selu": U(
        plain("nn.functional.selu"),
        lambda x: (
            mp.mpf(1.0507009873554804934193349852946)
            * (x if x > 0 else mp.mpf(1.6732632423543772848170429916717) * mp.expm1(x))
        ),
    ),
    "tanhshrink": U(plain("nn.functional.tanhshrink"), bounded(lambda x: x - mp.tanh(x), 1e4)),
    "softsign": U(plain("nn.functional.softsign"), lambda x: x / (1 + abs(x))),
    "hardswish": U(plain("nn.functional.hardswish"), lambda x: x * min(max(x + 3, 0), 6) / 6),
    "cube": U(lambda m, x: x**3, lambda x: x**3),
    "square root of a power": U(lambda m, x: x**0.5, mp.sqrt),
    "2 to the x": U(lambda m, x: 2.0**x, lambda x: mp.power(2, x)),
    "10 to the x": U(lambda m, x: 10.0**x, lambda x: mp.power(10, x)),
    "div": U(plain("div"), lambda x, y: x / y, 2),
    "pow": U(plain("pow"), precisely(1200, power), 2),
    "atan2": U(plain("atan2"), lambda x, y: mp.atan2(x, y), 2),
    "hypot": U(plain("hypot"), mp.hypot, 2),
    "fmod": U(plain("fmod"), precisely(4300, fmod), 2),
    "remainder": U(plain("remainder"), precisely(4300, remainder), 2),
    "logaddexp": U(plain("logaddexp"), logaddexp(mp.e), 2),
    "logaddexp2": U(plain("logaddexp2"), logaddexp(2), 2),
    "xlogy": U(plain("xlogy"), times_log, 2, near=(1.0,)),
    "xlog1py": U(
        plain("special.xlog1py"),
        lambda x, y: mp.mpf(0) if x == 0 else x * mp.log1p(y),
        2,
        near=(-1.0,),
    ),
    "igamma": U(plain("igamma"), precisely(400, gamma_part(False)), 2, slow=True),
    "igammac": U(plain("igammac"), precisely(400, gamma_part(True)), 2, slow=True),
    "zeta": U(
        plain("special.zeta"),
        lambda x, q: mp.zeta(x, q) if 1.01 < x < 60 and 0.01 < q < 100 else None,
        2,
        slow=True,
        least=-50.0,
    ),
    "float_power": U(plain("float_power"), precisely(1200, power), 2),
    **{
        f"chebyshev_polynomial_{k}": U(
            plain(f"special.chebyshev_polynomial_{k}"),
            chebyshev(k),
            2,
            orders=(0, 1, 2, 3, 5, 8, 12),
        )
        for k in "tuvw"
    },
    **{
        f"shifted_chebyshev_polynomial_{k}": U(
            plain(f"special.shifted_chebyshev_polynomial_{k}"),
            shifted(k),
            2,
            orders=(0, 1, 2, 3, 5, 8, 12),
        )
        for k in "tuvw"
    },
    "hermite_polynomial_h": U(
        plain("special.hermite_polynomial_h"),
        lambda x, n: mp.hermite(int(n), x),
        2,
        orders=(0, 1, 2, 3, 6),
        slow=True,
    ),
    "hermite_polynomial_he": U(
        plain("special.hermite_polynomial_he"),
        lambda x, n: mp.mpf(2) ** (-n / 2) * mp.hermite(int(n), x / mp.sqrt(2)),
        2,
        orders=(0, 1, 2, 3, 6),
        slow=True,
    ),
    "laguerre_polynomial_l": U(
        plain("special.laguerre_polynomial_l"),
        lambda x, n: mp.laguerre(int(n), 0, x),
        2,
        orders=(0, 1, 2, 3, 6),
        slow=True,
    ),
    "legendre_polynomial_p": U(
        plain("special.legendre_polynomial_p"),
        lambda x, n: mp.legendre(int(n), x),
        2,
        orders=(0, 1, 2, 3, 6),
        slow=True,
    ),
}

# Where there is no true value, or where it is a limit, and ours differs from PyTorch's on purpose.
OURS = {
    "gelu": "oneDNN's gives NaN at infinity",
    "polygamma 1": "0 at infinity",
    "polygamma 2": "0 at infinity, where PyTorch has NaN",
    "polygamma 5": "0 at infinity, where PyTorch has NaN",
    "zeta": "0 where the exponent is huge, where PyTorch has NaN",
    **{
        f"{kind}chebyshev_polynomial_{k}": "NaN of NaN, where PyTorch has 1"
        for k in "tuvw"
        for kind in ("", "shifted_")
    },
    **{
        f"{name}_polynomial_{letter}": "NaN of NaN, where PyTorch has 1"
        for name, letter in (
            ("hermite", "h"),
            ("hermite", "he"),
            ("laguerre", "l"),
            ("legendre", "p"),
        )
    },
}

# Known to be further off than they may be, and where; `python -m tests.accuracy` shows by how much.
FURTHER = {
    "tanhshrink": "x - tanh(x) cancels, and PyTorch subtracts as well; our tanh is good to 1.4 units, "
    "PyTorch's to 0.6",
}
