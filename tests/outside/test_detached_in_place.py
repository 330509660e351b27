"""Tensors that are detached in place, before and after somebody needs them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.oracle import torch, tt
from tests.outside.alike import elements_and_steps, same_words

# -- single functions ------------------------------------------------------------------------------


def test_a_leaf_that_is_detached_in_place_may_be_written_to() -> None:
    def f(x: Any) -> Any:
        x.detach_()
        x.pow_(2)
        return x * 1

    def leaf(m: Any) -> Any:
        return m.tensor([2.0, 3.0], requires_grad=True)

    traced = tt.jit.trace(f, (leaf(tt),), check_trace=False)
    for ours in (tt.compile(f), traced):
        a, b = leaf(torch), leaf(tt)
        assert elements_and_steps(f(a)) == elements_and_steps(ours(b))
        assert elements_and_steps(a) == elements_and_steps(b)
        assert a.requires_grad == b.requires_grad


# -- detached in place -----------------------------------------------------------------------------


def leaf(m: Any) -> Any:
    return m.tensor([1.0, 2.0], dtype=m.float64, requires_grad=True)


def detached_input(m: Any) -> None:
    a = leaf(m).clone()
    b = a.sin()
    a.detach_()
    b.sum().backward()


def detached_and_asked_again(m: Any) -> None:
    a = leaf(m).clone()
    b = a * a
    a.detach_()
    a.requires_grad_()
    b.sum().backward()


def detached_factor(m: Any) -> None:
    a = leaf(m).clone()
    b = m.ones(2, 2, dtype=m.float64, requires_grad=True) @ a
    a.detach_()
    b.sum().backward()


def detached_result(m: Any) -> Any:
    a = leaf(m)
    b = a.exp()
    c = b * 1
    b.detach_()
    c.sum().backward()
    return b._version, type(b._version).__name__, [round(x, 9) for x in a.grad.tolist()]


def detached_twice(m: Any) -> Any:
    a = leaf(m).clone()
    other = a.detach().requires_grad_() * 1
    a.detach_()
    w = leaf(m)
    kept = a * w
    other.detach_()
    kept.sum().backward()
    return w.grad.tolist(), (a.add_(1))._version


def detached_in_a_function(m: Any) -> Any:
    class Square(m.autograd.Function):  # type: ignore[misc]  # a base of either package
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return 2 * g * ctx.saved_tensors[0]

    x = leaf(m)
    a = x.clone()
    b = Square.apply(a)
    a.detach_()
    b.sum().backward()
    return x.grad.tolist(), a.is_leaf


def shown_after_detaching(m: Any) -> Any:
    a = leaf(m).clone()
    b = a.cos()
    a.detach_()
    return b.grad_fn._saved_self.tolist()


def steps_in_time(m: Any) -> Any:
    x, h = leaf(m), m.zeros(2, dtype=m.float64)
    for _ in range(3):
        h = h * x + 1
        h.sum().backward()
        h.detach_()
    return x.grad.tolist()


@pytest.mark.parametrize(
    "what",
    [
        detached_input,
        detached_and_asked_again,
        detached_factor,
        detached_result,
        detached_twice,
        detached_in_a_function,
        shown_after_detaching,
        steps_in_time,
    ],
)
def test_a_saved_tensor_that_was_detached_in_place(what: Callable[[Any], Any]) -> None:
    same_words(what)


# -- memory ----------------------------------------------------------------------------------------


def test_detached_in_place_loses_its_tangent() -> None:
    def tangents(m: Any) -> Any:
        forward = m.autograd.forward_ad
        with forward.dual_level():
            dual = forward.make_dual(m.ones(2), m.ones(2)).clone()
            before = forward.unpack_dual(dual * 2).tangent.tolist()
            dual.detach_()
            return before, forward.unpack_dual(dual * 2).tangent

    same_words(tangents)
