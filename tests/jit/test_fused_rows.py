"""Norms, variances, losses and masks in fused kernels: values and gradients beside PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.oracle import torch, tt
from toytorch import jit
from toytorch.loops.runtime import jit as machine

pytestmark = pytest.mark.skipif(not machine.works(), reason="kernels need llvmlite")

RANDOM = np.random.default_rng(5)
X = RANDOM.standard_normal((6, 7, 40)).astype(np.float32)
Y = RANDOM.standard_normal((6, 7, 40)).astype(np.float32)
SHARE = np.abs(Y) / 4
MASK = X > 0.3
EDGES = X.copy()
EDGES[0, 0, 0], EDGES[1, 1, :], EDGES[2, 2, 3], EDGES[3, 3, :] = np.inf, -np.inf, np.nan, 0
DIMS: list[Any] = [0, 1, 2, (0, 2), (1, 2), None]
INF = float("inf")


def both(f: Callable[..., Any], *arrays: Any, grad: bool = True) -> Any:
    """f in PyTorch and compiled here: (result, gradients) compared; gives the compiled function."""
    found = []
    for m in (torch, tt):
        given = [m.from_numpy(a.copy()) for a in arrays]
        if grad:
            for x in given:
                x.requires_grad_(x.is_floating_point())
        run: Any = (lambda *a, m=m: f(m, *a)) if m is torch else tt.compile(lambda *a: f(tt, *a))
        y = run(*given)
        if grad:
            y.backward(m.full_like(y, 1.5))
        found.append([y.detach(), *(x.grad for x in given if grad and x.grad is not None)])
    for a, b in zip(*found, strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(b.numpy(), a.numpy(), rtol=3e-5, atol=1e-5)
    return run, given


def calls(run: Any, given: Any) -> list[str]:
    """The lines of `explain` about what is left to NumPy."""
    return [line for line in jit.explain(run, *given).splitlines() if "NumPy" in line]


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("keepdim", [True, False])
@pytest.mark.parametrize("ord", [2, 1, 3, 2.5, INF, -INF])
def test_norms(dim: Any, keepdim: bool, ord: float) -> None:
    run, given = both(lambda m, x: m.linalg.vector_norm(m.tanh(x), ord, dim, keepdim) * 2, X)
    if ord in (1, 2, 3):
        assert not [line for line in calls(run, given) if "norm" in line]


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("keepdim", [True, False])
@pytest.mark.parametrize("name", ["var", "std"])
@pytest.mark.parametrize("correction", [0, 1, 5])
def test_variances(dim: Any, keepdim: bool, name: str, correction: int) -> None:
    def f(m: Any, x: Any) -> Any:
        return getattr(m, name)(m.tanh(x), dim=dim, correction=correction, keepdim=keepdim) * 2

    run, given = both(f, X)
    assert not calls(run, given)


@pytest.mark.parametrize("correction", [3, 4, 5])
@pytest.mark.parametrize("dim", [None, 1, (0, 1)])
@pytest.mark.parametrize("name", ["var", "std"])
@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
def test_no_degrees_of_freedom(correction: int, dim: Any, name: str) -> None:
    """Three numbers and a correction of three and more: infinite, and so are most gradients."""
    found = []
    for m in (torch, tt):
        x = m.tensor([[1.0, 2.0, 4.0]], requires_grad=True)
        y = getattr(m, name)(x, dim=dim, correction=correction)
        y.sum().backward()
        found.append((y.tolist(), x.grad.tolist()))
    np.testing.assert_equal(found[1], found[0])


@pytest.mark.parametrize("dim", DIMS[:-1])
@pytest.mark.parametrize("keepdim", [True, False])
def test_logarithms_of_sums(dim: Any, keepdim: bool) -> None:
    run, given = both(lambda m, x: m.logsumexp(x * 2, dim, keepdim) * 2, X)
    assert not calls(run, given)
    both(lambda m, x: m.logsumexp(x * 2, dim, keepdim) * 2, EDGES, grad=False)
    both(lambda m, x: m.nansum(x * 2, dim, keepdim) * 2, EDGES, grad=False)
    both(lambda m, x: m.linalg.vector_norm(x * 2, 2, dim, keepdim), EDGES, grad=False)


LOSSES: dict[str, Callable[..., Any]] = {
    "mse": lambda F, x, t, r: F.mse_loss(x * 2, t, reduction=r),
    "smooth l1": lambda F, x, t, r: F.smooth_l1_loss(x * 2, t, reduction=r, beta=0.7),
    "l1": lambda F, x, t, r: F.smooth_l1_loss(x * 2, t, reduction=r, beta=0.0),
    "huber": lambda F, x, t, r: F.huber_loss(x * 2, t, reduction=r, delta=0.7),
    "logits": lambda F, x, t, r: F.binary_cross_entropy_with_logits(x * 20, t, reduction=r),
}


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("loss", LOSSES)
def test_losses(loss: str, reduction: str) -> None:
    f = LOSSES[loss]
    run, given = both(lambda m, x, t: f(m.nn.functional, x, t, reduction) * 2, X, SHARE)
    assert not calls(run, given)


@pytest.mark.parametrize("name", ["weight", "pos_weight"])
def test_weights_of_logits(name: str) -> None:
    def f(m: Any, x: Any, t: Any) -> Any:
        w = (t + 1).detach() if name == "weight" else (t[0, 0] + 1).detach()
        loss = m.nn.functional.binary_cross_entropy_with_logits
        return loss(x * 3, t.detach(), **{name: w})

    both(f, X, SHARE)


def test_masks() -> None:
    for value in (-INF, 0, 3.5):
        run, given = both(lambda m, x, k, v=value: (x * 2).masked_fill(k, v).exp(), X, MASK)
        assert not calls(run, given)
    both(lambda m, x, k: (x * 2).masked_fill(k, 0).exp(), X, MASK[0, 0])
    both(lambda m, x, k: (x * 2).masked_fill(k, 0).exp(), X[0, 0], MASK)
    both(lambda m, x, k: (x * 2).masked_fill(k, x[0, 0, 0]).exp(), X, MASK)
    both(lambda m, x, k: (x * 2).masked_fill(k, 7) + 1, (X * 10).astype(np.int32), MASK, grad=False)
    run, given = both(lambda m, x, k: m.softmax((x * 2).masked_fill(k, -INF), -1), X, MASK[0])
    assert not calls(run, given)
    both(lambda m, x, k: m.amax((x * 2).masked_fill(k, -INF), -1), X, MASK)
    both(lambda m, x, k: m.amin(m.where(k, INF, x * 2), -1), X, MASK)


def test_layer_norm_in_its_parts() -> None:
    """The backward pass is two kernels: along the rows, and down the columns."""

    def f(m: Any, x: Any, y: Any, w: Any, b: Any) -> Any:
        return m.nn.functional.layer_norm(x + y, (40,), w, b) * 2

    run, given = both(f, X, Y, X[0, 0], Y[0, 0])
    explained = jit.explain(run, *given)
    assert "_norm_backward" not in " ".join(calls(run, given))
    assert "sub, mul, mul, sum" in explained


@pytest.mark.parametrize("shape", [(70, 90), (64, 128), (5, 70, 33)])
def test_transposed_operands(shape: tuple[int, ...]) -> None:
    """They are copied before the loops, wherever the transpose stands."""
    x = RANDOM.standard_normal(shape).astype(np.float32)
    y = np.ascontiguousarray(x.swapaxes(-1, -2)) + 1
    both(lambda m, x, y: m.tanh(x.transpose(-1, -2) + y) * 2, x, y)
    both(lambda m, x, y: (x.transpose(-1, -2) * y).sum(-1), x, y)
    both(lambda m, x, y: (x.transpose(-1, -2) * y).sum(0), x, y)
    both(lambda m, x, y: (x.permute(*range(x.ndim)[::-1]) * 2).exp() + 1, x, x.copy())
    for a, b in (
        (x.swapaxes(-1, -2), y),
        (x.swapaxes(-1, -2), y.swapaxes(0, 1).copy().swapaxes(0, 1)),
    ):
        both(lambda m, x, y: m.tanh(x + y) * 2, a, b)


def test_what_is_cheap_is_made_again() -> None:
    """Sums over rows and columns are two kernels, both made of the factors; and differences of rows
    are not saved for the backward pass."""

    def sums(m: Any, a: Any, b: Any) -> Any:
        t = a[:, None] * b[None] * 2
        return t.sum((0, 2))[None] + t.sum((1, 2))[:, None]

    run, given = both(sums, X[0], Y[:, 0])
    forward = [s for s in jit.explain(run, *given).splitlines() if "forward" in s]
    assert sum("unsqueeze, unsqueeze, mul, mul" in line for line in forward) == 2

    def distances(m: Any, a: Any, b: Any) -> Any:
        return m.sqrt(((a[:, None] - b[None]) ** 2).sum(-1)) * 2

    run, given = both(distances, X[0], Y[:, 0])
    assert jit.explain(run, *given).count("unsqueeze, unsqueeze, sub") == 2
    both(lambda m, a, b: (m.exp(a[:, None] - b[None]) * a[:, None]).sum((0, 2)) * 2, X[0], Y[:, 0])
    both(lambda m, a, b: ((a[:, None] * b[None]).sum(0) * b).sum(0) * 2, X[0], Y[:, 0])


def test_a_softmax_of_a_weighted_log_softmax() -> None:
    """Two gradients of one kernel with two sums, of which one result is done before the other."""
    both(lambda m, x, w: m.softmax(m.log_softmax(x, 0) * w, -1) ** 2 * 3, X[0, 0], Y[0, 0])
    both(lambda m, x, w: m.softmax(m.log_softmax(x, -1) * w, -1) ** 2 * 3, X[0], Y[0])


def test_a_minimum_is_found_again_in_the_backward_pass() -> None:
    """Its gradient goes to the elements that are equal to it, so none may be rounded otherwise."""

    def f(m: Any, x: Any) -> Any:
        y = m.logsumexp(x - x[:, :1], -1)
        y = y / (1 + y.abs())
        return m.logsumexp((y[..., None] * x).amin(0, True), 1, True) * 1.3

    both(f, X)
    both(f, X.astype(np.float64))


@pytest.mark.parametrize("shape", [(1, 3), (3, 1), (1, 5, 4), (2, 1, 1)])
@pytest.mark.parametrize("how", ["sum", "mean", "amax", "logsumexp"])
def test_a_row_beside_its_transpose_is_no_diagonal(how: str, shape: tuple[int, ...]) -> None:
    """Both dimensions of their difference are the row's only one; the difference is no result, so
    that its dimensions have to be looked at on the way."""

    def f(m: Any, x: Any) -> Any:
        e = m.exp(x * 0.3)
        made = e.transpose(0, -1) - e
        return m.logsumexp(made, 0) if how == "logsumexp" else getattr(made, how)(0)

    both(f, RANDOM.standard_normal(shape).astype(np.float32), grad=how != "amax")
