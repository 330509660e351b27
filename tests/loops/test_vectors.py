"""What is written for vectors: divisions by one number along a row, and masked last turns."""

from math import erf

import numpy as np
import pytest

from toytorch.loops import Program, compile_program
from toytorch.loops.runtime import jit

pytestmark = pytest.mark.skipif(not jit.works(), reason="kernels need llvmlite")


@pytest.mark.parametrize("type", ["float32", "float64"])
def test_rows_are_divided_by_their_totals(type: str) -> None:
    """Totals that are tiny, huge, zero, infinite or NaN: as division has it, to 2 ulp."""
    program = Program.parse(
        f"x[i,j] {type} -> y[i,j] {type}, s[i] {type}\n s = sum[j](x)\n y = x / s"
    )
    info = np.finfo(type)
    rng = np.random.default_rng(5)
    tiny, huge = float(info.smallest_subnormal), float(info.max)
    scales = [tiny * 3, tiny * 1e4, float(info.tiny), 1e-30, 1.0, 1e30, huge / 64]
    rows = [rng.uniform(0.5, 1.5, 37).astype(type) * np.dtype(type).type(s) for s in scales]
    rows += [np.zeros(37, type), np.full(37, np.inf, type), np.full(37, np.nan, type)]
    rows += [-rows[0], np.where(np.arange(37) == 3, huge / 2, rows[0]).astype(type)]
    x = np.stack(rows)
    y, total = np.empty_like(x), np.empty(len(x), type)
    assert compile_program(program, y, total, x)(y, total, x)
    with np.errstate(all="ignore"):
        want = x.astype(np.longdouble) / total.astype(np.longdouble)[:, None]
        ulp = np.spacing(np.abs(want).astype(type)).astype(np.longdouble)
    special = ~np.isfinite(want)
    np.testing.assert_array_equal(y[special], want[special].astype(type))
    assert (np.abs(y - want)[~special] / ulp[~special]).max() <= 2


@pytest.mark.parametrize("again", [1, 3])
@pytest.mark.parametrize("n", [0, 1, 5, 15, 16, 17, 31, 32, 33, 64, 100])
def test_the_last_turns_of_a_long_loop(n: int, again: int) -> None:
    """Neighbours of what is stored stay as they were."""
    program = Program.parse(f"x[i] -> y[i]\n y = {' * '.join(['tanh(x) * erf(x)'] * again)}")
    x = np.linspace(-3, 3, n + 40, dtype="float32")[20 : 20 + n]
    room = np.full(n + 40, 7, "float32")
    y = room[20 : 20 + n]
    assert compile_program(program, y, x)(y, x)
    want = (np.tanh(x) * [erf(v) for v in x]) ** again
    np.testing.assert_allclose(y, want, rtol=3e-6, atol=1e-30)
    assert (room[:20] == 7).all() and (room[20 + n :] == 7).all()


@pytest.mark.parametrize("name", ["atan2", "asin", "tan", "sinh", "erfc", "pow", "remainder"])
def test_half_precision_of_functions_computed_in_float64(name: str) -> None:
    """LLVM would call a library's function to round from float64 at once."""
    two = name in ("atan2", "pow", "remainder")
    arguments = "x[i] float16, w[i] float16" if two else "x[i] float16"
    program = Program.parse(f"{arguments} -> y[i] float16\n y = {name}(x{', w' * two})")
    x = np.linspace(0.1, 0.9, 77).astype("float16")
    args = (x, x[::-1].copy()) if two else (x,)
    y = np.empty_like(x)
    assert compile_program(program, y, *args)(y, *args)
    want = {
        "atan2": np.arctan2,
        "asin": np.arcsin,
        "tan": np.tan,
        "sinh": np.sinh,
        "pow": np.power,
        "remainder": np.remainder,
        "erfc": np.vectorize(lambda v: 1 - erf(v)),
    }[name](*(a.astype("float64") for a in args))
    np.testing.assert_allclose(y, want, rtol=2e-3, atol=1e-3)


@pytest.mark.parametrize("name", ["sin", "tan", "fmod", "floordiv", "exp", "tanh"])
@pytest.mark.parametrize("more", ["", " + tanh(x)", " + tanh(x) * tanh(exp(x)) * erf(x)"])
def test_llvm_has_nothing_to_say(name: str, more: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Advice that it cannot follow would be a warning on the user's screen."""
    call = f"{name}(x, x)" if name in ("fmod", "floordiv") else f"{name}(x)"
    program = Program.parse(f"x[i] -> y[i]\n y = {call}{more}")
    x = np.ones(9, "float32")
    text = compile_program(program, x.copy(), x).sources["llvm"]
    assert jit.compiled(jit.target().machine, text)
    assert capfd.readouterr().err == ""
