"""CUDA graphs on simulated devices: a capture changes nothing, and replays do what eager calls do."""

from __future__ import annotations

from typing import Any

import pytest

import toytorch as torch
from toytorch import nn

OPTIMIZERS: dict[str, dict[str, Any]] = {
    "SGD": {"momentum": 0.9},
    "Adam": {"capturable": True},
    "AdamW": {"capturable": True, "amsgrad": True},
    "NAdam": {"capturable": True},
    "RAdam": {"capturable": True},
    "Adamax": {"capturable": True, "weight_decay": 0.1},
    "RMSprop": {"capturable": True},
    "Adadelta": {"capturable": True},
    "Rprop": {"capturable": True},
}


def losses(name: str, captured: bool) -> list[float]:
    """Losses of steps of a network with dropout, as single launches or by a graph."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.2), nn.Tanh(), nn.Linear(8, 1)).cuda()
    optimizer = getattr(torch.optim, name)(model.parameters(), lr=0.01, **OPTIMIZERS[name])
    x, y = torch.randn(16, 4, device="cuda"), torch.randn(16, 1, device="cuda")
    batches = [(torch.randn(16, 4), torch.randn(16, 1)) for _ in range(4)]

    def step() -> Any:
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(2):
            optimizer.zero_grad()
            step()
    torch.cuda.current_stream().wait_stream(side)
    optimizer.zero_grad()
    graph = torch.cuda.CUDAGraph()
    if captured:
        with torch.cuda.graph(graph):
            loss = step()
    found = []
    for a, b in batches:
        x.copy_(a)
        y.copy_(b)
        if captured:
            graph.replay()
        else:
            optimizer.zero_grad()
            loss = step()
        found.append(loss.item())
    return found


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_captured_step_is_replayed_as_eager_steps_run(name: str) -> None:
    with torch.cuda.simulate():
        assert losses(name, True) == losses(name, False)


def test_a_capture_changes_no_memory_and_draws_nothing() -> None:
    with torch.cuda.simulate():
        x, norm = torch.zeros(3, 2, device="cuda"), nn.BatchNorm1d(2).cuda()
        state = torch.cuda.get_rng_state()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            x += 1
            x[0].mul_(5)
            drawn = norm(x + torch.rand(3, 2, device="cuda"))
        assert not x.any() and not norm.running_mean.any()
        assert torch.equal(torch.cuda.get_rng_state(), state)
        graph.replay()
        assert x.tolist() == [[5.0, 5.0], [1.0, 1.0], [1.0, 1.0]] and norm.running_mean.all()
        first = drawn.clone()
        graph.replay()
        assert x[1].tolist() == [2.0, 2.0] and not torch.equal(first, drawn)


def test_a_step_that_cannot_be_captured_says_so() -> None:
    with torch.cuda.simulate():
        p = torch.zeros(2, device="cuda", requires_grad=True)
        p.grad = torch.ones(2, device="cuda")
        optimizer = torch.optim.Adam([p])
        with (
            pytest.raises(RuntimeError, match="of Adam but param_groups' capturable is False"),
            torch.cuda.graph(torch.cuda.CUDAGraph()),
        ):
            optimizer.step()
        optimizer.step()
