"""Functions: what is refused, and what a second derivative through one gives."""

from __future__ import annotations

import warnings
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


def own_function(T: Any, outputs: int, kind: str) -> Any:
    """A Function of one to three results, which gives a view, its input, or writes to it."""

    class Id(T.autograd.Function):  # type: ignore[name-defined]  # the base is either package's
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            made = a if kind in ("same", "dirty") else a * 2 if kind == "other" else a.view_as(a)
            if kind == "dirty":
                a.add_(1)
            if kind in ("dirty", "other"):
                ctx.mark_dirty(made)
            return made if outputs == 1 else (made, a + 1, a.view_as(a))[:outputs]

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return grads[0]

    return Id


@pytest.mark.parametrize("how", ["clone", "leaf", "view", "plain"])
@pytest.mark.parametrize("kind", ["view", "same", "dirty", "other"])
@pytest.mark.parametrize("outputs", [1, 2, 3])
def test_writes_to_results_of_functions(outputs: int, kind: str, how: str) -> None:
    """What is a view, whose history it is in, and what is refused, is as in PyTorch."""

    def answer(T: Any) -> list[Any]:
        a = T.ones(2, requires_grad=how != "plain")
        x = a if how in ("leaf", "plain") else a.clone() if how == "clone" else a.clone().view_as(a)
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            try:
                made = own_function(T, outputs, kind).apply(x)
                o = made if outputs == 1 else made[0]
                node = str(o.grad_fn).split(" ")[0]
                found = [o is x, o.requires_grad, o._version, node, o._base is None]
                o.add_(T.ones(2, requires_grad=True))
                found.append(str(o.grad_fn).split(" ")[0])
                if how != "plain":
                    (o * T.tensor([1.0, 2.0])).sum().backward()
                    found.append(a.grad.tolist())
            except RuntimeError as error:
                found = [str(error)]
        return [*found, *(str(w.message).split(" (Triggered")[0] for w in seen)]

    assert answer(tt) == answer(torch)


def test_a_function_writes_to_a_view_beside_its_first_argument() -> None:
    """The base's history has the step; the view written to need not come first."""

    class Add(tt.autograd.Function):
        @staticmethod
        def forward(ctx: Any, y: Any, x: Any) -> Any:
            ctx.mark_dirty(x)
            return x.add_(3 * y)

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return 3 * grad, grad

    def program(root: Any, b: Any) -> Any:
        x = root.clone()
        Add.apply(b, x.narrow(1, 2, 2).narrow(0, 1, 2))
        Add.apply(b, x.narrow(1, 0, 2).narrow(0, 1, 2))
        return x

    a, b = (tt.randn(n, n, dtype=tt.float64, requires_grad=True) for n in (4, 2))
    assert tt.autograd.gradcheck(program, (a, b))
