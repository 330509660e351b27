"""What `torch.__future__` says of parameters that a module converts."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import pytest

from tests.oracle import torch, tt

WAYS = "overwrite", "swap"


@pytest.fixture(params=(None, *WAYS))
def way(request: pytest.FixtureRequest) -> Iterator[str | None]:
    for m in (torch, tt):
        for name in WAYS:
            setter(m, name)(name == request.param)
    yield request.param
    for m in (torch, tt):
        for name in WAYS:
            setter(m, name)(False)


def setter(m: Any, name: str) -> Any:
    future = importlib.import_module(f"{m.__name__}.__future__")
    return getattr(future, f"set_{name}_module_params_on_conversion")


@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("call", ["double", "half", "float"])
def test_which_objects_stay(way: str | None, grad: bool, call: str) -> None:
    def run(m: Any) -> Any:
        layer = m.nn.Linear(2, 3)
        if grad:
            layer(m.ones(1, 2)).sum().backward()
        weight, seen = layer.weight, layer.weight.grad
        optimizer = m.optim.SGD(layer.parameters(), lr=0.1)
        getattr(layer, call)()
        after = layer.weight
        return (
            after is weight,
            after.grad is seen if grad and call == "float" else None,
            str(weight.dtype),
            str(after.dtype),
            None if after.grad is None else (str(after.grad.dtype), after.grad.tolist()),
            any(p is after for p in optimizer.param_groups[0]["params"]),
            isinstance(after, m.nn.Parameter),
            after.requires_grad,
        )

    assert run(tt) == run(torch)
