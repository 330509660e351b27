"""Modules and optimizers on a simulated device: what the CPU gives, to the last bit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import toytorch as torch
from toytorch.facts.pytree import tree_leaves

pytest.importorskip("torch", reason="the tables of modules are in tests that need PyTorch")

from tests.nn import test_every_module as modules
from tests.nn import test_optim as optimizers


@pytest.fixture(scope="module", autouse=True)
def sim() -> Iterator[Any]:
    with torch.cuda.simulate(model="A100") as made:
        yield made


def bits(value: Any) -> list[Any]:
    """Every tensor in a nested value as NumPy arrays."""
    if isinstance(value, torch.Tensor):
        return [value.detach().cpu().numpy()]
    if isinstance(value, dict):
        value = list(value.values())
    return [b for v in value for b in bits(v)] if isinstance(value, (list, tuple)) else []


def same(a: Any, b: Any) -> None:
    for x, y in zip(bits(a), bits(b), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("label", [m for m, (_, _, shapes) in modules.MODULES.items() if shapes])
def test_module(label: str) -> None:
    name = label.partition("/")[0]
    args, options, shapes = modules.MODULES[label]
    modules.inputs.name = name  # type: ignore[attr-defined]  # as that test passes it on
    here, there = (getattr(torch.nn, name)(*args, **options).double() for _ in range(2))
    if name.startswith("Lazy"):
        here(*modules.inputs(torch, shapes)), there(*modules.inputs(torch, shapes))
    there.load_state_dict(here.state_dict())
    there.cuda()
    results = []
    for module, place in ((here, "cpu"), (there, "cuda")):
        given = [
            g.detach().to(place).requires_grad_(g.requires_grad)
            if isinstance(g, torch.Tensor)
            else g
            for g in modules.inputs(torch, shapes)
        ]
        torch.manual_seed(0)
        out = module(*given)
        flat = [t for t in tree_leaves(out) if t.requires_grad]
        assert all(t.device.type == place for t in flat)
        sum((t * t.detach().cos()).sum() for t in flat).backward()
        grads = [g.grad for g in given if isinstance(g, torch.Tensor) and g.grad is not None]
        results.append((out, grads, [p.grad for p in module.parameters()], module.state_dict()))
    same(*results)


@pytest.mark.parametrize(("name", "options"), optimizers.CASES, ids=str)
def test_optimizer(name: str, options: dict[str, Any]) -> None:
    results = []
    for place in ("cpu", "cuda"):
        given = [torch.nn.Parameter(p.detach().to(place)) for p in optimizers.parameters(torch)]
        optimizer = getattr(torch.optim, name)(given, **options)
        for i in range(12):
            optimizers.step(torch, optimizer, given, i)
        results.append((given, list(optimizer.state_dict()["state"].values())))
    same(*results)


def test_muon() -> None:
    """It takes matrices only, which it rounds to bfloat16 bit by bit."""
    results = []
    for place in ("cpu", "cuda"):
        given = torch.nn.Parameter(torch.arange(12.0, device=place).reshape(3, 4).sin())
        optimizer = torch.optim.Muon([given], lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            (given * given).sum().backward()
            optimizer.step()
        results.append([given])
    same(*results)
