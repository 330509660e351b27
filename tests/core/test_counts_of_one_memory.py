"""Tensors over one memory that count writes by themselves: `data`, `copy.copy`, `detach`."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.oracle import torch, tt


def by_data(T: Any, x: Any) -> Any:
    y = T.ones(())
    y.data = x.detach()
    return y


WAYS = [by_data, lambda T, x: copy.copy(x), lambda T, x: x.detach(), lambda T, x: x.data]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("n", [2, 3, 5])
def test_all_see_memory_that_is_given_another_size(way: Any, n: int) -> None:
    def seen(T: Any) -> Any:
        x = T.ones(3)
        y = way(T, x)
        first = T.add(T.ones(n), 1, out=y).tolist(), x.tolist()
        z = way(T, x)
        T.add(T.ones(2 * n), 2, out=x)
        return first, x.tolist(), y.tolist(), z.tolist()

    assert seen(tt) == seen(torch)


def test_is_set_to_asks_for_the_memory() -> None:
    for T in (torch, tt):
        x, y = T.tensor(-3), T.tensor(1.0)
        y.data = x.detach()
        assert x.is_set_to(y) and not x.is_set_to(T.tensor(-3))


def test_data_of_inference() -> None:
    for T in (torch, tt):
        with T.inference_mode():
            a = T.ones(3)
        x = T.zeros(3)
        x.data = a.detach()
        assert x.is_inference() and x._version == 0
        x.add_(1)
        assert x.tolist() == [2, 2, 2]


def test_views_want_no_gradient_when_their_base_wants_none() -> None:
    for T in (torch, tt):
        x = T.ones(2, 2, requires_grad=True)
        with T.no_grad():
            v = x.view(-1)
        assert v.requires_grad
        x.requires_grad_(False)
        assert not v.requires_grad
        y = T.ones(2, requires_grad=True) * 2
        with T.no_grad():
            w = y.view(-1)
        y.detach_()
        assert not w.requires_grad
