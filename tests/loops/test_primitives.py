"""Every primitive for every type it supports, compiled, against NumPy's word for it."""

from __future__ import annotations

import numpy as np
import pytest

from toytorch.loops import Program, Unsupported, run, supports
from toytorch.loops.generators import numpy as numpy_blocked
from toytorch.loops.language.primitives import CONSTANT_DIVISOR, PRIMITIVES
from toytorch.loops.language.types import kind
from toytorch.loops.llvm.ops import STATED, Operations, Power

TYPES = ["float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool"]


def samples(type: str, rng: np.random.Generator) -> np.ndarray:
    if kind(type) == "f":
        x = rng.standard_normal(400).astype(type) * 4
        x[:8] = [0, -0.0, np.inf, -np.inf, np.nan, 2.5, -2.5, 1]
        return rng.permutation(x)
    if type == "bool":
        return rng.random(400) < 0.5
    info = np.iinfo(type)
    x = rng.integers(info.min, info.max, 400, dtype=type, endpoint=True)
    x[:8] = [0, 1, info.min, info.max, 3, 5, 7, 2]
    return rng.permutation(x)


CASES = [
    (op, type) for op in PRIMITIVES for type in TYPES if op != "cast" and supports(op, type, 1)
]


@pytest.mark.parametrize(("op", "type"), CASES)
def test_primitive(op: str, type: str) -> None:
    rng = np.random.default_rng(7)
    record = PRIMITIVES[op]
    result = "bool" if record.result == "bool" else type
    inputs = [samples(type, rng) for _ in range(record.arity)]
    names = [f"x{k}" for k in range(record.arity)]
    types = [type] * record.arity
    if op == "where":
        inputs[0], types[0] = inputs[0] != 0, "bool"
    words = list(names)
    if op in CONSTANT_DIVISOR and kind(type) != "f":
        words[1] = "3"
    if op.startswith("shift"):
        inputs[1] = np.abs(inputs[1] % 9).astype(type)
    head = ", ".join(f"{n}[i] {t}" for n, t in zip(names, types))
    program = Program.parse(f"{head} -> y[i] {result}\n y = {op}({', '.join(words)})", type)
    made, wanted = np.zeros((2, 400), result)
    run(program, made, *inputs)
    numpy_blocked.run(program, (wanted, *inputs))
    if kind(result) == "f":
        np.testing.assert_allclose(made, wanted, rtol=2e-6 if type == "float32" else 1e-13)
        zero = (made == 0) & (wanted == 0)
        if op not in ("floordiv", "sin", "tan", "maximum", "minimum", "fmax", "fmin"):
            assert (np.signbit(made) == np.signbit(wanted))[zero].all()
    else:
        np.testing.assert_array_equal(made, wanted)


@pytest.mark.parametrize("source", TYPES)
@pytest.mark.parametrize("target", TYPES)
def test_cast(source: str, target: str) -> None:
    rng = np.random.default_rng(8)
    x = samples(source, rng)
    if kind(source) == "f" and target != "bool" and kind(target) != "f":
        top = {"int8": 127, "uint8": 255, "int16": 32767}.get(target, 2**30)
        low = 0 if target == "uint8" else -top
        x = rng.uniform(low, top, 400).astype(source)  # beyond the type, C leaves it open
    program = Program.parse(f"x[i] {source} -> y[i] {target}\n y = {target}(x)")
    made, wanted = np.zeros((2, 400), target)
    run(program, made, x)
    numpy_blocked.run(program, (wanted, x))
    np.testing.assert_array_equal(made, wanted)


@pytest.mark.parametrize("divisor", [1, -1, 2, -3, 7, 100])
@pytest.mark.parametrize("type", ["int8", "int32", "int64", "uint8"])
def test_integers_divide_as_in_python(type: str, divisor: int) -> None:
    if type == "uint8" and divisor < 0:
        pytest.skip("uint8 has no negative divisors")
    x = samples(type, np.random.default_rng(9))
    program = Program.parse(
        f"x[i], z[i] -> q[i], r[i]\n q = x // {divisor}\n r = x % {divisor}", type
    )
    q, r = np.zeros((2, 400), type)
    run(program, q, r, x, x)
    bits = np.iinfo(type)
    for v, a, b in zip(x.tolist(), q.tolist(), r.tolist()):
        assert b == v % divisor
        assert a == v // divisor or (v == bits.min and divisor == -1 and a == v)


def test_division_by_zero_is_refused() -> None:
    with pytest.raises(Unsupported, match="constant other than 0"):
        Program.parse("x[i], z[i] -> y[i]\n y = x // z", "int32")
    with pytest.raises(Unsupported, match="constant other than 0"):
        Program.parse("x[i] -> y[i]\n y = x % 0", "int32")
    assert not supports("remainder", "int64") and supports("remainder", "float32")
    assert not supports("exp", "int32") and not supports("no such thing", "float32")


def test_float_remainders() -> None:
    x = np.array([5.5, -5.5, 5.5, -5.5, 0, -0.0, 1, np.inf, 3, 1e-30], "float32")
    z = np.array([2, 2, -2, -2, 3, 3, 0, 2, np.inf, -1], "float32")
    program = Program.parse(
        "x[i], z[i] -> q[i], r[i], f[i]\n q = x // z\n r = x % z\n f = fmod(x, z)"
    )
    q, r, f = np.zeros((3, 10), "float32")
    run(program, q, r, f, x, z)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(r, np.remainder(x, z))
        np.testing.assert_array_equal(f, np.fmod(x, z))
        np.testing.assert_array_equal(q[:6], np.floor_divide(x, z)[:6])
    assert q[6] == np.inf  # as in PyTorch


@pytest.mark.parametrize("type", ["float32", "float64"])
def test_remainders_are_exact_for_any_quotient(type: str) -> None:
    rng, most = np.random.default_rng(0), 120 if type == "float32" else 1000
    x, z = rng.standard_normal((2, 4000)).astype(type)
    x *= 2.0 ** rng.integers(-most, most, 4000).astype(type)  # quotients of few digits and of many
    z *= 2.0 ** rng.integers(-most, most, 4000).astype(type)
    x[:1000], z[:500] = np.round(x[:1000] % 97), 0.7
    z[1000:1010], z[1010:1020] = np.inf, x[1010:1020]  # the remainder is x, and 0
    program = Program.parse(f"x[i] {type}, z[i] {type} -> f[i] {type}\n f = fmod(x, z)")
    f = np.zeros(4000, type)
    run(program, f, x, z)
    with np.errstate(all="ignore"):
        want = np.fmod(x, z)
    np.testing.assert_array_equal(f, want)
    np.testing.assert_array_equal(np.signbit(f), np.signbit(want))


@pytest.mark.parametrize("type", ["float16", "bfloat16"])
def test_half_numbers_are_rounded_when_stored(type: str) -> None:
    if type == "bfloat16":
        ml = pytest.importorskip("ml_dtypes", reason="bfloat16 arrays come from ml_dtypes")
        made_type = np.dtype(ml.bfloat16)
    else:
        made_type = np.dtype("float16")
    program = Program.parse(f"x[i] {type} -> y[i] {type}\n y = x * 1.01 + 0.001")
    x = np.random.default_rng(0).standard_normal(1000).astype(made_type)
    x[:3] = [np.inf, np.nan, 0]
    y = np.empty_like(x)
    run(program, y, x)
    wide = x.astype("float32")
    wanted = (wide * np.float32(1.01) + np.float32(0.001)).astype(made_type)
    a, b = y.astype("float64"), wanted.astype("float64")
    np.testing.assert_allclose(a, b, rtol=2**-7 if type == "bfloat16" else 2**-10)
    assert (a == b)[np.isfinite(b)].mean() > 0.95  # a fused product rounds once less


def test_every_primitive_has_instructions() -> None:
    stated = {"cast", *STATED, *dir(Operations), *dir(Power)}
    assert set(PRIMITIVES) <= stated
