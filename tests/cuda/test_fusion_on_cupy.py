"""Compiled functions of tensors on a GPU: each fused group is one launch of a kernel in CUDA C."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import toytorch as torch
from tests.cuda import raw_module
from tests.cuda.conftest import GPU
from tests.jit.test_fusion import CASES, values


def inputs(name: str, device: str) -> list[Any]:
    return [values(s, i).to(device).requires_grad_() for i, s in enumerate(CASES[name][1])]


def traced(name: str) -> Any:
    return torch.jit.trace(CASES[name][0], tuple(inputs(name, "cpu")), check_trace=False)


def ran(function: Any, args: list[Any]) -> list[Any]:
    """The results, and the gradients of their sum."""
    made = function(*args)
    results = list(made) if isinstance(made, (list, tuple)) else [made]
    total = torch.stack([(r * r).sum() for r in results]).sum()
    grads = torch.autograd.grad(total, args, allow_unused=True)
    return [r.detach() for r in results] + [g for g in grads if g is not None]


@pytest.fixture(scope="module")
def compiled(compiling_device: Any) -> Iterator[None]:
    """All kernels, compiled for the CPU at once."""
    if not GPU:
        raw_module.recording = sources = set()
        for name in CASES:
            try:
                ran(traced(name), inputs(name, "cuda"))
            except (ValueError, RuntimeError, IndexError) as error:  # of unset memory
                print(name, error)
        raw_module.recording = None
        raw_module.prepare(sources)
    return


@pytest.mark.parametrize("name", CASES)
def test_it_gives_what_the_cpu_gives(name: str, compiled: None) -> None:
    function = traced(name)
    args = inputs(name, "cuda")
    before = len(raw_module.launched)
    got, want = ran(function, args), ran(function, inputs(name, "cpu"))
    assert all(g.device.type == "cuda" for g in got) and len(got) == len(want)
    for a, b in zip(got, want):
        np.testing.assert_allclose(a.cpu().numpy(), b.numpy(), rtol=2e-4, atol=2e-5)
    plan = function.executor.plan_for(args)
    assert not plan.reason, plan.reason
    groups = [n for n in plan.optimised.nodes if n.kind == "prim::FusionGroup"]
    assert groups and (GPU or len(raw_module.launched) >= before + len(groups))
    assert "launch(program_0" in plan.source


def test_plans_of_devices_are_apart(compiled: None) -> None:
    """One function, called with tensors of both devices in turn."""
    function = traced(next(iter(CASES)))
    name = next(iter(CASES))
    for device in ("cpu", "cuda", "cpu", "cuda"):
        made = function(*inputs(name, device))
        assert made.device.type == device


def test_tensors_of_several_devices_are_refused(compiled: None) -> None:
    function = torch.jit.trace(lambda a, b: (a * b + a).exp(), (torch.ones(4), torch.ones(4)))
    with pytest.raises(RuntimeError, match="same device"):
        function(torch.ones(4, device="cuda"), torch.ones(4))


def test_random_numbers_are_drawn_node_by_node(compiled: None) -> None:
    def noisy(x: Any) -> Any:
        return x * torch.rand_like(x) + 1

    function = torch.jit.trace(noisy, (torch.ones(4),), check_trace=False)
    x = torch.ones(4, device="cuda")
    assert function(x).device.type == "cuda"
    assert "random" in function.executor.plan_for([x]).reason
