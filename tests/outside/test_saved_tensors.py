"""Hooks of saved tensors, checkpoints, and graphs that are run twice."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from tests.oracle import torch, tt
from tests.outside.alike import same, steps


def test_hooks_of_saved_tensors_leave_second_derivatives() -> None:
    def second(m: Any) -> list[float]:
        x = m.tensor([0.5, 1.0], dtype=m.float64, requires_grad=True)
        with m.autograd.graph.saved_tensors_hooks(lambda v: v.detach(), lambda v: v):
            y = (x * x).sin().exp()
        (g,) = m.autograd.grad(y.sum(), x, create_graph=True)
        return [round(v, 12) for v in m.autograd.grad(g.sum(), x)[0].tolist()]

    same(second)


def test_checkpoints_can_be_differentiated_twice() -> None:
    def second(m: Any) -> list[float]:
        x = m.tensor([0.5, 1.0], dtype=m.float64, requires_grad=True)
        y = m.utils.checkpoint.checkpoint(lambda v: (v * v).sin(), x, use_reentrant=False)
        (g,) = m.autograd.grad(y.sum(), x, create_graph=True)
        return [round(v, 12) for v in m.autograd.grad(g.sum(), x)[0].tolist()]

    same(second)


def test_gradients_of_gradients_have_memory_of_their_own() -> None:
    def grad(m: Any) -> Any:
        x = m.ones(2, 3, requires_grad=True)
        x.sum().backward(create_graph=True)
        return steps(x.grad), x.grad.requires_grad

    with warnings.catch_warnings():  # PyTorch warns of create_graph once a process
        warnings.simplefilter("ignore")
        same(grad)


# -- compositions ----------------------------------------------------------------------------------


def test_graphs_that_saved_no_tensor_may_be_run_twice() -> None:
    def seen(m: Any) -> Any:
        a = m.ones(2, 2, requires_grad=True)
        for y in (m.cat([a, a]), m.column_stack([a, a])):
            y.sum().backward(retain_graph=True)
            y.backward(m.ones_like(y))
            y.backward(m.ones_like(y))
        return a.grad.tolist()

    same(seen)


# -- what is taken now -----------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.*torch.jit.*deprecated")
def test_gradients_inside_a_checkpoint_that_does_not_stop_early() -> None:
    found = []
    for m in (tt, torch):
        x = m.tensor(0.3, requires_grad=True)

        def inner(x: Any, m: Any = m) -> Any:
            a = x.sin().exp()
            (g,) = m.autograd.grad(a, x, create_graph=True)
            return g * x.cos()

        with m.utils.checkpoint.set_checkpoint_early_stop(False):
            y = m.utils.checkpoint.checkpoint(inner, x, use_reentrant=False)
            y.backward()
        found.append((float(y.detach()), float(x.grad)))
    assert found[0] == pytest.approx(found[1])
