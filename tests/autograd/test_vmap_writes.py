"""Tensors made under vmap like the example may be written to, each example for itself."""

from __future__ import annotations

from typing import Any

import pytest

from tests.oracle import torch, tt


def padded(m: Any, x: Any) -> Any:
    y = x.new_zeros(5)
    y.narrow(0, 0, 3).copy_(x)
    return y


def element(m: Any, x: Any) -> Any:
    y = m.zeros_like(x)
    y[0] = x[1]
    return y


def sums(m: Any, x: Any) -> Any:
    y = x.new_full((2,), 3.0)
    y += x.sum()
    z = x.new_ones(1)
    z *= x.mean()
    w = m.full_like(x, 2.0)
    w.mul_(x)
    return y, z, w


def typed(m: Any, x: Any) -> Any:
    y = x.new_zeros((2, 2), dtype=m.float64)
    y[1] = x[:2]
    e = x.new_empty(size=(3,))
    e.copy_(x)
    return y, e, m.ones_like(x, dtype=m.int64).add_((x > 1).long())


def twice(m: Any, x: Any) -> Any:
    return m.func.vmap(lambda row: row.new_zeros(2).add_(row.sum()))(x)


BATCH = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


@pytest.mark.parametrize("function", [padded, element, sums, typed])
def test_written_to(function: Any) -> None:
    found = [repr(m.func.vmap(lambda x, m=m: function(m, x))(m.tensor(BATCH))) for m in (tt, torch)]
    assert found[0] == found[1]


def test_nested() -> None:
    found = [
        repr(m.func.vmap(lambda x, m=m: twice(m, x))(m.tensor([BATCH, BATCH]))) for m in (tt, torch)
    ]
    assert found[0] == found[1]


def test_gradient_of_a_sum_of_one_element() -> None:
    for m in (tt, torch):
        x = m.tensor([1.0, 2.0], dtype=m.float64, requires_grad=True)
        assert m.autograd.gradcheck(lambda x: x.select(0, 1).sum(), [x], check_batched_grad=True)
        made = m.func.vmap(m.func.grad(lambda x: x[0].sum() * 2))(m.tensor(BATCH))
        assert made.tolist() == [[2.0, 0.0, 0.0], [2.0, 0.0, 0.0]]


def test_a_plain_tensor_stays_one() -> None:
    for m in (tt, torch):
        with pytest.raises(RuntimeError):
            m.func.vmap(lambda x, m=m: m.zeros(3).add_(x))(m.tensor(BATCH))
