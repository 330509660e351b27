"""NumPy's word for each primitive: what an op computes on arrays, in generated Python, and where no
compiler is.

Most are NumPy's own functions; the rest are composed here. They take arrays and single elements, of
NumPy or of any array module that answers to NumPy's functions, as CuPy's does.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from toytorch.facts.hints import Array, Fn, Scalar
from toytorch.loops.language.coefficients import ERF_NEAR, ERFCX
from toytorch.loops.language.primitives import STATED
from toytorch.loops.language.types import TYPES


def polynomial(coefficients: tuple[float, ...], x: Array) -> Any:
    """Horner's scheme, the highest power first."""
    total = coefficients[0] + 0 * x
    for c in coefficients[1:]:
        total = total * x + c
    return total


def type_of(x: Array | Scalar) -> Any:
    """The type of an array's elements, or NumPy's of a number."""
    return x.dtype if hasattr(x, "dtype") else np.asarray(x).dtype


def typed(x: Any, type: Any) -> Any:
    """An array or a number as another type; `asarray` would refuse arrays that are not NumPy's."""
    return (x if hasattr(x, "dtype") else np.asarray(x)).astype(type, copy=False)


def sigmoid(x: Array) -> Any:
    """1 / (1 + e⁻ˣ), without overflow."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, small) / (1 + small)


def erfc(x: Array) -> Any:
    """1 - erf(x), with all its digits where it is small."""
    wide = typed(x, "float64")
    size = np.minimum(np.abs(wide), 28)
    high = typed(typed(size, "float32"), "float64")  # its square is exact
    rest = (high - size) * (high + size)  # so small that three powers make its exponential
    scale = np.exp(-high * high)
    scale = scale + scale * (rest * (1 + rest / 2 * (1 + rest / 3)))
    t = (size - 3.75) / (size + 3.75)
    far = scale * polynomial(ERFCX, t) / (1 + 2 * size)
    far = np.where(wide < 0, 2 - far, far)
    near = 1 - wide * polynomial(ERF_NEAR["float64"], wide * wide)
    made = np.where(size < 0.5, near, far)
    return typed(np.where(np.isnan(wide), wide, made), type_of(x))[()]


def erf(x: Array) -> Any:
    """2/√π ∫₀ˣ e^{-t²} dt."""
    wide = typed(x, "float64")
    near = wide * polynomial(ERF_NEAR["float64"], np.minimum(wide * wide, 1))
    made = np.where(np.abs(wide) < 1, near, np.sign(wide) * (1 - erfc(np.abs(wide))))
    return typed(np.where(np.isnan(wide), wide, made), type_of(x))[()]


def kind_of(x: Array | Scalar) -> str:
    """The kind of an array's type, or of a number's: "f", "i", "u", "b" or "c"."""
    return type_of(x).kind


def check_divisor(x: Array | Scalar, y: Array | Scalar) -> None:
    if kind_of(x) not in "iub":
        return
    divisor: Any = y
    here = isinstance(y, np.ndarray) or not hasattr(y, "all")
    if not (np.logical_and.reduce(y, None) if here else divisor.all()) and np.size(x):
        raise RuntimeError("ZeroDivisionError")


def floordiv(x: Array | Scalar, y: Array | Scalar) -> Any:
    """Python's x // y, and for real numbers PyTorch's: an infinity where y is 0."""
    check_divisor(x, y)
    made = np.floor_divide(x, y)
    return np.where(y == 0, x / y, made)[()] if kind_of(x) == "f" else made


def truncdiv(x: Array, y: Array) -> Any:
    """x / y towards zero."""
    if kind_of(x) not in "iub":
        return np.trunc(x / y)
    check_divisor(x, y)
    q = np.floor_divide(x, y)
    return q + typed((q < 0) & (q * y != x), q.dtype)


def remainder(x: Array | Scalar, y: Array | Scalar) -> Any:
    """The remainder with the divisor's sign, as Python's %."""
    check_divisor(x, y)
    rest = np.remainder(x, y)
    if kind_of(rest) == "f":  # of zeros, NumPy's have the sign of y, PyTorch's that of x
        return np.where(rest == 0, np.copysign(rest, x), rest)[()]
    return rest


def fmod(x: Array | Scalar, y: Array | Scalar) -> Any:
    """The remainder with the dividend's sign, as C's fmod."""
    check_divisor(x, y)
    return np.fmod(x, y)


def power(x: Any, y: Any) -> Any:
    """xʸ; of integers as PyTorch computes it, without an error for negative powers."""
    kind = kind_of(x)
    if kind in "iu":
        if np.any(y < 0):
            with_zero = np.power(x, np.maximum(y, 0))
            ones = np.where(np.abs(x) == 1, np.where(y & 1, x, 1), 0)
            return np.where(y < 0, ones, with_zero).astype(x.dtype)
        return np.power(x, y)
    if kind == "b":
        return np.logical_or(x, np.logical_not(y))
    if "c" in (kind, kind_of(y)) and not (hasattr(x, "get") or hasattr(y, "get")):  # on a card
        from toytorch.loops.language.complex_power import complex_power  # seldom needed

        if not np.ndim(x) and x == 1:  # whatever y is
            return np.ones(np.shape(y), np.result_type(x, y))
        return complex_power(x, y)
    if not np.ndim(y) and kind_of(y) == "f":  # the powers that have a cheaper name
        if y.__class__ is np.ndarray and abs(y) == 0.5:
            # A tensor, of which PyTorch's power is C's: -∞ has a root, and that of -0 is 0.
            shape = np.shape(x)  # of one number NumPy would take the root, too
            return np.power(x, np.full(shape or (1,), y, y.dtype)).reshape(shape)[()]
        if y == 2:
            return np.multiply(x, x)
        if y == 3:
            square = np.multiply(x, x)
            return np.multiply(square, x, out=square if square.__class__ is np.ndarray else None)
        if y == 0.5:
            return np.sqrt(x)
        if y == -0.5:
            return np.reciprocal(np.sqrt(x))
        if y == -1:
            return np.reciprocal(x)
    return np.power(x, y)


def log1p(x: Any) -> Any:
    """log(1 + x), exact near 0 for complex numbers as well, where NumPy's loses the real part."""
    if kind_of(x) != "c":
        return np.log1p(x)
    a, b = np.real(x), np.imag(x)
    square = a * (2 + a) + b * b  # |1 + x|² - 1
    near = np.where(square == 0, a, np.log1p(np.maximum(square, -1)) / 2)
    far = np.log(np.hypot(a + 1, b))
    size = np.where(np.abs(x) < 0.5, near, far)
    return typed(size + 1j * np.arctan2(b, a + 1), type_of(x))[()]


def sign(x: Array) -> Any:
    """-1, 0 or 1; 0 for NaN; x/|x| for complex numbers."""
    kind = kind_of(x)
    if kind == "b":
        return np.logical_and(x, True)
    if kind == "c":
        size = np.abs(x)
        made = np.asarray(x) if isinstance(x, np.generic) else x.copy()
        # Each part by itself: ∞·i/∞ is 0 + NaN·i.
        made.real /= np.where(size == 0, 1, size)
        made.imag /= np.where(size == 0, 1, size)
        return np.where(size == 0, 0, made).astype(x.dtype)
    s = np.sign(x)
    return np.where(np.isnan(x), s.dtype.type(0), s)[()] if kind == "f" else s


def reciprocal(x: Array) -> Any:
    """1/x."""
    if kind_of(x) == "c":
        from toytorch.loops.language.complex_power import inverse  # seldom needed

        return inverse(x)
    return np.reciprocal(x)


def square(x: Array) -> Any:
    """x²; of a mask as integers."""
    if kind_of(x) == "c":
        return np.power(x, 2)  # which `np.square` may round otherwise
    return np.square(x if kind_of(x) != "b" else x.astype("int64"))


def rounding(function: Callable[..., Any]) -> Callable[[Any], Any]:
    """A function that leaves whole numbers as they are."""
    return lambda x: function(x) if kind_of(x) in "fc" else x + 0


def shift(function: Callable[..., Any], fills: bool) -> Callable[[Any, Any], Any]:
    """A shift of bits; by more than there are, nothing (or the sign) is left."""

    def shifted(x: Array, y: Array) -> Any:
        bits = 8 * x.dtype.itemsize
        if isinstance(y, (np.ndarray, np.generic)) and y.size and 0 <= y.min() <= y.max() < bits:
            return function(x, y.astype(x.dtype, copy=False))
        inside = (y >= 0) & (y < bits)
        # [()]: of a number, a scalar again, which any device's function takes
        made = function(x, np.where(inside, y, 0).astype(x.dtype)[()])
        beyond = np.where(x < 0, -1, 0).astype(x.dtype) if fills else x.dtype.type(0)
        return np.where(inside, made, beyond)

    return shifted


def signbit(x: Array) -> Any:
    """Whether the sign is negative; that of -0.0 is."""
    return np.signbit(x) if kind_of(x) == "f" else x < 0


def logaddexp(x: Array, y: Array) -> Any:
    """log(eˣ + eʸ) without overflow."""
    if kind_of(x) != "c":
        return defined("logaddexp")(x, y)
    ahead = x.real < y.real
    top, low = np.where(ahead, y, x), np.where(ahead, x, y)
    both = np.where(low.real < 0, low, np.log(np.exp(low) + np.exp(top)))
    infinite = np.isinf(low.real) & (low.real == top.real)  # of which there is no difference
    made = np.where(infinite, both, top + np.log1p(np.exp(low - top)))
    return np.where(np.isnan(x) | np.isnan(y), np.nan * (1 + 1j), made).astype(x.dtype)


def converter(name: str) -> Callable[[Any], Any]:
    """What turns elements into another type, as C does: towards zero, and any non-zero is true."""
    type = np.dtype(TYPES[name].numpy)
    if name == "bool":
        return lambda x: np.not_equal(x, 0)
    return lambda x: typed(x, type)[()]


@cache
def wide_rows() -> dict[str, Any]:
    """The coefficients that texts name, those of float64."""
    from toytorch.loops.language.special_coefficients import POLYNOMIALS  # seldom needed

    return {n: row["float64"] if isinstance(row, dict) else row for n, row in POLYNOMIALS.items()}


def defined(name: str) -> Fn:
    """A function that the language states in its own words, in float64."""

    def run(*given: Array) -> Any:
        space = SPACES.get(name)
        if space is None:
            from toytorch.loops.language.defined import DEFINED  # seldom needed

            space = SPACES[name] = {**FUNCTIONS, **wide_rows(), "__name__": __name__}
            function = DEFINED[name]
            lines = function.text("float64").replace("\n", "\n    ")
            text = f"def run({', '.join(function.reads)}):\n    {lines}\n    return y"
            exec(text, space)  # of our own table
        made = space["run"](*[typed(x, "float64") for x in given])
        return typed(made, type_of(given[0]))[()]

    return run


SPACES: dict[str, dict[str, Any]] = {}


OF_NUMPY = (  # by NumPy's own names
    "add where maximum minimum fmax fmin copysign nextafter logical_and logical_or "
    "logical_xor logical_not invert isnan isinf isfinite sqrt exp exp2 expm1 log log2 log10 "
    "hypot sin cos tan tanh sinh cosh gcd lcm rint left_shift right_shift empty"
)
FUNCTIONS: dict[str, Any] = {
    **{name: defined(name) for name in STATED},
    **{name: getattr(np, name) for name in OF_NUMPY.split()},
    "sub": np.subtract, "mul": np.multiply, "div": np.divide, "floordiv": floordiv,
    "truncdiv": truncdiv, "remainder": remainder, "fmod": fmod, "neg": np.negative,
    "abs": np.absolute, "sign": sign, "signbit": signbit, "square": square,
    "reciprocal": reciprocal, "straight": lambda x, y: x,
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal, "and_": np.bitwise_and, "or_": np.bitwise_or, "xor": np.bitwise_xor,
    "shift_left": shift(np.left_shift, False), "shift_right": shift(np.right_shift, True),
    "floor": rounding(np.floor), "ceil": rounding(np.ceil), "round": rounding(np.rint),
    "trunc": rounding(np.trunc), "rsqrt": lambda x: reciprocal(np.sqrt(x)), "log1p": log1p,
    "logaddexp": logaddexp, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "atan2": np.arctan2, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    "pow": power, "sigmoid": sigmoid, "erf": erf, "erfc": erfc, "polynomial": polynomial,
}  # fmt: skip
FUNCTIONS |= {"floor_divide": floordiv, "min": min}  # as printed Python calls them
FUNCTIONS |= {"inf": float("inf"), "nan": float("nan")}
