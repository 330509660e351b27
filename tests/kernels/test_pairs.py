"""Outer products and gates, beside NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import toytorch
from toytorch.kernels.pairs import gated, outer
from toytorch.loops.runtime import jit

pytestmark = pytest.mark.skipif(not jit.works(), reason="kernels need llvmlite")
RANDOM = np.random.default_rng(9)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 5000), (70, 64), (333, 17)])
def test_outer(shape: tuple[int, int], kind: Any) -> None:
    a, b = (RANDOM.standard_normal(n).astype(kind) for n in shape)
    np.testing.assert_array_equal(outer(a, b), a[:, None] * b)
    np.testing.assert_array_equal(outer(a[::-1], b), a[::-1, None] * b)


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_halves(dim: int) -> None:
    """The halves of an array along any of its dimensions are read as they lie."""
    x = RANDOM.standard_normal((12, 14, 60)).astype(np.float32)
    a, b = np.split(x, 2, axis=dim)
    wanted = a / (1 + np.exp(-b.astype(np.float64)))
    np.testing.assert_allclose(gated(a, b), wanted, rtol=1e-5)
    made = toytorch.nn.functional.glu(toytorch.from_numpy(x), dim)
    np.testing.assert_allclose(made.numpy(), wanted, rtol=1e-5)
    np.testing.assert_allclose(gated(a[:1], b[:1]), wanted[:1], rtol=1e-5)
    assert gated(a[:0], b[:0]) is None
