"""Compiled pools, rows and masks: against NumPy's way, which stays for what they leave."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.oracle import SELFTEST

if SELFTEST:
    pytest.skip("looks into toytorch's own kernels", allow_module_level=True)

from toytorch.kernels import hashed_mask, pool
from toytorch.kernels import rows as rows_native
from toytorch.loops.runtime import jit
from toytorch.ops.nn.linear_maps import apply_all
from toytorch.ops.nn.pool import of_volumes, of_windows
from toytorch.ops.nn.pool_arrays import (
    adaptive_max_arrays,
    average_maps,
    max_arrays,
    pooled_size,
    put_flat,
)

RNG = np.random.default_rng(0)
pytestmark = pytest.mark.skipif(not jit.works(), reason="there is no compiler")
# shape, kernel, stride, padding, dilation, ceil_mode
CASES = [
    ((2, 40, 13, 14), (2, 2), (2, 2), (0, 0), (1, 1), False),
    ((3, 9, 15, 16), (3, 3), (2, 2), (1, 1), (1, 1), False),
    ((2, 16, 14, 13), (3, 2), (1, 3), (1, 1), (2, 1), True),
    ((1, 70, 9, 10), (3, 3), (4, 4), (1, 0), (1, 2), False),  # elements that no window sees
    ((33, 12, 14), (2, 3), (1, 2), (1, 1), (1, 1), True),  # one image
    ((3, 1, 9, 8), (2, 2), (2, 2), (0, 0), (1, 1), False),  # few planes, and few numbers
    ((2, 33, 75), (3, 3), (3, 2), (1, 1), (2, 2), True),  # along lines
    ((9, 40, 61), (2, 5), (2, 3), (0, 2), (1, 1), False),
    ((1, 2, 7, 70), (1, 4), (1, 4), (0, 1), (1, 1), True),
    ((2, 5, 4, 4), (3, 2), (1, 1), (1, 1), (1, 1), False),
    ((3, 20, 6, 5), (6, 5), (6, 5), (0, 0), (1, 1), False),  # one pixel, which lies both ways
    ((9, 40, 20, 20), (20, 20), (20, 20), (0, 0), (1, 1), False),
]


def images(shape: Any, dtype: Any, last: bool) -> Any:
    x = RNG.integers(-9, 9, shape).astype(dtype)  # with equal ones in a window
    x[RNG.random(shape) < 0.01] = np.nan
    if not last or len(shape) == 3:
        return x
    return np.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)


def sizes(case: Any) -> tuple[int, ...]:
    shape, kernel, stride, padding, dilation, ceil = case
    return tuple(pooled_size(*v, ceil) for v in zip(shape[-2:], kernel, stride, padding, dilation))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_max(case: Any, last: bool, dtype: Any) -> None:
    shape, *how, _ = case
    x, out = images(shape, dtype, last), sizes(case)
    want, places = max_arrays(np, x, *how, out)
    got, where = pool.max_pool(x, *how, out)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(where, places)
    np.testing.assert_array_equal(pool.max_pool(x, *how, out, placed=False)[0], want)
    g = np.asarray(RNG.integers(-9, 9, got.shape).astype(dtype))
    back = pool.max_pool_backward(g, where, shape[-2:], *how)
    np.testing.assert_array_equal(back, put_flat(np, g, places, shape[-2:], False))


@pytest.mark.parametrize(
    "shape", [(2, 3, 5, 6, 7), (3, 4, 5, 6), (0, 2, 4, 4, 4), (2, 16, 9, 9, 9)]
)
@pytest.mark.parametrize(
    "how",
    [((3, 3, 3), (2, 2, 2), (1, 1, 1), (1, 1, 1)), ((2, 3, 1), (1, 2, 1), (1, 1, 0), (1, 1, 2))],
)
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_volumes(shape: Any, how: Any, dtype: Any) -> None:
    x = RNG.integers(-3, 4, shape).astype(dtype)
    if dtype is np.float32:
        x[RNG.random(shape) < 0.1] = np.nan
    out = tuple(pooled_size(*v, False) for v in zip(shape[-3:], *how))
    for got, want in zip(of_volumes(np, x, *how, out), max_arrays(np, x, *how, out)):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("shape", [(2, 3, 5, 6), (4, 4, 4), (3, 1, 1), (1, 9, 21, 17)])
@pytest.mark.parametrize("out", [(2, 2), (3, 4), (1, 1), (7, 3)])
def test_even_bins(shape: Any, out: Any) -> None:
    x = images(shape, np.float32, False)
    for got, want in zip(of_windows(shape, "f", out)(x), adaptive_max_arrays(np, x, out)):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_mean(case: Any, last: bool) -> None:
    shape, kernel, stride, padding, _, ceil = case
    out = sizes((shape, kernel, stride, padding, (1, 1), ceil))
    x = np.nan_to_num(images(shape, np.float64, last))
    maps, counts = average_maps((x.shape[-2:], kernel, stride, padding, out), True)
    factor = 1 / (counts[0][:, None] * counts[1])
    got = pool.mean_pool(x, kernel, stride, padding, out, factor)
    np.testing.assert_allclose(got, apply_all(np, x, maps) * factor, atol=1e-13)
    g = RNG.standard_normal(got.shape)
    back = pool.mean_pool_backward(g, x.shape[-2:], kernel, stride, padding, factor)
    want = apply_all(np, g * factor, maps, transposed=True)
    np.testing.assert_allclose(back, want, atol=1e-13)


def test_left_to_numpy() -> None:
    how = (2, 2), (2, 2), (0, 0), (1, 1)
    assert pool.max_pool(np.zeros((0, 8, 4, 4)), *how, (2, 2)) is None
    assert pool.max_pool(np.zeros((1, 8, 4, 4), "float16"), *how, (2, 2)) is None
    assert pool.max_pool(np.zeros((9, 64, 64), "int64"), *how, (32, 32)) is None


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows(dtype: Any) -> None:
    table, numbers = RNG.standard_normal((50, 37)).astype(dtype), RNG.integers(0, 50, (20, 9))
    np.testing.assert_array_equal(rows_native.take_rows(table, numbers), table[numbers])
    rows = RNG.standard_normal((180, 37)).astype(dtype)
    want = np.zeros_like(table)
    np.add.at(want, numbers.reshape(-1), rows)
    got = rows_native.add_rows(rows, numbers.reshape(-1), 50)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    wide = RNG.standard_normal((3, 5000)).astype(dtype)
    np.testing.assert_array_equal(rows_native.take_rows(wide, np.array(2)), wide[2])
    assert rows_native.take_rows(table, numbers[:1]) is None
    assert rows_native.take_rows(table[:, ::2], numbers) is None


@pytest.mark.parametrize("p", [0.0, 0.1, 0.5, 0.97])
def test_mask(monkeypatch: Any, p: float) -> None:
    """As many zeros as p says, and the same ones without a compiler."""
    key = 0x1234_5678_9ABC_DEF0
    made = hashed_mask.mask((400, 250), np.float32, p, key)
    dropped = float((made == 0).mean())
    assert abs(dropped - p) < 5 * (p * (1 - p) / made.size) ** 0.5 + 1e-12
    np.testing.assert_array_equal(made[made != 0], np.float32(1 / (1 - p)))
    monkeypatch.setattr(jit, "works", lambda: False)
    monkeypatch.setattr(jit, "pays", lambda count: False)
    np.testing.assert_array_equal(made, hashed_mask.mask((400, 250), np.float32, p, key))


def test_masks_are_independent() -> None:
    """Neighbours, and masks of neighbouring keys, agree no more often than chance has it."""
    masks = [
        hashed_mask.mask(200_000, np.float32, 0.5, key) != 0
        for key in (1, 2, 1 << 32, (1 << 32) + 1)
    ]
    bound = 5 * 0.5 / 200_000**0.5
    for k, one in enumerate(masks):
        assert abs(float((one[1:] == one[:-1]).mean()) - 0.5) < bound
        for other in masks[:k]:
            assert abs(float((one == other).mean()) - 0.5) < bound
            assert abs(float((one[1:] == other[:-1]).mean()) - 0.5) < bound


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_number_of_each_row(dtype: Any) -> None:
    table = np.random.default_rng(4).standard_normal((64, 10)).astype(dtype)
    numbers = np.arange(64) % 10
    mean = table[np.arange(64), numbers].mean(dtype=np.float64)
    np.testing.assert_allclose(rows_native.picked_loss(table, numbers), -mean, rtol=1e-6)
    made = np.zeros_like(table)
    assert rows_native.put_picked(made, numbers, np.array(-16, dtype))
    want = np.zeros_like(table)
    want[np.arange(64), numbers] = 0.25
    np.testing.assert_array_equal(made, want)
    for bad in (-100, -1, 10, 1 << 40):  # outside: nothing is read or written there
        other = numbers.copy()
        other[7] = bad
        assert rows_native.picked_loss(table, other) is None
        assert not rows_native.put_picked(made, other, np.array(1, dtype))
    assert rows_native.picked_loss(table[:, ::2], numbers % 5) is None
    few = rows_native.picked_loss(table[:2], numbers[:2])
    np.testing.assert_allclose(few, -(table[0, 0] + table[1, 1]) / 2, rtol=1e-6)
    assert rows_native.picked_loss(table[:0], numbers[:0]) is None  # PyTorch's NaN is NumPy's
