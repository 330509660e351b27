"""Products of a matrix and its own transpose, on one thread, and the gradients behind them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import toytorch
from toytorch.kernels.matmul import by_halves, is_symmetric, is_transpose, product
from toytorch.loops.runtime import jit

pytestmark = pytest.mark.skipif(not jit.works(), reason="compiled code needs llvmlite")


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = toytorch.get_num_threads()
    toytorch.set_num_threads(1)
    yield
    toytorch.set_num_threads(before)


def normal(*shape: int, type: str = "float32") -> Any:
    return np.random.default_rng(3).standard_normal(shape).astype(type)


@pytest.mark.parametrize("type", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(1024, 128), (515, 77), (640, 64), (777, 300), (520, 16)])
def test_a_matrix_by_its_transpose(shape: tuple[int, int], type: str) -> None:
    x = normal(*shape, type=type)
    wide = x.astype("float64") @ x.T.astype("float64")
    for a in (x, np.asfortranarray(x), x[::-1]):
        c = product(a, a.T)
        assert (c is None) == (a.strides[0] < 0)  # BLAS cannot read that
        if c is None:
            continue
        np.testing.assert_allclose(c, wide, rtol=1e-4 if type == "float32" else 1e-10, atol=1e-4)
        np.testing.assert_array_equal(c, c.T)


@pytest.mark.parametrize("n", [512, 519, 640, 641, 647])
def test_by_halves(n: int) -> None:
    """Whatever is left of the last band, with few columns and many, in rows that lie apart."""
    for k in (2, 16, 33):
        a = (np.arange(float(k * n)) % 97).reshape(n, k)  # whole numbers: sums are exact
        np.testing.assert_array_equal(by_halves(a), a @ a.T)
        part = np.pad(a, ((0, 0), (3, 5)), constant_values=np.nan)[:, 3:-5]
        np.testing.assert_array_equal(by_halves(part), a @ a.T)


@pytest.mark.parametrize("n", [16, 24, 64, 520])
def test_symmetry_is_seen(n: int) -> None:
    a = normal(n, n)
    a = a + a.T
    assert is_symmetric(a)
    for i, j in [(0, n - 1), (n - 1, 0), (n // 2, 3), (n - 1, n - 2), (7, 8), (8, 7)]:
        b = a.copy()
        b[i, j] += 1
        assert not is_symmetric(b)
    a[5, 5] = np.nan
    assert not is_symmetric(a)


def test_a_transpose_is_the_same_memory() -> None:
    x = normal(8, 4)
    assert is_transpose(x, x.T)
    assert not is_transpose(x, x.copy().T)
    assert not is_transpose(x, x)


@pytest.mark.parametrize("symmetric", [True, False])
def test_gradients(symmetric: bool) -> None:
    """With a symmetric gradient and without, both factors' gradients are what products give."""
    x = toytorch.tensor(normal(256, 64), requires_grad=True)
    transposed = x.t()
    transposed.retain_grad()
    g = normal(256, 256)
    g = g + g.T if symmetric else g
    (x @ transposed).backward(toytorch.tensor(g))
    a = x.detach().numpy().astype("float64")
    np.testing.assert_allclose(transposed.grad.numpy(), a.T @ g, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(x.grad.numpy(), g @ a + g.T @ a, rtol=1e-4, atol=1e-3)


def test_second_gradients_do_not_assume_symmetry() -> None:
    x = toytorch.tensor(normal(64, 32, type="float64"), requires_grad=True)
    g = toytorch.ones(64, 64, dtype=toytorch.float64, requires_grad=True)
    (first,) = toytorch.autograd.grad(x @ x.t(), x, g, create_graph=True)
    direction = toytorch.tensor(normal(64, 32, type="float64"))
    (second,) = toytorch.autograd.grad(first, g, direction)
    a, d = x.detach().numpy(), direction.numpy()
    np.testing.assert_allclose(second.numpy(), d @ a.T + a @ d.T, rtol=1e-9)
