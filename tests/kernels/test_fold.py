"""Reductions that records state as formulas, over any dimensions, beside float64 by NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import toytorch
from tests.oracle import torch
from toytorch.kernels.fold import folded
from toytorch.loops.runtime import jit
from toytorch.ops.define import registry

pytestmark = pytest.mark.skipif(not jit.works(), reason="kernels need llvmlite")
X = np.random.default_rng(8).standard_normal((6, 30, 40)).astype(np.float32)
WIDE = X.astype(np.float64)
OVER = [(0,), (1,), (2,), (0, 2), (1, 2), (0, 1), (0, 1, 2)]
SUMS: dict[str, Any] = {
    "var": ("var", {"correction": 1}, lambda x, o: x.var(o, ddof=1)),
    "std": ("std", {"correction": 0}, lambda x, o: x.std(o)),
    "norm 2": ("linalg_vector_norm", {"ord": 2}, lambda x, o: np.sqrt((x * x).sum(o))),
    "norm 3": ("linalg_vector_norm", {"ord": 3}, lambda x, o: np.cbrt((abs(x) ** 3).sum(o))),
    "norm inf": ("linalg_vector_norm", {"ord": np.inf}, lambda x, o: abs(x).max(o)),
    "logsumexp": ("logsumexp", {}, lambda x, o: np.log(np.exp(x).sum(o))),
}


@pytest.mark.parametrize("over", OVER)
@pytest.mark.parametrize("keepdim", [True, False])
@pytest.mark.parametrize("name", SUMS)
def test_reductions(name: str, over: tuple[int, ...], keepdim: bool) -> None:
    op, numbers, by_numpy = SUMS[name]
    made = folded(registry[op].fused, {"self": X}, numbers, over, keepdim)
    wanted = by_numpy(WIDE, over)
    shape = tuple(1 if d in over else n for d, n in enumerate(X.shape)) if keepdim else wanted.shape
    assert made.shape == shape and made.dtype == np.float32
    np.testing.assert_allclose(made.reshape(wanted.shape), wanted, rtol=1e-5)


@pytest.mark.parametrize("over", OVER)
def test_softmax_over_any_dimensions(over: tuple[int, ...]) -> None:
    made = folded(registry["softmax"].fused, {"self": X}, {}, over, whole=True)
    e = np.exp(WIDE - WIDE.max(over, keepdims=True))
    np.testing.assert_allclose(made, e / e.sum(over, keepdims=True), rtol=1e-5)


def test_what_is_left_to_numpy() -> None:
    """No elements, other types; what lies otherwise is copied."""
    text = registry["var"].fused
    for a in (X[:0], X.astype(np.float16)):
        assert folded(text, {"self": a}, {"correction": 1}) is None
    for a in (X.transpose(2, 1, 0), X[:, ::2]):
        made = folded(text, {"self": a}, {"correction": 1})
        np.testing.assert_allclose(made, a.var(ddof=1), 1e-5)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_what_is_not_finite(value: float) -> None:
    """By the public functions, of many numbers and of few, for some of which NumPy is faster."""
    for make in (
        lambda x: toytorch.logsumexp(x, 1),
        lambda x: toytorch.std(x, 1),
        lambda x: x.softmax(0),
        lambda x: toytorch.linalg.vector_norm(x, 2, 0),
        lambda x: toytorch.nn.functional.mse_loss(x, x * 0),
        lambda x: toytorch.nn.functional.binary_cross_entropy_with_logits(x, x * 0),
    ):
        a = X.reshape(180, 40).copy()
        a[0, 0] = value
        b = a[:8, :8].copy()
        large = make(toytorch.from_numpy(a)).numpy()
        small = make(toytorch.from_numpy(b)).numpy()
        assert np.isnan(large).any() == np.isnan(small).any()
        assert np.isinf(large).any() == np.isinf(small).any()


@pytest.mark.parametrize("dim", [None, 0, 1, 2, -1])
def test_products(dim: int | None) -> None:
    near = (X / 50 + 1).astype(np.float32)
    x = toytorch.from_numpy(near)
    made = x.prod() if dim is None else x.prod(dim)
    wanted = near.astype(np.float64).prod() if dim is None else near.astype(np.float64).prod(dim)
    np.testing.assert_allclose(made.numpy(), wanted, rtol=1e-4)


@pytest.mark.parametrize("shape", [(3, 4), (80, 90)])
@pytest.mark.parametrize("given", [(), ("weight",), ("pos_weight",), ("weight", "pos_weight")])
def test_arrays_that_a_loss_may_have(shape: tuple[int, ...], given: tuple[str, ...]) -> None:
    """Conditions ask whether they are there."""
    rng = np.random.default_rng(1)
    x, t, *ws = (rng.random(shape).astype(np.float32) for _ in range(2 + len(given)))
    results = []
    for m in (toytorch, torch):
        a, more = m.tensor(x, requires_grad=True), dict(zip(given, map(m.tensor, ws)))
        loss = m.nn.functional.binary_cross_entropy_with_logits(a, m.tensor(t), **more)
        loss.backward()
        results.append([loss.detach().numpy(), a.grad.numpy()])
    for ours, theirs in zip(*results):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-7)
