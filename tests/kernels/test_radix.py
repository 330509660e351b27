"""Sorting by digits: the values and places of PyTorch's stable sort, on one thread and on two."""

from __future__ import annotations

import numpy as np
import pytest

from tests.oracle import torch, tt
from toytorch.kernels import radix
from toytorch.loops.runtime import jit

pytestmark = pytest.mark.skipif(not jit.works(), reason="NumPy sorts where there is no compiler")
SHAPES = [(6000,), (3, radix.NEAR), (3, radix.NEAR + 1), (70, 97), (60, 3, 50), (radix.FEWEST, 400)]
ENDS = {"f": [np.nan, np.inf, -np.inf, 0.0, -0.0, -np.nan, 1e-45, -1e-45, 3.4e38]}
ENDS["d"] = [*ENDS["f"], 5e-324, -5e-324, 1.7e308]
ENDS["i"] = [-(2**31), 2**31 - 1, 0, -1, 255, 256, -256]
ENDS["q"] = [-(2**63), 2**63 - 1, 2**40, -(2**40), 0, -1]


def numbers(shape: tuple[int, ...], kind: str, few: bool) -> np.ndarray:
    """Some at the ends of what the type holds, some equal; with `few`, only 30 different ones."""
    rng = np.random.default_rng(len(shape))
    a = rng.standard_normal(shape).astype(kind)
    if kind in "iq":
        high = 15 if few else 2**31 - 1
        a = rng.integers(-high, high, shape).astype(kind)
        a *= rng.integers(1, 2**31, shape) if kind == "q" and not few else 1
    elif few:
        a = np.round(a * 4)
    return np.where(rng.random(shape) < 0.05, rng.choice(np.array(ENDS[kind], kind), shape), a)


@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("kind", "fdiq")
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_as_pytorch(
    threads: int, shape: tuple[int, ...], kind: str, descending: bool, few: bool
) -> None:
    a = numbers(shape, kind, few)
    for d in range(a.ndim):
        made = radix.ordered(a, d, descending)
        assert (made is not None) == (a.shape[d] >= radix.FEWEST)
        if made is not None:
            wanted = torch.from_numpy(a).sort(dim=d, descending=descending, stable=True)
            np.testing.assert_array_equal(made[0], wanted.values.numpy())
            np.testing.assert_array_equal(made[1], wanted.indices.numpy())


def test_left_to_numpy() -> None:
    for a in (np.zeros(100), np.zeros((400, 40)), np.zeros(6000, "int8"), np.zeros(6000, complex)):
        assert radix.ordered(a, a.ndim - 1, False) is None


@pytest.mark.parametrize("kind", "fdiq")
def test_what_stands_on_it(threads: int, kind: str) -> None:
    """sort and argsort along dimensions, median, kthvalue, topk of many, unique."""
    a = numbers((90, 3, 70), kind, few=True)
    found = []
    for m in (tt, torch):
        x = m.from_numpy(a)
        made = [
            *x.sort(dim=0, stable=True),
            *x.transpose(0, 1).sort(dim=2, descending=True, stable=True),
        ]
        made += [x.argsort(dim=2, stable=True), x.kthvalue(60, 0).values, x.topk(60, 0).values]
        # PyTorch gives equal NaNs, each of which is one of its own, in any order.
        made += x[~x.isnan()].unique(return_inverse=True, return_counts=True)
        made += [x.median(0).values, x.flatten().mode().values]
        found.append(made)
    for ours, theirs in zip(*found, strict=True):
        assert str(ours.dtype)[-7:] == str(theirs.dtype)[-7:]
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
        assert ours.stride() == theirs.stride()
