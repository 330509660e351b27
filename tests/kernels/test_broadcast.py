"""Arithmetic of large arrays of two shapes or orders: PyTorch's numbers and strides."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

from tests.oracle import torch, tt
from toytorch.kernels.dispatch_stub import SPREAD, TRIAL, Shared


def test_parts_of_larger_arrays() -> None:
    """A way that was found for one pair is that of all that lie so, wherever they begin."""
    held, shared = np.arange(40_000, dtype="float32"), Shared(np.multiply)
    for begin in (7, 0, 4_000, 12_345):
        rows = held[begin : begin + 6_400].reshape(100, 64)
        for other in (held[begin + 9 : begin + 73], held[begin : begin + 128 : 2], held[64:0:-1]):
            for a, b in ((rows, other), (other, rows), (rows[:, :1], other)):
                np.testing.assert_array_equal(shared(a, b), a * b)
    assert shared.plans


def operand(random: Any, shape: list[int], whole: bool, kind: str) -> Any:
    """An array that broadcasts to a shape, in some order of memory, now and then with gaps."""
    own = [n if whole or random.random() < 0.6 else 1 for n in shape]
    if not whole and random.random() < 0.4:
        own = own[int(random.integers(0, len(own))) :]
    a = random.standard_normal(own).astype(kind)
    if a.ndim > 1 and random.random() < 0.4:
        order = random.permutation(a.ndim)
        a = np.ascontiguousarray(a.transpose(order)).transpose(np.argsort(order))
    way = random.random()
    if way < 0.1:
        return np.repeat(a, 2, -1)[..., ::2]
    if way < 0.25:  # rows with gaps between them
        return np.concatenate([a, a], -1)[..., : a.shape[-1]]
    if way < 0.4:  # as `expand` makes it
        whole = np.broadcast_shapes(a.shape, tuple(shape))
        return as_strided(a, whole, np.broadcast_to(a, whole).strides)
    return a


@pytest.mark.parametrize("seed", range(150))
def test_random_pairs(seed: int) -> None:
    random = np.random.default_rng(seed)
    x = tt.ones(2)
    for _ in range(TRIAL + 1):  # from then on the compiled stub answers
        x + x, x - x, x * x, x / x, x.maximum(x), x.minimum(x)
    shape = [int(random.integers(1, 40)) for _ in range(int(random.integers(1, 5)))]
    shape[-1] *= max(1, -(-SPREAD // int(np.prod(shape))))
    kinds = random.choice(["f", "f", "f", "d"], 2)
    a, b = operand(random, shape, True, kinds[0]), operand(random, shape, False, kinds[1])
    if random.random() < 0.5:
        a, b = b, a
    for name in ("add", "sub", "mul", "div", "maximum", "minimum"):
        want, got = (getattr(m, name)(*map(m.from_numpy, (a, b))) for m in (torch, tt))
        assert got.stride() == want.stride(), name
        np.testing.assert_array_equal(got.numpy(), want.numpy())


def test_shapes_that_do_not_broadcast() -> None:
    x, y = tt.ones(300, 300), tt.ones(299)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="must match the size of tensor b"):
            x + y
