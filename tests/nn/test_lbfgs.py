"""LBFGS: parameters, losses and evaluations after each step are PyTorch's."""

from __future__ import annotations

from typing import Any

import pytest

from tests.oracle import attempt, error_difference, torch, tt

LOSSES: dict[str, Any] = {
    "valley": lambda m, a, b: (100 * (a[1:] - a[:-1] ** 2) ** 2 + (1 - a[:-1]) ** 2).sum() + b**2,
    "waves": lambda m, a, b: (m.sin(3 * a) + 0.1 * a * a).sum() + (b - a.mean()) ** 2,
    "cliff": lambda m, a, b: m.log1p(m.exp(5 * a) + m.exp(-a)).sum() + b.cosh(),
}
OPTIONS: list[dict[str, Any]] = [
    {"lr": 0.002}, {"lr": 0.05, "max_iter": 4, "history_size": 2},
    {"line_search_fn": "strong_wolfe"}, {"line_search_fn": "strong_wolfe", "max_iter": 3},
    {"lr": 0.5, "line_search_fn": "strong_wolfe", "max_eval": 7, "history_size": 3},
    {"lr": 5.0, "line_search_fn": "strong_wolfe", "max_iter": 6},
    {"lr": 0.002, "tolerance_grad": 0.5}, {"lr": 0.01, "tolerance_change": 1e-2},
]  # fmt: skip


def minimise(m: Any, name: str, options: dict[str, Any]) -> list[Any]:
    """(loss, parameters, evaluations so far, directions kept) after each of six steps."""
    a = m.nn.Parameter(1.5 * m.cos(2 * m.arange(5, dtype=m.float64)))
    b = m.nn.Parameter(m.tensor([0.7], dtype=m.float64))
    unused = m.nn.Parameter(m.ones(2, dtype=m.float64))
    optimizer = m.optim.LBFGS([a, b, unused], **options)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = LOSSES[name](m, a, b).sum()
        loss.backward()
        return loss

    told = []
    for _ in range(6):
        loss = optimizer.step(closure)
        state = optimizer.state[a]
        kept = len(state.get("old_dirs") or [])
        told.append((float(loss), a.tolist(), b.tolist(), unused.tolist(), state["func_evals"],
                     state["n_iter"], kept))  # fmt: skip
    return told


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("name", LOSSES)
def test_steps(name: str, options: dict[str, Any]) -> None:
    want, got = minimise(torch, name, options), minimise(tt, name, options)
    for i, (theirs, ours) in enumerate(zip(want, got, strict=True)):
        assert ours[4:] == theirs[4:], f"step {i}: evaluations, iterations, steps kept"
        for x, y in zip(theirs[:4], ours[:4], strict=True):
            assert y == pytest.approx(x, rel=1e-6, abs=1e-9, nan_ok=True), f"step {i}"


WRONG: dict[str, Any] = {
    "no closure": lambda m, p: m.optim.LBFGS([p]).step(),
    "two groups": lambda m, p: m.optim.LBFGS([{"params": [p]}, {"params": [m.ones(1)]}]),
    "learning rate": lambda m, p: m.optim.LBFGS([p], lr=-1.0),
    "line search": lambda m, p: m.optim.LBFGS([p], line_search_fn="x").step(
        lambda: p.sum().backward() or p.sum()
    ),
}


@pytest.mark.parametrize("label", WRONG)
def test_refusals(label: str) -> None:
    want, got = (attempt(WRONG[label], m, m.nn.Parameter(m.ones(2)))[1] for m in (torch, tt))
    assert want is not None
    bad = error_difference(want, got)
    assert not bad, bad
