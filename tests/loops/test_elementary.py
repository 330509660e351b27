"""The functions that are polynomials here, against a wider type, in units in the last place."""

from __future__ import annotations

import math

import numpy as np
import pytest

from toytorch.loops import Program, run
from toytorch.loops.runtime.jit import works

pytestmark = pytest.mark.skipif(not works(), reason="these are the compiled functions")

MOST = 5.0  # units in the last place
WIDE = {
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "tanh": np.tanh,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "sigmoid": lambda x: np.where(x < 0, np.exp(x), 1) / (1 + np.exp(-abs(x))),
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
}
PYTHON = {"erf": np.vectorize(math.erf), "erfc": np.vectorize(math.erfc)}
EDGES = [
    0.0,
    -0.0,
    np.inf,
    -np.inf,
    np.nan,
    1.0,
    -1.0,
    0.5,
    -0.5,
    2.0,
    -2.0,
    88.8,
    -88.8,
    -103.9,
    709.78,
    709.9,
    -745.1,
    710.4,
    -710.4,
    1e-40,
    -1e-40,
    1e-300,
    5e-324,
    1e300,
    -1e300,
    27.2,
    26.6,
    np.pi,
    np.pi / 2,
    1e5,
    -1e5,
    3.4e38,
    2.0**20,
    2.0**20 + 1,
    1e22,
    0.7071,
    1.4142,
]


def numbers(type: str) -> np.ndarray:
    """Numbers of every size, and those near 1 and in the range of an exponential."""
    rng = np.random.default_rng(3)
    bits = rng.integers(0, 2**32 if type == "float32" else 2**63 - 1, 6000, dtype="uint64")
    anywhere = (
        bits.astype("uint32").view("float32")
        if type == "float32"
        else (bits.view("float64") * rng.choice([-1, 1], 6000))
    )
    parts = [
        anywhere,
        rng.uniform(-1, 1, 4000),
        rng.uniform(-110, 110, 3000),
        rng.uniform(-750, 750, 2000),
        rng.normal(size=4000),
        1 + rng.uniform(-0.3, 0.5, 3000),
        rng.uniform(-1, 1, 2000) * 10.0 ** rng.uniform(-30, 5, 2000),
        EDGES,
    ]
    with np.errstate(all="ignore"):
        return np.concatenate([np.asarray(p, "float64").astype(type) for p in parts])


def errors(made: np.ndarray, true: np.ndarray) -> np.ndarray:
    """|made - true| in units in the last place of made's type; exact where both are special."""
    type = made.dtype
    info = np.finfo(type)
    with np.errstate(all="ignore"):
        rounded = true.astype(type)
        exponent = np.frexp(np.abs(np.where(np.isfinite(true), true, 1)))[1]
        unit = np.ldexp(
            np.ones_like(true),
            np.maximum(exponent - 1, int(np.log2(float(info.smallest_normal)))) - info.nmant,
        )
        error = np.abs(made.astype(true.dtype) - true) / unit
    same = (made == rounded) | (np.isnan(made) & np.isnan(rounded))
    # The largest number for an infinity, or the reverse, is one unit.
    border = np.abs(true) > float(info.max) * (1 - 2.0**-info.nmant)
    return np.where(
        same,
        np.where(np.isfinite(error), np.minimum(error, 0.5), 0),
        np.where(border & (np.abs(made) >= info.max), 1, np.where(np.isnan(error), np.inf, error)),
    )


def applied(op: str, *args: np.ndarray) -> np.ndarray:
    names = [f"x{k}" for k in range(len(args))]
    heads = ", ".join(f"{n}[i]" for n in names)
    program = Program.parse(f"{heads} -> y[i]\n y = {op}({', '.join(names)})", args[0].dtype.name)
    made = np.empty_like(args[0])
    run(program, made, *args)
    return made


def worst(made: np.ndarray, true: np.ndarray, *args: np.ndarray) -> str:
    error = errors(made, true)
    k = int(np.argmax(error))
    return f"{error[k]:.2f} ulp at {[float(a[k]) for a in args]}: {made[k]!r}, true {true[k]!r}"


@pytest.mark.parametrize("op", sorted(WIDE))
def test_float32_function_against_float64(op: str) -> None:
    x = numbers("float32")
    with np.errstate(all="ignore"):
        true = WIDE[op](x.astype("float64"))
    made = applied(op, x)
    assert errors(made, true).max() <= 2.6, worst(made, true, x)


@pytest.mark.parametrize("op", sorted(WIDE))
def test_float64_function_against_long_double(op: str) -> None:
    if np.finfo(np.longdouble).nmant < 60:
        pytest.skip("this machine's long double is no wider than float64")
    x = numbers("float64")
    if op in ("sin", "cos", "tan"):  # long double's own reduction ends at 2⁶³
        x = np.where(np.abs(x) < 1e15, x, 1.0)
    with np.errstate(all="ignore"):
        true = WIDE[op](x.astype(np.longdouble))
    made = applied(op, x)
    assert errors(made, true).max() <= MOST, worst(made, true, x)


@pytest.mark.parametrize("op", sorted(PYTHON))
@pytest.mark.parametrize("type", ["float32", "float64"])
def test_error_function_against_the_c_library(op: str, type: str) -> None:
    x = numbers(type)
    true = PYTHON[op](x.astype("float64"))
    made = applied(op, x)
    assert errors(made, true).max() <= MOST, worst(made, true, x)


@pytest.mark.parametrize("op", ["pow", "atan2"])
@pytest.mark.parametrize("type", ["float32", "float64"])
def test_functions_of_two_numbers(op: str, type: str) -> None:
    if type == "float64" and np.finfo(np.longdouble).nmant < 60:
        pytest.skip("this machine's long double is no wider than float64")
    rng = np.random.default_rng(4)
    wide = "float64" if type == "float32" else np.longdouble
    x, y = numbers(type), rng.permutation(numbers(type))
    near = rng.uniform(0, 20, 4000), rng.uniform(-40, 40, 4000)
    whole = rng.integers(-9, 9, 2000), rng.integers(-12, 12, 2000)
    edges = np.array([(a, b) for a in EDGES[:12] for b in EDGES[:12]]).T
    x = np.concatenate([x, *(p[0].astype(type) for p in (near, whole, edges))])
    y = np.concatenate([y, *(p[1].astype(type) for p in (near, whole, edges))])
    with np.errstate(all="ignore"):
        true = {"pow": np.power, "atan2": np.arctan2}[op](x.astype(wide), y.astype(wide))
    made = applied(op, x, y)
    assert errors(made, true).max() <= MOST, worst(made, true, x, y)


@pytest.mark.parametrize("type", ["float32", "float64"])
@pytest.mark.parametrize("op", ["sin", "cos", "tan"])
def test_huge_angles(op: str, type: str) -> None:
    """Beyond 2²⁰ the whole call goes to the C library, in place too."""
    x = np.array([1e6, 2.0**21, 1e10, -1e18, 1e22, 3e38, 0.5], type)
    true = np.array([getattr(math, op)(float(v)) for v in x])
    made = applied(op, x)
    assert errors(made, true).max() <= 2, worst(made, true, x)
    run(Program.parse(f"x[i] -> x[i]\n x = {op}(x)", type), x, x)
    np.testing.assert_array_equal(x, made)


@pytest.mark.parametrize(
    "op", ["sin", "tan", "asin", "atan", "sinh", "tanh", "expm1", "log1p", "erf"]
)
@pytest.mark.parametrize("type", ["float32", "float64"])
def test_zero_keeps_its_sign(op: str, type: str) -> None:
    made = applied(op, np.array([0.0, -0.0], type))
    assert made.tolist() == [0, 0] and np.signbit(made).tolist() == [False, True]
