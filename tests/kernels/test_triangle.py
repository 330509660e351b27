"""Triangles of matrices, on one thread and on two, against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

from toytorch.kernels.triangle import triangle
from toytorch.loops.runtime import jit

pytestmark = pytest.mark.skipif(not jit.works(), reason="NumPy makes them without a compiler")
KINDS = "float32", "float64", "float16", "int64", "int32", "int16", "int8", "uint8"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(90, 70), (2, 3, 40, 41), (5000, 1), (1, 5000)])
@pytest.mark.parametrize("diagonal", [-3, 0, 1, 39, -100, 100, 2**40])
def test_as_numpy(threads: int, kind: str, shape: tuple[int, ...], diagonal: int) -> None:
    a = (np.random.default_rng(0).standard_normal(shape) * 100).astype(kind)
    if a.dtype.kind == "f":
        a.reshape(-1)[::7] = np.nan
    for lower, wanted in ((True, np.tril), (False, np.triu)):
        # NumPy compares in int32, in which 2**40 is no number.
        beside = max(-10_000, min(diagonal, 10_000))
        np.testing.assert_array_equal(triangle(a, lower, diagonal), wanted(a, beside))


def test_left_to_numpy() -> None:
    for a in (np.zeros((8, 8)), np.zeros((90, 180))[:, ::2], np.zeros((90, 90), bool)):
        assert triangle(a, True, 0) is None
