"""`torch.utils.swap_tensors`, beside PyTorch's."""

from __future__ import annotations

import importlib
import weakref
from typing import Any

import pytest

from tests.oracle import torch, tt

SIDES = (tt, torch)


def test_whoever_holds_one_has_the_other() -> None:
    def said(t: Any) -> Any:
        module = t.nn.Linear(2, 1, bias=False)
        optimizer = t.optim.SGD(module.parameters(), lr=0.5)
        module.weight.data.fill_(1.0)
        other = t.nn.Parameter(t.full((1, 2), 3.0))
        weight, other.tag = module.weight, "new"
        t.utils.swap_tensors(weight, other)
        module(t.ones(1, 2)).sum().backward()
        optimizer.step()
        return weight.tolist(), other.tolist(), weight.tag, hasattr(other, "tag"), other.grad

    assert said(tt) == said(torch)


def test_classes_shapes_and_gradients_go_with_them() -> None:
    def said(t: Any) -> Any:
        class Own(t.Tensor):  # type: ignore[misc, name-defined]  # the class of either side
            pass

        a, b = t.arange(3.0).as_subclass(Own), t.ones(2, 2, dtype=t.float64, requires_grad=True)
        (b * 2).sum().backward()
        t.utils.swap_tensors(a, b)
        return [
            (type(x).__name__, x.tolist(), str(x.dtype), x.requires_grad, str(x.grad))
            for x in (a, b)
        ]

    assert said(tt) == said(torch)


def test_what_cannot_be_swapped() -> None:
    def said(t: Any) -> list[str]:
        class Slotted(t.Tensor):  # type: ignore[misc, name-defined]  # the class of either side
            __slots__ = ("more",)

        found = []
        a, b, c = t.ones(1), t.ones(1), t.ones(1).as_subclass(Slotted)
        held = weakref.ref(b)
        for pair in (a, b), (b, a), (a, c):
            with pytest.raises(RuntimeError) as error:
                importlib.import_module(f"{t.__name__}.utils").swap_tensors(*pair)
            found.append(str(error.value))
        return [*found, str(held() is b)]

    assert said(tt) == said(torch)
