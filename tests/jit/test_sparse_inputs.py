"""Sparse matrices among the inputs of traced and compiled code."""

from __future__ import annotations

from typing import Any

import pytest

from tests.oracle import torch, tt


@pytest.mark.filterwarnings("ignore:Sparse (CSR|invariant):UserWarning")
@pytest.mark.parametrize("layout", ["to_sparse", "to_sparse_csr"])
@pytest.mark.parametrize("how", ["trace", "compile"])
def test_a_sparse_matrix_is_an_input(layout: str, how: str) -> None:
    """As in graph networks, whose layers take the matrix of neighbours."""

    def seen(t: Any, made: Any) -> Any:
        links = getattr(t.tensor([[0.0, 2, 0], [1, 0, 3]]), layout)()
        x = t.arange(6.0).view(3, 2).requires_grad_()
        y = made(links, x)
        y.sum().backward()
        return y.tolist(), x.grad.tolist()

    def layer(t: Any) -> Any:
        return lambda links, x: t.mm(links, x * 2).relu()

    links = getattr(tt.ones(2, 3), layout)()
    ours = layer(tt)
    made = (
        tt.jit.trace(ours, (links, tt.ones(3, 2)), check_trace=False)
        if how == "trace"
        else tt.compile(ours)
    )
    want = seen(torch, layer(torch))
    assert [seen(tt, made), seen(tt, made)] == [want, want]
