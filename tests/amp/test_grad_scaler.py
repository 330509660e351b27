"""`GradScaler` on the CPU beside PyTorch's: scales, skipped steps, its memory and its refusals."""

from __future__ import annotations

from typing import Any

import pytest

from tests.oracle import ORACLE, SUBJECT, Side, attempt, told


def run(side: Side, grads: list[float], **options: Any) -> list[Any]:
    """Parameter, scale and count after each step with a given gradient."""
    torch = side.root
    w = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([w], lr=0.25)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0, **options)
    found: list[Any] = []
    for g in grads:
        optimizer.zero_grad()
        scaler.scale((w * g).sum()).backward()
        scaler.unscale_(optimizer)
        found.append(w.grad.tolist())
        scaler.step(optimizer)
        scaler.update()
        found += [w.tolist(), scaler.get_scale(), scaler.state_dict()]
    return found


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"growth_interval": 2},
        {"growth_interval": 1, "growth_factor": 1.5},
        {"backoff_factor": 0.125, "growth_interval": 2},
    ],
)
@pytest.mark.parametrize(
    "grads",
    [
        [1.0, 0.5, 2.0],
        [1.0, float("inf"), 0.5, 0.25, 0.5],
        [float("nan"), 1.0, 1.0, 1.0],
        [3e38, 1.0],
    ],
)
def test_steps(grads: list[float], options: dict[str, Any]) -> None:
    ours, theirs = run(SUBJECT, grads, **options), run(ORACLE, grads, **options)
    assert repr(ours) == repr(theirs)  # nan is nan


@pytest.mark.parametrize("side", [ORACLE, SUBJECT], ids=["PyTorch", "toytorch"])
def test_disabled_it_passes_everything_through(side: Side) -> None:
    torch = side.root
    w = torch.nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([w], lr=0.5)
    scaler = torch.amp.GradScaler("cpu", enabled=False)
    loss = w.sum()
    assert scaler.scale(loss) is loss
    loss.backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert w.item() == 0.5 and scaler.get_scale() == 1.0 and scaler.state_dict() == {}


@pytest.mark.parametrize("side", [ORACLE, SUBJECT], ids=["PyTorch", "toytorch"])
def test_lists_are_scaled_and_a_state_goes_to_another(side: Side) -> None:
    torch = side.root
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    a, (b, c) = scaler.scale([torch.ones(1), (torch.ones(1).double(), torch.ones(2) * 2)])
    assert (a.tolist(), b.tolist(), c.tolist()) == ([4.0], [4.0], [8.0, 8.0])
    assert b.dtype is torch.float64
    other = torch.amp.GradScaler("cpu")
    other.load_state_dict(scaler.state_dict())
    assert other.get_scale() == 4.0 and other.state_dict() == scaler.state_dict()
    scaler.update(16.0)
    assert scaler.get_scale() == 16.0
    scaler.update(torch.tensor(2.0))
    assert scaler.get_scale() == 2.0


def scaled(torch: Any) -> tuple[Any, Any]:
    """A scaler and an optimizer, with a gradient."""
    w = torch.nn.Parameter(torch.ones(1))
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0)
    scaler.scale(w.sum()).backward()
    return scaler, torch.optim.SGD([w], lr=0.1)


def twice(method: str) -> Any:
    def call(torch: Any) -> None:
        scaler, optimizer = scaled(torch)
        getattr(scaler, method)(optimizer)
        getattr(scaler, method)(optimizer)

    return call


def after_step(torch: Any) -> None:
    scaler, optimizer = scaled(torch)
    scaler.step(optimizer)
    scaler.unscale_(optimizer)


def half_gradients(torch: Any) -> None:
    w = torch.nn.Parameter(torch.ones(1).half())
    scaler = torch.amp.GradScaler("cpu")
    scaler.scale(w.sum()).backward()
    scaler.step(torch.optim.SGD([w], lr=0.1))


@pytest.mark.parametrize(
    "call",
    [
        twice("unscale_"),
        twice("step"),
        after_step,
        half_gradients,
        lambda torch: scaled(torch)[0].update(),
        lambda torch: scaled(torch)[0].step(scaled(torch)[1], closure=lambda: 1),
        lambda torch: torch.amp.GradScaler("cpu").update(),
        lambda torch: torch.amp.GradScaler("cpu").step(scaled(torch)[1]),
        lambda torch: torch.amp.GradScaler("cpu").unscale_(scaled(torch)[1]),
        lambda torch: torch.amp.GradScaler("cpu").scale(3),
        lambda torch: torch.amp.GradScaler("cpu", growth_factor=1.0),
        lambda torch: torch.amp.GradScaler("cpu", backoff_factor=1.0),
        lambda torch: torch.amp.GradScaler("cpu").load_state_dict({}),
        lambda torch: scaled(torch)[0].update(torch.ones(2)),
        lambda torch: scaled(torch)[0].step(
            torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], 0.1)
        ),
    ],
)
def test_refusals_in_the_same_words(call: Any) -> None:
    ours, theirs = (attempt(call, s.root)[1] for s in (SUBJECT, ORACLE))
    assert theirs is not None
    assert told(ours) == told(theirs)
