"""When two gradients meet."""

import toytorch as torch
from course.cases import call, case
from course.exercises.ch04.common import _grads, _leaves
from course.records import Exercise
from toytorch.autograd import engine

accumulate = Exercise(
    "autograd.accumulate",
    "When two gradients meet",
    chapter=4,
    minutes=6,
    inject=lambda f: engine.default.using(accumulate=f),
    prompt="""
    In `x * 3 + x.sin()` the tensor `x` has two ways to the result, so during the backward pass two
    gradients arrive at it. The engine hands both to `accumulate(waiting, arrived)` and lets what
    comes back wait in their place.

    It is one line, and two famous bugs fit into it. A hint for the second: in `x + y`, the node of
    the sum sends *the same tensor* to `x` and to `y`.
    """,
)


@accumulate.stub
def accumulate_two(waiting, arrived):
    """What waits at a place where a second gradient arrives."""
    # your code here: one line
    raise NotImplementedError


@accumulate.reference
def accumulate_two(waiting, arrived):
    """What waits at a place where a second gradient arrives."""
    return waiting + arrived


@accumulate.mutant(
    "overwrites instead of adding",
    why="""
    The gradient that came last took the place of the one that waited, so only one of the ways to
    the loss counts. When x moves, the loss moves along *all* of its ways: their gradients add up.
    """,
)
def accumulate_two(waiting, arrived):
    return arrived


@accumulate.mutant(
    "the first one stays",
    why="""
    What arrived second was dropped. Every way from x to the loss counts, in whatever order their
    gradients happen to arrive.
    """,
)
def accumulate_two(waiting, arrived):
    return waiting


@accumulate.mutant(
    "adds in place",
    why="""
    `waiting += arrived` writes into a tensor that may be waiting somewhere else too: the node of
    `x + y` sends one and the same tensor to both. x gets the right sum, and y, which never took
    part in the second operation, gets it as well. Add out of place: `waiting + arrived`.
    """,
)
def accumulate_two(waiting, arrived):
    waiting += arrived
    return waiting


@accumulate.mutant(
    "takes the mean of the two",
    why="""
    Gradients are not opinions to be averaged. If x moves the loss by 3 on one way and by 2 on the
    other, moving x moves the loss by 5.
    """,
)
def accumulate_two(waiting, arrived):
    return (waiting + arrived) / 2






@accumulate.check("two gradients")
def _(f):
    yield call(f, torch.tensor([3.0, 1.0]), torch.tensor([2.0, -1.0])).gives(
        torch.tensor([5.0, 0.0])
    )


@accumulate.check("neither of the two is written to", hidden=True)
def _(f):
    def after():
        waiting, arrived = torch.tensor([3.0]), torch.tensor([2.0])
        f(waiting, arrived)
        return waiting.tolist(), arrived.tolist()

    yield case("waiting and arrived, after the call", after).gives(([3.0], [2.0]))


@accumulate.check("in a backward pass")
def _(f):
    def shared():
        x, y = _leaves(1.0, 1.0)
        return _grads(x * 3 + (x + y), (x, y), accumulate=f)

    yield case("the gradients of x and y in x * 3 + (x + y)", shared).gives([4.0, 1.0])

    def chained():
        (x,) = _leaves(2.0)
        return _grads(x * x * x + x, (x,), accumulate=f)

    yield case("the gradient of x * x * x + x at 2", chained).gives([13.0])
