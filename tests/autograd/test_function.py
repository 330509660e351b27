"""Functions: what is refused, and what a second derivative through one gives."""

from __future__ import annotations

from typing import Any

import pytest

from tests.oracle import torch, tt

BOTH = pytest.mark.parametrize("m", [torch, tt], ids=["torch", "toytorch"])


def square(m: Any) -> Any:
    class Square(m.autograd.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @m.autograd.function.once_differentiable
        def backward(ctx: Any, grad: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 2 * x * grad

    return Square


@BOTH
def test_once_differentiable_refuses_a_second_time(m: Any) -> None:
    x = m.tensor([3.0], requires_grad=True)
    loss = (square(m).apply(x) ** 2).sum()
    (slope,) = m.autograd.grad(loss, x, create_graph=True)
    assert slope.tolist() == [108.0]
    assert slope.requires_grad
    with pytest.raises(RuntimeError, match="differentiate twice a function that was marked"):
        slope.sum().backward()


@BOTH
def test_once_differentiable_is_a_constant_where_its_gradient_is_one(m: Any) -> None:
    x = m.tensor([3.0], requires_grad=True)
    (slope,) = m.autograd.grad(square(m).apply(x).sum(), x, create_graph=True)
    assert slope.tolist() == [6.0]
    assert not slope.requires_grad
    square(m).apply(x).sum().backward()
    assert x.grad.tolist() == [6.0]


@BOTH
@pytest.mark.filterwarnings("ignore:.*should not be instantiated")
def test_a_function_is_applied_and_not_called(m: Any) -> None:
    with pytest.raises(RuntimeError, match="Legacy autograd function with non-static forward"):
        square(m)()(m.ones(1))


@BOTH
def test_what_forward_computed_and_kept_has_no_history(m: Any) -> None:
    """The second derivative takes it for a constant: a trap in PyTorch, and so here."""

    class Kept(m.autograd.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            s = x.sigmoid()
            ctx.save_for_backward(x, s)
            return x * s

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            x, s = ctx.saved_tensors
            return grad * (s + x * s * (1 - s))

    x = m.tensor(3.0, requires_grad=True)
    (slope,) = m.autograd.grad(Kept.apply(x), x, create_graph=True)
    (bend,) = m.autograd.grad(slope, x)
    assert bend.item() == pytest.approx(0.0452, abs=1e-4)
