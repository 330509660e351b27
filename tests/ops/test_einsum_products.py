"""Einstein sums: plain products and products of matrices, in type, memory and history."""

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


SUMS = {
    "ij,kj->ik": [((2, 1), (3, 1)), ((2, 1), (3, 4)), ((2, 4), (3, 4)), ((2, 0), (3, 1))],
    "ij,jk->ki": [((2, 5), (5, 3))],
    "bij,bjk->kbi": [((2, 3, 5), (2, 5, 4)), ((1, 3, 5), (2, 5, 4)), ((2, 3, 5), (1, 5, 4))],
    "bijl,bjlk->bik": [((2, 3, 1, 2), (2, 1, 2, 4)), ((2, 3, 2, 1), (2, 2, 3, 4))],
    "ijk,j->i": [((2, 3, 4), (3,)), ((2, 3, 4), (1,)), ((2, 3, 1), (3,))],
    "ij,j->j": [((1, 3), (3,)), ((2, 3), (3,)), ((2, 1), (3,))],
    "ij,jk,kl->li": [((2, 3), (3, 4), (4, 2)), ((2, 1), (1, 3), (3, 2))],
}


@pytest.mark.parametrize("dtype", ["float32", "int32", "bool"])
@pytest.mark.parametrize("equation", SUMS)
def test_labels_of_size_one_end_without_a_product_of_matrices(
    equation: str, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What has size 1 in one operand is summed in the other, so that truth values are taken, and
    whole numbers promoted or refused; columns before rows swap the operands."""
    monkeypatch.setattr(torch.backends.opt_einsum, "enabled", False)

    def seen(t: Any, shapes: tuple[tuple[int, ...], ...], grad: bool) -> Any:
        given = [operand(t, s, dtype, False, grad) for s in shapes]
        try:
            y = t.einsum(equation, *given)
        except Exception as e:
            return type(e).__name__
        steps = [k for k, n in zip(y.stride(), y.shape) if n != 1]
        if not grad:
            return str(y.dtype).split(".")[1], steps, y.tolist()
        (y * y).sum().backward()
        node = type(y.grad_fn).__name__
        return steps, node, y.tolist(), [g.grad.tolist() for g in given]

    for shapes in SUMS[equation]:
        for grad in (False, True)[: 1 + (dtype == "float32")]:
            assert seen(tt, shapes, grad) == seen(torch, shapes, grad), (shapes, grad)
