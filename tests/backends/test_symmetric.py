"""Products of a matrix and its own transpose, on one thread, and the gradients behind them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import toytorch
from toytorch.kernels.matmul import are_twins, is_symmetric, product
from toytorch.loops.runtime import jit

pytestmark = pytest.mark.skipif(not jit.works(), reason="compiled products need llvmlite")


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = toytorch.get_num_threads()
    toytorch.set_num_threads(1)
    yield
    toytorch.set_num_threads(before)


def normal(*shape: int, type: str = "float32") -> Any:
    return np.random.default_rng(3).standard_normal(shape).astype(type)


@pytest.mark.usefixtures("wide_registers")
@pytest.mark.parametrize("type", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(1024, 128), (203, 77), (64, 64), (101, 300), (520, 16)])
def test_a_matrix_by_its_transpose(shape: tuple[int, int], type: str) -> None:
    x = normal(*shape, type=type)
    for a in (x, np.asfortranarray(x), x.T):
        c = product(a, a.T)
        if c is None:  # too much of it would be done twice, or a side is too short
            assert max(shape) < 1024
            continue
        wide = a.astype("float64") @ a.T.astype("float64")
        np.testing.assert_allclose(c, wide, rtol=1e-4 if type == "float32" else 1e-10, atol=1e-4)
        np.testing.assert_array_equal(c, c.T)


@pytest.mark.usefixtures("wide_registers")
def test_enough_shapes_are_done_here() -> None:
    assert all(product(a, a.T) is not None for a in (normal(1024, 128), normal(64, 64)))


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


def test_twins_are_one_memory() -> None:
    x = normal(8, 4)
    assert are_twins(x, x.T)
    assert not are_twins(x, x.copy().T)
    assert not are_twins(x, x)


@pytest.mark.parametrize("symmetric", [True, False])
def test_gradients(symmetric: bool) -> None:
    """With a symmetric gradient and without, both factors' gradients are what products give."""
    x = toytorch.tensor(normal(256, 64), requires_grad=True)
    turned = x.t()
    turned.retain_grad()
    g = normal(256, 256)
    g = g + g.T if symmetric else g
    (x @ turned).backward(toytorch.tensor(g))
    a = x.detach().numpy().astype("float64")
    np.testing.assert_allclose(turned.grad.numpy(), a.T @ g, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(x.grad.numpy(), g @ a + g.T @ a, rtol=1e-4, atol=1e-3)


def test_second_gradients_do_not_assume_symmetry() -> None:
    x = toytorch.tensor(normal(64, 32, type="float64"), requires_grad=True)
    g = toytorch.ones(64, 64, dtype=toytorch.float64, requires_grad=True)
    (first,) = toytorch.autograd.grad(x @ x.t(), x, g, create_graph=True)
    direction = toytorch.tensor(normal(64, 32, type="float64"))
    (second,) = toytorch.autograd.grad(first, g, direction)
    a, d = x.detach().numpy(), direction.numpy()
    np.testing.assert_allclose(second.numpy(), d @ a.T + a @ d.T, rtol=1e-9)
