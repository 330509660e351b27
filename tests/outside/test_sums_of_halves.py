"""Sums of half types, and of many rows: where PyTorch adds in float32 and rounds once, and where not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.oracle import torch, tt

# -- values ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_sparse_entries_of_halves_are_rounded_at_each_step(kind: str) -> None:
    """In the order in which they lie; PyTorch's `coalesce` sorts equal places in an order of its own,
    which the numbers of the second case show, so that `to_dense` alone has the same there."""
    for values, sorted_alike in ([1.0, 2**-9, 3.0], True), ([1.0] + [2**-9] * 512, False):
        made = []
        for m in (tt, torch):
            places = m.zeros(1, len(values), dtype=m.int64)
            x = m.sparse_coo_tensor(places, values, (2,), check_invariants=True).to(
                getattr(m, kind)
            )
            made.append([x.to_dense().tolist(), *[x.coalesce().to_dense().tolist()] * sorted_alike])
        assert made[0] == made[1]


def test_embedding_bag_sums_bfloat16_no_worse_than_pytorch() -> None:
    from toytorch.nn.functional import embedding

    indices = tt.randint(0, 5, (40, 10), generator=tt.Generator().manual_seed(1))
    weights = tt.rand(5, 3, generator=tt.Generator().manual_seed(2)).bfloat16()
    g = tt.randn(40, 3, generator=tt.Generator().manual_seed(3)).bfloat16()
    exact = torch.zeros(5, 3, dtype=torch.float64)
    rows = torch.from_numpy(g.double().numpy()).repeat_interleave(10, 0)
    exact.index_add_(0, torch.from_numpy(indices.numpy()).reshape(-1), rows)

    def error(grad: Any) -> float:
        assert grad is not None
        return float((torch.from_numpy(grad.to_dense().double().numpy()) - exact).abs().max())

    for sparse in (False, True):
        errors = []
        for m in (tt, torch):
            w = m.from_numpy(weights.float().numpy()).bfloat16().requires_grad_()
            given = m.from_numpy(indices.numpy())
            made = m.nn.functional.embedding_bag(given, w, mode="sum", sparse=sparse)
            made.backward(m.from_numpy(g.float().numpy()).bfloat16())
            errors.append(error(w.grad.float()))
        assert errors[0] <= errors[1]
    w = weights.clone().requires_grad_()
    embedding(indices, w).sum(1).backward(g)
    assert error(w.grad) < 0.5


N = 3000


DRAW = np.random.default_rng(0)


ROWS = DRAW.uniform(0.05, 0.95, (N, 4)).astype("f4")


NUMBERS = DRAW.integers(0, 3, N)


EPS = {"bfloat16": 2**-8, "float16": 2**-11}


LOSSES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "huber": lambda F, x, y: F.huber_loss(x * 60, y, delta=0.3),
    "huber, sum": lambda F, x, y: F.huber_loss(x, y, reduction="sum"),
    "large": lambda F, x, y: F.huber_loss(x * 6e3, y, delta=9.0),  # the sum is beyond float16
    "soft margin": lambda F, x, y: F.soft_margin_loss(x, (y > 0.5).to(x.dtype) * 2 - 1),
    "with logits": lambda F, x, y: F.binary_cross_entropy_with_logits(x, y),
    "with logits, weights": lambda F, x, y: F.binary_cross_entropy_with_logits(
        x, y, pos_weight=y[0], reduction="sum"
    ),
}


def index(m: Any) -> Any:
    return m.tensor(NUMBERS.tolist())


def zeros(m: Any, x: Any, *shape: int) -> Any:
    return m.zeros(shape, dtype=x.dtype)


def bags(m: Any, x: Any, mode: str) -> Any:
    return m.nn.functional.embedding_bag(m.arange(N), x, m.tensor([0, 5, 900]), mode=mode)


SUMS: dict[str, Callable[[Any, Any], Any]] = {
    "scatter_add": lambda m, x: zeros(m, x, 3).scatter_add(0, index(m), x[:, 0]),
    "scatter_add, rows": lambda m, x: zeros(m, x, 3, 4).scatter_add(
        0, index(m)[:, None].expand(N, 4), x
    ),
    "index_add": lambda m, x: zeros(m, x, 3, 4).index_add(0, index(m), x),
    "gather": lambda m, x: x[:3].gather(0, index(m)[:, None].expand(N, 4)) * x.detach(),
    "index_select": lambda m, x: x[:3].index_select(0, index(m)) * x.detach(),
    "scatter_reduce": lambda m, x: zeros(m, x, 3).scatter_reduce(0, index(m), x[:, 0], "mean"),
    "index_reduce": lambda m, x: zeros(m, x, 3, 4).index_reduce(0, index(m), x, "mean"),
    "bags, sum": lambda m, x: bags(m, x, "sum"),
    "bags, mean": lambda m, x: bags(m, x, "mean"),
    "repeat_interleave": lambda m, x: (
        x[0].repeat_interleave(N // 4) * x[: N // 4].detach().view(-1)
    ),
    "repeat_interleave, dim": lambda m, x: x[:2].repeat_interleave(N // 2, -2) * x.detach(),
    "group norm": lambda m, x: m.nn.functional.group_norm(x.T[None], 2, x[0], x[1]) * x.T.detach(),
}


def answers(m: Any, what: Callable[[Any, Any], Any], kind: str) -> tuple[Any, Any]:
    """A result and the gradient of what it is made of, in float64."""
    x = m.tensor(ROWS.tolist()).to(getattr(m, kind)).requires_grad_()
    y = what(m, x)
    y.backward(m.ones_like(y))
    return y.detach().double().numpy(), x.grad.double().numpy()


def near(ours: Any, theirs: Any, eps: float, gradient: bool = False) -> None:
    scale = abs(theirs).max()
    assert abs(ours - theirs).max() <= (4 if gradient else 2) * eps * scale


@pytest.mark.parametrize("kind", EPS)
@pytest.mark.parametrize("name", LOSSES)
def test_losses(name: str, kind: str) -> None:
    def what(m: Any, x: Any) -> Any:
        return LOSSES[name](m.nn.functional, x, x.detach().flip(0))

    ours, theirs = answers(tt, what, kind)[0], answers(torch, what, kind)[0]
    assert np.isfinite(theirs)
    near(ours, theirs, EPS[kind])


@pytest.mark.filterwarnings("ignore:index_reduce.*beta")
@pytest.mark.parametrize("kind", EPS)
@pytest.mark.parametrize("name", SUMS)
def test_sums(name: str, kind: str) -> None:
    # A result that PyTorch itself sums in the half type is left out: the gradient is compared.
    ours, theirs = answers(tt, SUMS[name], kind), answers(torch, SUMS[name], kind)
    if "reduce" not in name:
        near(ours[0], theirs[0], EPS[kind])
    near(ours[1], theirs[1], EPS[kind], gradient=True)


@pytest.mark.parametrize("rows", [5000, 100_000])
def test_bias_of_many_rows(rows: int) -> None:
    bias = tt.zeros(3, requires_grad=True)
    tt.nn.functional.linear(tt.ones(rows, 2), tt.ones(3, 2), bias).backward(
        tt.full((rows, 3), 1.01)
    )
    assert bias.grad is not None
    exact = float(np.float32(1.01)) * rows
    assert abs(bias.grad.double().numpy() - exact).max() <= exact * 1e-6


# -- at a limit ------------------------------------------------------------------------------------


LIMITS: dict[str, Callable[[Any, Any, float], Any]] = {
    "threshold": lambda F, x, p: F.threshold(x, p, 20.3),
    "hardtanh": lambda F, x, p: F.hardtanh(x, -p, p),
    "hardshrink": lambda F, x, p: F.hardshrink(x, p),
    "softshrink": lambda F, x, p: F.softshrink(x, p),
}


@pytest.mark.parametrize("kind", EPS)
@pytest.mark.parametrize("name", LIMITS)
def test_limits_that_half_types_round(name: str, kind: str) -> None:
    for p in (0.1, 0.3, 0.7, 1.3):
        found = []
        for m in (tt, torch):
            x = m.tensor([p, -p, p * 0.99, -p * 1.01, 3.0]).to(getattr(m, kind)).requires_grad_()
            y = LIMITS[name](m.nn.functional, x, p)
            y.sum().backward()
            found.append((y.tolist(), x.grad.tolist()))
        assert found[0] == found[1]


@pytest.mark.parametrize("p", [1, 2])
def test_margins_that_are_just_met(p: int) -> None:
    found = []
    for m in (tt, torch):
        F = m.nn.functional
        x = m.tensor([[1.0, 0.0, 2.0, 0.0], [0.5, 1.5, 0.5, -0.5]], requires_grad=True)
        loss = F.multi_margin_loss(x, m.tensor([0, 1]), p=p)
        more = F.multilabel_margin_loss(x, m.tensor([[0, -1, 1, 1], [1, 0, -1, 0]]))
        found.append([m.autograd.grad(v, x)[0].tolist() for v in (loss, more)])
    assert np.allclose(found[0], found[1])


@pytest.mark.parametrize("n", [50, 9000])
@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_logit_rounds_after_each_operation(kind: str, n: int) -> None:
    def made(m: Any, eps: float | None) -> Any:
        x = m.from_numpy(np.linspace(-0.1, 1.1, n, dtype=np.float32)).to(getattr(m, kind))
        made = m.logit(x, eps)
        assert made.dtype is x.dtype
        return made.float().numpy()

    for eps in (None, 0.1, 1e-3, 1e-6, 0.7, -0.1):
        np.testing.assert_array_equal(made(tt, eps), made(torch, eps))
