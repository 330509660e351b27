"""What hooks of modules refuse and warn of, beside PyTorch's."""

from __future__ import annotations

import warnings
from collections import namedtuple
from typing import Any

import pytest

from tests.oracle import torch, tt

Pair = namedtuple("Pair", "first second")


def module(T: Any, forward: Any) -> Any:
    class Own(T.nn.Module):  # type: ignore[name-defined]  # the base is either package's
        def forward(self, *args: Any) -> Any:
            return forward(T, *args)

    return Own()


def told(run: Any) -> list[Any]:
    """What a program gives or raises, and its warnings."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            found = run()
        except (RuntimeError, TypeError) as error:
            found = f"{type(error).__name__}: {error}"
    return [found, *((w.category.__name__, str(w.message)) for w in seen)]


FORWARDS: dict[str, tuple[Any, Any]] = {
    "a list in": (lambda T, m: (m[0].clone(), m[1].clone()), lambda a, T: ([a, a],)),
    "a list out": (lambda T, a, b: [a.clone(), b.clone()], lambda a, T: (a, a)),
    "two nodes out": (lambda T, a, b: (a.clone(), b.clone()), lambda a, T: (a, a)),
    "two nodes": (lambda T, a: a.clone().clone(), lambda a, T: (a,)),
    "one node": (lambda T, a: a.clone(), lambda a, T: (a.clone(),)),
    "one node of a leaf": (lambda T, a: a.clone(), lambda a, T: (a,)),
    "detached": (lambda T, a: a.detach(), lambda a, T: (a,)),
    "a number in": (lambda T, a, b: a * b, lambda a, T: (a, 2)),
}


@pytest.mark.parametrize("name", FORWARDS)
def test_hooks_on_nodes_say_what_they_miss(name: str) -> None:
    forward, arguments = FORWARDS[name]

    def run(T: Any) -> Any:
        m = module(T, forward)
        m.register_backward_hook(lambda *_: None)
        m(*arguments(T.ones(2, requires_grad=True), T))

    assert told(lambda: run(tt)) == told(lambda: run(torch))


def programs(T: Any) -> dict[str, Any]:
    def returning(change: Any) -> Any:
        def hook(m: Any, given: Any, out: Any) -> Any:
            return change(given)

        m, x = T.nn.Sigmoid(), T.zeros(2, requires_grad=True)
        m.register_backward_hook(hook)
        m(x.clone()).sum().backward()
        return x.grad.tolist()

    def silenced() -> Any:
        def forward(T: Any, x: Any) -> Any:
            raise RuntimeError("forward")

        def hook(*_: Any) -> None:
            raise ValueError("hook")

        m = module(T, forward)
        m.register_forward_hook(hook, always_call=True)
        return m(1)

    def output(make: Any) -> Any:
        called: list[Any] = []
        m, x = module(T, lambda T, a: make(a)), T.ones(2, requires_grad=True)
        m.register_full_backward_hook(lambda m, i, o: called.append(len(o)))
        y = m(x)
        y[0].sum().backward()
        return called, type(y).__name__, x.grad.tolist()

    def twice() -> Any:
        called: list[Any] = []
        m, x = T.nn.MSELoss(), T.ones(2, requires_grad=True)
        m.register_full_backward_hook(lambda *_: called.append(1))
        (g,) = T.autograd.grad(m(x, x.detach() * 2), x, create_graph=True)
        return T.autograd.grad(g.sum(), x)[0].tolist(), called

    def plain_arguments() -> Any:
        seen: list[Any] = []

        def forward(T: Any, a: Any, b: Any) -> Any:
            seen.extend((a.requires_grad, b.requires_grad))
            return a + b

        m = module(T, forward)
        m.register_full_backward_hook(lambda *_: None)
        m(T.ones(2, requires_grad=True), T.ones(2)).sum().backward()
        return seen

    def written(where: str) -> Any:
        def forward(T: Any, a: Any) -> Any:
            if where == "in":
                a *= 2
            return a * 2

        m = module(T, forward)
        m.register_full_backward_hook(lambda *_: None)
        y = m(T.ones(2, requires_grad=True).clone())
        y += 1

    return {
        "too few": lambda: returning(lambda g: g[:-1]),
        "too many": lambda: returning(lambda g: (*g, T.ones(2))),
        "no tuple": lambda: returning(lambda g: 3),
        "replaced": lambda: returning(lambda g: (g[0] * 3,)),
        "silenced": silenced,
        "a list": lambda: output(lambda a: [a * 2]),
        "a named tuple": lambda: output(lambda a: Pair(a * 2, a * 3)),
        "second derivatives": twice,
        "arguments without gradients": plain_arguments,
        "inputs written to": lambda: written("in"),
        "outputs written to": lambda: written("out"),
    }


@pytest.mark.parametrize("name", programs(tt))
def test_as_in_pytorch(name: str) -> None:
    assert told(programs(tt)[name]) == told(programs(torch)[name])
