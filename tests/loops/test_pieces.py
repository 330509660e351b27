"""Loops cut in pieces: the same numbers as one loop, whatever the length and whoever is in place."""

from __future__ import annotations

import numpy as np
import pytest

from toytorch.loops import Program, Recipe
from toytorch.loops.runtime import jit
from toytorch.loops.schedule.build import schedule
from toytorch.loops.schedule.flat import CHUNK
from toytorch.loops.schedule.layout import layout_of

RANDOM = np.random.default_rng(7)
SIZES = [1, 15, 16, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 77]
needs_compiler = pytest.mark.skipif(not jit.works(), reason="kernels need llvmlite")


def nest(text: str, *shapes: tuple[int, ...], flat: bool = False) -> str:
    program = Program.parse(text)
    arrays = [np.ones(shape, np.float32) for shape in shapes]
    return str(schedule(program, layout_of(program, arrays), flat))


def test_where_a_loop_is_cut() -> None:
    """A function of a function's result begins a piece; functions side by side share one."""
    one = nest("x[i] -> y[i]\n y = exp(x) + tanh(x) * 2", (9,), (9,))
    two = nest("x[i] -> y[i]\n y = exp(tanh(x) * 2) + tanh(x)", (9,), (9,))
    three = nest("x[i] -> y[i]\n y = x * tanh(log1p(exp(x)))", (9,), (9,))
    assert [text.count("lanes") for text in (one, two, three)] == [1, 2, 3]
    assert f"step {CHUNK}" in two and "step" not in one
    on_gpu = nest("x[i] -> y[i]\n y = x * tanh(log1p(exp(x)))", (9,), (9,), flat=True)
    assert "lanes" not in on_gpu and "kept" not in on_gpu


@needs_compiler
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_values(size: int, kind: type) -> None:
    x = RANDOM.standard_normal(size).astype(kind)
    y, z = np.empty_like(x), np.empty_like(x)
    Recipe("x[i] -> y[i], z[i]\n e = exp(x)\n z = e - 1\n y = x * tanh(log1p(e)) + e")(y, z, x)
    e = np.exp(x)
    np.testing.assert_allclose(y, x * np.tanh(np.log1p(e)) + e, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(z, e - 1, rtol=1e-5, atol=1e-6)


@needs_compiler
@pytest.mark.parametrize("size", SIZES)
def test_an_operand_that_is_written_over(size: int) -> None:
    """x is read by the last piece, so no earlier one may write its new value."""
    x = RANDOM.standard_normal(size).astype(np.float32)
    old, y = x.copy(), np.empty_like(x)
    Recipe("x[i] -> x[i], y[i]\n e = exp(x)\n y = tanh(e) * x\n x = e")(x, y, x)
    np.testing.assert_allclose(x, np.exp(old), rtol=1e-5)
    np.testing.assert_allclose(y, np.tanh(np.exp(old)) * old, rtol=1e-5, atol=1e-6)


@needs_compiler
@pytest.mark.parametrize("size", [1, 33, 1023, 1024, 2500])
def test_truth_between_pieces_and_matrices(size: int) -> None:
    x = RANDOM.standard_normal((3, size)).astype(np.float32)
    w = RANDOM.random(size).astype(np.float32)
    y = np.empty_like(x)
    Recipe("x[i,j], w[j] -> y[i,j]\n e = exp(x * w)\n p = e > 1\n y = tanh(e) if p else exp(e)")(
        y, x, w
    )
    e = np.exp(x * w)
    np.testing.assert_allclose(y, np.where(e > 1, np.tanh(e), np.exp(e)), rtol=1e-5)


@needs_compiler
@pytest.mark.parametrize("size", [1, 33, 1023, 1024, 2500])
@pytest.mark.parametrize("how", ["sum", "max"])
def test_passes_over_rows(size: int, how: str) -> None:
    """In a reduction along rows each pass is cut, too."""
    x = RANDOM.standard_normal((4, size)).astype(np.float32)
    y, s = np.empty_like(x), np.empty(4, np.float32)
    text = (
        f"x[i,j] -> y[i,j], s[i]\n e = tanh(exp(x))\n s = {how}[j](log1p(e))\n y = exp(e / s) * e"
    )
    Recipe(text)(y, s, x)
    e = np.tanh(np.exp(x))
    total = getattr(np.log1p(e), how)(1)
    np.testing.assert_allclose(s, total, rtol=1e-5)
    np.testing.assert_allclose(y, np.exp(e / total[:, None]) * e, rtol=1e-5)


@needs_compiler
def test_a_kept_value_outlives_the_output_of_an_earlier_pass() -> None:
    """e waits for the last pass, so not in the memory of y, which the second pass writes."""
    x, w = (RANDOM.standard_normal(33).astype(np.float32) for _ in range(2))
    y, z = np.empty_like(x), np.empty_like(x)
    Recipe("""x[i], w[i] -> y[i], z[i]
        e = exp(x)
        d = w - sum[i](w)
        y = d * x
        z = d * w - e * sum[i](d * w)""")(y, z, x, w)
    d = w - w.sum()
    np.testing.assert_allclose(y, d * x, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(z, d * w - np.exp(x) * (d * w).sum(), rtol=1e-4, atol=1e-4)
