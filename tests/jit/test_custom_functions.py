"""Functions of the user's own inside traced and compiled code: their backward is theirs."""

from __future__ import annotations

import io
from typing import Any

import pytest

from tests.oracle import torch, tt


def programs(t: Any) -> dict[str, Any]:
    """Functions of a 3x4 tensor, written for either package."""

    class Scale(t.autograd.Function):
        """Its gradient is not that of what it computes."""

        @staticmethod
        def forward(ctx: Any, x: Any, by: float) -> Any:
            ctx.save_for_backward(x)
            ctx.by = by
            return x * by

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return g * x * (ctx.by + 1), None

    class Several(t.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            largest = x.argmax(1)
            ctx.mark_non_differentiable(largest)
            ctx.save_for_backward(y)
            total = x.clone()
            total[1:].add_(y[:-1])
            return total, largest, x.shape[0], y.sin()

        @staticmethod
        def backward(ctx: Any, g: Any, _: Any, __: Any, h: Any) -> Any:
            (y,) = ctx.saved_tensors
            return g * 2, g.cos() + h * y

    class Writes(t.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 7

    class Through(t.autograd.Function):
        """Gives its input back, with another gradient."""

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.view_as(x)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return -g

    def several(x: Any) -> Any:
        a, i, n, b = Several.apply(x.cos(), x * 2)
        return a * n + b + i[:, None]

    def without(x: Any) -> Any:
        with t.no_grad():
            still = Scale.apply(x, 2.0)
        return still + Scale.apply(x, 3.0)

    def twice(x: Any) -> Any:
        y = x.exp()
        return Through.apply(y) * 2 + y * 5

    return {
        "scale": lambda x: Scale.apply(x.sin(), 3.0).cos(),
        "several": several,
        "writes": lambda x: Writes.apply(x * 3).sin(),
        "through": twice,
        "without": without,
        "nested": lambda x: Scale.apply(Scale.apply(x, 2.0), 0.5),
    }


def seen(t: Any, f: Any, start: float) -> Any:
    """The result of a call and the gradient, and what a call without gradients gives."""
    x = (t.arange(12.0).view(3, 4) / 5 + start).requires_grad_()
    y = f(x)
    y.sum().backward()
    with t.no_grad():
        plain = f(x)
    return y.tolist(), x.grad.tolist(), y.requires_grad, plain.tolist(), plain.requires_grad


@pytest.mark.parametrize("how", ["trace", "compile"])
@pytest.mark.parametrize("name", list(programs(tt)))
def test_the_gradient_of_a_function_of_ones_own_is_kept(name: str, how: str) -> None:
    ours, theirs = programs(tt)[name], programs(torch)[name]
    if how == "trace":
        made = tt.jit.trace(ours, tt.ones(3, 4, requires_grad=True))
    else:
        made = tt.compile(ours, fullgraph=name != "several")
    for start in (0.0, 0.0, 0.3):  # the first call of a compiled function is written down
        got, want = seen(tt, made, start), seen(torch, theirs, start)
        assert got[2::2] == want[2::2]
        for mine, other in zip(got[:2] + got[3:4], want[:2] + want[3:4], strict=True):
            tt.testing.assert_close(tt.tensor(mine), tt.tensor(other))


@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")
def test_a_function_of_ones_own_is_not_saved() -> None:
    def message(t: Any) -> str:
        traced = t.jit.trace(programs(t)["scale"], t.ones(3, 4))
        with pytest.raises(RuntimeError) as caught:
            t.jit.save(traced, io.BytesIO())
        return str(caught.value).strip()[:45]

    assert message(tt) == message(torch) == "Could not export Python function call 'Scale'"
