"""Compiled sums, and compiled functions, against NumPy in float64."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import toytorch as tt
from toytorch.kernels import reduce
from toytorch.kernels.reduce import total
from toytorch.loops.elementwise import Loop
from toytorch.loops.runtime import jit

pytestmark = pytest.mark.skipif(not jit.works(), reason="kernels need llvmlite")
RNG = np.random.default_rng(0)
EPS = {np.float32: float(np.finfo(np.float32).eps), np.float64: float(np.finfo(np.float64).eps)}
AXES = [axes for n in (1, 2, 3, 4) for axes in itertools.combinations(range(4), n)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 3, 1, 2), (3, 2, 1, 0)], ids=str)
@pytest.mark.parametrize("axes", AXES, ids=str)
def test_totals(dtype: Any, order: tuple[int, ...], axes: tuple[int, ...]) -> None:
    """Over any dimensions, in any order of memory."""
    plain = RNG.standard_normal([(7, 8, 9, 10)[d] for d in order]).astype(dtype)
    x = plain.transpose(np.argsort(order))
    for mean, how in ((False, np.sum), (True, np.mean)):
        got = total(x, axes, mean)
        if got is None:  # four groups of dimensions, by turns
            assert axes in ((0, 2), (1, 3), (0, 3), (0, 1), (2, 3), (1, 2))
            continue
        want = how(x.astype(np.float64), axis=axes)
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=500 * EPS[dtype])
        assert got.dtype == dtype
        assert got.shape == np.shape(want)


@pytest.mark.parametrize("half", ["float16", "bfloat16"])
@pytest.mark.parametrize("shape", [(5003,), (300_007,), (70, 80), (9, 40, 31)], ids=str)
def test_sums_of_half_types_are_those_of_what_they_are_in_float32(half: str, shape: Any) -> None:
    x = tt.tensor(RNG.standard_normal(shape)).to(getattr(tt, half))
    for v, dim in itertools.product((x, x.mT if x.ndim > 1 else x), (None, *range(x.ndim))):
        for name in ("sum", "mean"):
            got = getattr(v, name)(dim=dim, keepdim=True)
            want = getattr(v.float(), name)(dim=dim, keepdim=True).to(x.dtype)
            assert got.equal(want)
            assert got.stride() == want.stride()


def test_what_is_left_to_numpy() -> None:
    x = RNG.standard_normal((100, 64))
    assert total(x, (0,)) is not None
    assert total(x[:, ::2], (0,)) is None
    assert total(x.astype(np.int64), (0,)) is None
    assert total(x[:3], (0,)) is None
    assert total(x, ()) is None


def test_large_sums_are_exact_enough(threads: int) -> None:
    """Blocks are added in float64: 10 million times 0.1 is right to the last digits."""
    x = np.full(10_000_007, 0.1, np.float32)
    assert abs(float(total(x, (0,))) / (x[0].item() * x.size) - 1) < 1e-6
    some = RNG.standard_normal(reduce.SHARED + 13)
    np.testing.assert_allclose(total(some, (0,)), some.sum(), rtol=1e-9)


@pytest.mark.parametrize("shape", [(1000, 1000), (300_007,), (10, 100_000)])
def test_sums_are_the_same_for_any_number_of_threads(shape: tuple[int, ...]) -> None:
    x = tt.tensor(RNG.standard_normal(shape).astype(np.float32))
    before, made = tt.get_num_threads(), []
    for count in (1, 2, 4):
        tt.set_num_threads(count)
        made.append([v.tolist() for v in (x.sum(), x.mean(), x.sum(-1), x.sum(0), x.var())])
    tt.set_num_threads(before)
    assert made[0] == made[1] == made[2]


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
    assert (
        np.abs(y[~normal & np.isfinite(want)] - want[~normal & np.isfinite(want)])
        <= 2 * np.finfo(dtype).smallest_subnormal
    ).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_erf(dtype: Any) -> None:
    x = np.concatenate([RNG.uniform(-7, 7, 20_000), RNG.uniform(-1e-3, 1e-3, 5_000)]).astype(dtype)
    x[:4] = np.nan, np.inf, -np.inf, 0.0
    y = np.empty_like(x)
    assert Loop("y = erf(x)", "y x")(y, x)
    want = np.array([math.erf(v) for v in x.astype(np.float64)])
    np.testing.assert_allclose(y, want, rtol=5 * EPS[dtype], atol=2 * EPS[dtype])
