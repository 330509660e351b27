"""Compiled passes over rows and columns, and compiled functions, against NumPy in float64."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from toytorch.backends.loop import Loop
from toytorch.backends.native_rows import MEAN, SUM, Rows, column_sum, total

RNG = np.random.default_rng(0)
EPS = {np.float32: float(np.finfo(np.float32).eps), np.float64: float(np.finfo(np.float64).eps)}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(70, 71), (1, 9001), (5000, 1), (3, 20_000)])
def test_rows(dtype: Any, shape: tuple[int, int]) -> None:
    x = RNG.standard_normal(shape).astype(dtype)
    w, y = RNG.standard_normal(shape[1]).astype(dtype), np.empty_like(x)
    s, top = np.empty(shape[0], dtype), np.empty(shape[0], dtype)
    rule = Rows("top = max(x)\ns = sum(exp(x - top)) / n\ny = (x - top) * w + c * s",
                "y x", "w", "top s", "c")  # fmt: skip
    assert rule(*shape, y, x, w, top, s, 2.0)
    np.testing.assert_array_equal(top, x.max(1))
    wide = x.astype(np.float64) - top[:, None]
    want = np.exp(wide).mean(1)
    np.testing.assert_allclose(s, want, rtol=20 * EPS[dtype])
    np.testing.assert_allclose(y, wide * w + 2 * want[:, None], rtol=1e-4, atol=100 * EPS[dtype])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 1), (1, 2), (0, 2), (0, 1, 2)])
def test_totals(dtype: Any, axes: tuple[int, ...]) -> None:
    x = RNG.standard_normal((17, 18, 19)).astype(dtype)
    for rule, how in ((SUM, np.sum), (MEAN, np.mean)):
        got = total(x, axes, rule)
        if axes in ((1,), (0, 2)):
            assert got is None, "dimensions in the middle are NumPy's"
            continue
        want = how(x.astype(np.float64), axis=axes)
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=500 * EPS[dtype])
        assert got.dtype == dtype
        assert got.shape == np.shape(want)


def test_large_sums_are_exact_enough() -> None:
    """Blocks are added in float64: 10 million times 0.1 is right to the last digits."""
    x = np.full(10_000_000, 0.1, np.float32)
    assert abs(float(total(x, (0,))) / (x[0].item() * x.size) - 1) < 1e-6


def test_a_number_for_each_row() -> None:
    x, shift = RNG.standard_normal((50, 100)), RNG.standard_normal(50)
    y = np.empty_like(x)
    assert Rows("y = x - shift", "y x", each="shift")(50, 100, y, x, shift)
    np.testing.assert_array_equal(y, x - shift[:, None])


def test_columns_with_a_remainder() -> None:
    x = RNG.standard_normal((1003, 37)).astype(np.float32)
    np.testing.assert_allclose(column_sum(x), x.sum(0, dtype=np.float64), atol=1e-4)
    assert column_sum(x[:3]) is None
    assert column_sum(x[:, ::2]) is None
    assert column_sum(x.astype(np.int64)) is None


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bounds", [(-3, 3), (-120, 95), (-760, 720)])
def test_exp(dtype: Any, bounds: tuple[int, int]) -> None:
    x = RNG.uniform(*bounds, 50_000).astype(dtype)
    x[:5] = np.nan, np.inf, -np.inf, 0.0, -0.0
    y = np.empty_like(x)
    assert Loop("y = exp(x)", "y x")(y, x)
    with np.errstate(all="ignore"):
        want = np.exp(x.astype(np.longdouble)).astype(dtype)
    normal = np.isfinite(want) & (want > np.finfo(dtype).tiny)
    assert (np.abs(y[normal] / want[normal] - 1) <= 2 * EPS[dtype]).all()
    np.testing.assert_array_equal(np.isinf(y), np.isinf(want))
    np.testing.assert_array_equal(np.isnan(y), np.isnan(want))
    assert (np.abs(y[~normal & np.isfinite(want)] - want[~normal & np.isfinite(want)])
            <= 2 * np.finfo(dtype).smallest_subnormal).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_erf(dtype: Any) -> None:
    x = np.concatenate([RNG.uniform(-7, 7, 20_000), RNG.uniform(-1e-3, 1e-3, 5_000)]).astype(dtype)
    x[:4] = np.nan, np.inf, -np.inf, 0.0
    y = np.empty_like(x)
    assert Loop("y = erf(x)", "y x")(y, x)
    want = np.array([math.erf(v) for v in x.astype(np.float64)])
    np.testing.assert_allclose(y, want, rtol=5 * EPS[dtype], atol=2 * EPS[dtype])
