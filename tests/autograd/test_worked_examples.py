"""The worked examples of the course's second part, with their figures, in PyTorch and here."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.oracle import torch, tt

BOTH = pytest.mark.parametrize("m", [torch, tt], ids=["torch", "toytorch"])


def curve(m: Any, x: Any) -> Any:
    return 10 * m.sin(x) ** 2 + m.tanh(x)


@BOTH
def test_tangents(m: Any) -> None:
    """The tangent of 10·sin²x + tanh x has the slope 10·sin 2x + 1/cosh²x, in both modes."""
    x = m.linspace(-3, 3, 13, dtype=m.float64).requires_grad_()
    y = curve(m, x)
    (slope,) = m.autograd.grad(y.sum(), x)
    exact = [10 * math.sin(2 * t) + 1 / math.cosh(t) ** 2 for t in x.tolist()]
    assert slope.tolist() == pytest.approx(exact, rel=1e-12)
    points = x.detach()
    forward = m.func.jvp(lambda t: curve(m, t), (points,), (m.ones_like(points),))[1]
    assert forward.tolist() == pytest.approx(exact, rel=1e-12)
    at = m.tensor(1.0, dtype=m.float64, requires_grad=True)
    value = curve(m, at)
    value.backward()
    assert (value.item(), at.grad.item()) == pytest.approx((7.842328, 9.512948), abs=1e-6)
    near = curve(m, m.tensor(1.001, dtype=m.float64)).item()
    assert near == pytest.approx(value.item() + 0.001 * at.grad.item(), abs=1e-5)


@BOTH
def test_fit_from_100_starts(m: Any) -> None:
    """a·sin(bx) is fitted to sin 2x from 100 random starts at once; only those near enough arrive.

    The loss has many valleys in b: started with b in [0, 4], about two thirds of the runs find
    b = 2, and each of these finds it exactly.
    """
    m.manual_seed(0)
    a = (m.rand(100, 1, dtype=m.float64) + 0.5).requires_grad_()
    b = (4 * m.rand(100, 1, dtype=m.float64)).requires_grad_()
    x = m.linspace(-3, 3, 60, dtype=m.float64)
    optimizer = m.optim.Adam([a, b], lr=0.05)
    for _ in range(400):
        optimizer.zero_grad()
        loss = ((a * m.sin(b * x) - m.sin(2 * x)) ** 2).mean(1)
        loss.sum().backward()
        optimizer.step()
    arrived = loss < 1e-8
    assert 50 <= int(arrived.sum()) <= 90
    found = m.cat([a, b], 1).detach()[arrived]
    assert found.numel() and (found - m.tensor([1.0, 2.0], dtype=m.float64)).abs().max() < 1e-3
    assert loss.min().item() < 1e-12


@BOTH
def test_hessian_vector_product(m: Any) -> None:
    """The Hessian of Σx⁴ is diagonal, 12x²; H·v comes without it, in four ways."""
    x = m.tensor([1.0, -2.0, 0.5], dtype=m.float64, requires_grad=True)
    v = m.tensor([1.0, 1.0, 2.0], dtype=m.float64)
    want = [12.0, 48.0, 6.0]

    def f(t: Any) -> Any:
        return (t**4).sum()

    (first,) = m.autograd.grad(f(x), x, create_graph=True)
    (twice,) = m.autograd.grad(first, x, v)
    assert twice.tolist() == pytest.approx(want, rel=1e-12)
    assert m.autograd.functional.hvp(f, x, v)[1].tolist() == pytest.approx(want, rel=1e-12)
    point = x.detach()
    forward_over_reverse = m.func.jvp(m.func.grad(f), (point,), (v,))[1]
    assert forward_over_reverse.tolist() == pytest.approx(want, rel=1e-12)
    hessian = m.func.hessian(f)(point)
    assert m.diag(hessian).tolist() == pytest.approx([12 * t * t for t in point.tolist()])
    assert (hessian - m.diag(m.diag(hessian))).abs().max().item() == 0


def straight_through(m: Any) -> Any:
    """Rounding whose gradient is that of doing nothing."""

    class Round(m.autograd.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.round()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    return Round.apply


@BOTH
def test_straight_through_rounding(m: Any) -> None:
    """`round` has the gradient 0; the straight-through estimator passes the gradient on."""
    rounded = straight_through(m)
    x = m.tensor([0.2, 1.7, -2.5], requires_grad=True)
    y = rounded(x)
    assert y.tolist() == [0.0, 2.0, -2.0]
    assert m.autograd.grad((y * m.tensor([1.0, 2.0, 3.0])).sum(), x)[0].tolist() == [1.0, 2.0, 3.0]
    assert m.autograd.grad(x.round().sum(), x)[0].tolist() == [0.0, 0.0, 0.0]
    detached = x + (x.round() - x).detach()  # the same without a Function
    assert m.autograd.grad(detached.sum(), x)[0].tolist() == [1.0, 1.0, 1.0]


@BOTH
def test_training_through_rounding(m: Any) -> None:
    """Whole-numbered weights are learnt from the gradients of rounded ones."""
    rounded = straight_through(m)
    m.manual_seed(0)
    x = m.randn(64, 4, dtype=m.float64)
    truth = m.tensor([3.0, -1.0, 0.0, 2.0], dtype=m.float64)
    w = m.zeros(4, dtype=m.float64, requires_grad=True)
    losses = []
    for _ in range(60):
        loss = ((x @ rounded(w) - x @ truth) ** 2).mean()
        losses.append(loss.item())
        (g,) = m.autograd.grad(loss, w)
        with m.no_grad():
            w -= 0.1 * g
    assert losses[0] > 5 and losses[-1] == 0
    assert rounded(w).tolist() == truth.tolist()
    frozen = m.zeros(4, dtype=m.float64, requires_grad=True)
    loss = ((x @ frozen.round() - x @ truth) ** 2).mean()
    assert m.autograd.grad(loss, frozen)[0].abs().max().item() == 0  # which teaches nothing


@BOTH
def test_implicit_function(m: Any) -> None:
    """x² + y² = 1 is solved for y by LBFGS; dy/dx = -x/y = -0.5774 at x = 0.5."""
    x = m.tensor(0.5, dtype=m.float64, requires_grad=True)
    y = m.tensor(0.5, dtype=m.float64, requires_grad=True)
    optimizer = m.optim.LBFGS([y], line_search_fn="strong_wolfe")

    def closure() -> Any:
        optimizer.zero_grad()
        loss = (x.detach() ** 2 + y**2 - 1) ** 2
        loss.backward()
        return loss

    for _ in range(3):
        optimizer.step(closure)
    assert y.item() == pytest.approx(math.sqrt(0.75), abs=1e-6)

    solution = y.detach().requires_grad_()
    equation = x**2 + solution**2 - 1
    by_x, by_y = m.autograd.grad(equation, (x, solution))
    assert (-by_x / by_y).item() == pytest.approx(-0.5774, abs=5e-5)

    class Circle(m.autograd.Function):  # type: ignore[misc, name-defined]
        """y(x) with the derivative that the implicit function theorem gives."""

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x, solution.detach())
            return solution.detach().clone()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, y = (t.detach().requires_grad_() for t in ctx.saved_tensors)
            with m.enable_grad():
                by_x, by_y = m.autograd.grad(x**2 + y**2 - 1, (x, y))
            return -g * by_x / by_y

    Circle.apply(x).backward()
    assert x.grad.item() == pytest.approx(-0.5774, abs=5e-5)
