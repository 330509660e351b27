"""Windows told by a table, beside loops in Python."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import toytorch
from toytorch.kernels.windows import (
    largest_of_windows,
    mean_of_windows,
    mean_of_windows_backward,
    put_at_places,
)
from toytorch.loops.runtime import jit
from toytorch.ops.nn.pool_arrays import adaptive_table, average_table, window_table

pytestmark = pytest.mark.skipif(not jit.works(), reason="kernels need llvmlite")
RANDOM = np.random.default_rng(3)
# Sizes, and the results' sizes.
BINS = [((7,), (3,)), ((9,), (9,)), ((6, 5), (3, 2)), ((8, 8), (1, 4)), ((4, 5, 6), (2, 3, 6))]


@pytest.fixture(autouse=True)
def loaded() -> None:
    """From here on small calls are compiled, too."""
    toytorch.randn(5000)


def places(table: Any, out: tuple[int, ...], steps: tuple[int, ...]) -> list[list[tuple[int, ...]]]:
    """The elements that each window sees."""
    rows = table.reshape(-1, 3)[3 - len(out) :]
    spans, begin = [], 0
    for n, step in zip(out, steps):
        spans.append([range(first, end, step) for first, end, _ in rows[begin : begin + n]])
        begin += n
    return [list(itertools.product(*window)) for window in itertools.product(*spans)]


def wanted(a: Any, windows: list[list[tuple[int, ...]]], out: tuple[int, ...]) -> tuple[Any, Any]:
    """The largest elements, of which NaN is the largest, the last one of them."""
    sizes = a.shape[1:]
    best, which = [], []
    for plane, window in itertools.product(a, windows):
        place, most = window[0], -math.inf
        for at in window:
            if plane[at] > most or np.isnan(plane[at]):
                place, most = at, plane[at]
        best.append(most)
        which.append(np.ravel_multi_index(place, sizes))
    return tuple(np.reshape(v, (len(a), *out)) for v in (best, which))


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize(("sizes", "out"), BINS)
@pytest.mark.parametrize("special", [False, True])
def test_largest(sizes: tuple[int, ...], out: tuple[int, ...], kind: str, special: bool) -> None:
    a = RANDOM.integers(-3, 3, (70, *sizes)).astype(kind)  # equal ones among them
    if special:
        a[RANDOM.random(a.shape) < 0.3] = np.nan
        a[RANDOM.random(a.shape) < 0.3] = -np.inf
        a[RANDOM.random(a.shape) < 0.2] = -0.0
    table, steps = adaptive_table(sizes, out), (1,) * len(out)
    for given in (table, np.repeat(table[None], len(a), 0)):
        found = largest_of_windows(a, given, out, steps)
        for made, right in zip(found, wanted(a, places(table, out, steps), out)):
            np.testing.assert_array_equal(made, right)


def test_steps() -> None:
    a, steps, out = RANDOM.standard_normal((30, 9, 11)), (2, 3), (3, 2)
    table = window_table(*((np.arange(n), np.arange(n) + s * 2 + 1, 1) for n, s in zip(out, steps)))
    found = largest_of_windows(a, table, out, steps)
    for made, right in zip(found, wanted(a, places(table, out, steps), out)):
        np.testing.assert_array_equal(made, right)


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize(("sizes", "out"), BINS)
def test_means(sizes: tuple[int, ...], out: tuple[int, ...], kind: str) -> None:
    """Means, and their gradient, which is the transposed map."""
    a = RANDOM.standard_normal((60, *sizes)).astype(kind)
    g = RANDOM.standard_normal((60, *out)).astype(kind)
    ones = (1,) * len(out)
    table = adaptive_table(sizes, out)
    windows = places(table, out, ones)
    flat = a.reshape(len(a), -1)
    weights = np.zeros((len(windows), flat.shape[1]))
    for k, window in enumerate(windows):
        for at in window:
            weights[k, np.ravel_multi_index(at, sizes)] = 1 / len(window)
    made = mean_of_windows(a, table, out, ones).reshape(len(a), -1)
    np.testing.assert_allclose(made, flat @ weights.T, rtol=1e-4, atol=1e-6)
    back = mean_of_windows_backward(g, table, sizes, ones).reshape(len(a), -1)
    np.testing.assert_allclose(back, g.reshape(len(a), -1) @ weights, rtol=1e-4, atol=1e-6)
    one = np.broadcast_to(g.dtype.type(2), g.shape)  # as the gradient of a sum is
    back = mean_of_windows_backward(one, table, sizes, ones).reshape(len(a), -1)
    np.testing.assert_allclose(back, (one.reshape(len(a), -1)) @ weights, rtol=1e-4)


def test_divisors() -> None:
    """Borders count or do not, or one number divides all."""
    a = np.ones((1, 1, 100), "float32")
    sides = (100,), (3,), (2,), (1,), (50,)
    first = [mean_of_windows(a, average_table(sides, *more), (50,), (1,))[0, 0, 0]
             for more in ((True, None), (False, None), (True, 8))]  # fmt: skip
    np.testing.assert_allclose(first, [2 / 3, 1, 2 / 8], rtol=1e-6)


def test_put() -> None:
    g = RANDOM.standard_normal((50, 3, 3)).astype("float32")
    which = RANDOM.integers(0, 20, g.shape)
    right = np.zeros((50, 20))
    np.add.at(right, (np.arange(50)[:, None], which.reshape(50, -1)), g.reshape(50, -1))
    made = put_at_places(g, which, (4, 5))
    np.testing.assert_allclose(made.reshape(50, -1), right, rtol=1e-5, atol=1e-6)
    which[3, 1, 1] = 20
    assert put_at_places(g, which, (4, 5)) is None
