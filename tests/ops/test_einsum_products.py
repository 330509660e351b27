"""Einstein sums in which nothing is summed: products, in type, memory and history."""

from __future__ import annotations

from typing import Any

import pytest

from tests.oracle import torch, tt

EQUATIONS = {
    "i,j->ij": ((3,), (4,)),
    "bi,bj->bij": ((2, 3), (2, 4)),
    "bi,bj->jbi": ((2, 3), (2, 4)),
    "bld,dn->bldn": ((2, 3, 4), (4, 5)),
    "bln,bld->bdln": ((2, 3, 4), (2, 3, 5)),
    "ij,ij->ij": ((2, 3), (2, 3)),
    "ij,ij->ji": ((2, 3), (2, 3)),
    "i,->i": ((3,), ()),
    "bij,bj->bij": ((2, 3, 1), (1, 4)),
    "i,j,k->kij": ((2,), (3,), (4,)),
}


def operand(t: Any, shape: tuple[int, ...], dtype: str, turned: bool, grad: bool) -> Any:
    n = 1
    for k in shape:
        n *= k
    made = t.arange(1, n + 1).to(getattr(t, dtype))
    made = (
        made.view(shape[::-1]).permute(list(range(len(shape)))[::-1])
        if turned
        else made.view(shape)
    )
    return made.requires_grad_() if grad and made.is_floating_point() else made


@pytest.mark.parametrize("types", [("float32",) * 2, ("float32", "float64"), ("int64", "float32")])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("equation", EQUATIONS)
def test_a_sum_over_nothing_is_a_product(
    equation: str, grad: bool, turned: bool, types: tuple[str, str]
) -> None:
    def seen(t: Any) -> Any:
        shapes = EQUATIONS[equation]
        given = [operand(t, s, types[i > 0], turned, grad) for i, s in enumerate(shapes)]
        y = t.einsum(equation, *given)
        if y.requires_grad:
            (y * y).sum().backward()
        node = type(y.grad_fn).__name__
        grads = [None if g.grad is None else g.grad.tolist() for g in given if g.is_leaf]
        return str(y.dtype).split(".")[1], y.stride(), node, y.tolist(), grads

    assert seen(tt) == seen(torch)
