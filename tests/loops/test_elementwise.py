"""Elementwise loops against NumPy."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from toytorch.loops.elementwise import Loop
from toytorch.loops.runtime import blas, jit

RNG = np.random.default_rng(0)


def random(*shape: int, dtype: Any = np.float32) -> Any:
    return RNG.standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [jit.SMALLEST, 5003, 100_001])
def test_loop(dtype: Any, size: int) -> None:
    loop = Loop("d = x - y\nz = d * 2 if x > y else -sqrt(c * d * d) / maximum(x, 3)",
                "z x y", "c")  # fmt: skip
    x, y = random(size, dtype=dtype), random(size, dtype=dtype)
    z = np.zeros_like(x)
    assert loop(z, x, y, 4.0)
    want = np.where(x > y, (x - y) * 2, -2 * np.abs(x - y) / np.maximum(x, 3))
    np.testing.assert_allclose(z, want, rtol=1e-6 if dtype is np.float32 else 1e-14)


def test_loop_keeps_nan() -> None:
    x = random(jit.SMALLEST)
    x[:3] = np.nan, np.inf, -np.inf
    y = np.empty_like(x)
    assert Loop("y = maximum(x, 0)", "y x")(y, x)
    np.testing.assert_array_equal(y, np.maximum(x, 0))


def test_loop_in_another_order_of_memory() -> None:
    """Arrays that lie alike, and fill their memory, are run as they lie; others are only where their
    rows do."""
    loop = Loop("y = x * 2", "y x")
    for axes in ((0, 3, 1, 2), (3, 2, 1, 0), (0, 2, 1, 3)):
        x = random(8, 9, 10, 11).transpose(axes)
        y = loop.of(np, x)
        assert y is not None
        assert y.strides == x.strides
        np.testing.assert_array_equal(y, x * 2)
        rows = axes == (0, 2, 1, 3)
        for y, a in ((np.zeros(x.shape, x.dtype), x), (np.zeros_like(x), np.ascontiguousarray(x))):
            assert loop(y, a) == rows
            np.testing.assert_array_equal(y, x * 2 * rows)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_loop_over_parts(kind: Any) -> None:
    """Rows with gaps between them are read, and written, as they lie; nothing is written between."""
    loop = Loop("y = x * 2 + z", "y x z")
    wide, z = random(70, 3, 90, dtype=kind), random(70, 80, dtype=kind)
    for x in (wide[:, 1, :80], wide[:, 2, 5:85], wide[:, ::2, :40].reshape(70, 80)):
        y = np.empty(x.shape, kind)
        assert loop(y, x, z)
        np.testing.assert_allclose(y, x * 2 + z, rtol=1e-6)
        assert loop(y.T, x.T, z.T)
    whole = np.zeros((70, 3, 90), kind)
    if loop(whole[:, 1, :80], z, z):
        np.testing.assert_allclose(whole[:, 1, :80], z * 3, rtol=1e-6)
    whole[:, 1, :80] = 0
    assert not whole.any()


@pytest.mark.parametrize("case", ["small", "type", "strided", "length"])
def test_loop_leaves_to_numpy(case: str) -> None:
    n = 2 * jit.SMALLEST
    p, g = random(n), random(n)
    if case == "small":
        p, g = p[:100].copy(), g[:100].copy()
    elif case == "type":
        g = g.astype(np.float64)
    elif case == "strided":
        g = random(2 * n)[::2]
    else:
        g = g[1:].copy()
    before = p.copy()
    assert not Loop("p = p - lr * g", "p g", "lr")(p, g, 0.1)
    np.testing.assert_array_equal(p, before)


def test_loop_refuses_what_it_cannot_say() -> None:
    loop = Loop("p = gamma(p)", "p")
    with pytest.raises(NameError, match="gamma"):
        loop(random(jit.SMALLEST))


def test_without_compiler() -> None:
    """With TOYTORCH_NATIVE=0 everything still runs, on NumPy."""
    code = (
        "import toytorch as t; from toytorch.loops.runtime.jit import works; "
        "w = t.ones(5000, requires_grad=True); o = t.optim.SGD([w], lr=0.5); "
        "(w.relu() * 2).sum().backward(); o.step(); print(works(), w[0].item())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          env={**os.environ, "TOYTORCH_NATIVE": "0"}, check=False)  # fmt: skip
    assert done.stdout.split() == ["False", "0.0"], done.stderr


def test_threads_of_blas() -> None:
    before = blas.threads()
    assert before >= 1
    blas.set_threads(1)
    assert blas.threads() == 1
    blas.set_threads(before)
