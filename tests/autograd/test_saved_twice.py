"""Derivatives of derivatives where saved tensors went through hooks; writes to saved tensors; callbacks."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest

from tests.oracle import torch, tt

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "sin": lambda x: x.sin(),
    "exp of sin": lambda x: x.sin().exp(),
    "product": lambda x: x * x.cos(),
    "tanh": lambda x: x.tanh().pow(3),
}


def twice(T: Any, f: Callable[[Any], Any], hooks: Any) -> list[Any]:
    x = T.tensor([0.3, 0.7], dtype=T.float64, requires_grad=True)
    with hooks(T):
        y = f(x).sum()
    (g,) = T.autograd.grad(y, x, create_graph=True)
    (h,) = T.autograd.grad(g.sum(), x)
    return [*g.tolist(), *h.tolist()]


def checkpointed(T: Any, f: Callable[[Any], Any], depth: int) -> Callable[[Any], Any]:
    for _ in range(depth):
        f = lambda x, f=f: T.utils.checkpoint.checkpoint(f, x, use_reentrant=False)  # noqa: E731
    return f


@pytest.mark.parametrize("name", FUNCTIONS)
def test_hooks(name: str) -> None:
    def packing(T: Any) -> Any:
        return T.autograd.graph.saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t)

    want = twice(torch, FUNCTIONS[name], packing)
    assert twice(tt, FUNCTIONS[name], packing) == pytest.approx(want)


@pytest.mark.parametrize("stops", [True, False])
@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_checkpoints(name: str, depth: int, stops: bool) -> None:
    def answer(T: Any) -> list[Any]:
        f = checkpointed(T, FUNCTIONS[name], depth)
        with T.utils.checkpoint.set_checkpoint_early_stop(stops):
            return twice(T, f, lambda T: contextlib.nullcontext())

    assert answer(tt) == pytest.approx(answer(torch))


def test_checkpoint_refuses_chosen_inputs() -> None:
    for T in (torch, tt):
        x = T.ones(2, requires_grad=True)
        y = T.utils.checkpoint.checkpoint(T.exp, x, use_reentrant=True).sum()
        with pytest.raises(RuntimeError, match="is incompatible with"):
            T.autograd.grad(y, x)


def test_mutation() -> None:
    def answer(T: Any) -> Any:
        a = T.tensor([2.0, 3.0], requires_grad=True)
        with T.autograd.graph.allow_mutation_on_saved_tensors() as saved:
            b = a.clone()
            c = b[:1]
            y = (b**3).sum()
            c *= 10
            T.sin(T.ones(2), out=b.detach())
            copies = [len(saved.cloned)]
            y.backward()
            copies.append(len(saved.cloned))
            with pytest.raises(RuntimeError, match="cannot be nested"):
                T.autograd.graph.allow_mutation_on_saved_tensors().__enter__()
            z = (a * a).sum()
        with pytest.raises(AssertionError, match="Trying to backward outside"):
            z.backward()
        return a.grad.tolist(), copies

    assert answer(tt) == answer(torch)


def test_callbacks() -> None:
    def answer(T: Any) -> list[str]:
        queue, said = T.autograd.Variable._execution_engine.queue_callback, []
        x = T.ones(2, requires_grad=True)
        y = x * 2
        y.register_hook(lambda g: queue(lambda: said.append("done")))
        x.register_hook(lambda g: said.append("leaf"))
        y.sum().backward()
        with pytest.raises(RuntimeError, match="during backward pass"):
            queue(lambda: None)
        return said

    assert answer(tt) == answer(torch)
