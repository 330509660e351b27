"""Losses as modules, and a small classification run step by step beside PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

from tests.nn.test_modules import mlp
from tests.oracle import ORACLE, SUBJECT, attempt, both, differences, error_difference, torch, tt


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_loss_modules(reduction: str) -> None:
    def f(m: Any) -> Any:
        x = m.sin(m.arange(12.0)).reshape(3, 4).requires_grad_()
        ce = m.nn.CrossEntropyLoss(reduction=reduction)(x, m.tensor([0, 3, 1]))
        mse = m.nn.MSELoss(reduction=reduction)(x, m.zeros(3, 4))
        (ce.sum() + mse.sum() * 2).backward()
        return ce, mse, x.grad

    both(f)


def test_extreme_logits() -> None:
    """log-sum-exp keeps the loss finite where exp alone overflows."""

    def f(m: Any) -> Any:
        x = m.tensor([[1000.0, -1000.0, 0.0], [-1e4, 1e4, 1e4]], requires_grad=True)
        loss = m.nn.functional.cross_entropy(x, m.tensor([0, 2]))
        loss.backward()
        return loss, x.grad

    both(f)


MISUSE: dict[str, Any] = {
    "target beyond the classes": lambda m: m.nn.functional.cross_entropy(
        m.ones(2, 3), m.tensor([0, 5])
    ),
    "negative target": lambda m: m.nn.functional.cross_entropy(m.ones(2, 3), m.tensor([0, -1])),
    "batch sizes": lambda m: m.nn.functional.cross_entropy(m.ones(2, 3), m.tensor([0, 1, 2])),
    "int32 target": lambda m: m.nn.functional.cross_entropy(
        m.ones(2, 3), m.tensor([0, 1], dtype=m.int16)
    ),
    "reduction": lambda m: m.nn.functional.mse_loss(m.ones(2), m.ones(2), reduction="average"),
    "shapes that do not broadcast": lambda m: m.nn.functional.mse_loss(m.ones(2), m.ones(3)),
}


@pytest.mark.parametrize("label", MISUSE)
def test_misuse(label: str) -> None:
    want, got = attempt(MISUSE[label], torch)[1], attempt(MISUSE[label], tt)[1]
    assert want is not None
    bad = error_difference(want, got)
    assert not bad, bad


def test_mse_warns_of_broadcasting() -> None:
    """A target of another shape is almost always a mistake, and PyTorch says so."""
    for m in (torch, tt):
        with pytest.warns(UserWarning, match=r"target size .*different to the input size"):
            m.nn.functional.mse_loss(m.ones(3, 1), m.ones(3))


@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_training_beside_pytorch(name: str) -> None:
    """Twenty float64 steps of a classifier: losses and weights agree at each."""
    options = {"SGD": {"lr": 0.5, "momentum": 0.9}, "Adam": {"lr": 0.05}}[name]
    runs = []
    for m, side in ((torch, ORACLE), (tt, SUBJECT)):
        model = mlp(m).double()
        x = m.cos(m.arange(40, dtype=m.float64) * 0.7).reshape(10, 4)
        target = m.arange(10) % 3
        runs.append(
            (m, side, model, getattr(m.optim, name)(model.parameters(), **options), x, target)
        )
    for step in range(20):
        losses = []
        for m, _, model, optimizer, x, target in runs:
            optimizer.zero_grad()
            loss = m.nn.functional.cross_entropy(model(x), target)
            loss.backward()
            optimizer.step()
            losses.append(loss)
        bad = differences(losses[0], losses[1], slack=100)
        bad += differences(list(runs[0][2].parameters()), list(runs[1][2].parameters()), slack=100)
        assert not bad, f"step {step + 1}: {'; '.join(bad)}"
    assert losses[1].item() < 1.0


NOT_DIFFERENTIABLE: dict[str, Any] = {
    "binary_cross_entropy": lambda m, w: m.nn.functional.binary_cross_entropy(
        m.full((4, 5), 0.3), m.full((4, 5), 0.6), w
    ),
    "logits, weight": lambda m, w: m.nn.functional.binary_cross_entropy_with_logits(
        m.ones(4, 5), m.ones(4, 5), w
    ),
    "logits, pos_weight": lambda m, w: m.nn.functional.binary_cross_entropy_with_logits(
        m.ones(4, 5), m.ones(4, 5), pos_weight=w
    ),
    "nll_loss": lambda m, w: m.nn.functional.nll_loss(m.ones(4, 5), m.arange(4), w),
    "nll_loss of images": lambda m, w: m.nn.functional.nll_loss(
        m.ones(2, 5, 3, 3), m.zeros(2, 3, 3, dtype=m.int64), w
    ),
    "cross_entropy": lambda m, w: m.nn.functional.cross_entropy(m.ones(4, 5), m.arange(4), w),
    "smoothed": lambda m, w: m.nn.functional.cross_entropy(
        m.ones(4, 5), m.arange(4), w, label_smoothing=0.1
    ),
    "multi_margin_loss": lambda m, w: m.nn.functional.multi_margin_loss(
        m.ones(4, 5), m.arange(4), weight=w
    ),
    "soft_margin_loss": lambda m, w: m.nn.functional.soft_margin_loss(m.ones(5), w),
    "batch_norm": lambda m, w: m.nn.functional.batch_norm(m.ones(4, 5), w, m.ones(5)),
    "batch_norm, variance": lambda m, w: m.nn.functional.batch_norm(m.ones(4, 5), m.ones(5), w),
}


@pytest.mark.parametrize("case", NOT_DIFFERENTIABLE)
def test_inputs_without_a_derivative(case: str) -> None:
    """They are refused when they want a gradient, in PyTorch's words; and taken under no_grad."""
    call = NOT_DIFFERENTIABLE[case]
    words = [str(attempt(lambda m=m: call(m, m.ones(5, requires_grad=True)))) for m in (torch, tt)]
    assert words[0] == words[1] and "is not differentiable with respect to" in words[0]
    for m in (torch, tt):
        with m.no_grad():
            call(m, m.ones(5, requires_grad=True))
