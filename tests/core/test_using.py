"""An op's kernel or derivatives replaced for a while (`Op.using`), also without order."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import toytorch as tt
from toytorch.facts import state


def seven(xp: Any, *_: object, **__: object) -> Any:
    return xp.full(2, 7.0, "float32")


def test_ends_in_any_order() -> None:
    x, names = tt.ones(2), ["exp", "sin", "cos"]
    plain = [getattr(tt, name)(x).tolist() for name in names]
    for order in ([0, 1, 2], [1, 0, 2], [2, 1, 0]):
        begun = []
        for name in names:
            stack = ExitStack()
            stack.enter_context(tt.ops.registry[name].using(kernel=seven))
            begun.append(stack)
        assert [getattr(tt, name)(x).tolist() for name in names] == [[7.0, 7.0]] * 3
        for k, ended in enumerate(order):
            begun[ended].close()
            for still in order[k + 1 :]:
                assert getattr(tt, names[still])(x).tolist() == [7.0, 7.0]
        assert [getattr(tt, name)(x).tolist() for name in names] == plain
        assert not state.local.modes


def test_a_kernel_of_ones_own_keeps_the_derivative() -> None:
    """Of a formula that names the result: what a node keeps follows from the rule's parameters."""
    x = tt.tensor([0.5, -1.0], requires_grad=True)
    (want,) = tt.autograd.grad(tt.sigmoid(x).sum(), x)
    with tt.ops.sigmoid.using(kernel=lambda xp, a: 1 / (1 + xp.exp(-a))):
        (got,) = tt.autograd.grad(tt.sigmoid(x).sum(), x)
    assert tt.allclose(got, want)
