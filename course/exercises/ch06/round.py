"""Straight through a step."""

import toytorch as torch
from course.cases import case
from course.exercises.ch06.common import _double, _x
from course.records import Exercise
from toytorch.autograd import Function

rounding = Exercise(
    "extending.round",
    "Straight through a step",
    chapter=6,
    minutes=8,
    prompt="""
    Rounded to multiples of 0.25, a curve becomes a staircase. Its true slope is 0 on every step, so
    nothing that comes before it ever learns. A famous trick is to **lie** in backward: let the
    gradient pass as if nothing had been rounded. It is called the *straight-through estimator*.

    Write the Function `Round`: `Round.apply(x, step)` gives the multiples of `step` nearest to `x`
    (`step` is a Python number), and `backward` passes the gradient on to `x` unchanged.

    `forward` has two inputs, so `backward` returns two things.
    """,
)


@rounding.stub
class Round(Function):
    """The nearest multiple of step; backward as if nothing happened."""

    @staticmethod
    def forward(ctx, x, step):
        # your code here: one line
        raise NotImplementedError

    @staticmethod
    def backward(ctx, grad):
        # your code here: one line
        raise NotImplementedError


@rounding.reference
class Round(Function):
    """The nearest multiple of step; backward as if nothing happened."""

    @staticmethod
    def forward(ctx, x, step):
        return (x / step).round() * step

    @staticmethod
    def backward(ctx, grad):
        return grad, None


@rounding.mutant(
    "the true slope",
    why="""
    The slope of a staircase is 0, so this is correct, and useless: nothing in front of it will ever
    learn. The trick is to pretend that the staircase is the ramp it follows.
    """,
)
class Round(Function):
    @staticmethod
    def forward(ctx, x, step):
        return (x / step).round() * step

    @staticmethod
    def backward(ctx, grad):
        return torch.zeros_like(grad), None


@rounding.mutant(
    "one gradient for two inputs",
    why="""
    `forward` was given `x` and `step`, and the engine expects an answer for each. `step` is a
    number and gets none: `return grad, None`.
    """,
)
class Round(Function):
    @staticmethod
    def forward(ctx, x, step):
        return (x / step).round() * step

    @staticmethod
    def backward(ctx, grad):
        return grad


@rounding.mutant(
    "rounds the gradient as well",
    why="""
    The gradient was rounded to multiples of the step too. Gradients are small: most become 0, and
    learning stops, which is what you wanted to avoid.
    """,
)
class Round(Function):
    @staticmethod
    def forward(ctx, x, step):
        ctx.step = step
        return (x / step).round() * step

    @staticmethod
    def backward(ctx, grad):
        return (grad / ctx.step).round() * ctx.step, None


@rounding.mutant(
    "stays in units of the step",
    why="""
    After dividing by the step and rounding you have the *number* of steps. Multiply by the step
    again, or all values come out 1/step times as large.
    """,
)
class Round(Function):
    @staticmethod
    def forward(ctx, x, step):
        return (x / step).round()

    @staticmethod
    def backward(ctx, grad):
        return grad, None


@rounding.mutant(
    "always rounds down",
    why="""
    `floor` takes the multiple *below*. On average everything becomes half a step smaller, and a
    whole layer drifts. The nearest multiple is what was asked for.
    """,
)
class Round(Function):
    @staticmethod
    def forward(ctx, x, step):
        return (x / step).floor() * step

    @staticmethod
    def backward(ctx, grad):
        return grad, None


@rounding.check("the staircase")
def _(kind):
    x = [0.1, 0.2, 0.9, -0.3]
    yield case(f"Round.apply({x}, 0.25)", lambda: kind.apply(_double(x), 0.25)).gives(
        _double([0.0, 0.25, 1.0, -0.25])
    )
    yield case(f"Round.apply({x}, 0.5)", lambda: kind.apply(_double(x), 0.5)).gives(
        _double([0.0, 0.0, 1.0, -0.5])
    )


@rounding.check("straight through")
def _(kind):
    def through():
        x = _x([0.1, 0.2, 0.9, -0.3])
        kind.apply(x, 0.25).backward(_double([1.0, 10.0, 0.3, -0.01]))
        return x.grad

    yield case("the gradients of x, for tensor([1., 10., 0.3, -0.01])", through).gives(
        _double([1.0, 10.0, 0.3, -0.01])
    )
