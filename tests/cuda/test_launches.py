"""How many kernels a simulated device is asked for: as many as PyTorch asks a card for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import toytorch as torch
from toytorch import nn
from toytorch.nn import functional as F

BACKWARD: dict[str, tuple[Callable[..., Any], list[str]]] = {
    "gelu": (F.gelu, ["gelu_backward"]),
    "silu": (F.silu, ["silu_backward"]),
    "mish": (F.mish, ["mish_backward"]),
    "mse_loss": (lambda x: F.mse_loss(x, x.detach() * 2), ["mse_loss_backward"]),
    "huber_loss": (lambda x: F.huber_loss(x, x.detach() * 2), ["huber_loss_backward"]),
    "smooth_l1_loss": (lambda x: F.smooth_l1_loss(x, x.detach() * 2), ["smooth_l1_loss_backward"]),
    "binary_cross_entropy": (
        lambda x: F.binary_cross_entropy(x, x.detach()),
        ["binary_cross_entropy_backward"],
    ),
    "pdist": (F.pdist, ["pdist_backward"]),
    "softmax": (lambda x: x.softmax(-1), ["_softmax_backward_data"]),
    "layer_norm": (lambda x: F.layer_norm(x, (16,)), ["layer_norm_input"]),
}


@pytest.mark.parametrize("name", BACKWARD)
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_a_derivative_is_one_launch(name: str, dtype: str) -> None:
    function, launches = BACKWARD[name]
    if dtype == "bfloat16" and name in ("pdist", "layer_norm"):
        pytest.skip("composed there, as the compiled kernels have no half types")
    x = torch.rand(8, 16, dtype=getattr(torch, dtype)) * 0.8 + 0.1
    here = x.clone().requires_grad_()
    made = function(here)
    made.backward(torch.ones_like(made))
    with torch.cuda.simulate() as simulation:
        there = x.cuda().requires_grad_()
        made = function(there)
        ones, before = torch.ones_like(made), len(simulation.timeline.spans)
        (grad,) = torch.autograd.grad(made, there, ones)
        spans = simulation.timeline.spans[before:]
        assert [s.name for s in spans if s.kind == "kernel"] == launches
        assert grad.dtype is x.dtype and torch.equal(grad.cpu(), here.grad)
        again = function(there)
        (grad,) = torch.autograd.grad(again, there, ones, create_graph=True)
        # Of layer norm's result the sum is 0, whose gradient is what was rounded.
        assert torch.allclose(grad.cpu(), here.grad, atol=1e-5) and grad.requires_grad


@pytest.mark.parametrize("foreach", [None, False])
def test_an_optimizer_step_is_one_launch_unless_told_otherwise(foreach: bool | None) -> None:
    with torch.cuda.simulate(devices=2) as simulation:
        model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2)).cuda()
        optimizer = torch.optim.AdamW(model.parameters(), foreach=foreach)
        model(torch.rand(3, 4, device="cuda")).sum().backward()
        optimizer.step()
        before = len(simulation.timeline.spans)
        optimizer.step()
        spans = simulation.timeline.spans[before:]
        names = [s.name for s in spans if s.kind == "kernel"]
        assert names == (["AdamW.step"] if foreach is None else ["rule"] * 8)  # decay and step
