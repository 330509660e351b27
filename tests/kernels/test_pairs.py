"""Outer products and gates, beside NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import toytorch
from tests.oracle import torch
from toytorch.kernels.pairs import gated, outer, sloped
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


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_slopes(kind: Any) -> None:
    x, t = (RANDOM.standard_normal((70, 64)).astype(kind) for _ in range(2))
    x[3, 5] = np.nan
    g = np.array(0.7, kind)
    (made,) = sloped(x, t, "minimum(maximum((x - t) / p, -1), 1) * g", 0.3, g, 8)
    np.testing.assert_allclose(made, np.clip((x - t) / kind(0.3), -1, 1) * (g / kind(8)), 1e-6)
    assert sloped(x.T, t.T, "x * g", 1.0, g) is None
    assert sloped(x, t, "x * g", 1.0, g[None]) is None
    assert sloped(x, t, "x * g", 1.0, g.astype("e")) is None


LOSSES = {
    "mse_loss": {},
    "smooth_l1_loss": {"beta": 0.3},
    "huber_loss": {"delta": 0.4},
    "binary_cross_entropy": {},
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("shape", [(), (5,), (3, 7), (70, 64)])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("name", LOSSES)
def test_gradients_of_losses(name: str, reduction: str, shape: Any, dtype: str) -> None:
    """In one loop where g is a number, and step by step where gradients are recorded: PyTorch's."""
    given = RANDOM.random((2, *shape))

    def run(m: Any, recorded: bool) -> Any:
        x, t = (m.tensor(a, dtype=getattr(m, dtype)) for a in given)
        x.requires_grad_()
        if name != "binary_cross_entropy":
            t.requires_grad_()
        loss = (getattr(m.nn.functional, name)(x, t, reduction=reduction, **LOSSES[name]) * 3).sum()
        loss.backward(create_graph=recorded)
        found = [x.grad] if t.grad is None else [x.grad, t.grad]
        return [g.detach().numpy() for g in found]

    near = 1e-2 if dtype == "float16" else 1e-5
    wanted = run(torch, False)
    for recorded in (False, True):
        for a, b in zip(run(toytorch, recorded), wanted, strict=True):
            np.testing.assert_allclose(a, b, near, near)
