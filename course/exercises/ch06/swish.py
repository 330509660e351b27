"""A Function: Swish."""

import toytorch as torch
from course.cases import case
from course.exercises.ch06.common import _double, _x
from course.records import Exercise
from toytorch.autograd import Function

swish = Exercise(
    "extending.swish",
    "A Function: Swish",
    chapter=6,
    minutes=12,
    prompt="""
    Swish is $y = x\\,\\sigma(x)$ with $\\sigma(x) = 1/(1 + e^{-x})$, and its slope is

    $$\\frac{dy}{dx} = \\sigma(x) + x\\,\\sigma(x)\\,(1 - \\sigma(x)).$$

    Written with operations it costs two nodes, which keep two tensors. Write it as **one** node
    that keeps only `x`: a subclass of `Function`.

    * `forward(ctx, x)` gives the result and leaves `x` with `ctx.save_for_backward(x)`. No graph is
      recorded in it. `x.sigmoid()` is there for you.
    * `backward(ctx, grad)` reads `(x,) = ctx.saved_tensors` and gives the gradient of `x`. It is
      ordinary tensor code: with `create_graph=True` it is recorded itself, and that is how second
      derivatives come about.
    * Both are static methods. It is used as `Swish.apply(x)`.
    """,
)


@swish.stub
class Swish(Function):
    """x times its sigmoid, as one node that keeps x."""

    @staticmethod
    def forward(ctx, x):
        # your code here: two lines
        raise NotImplementedError

    @staticmethod
    def backward(ctx, grad):
        # your code here: three lines
        raise NotImplementedError


@swish.reference
class Swish(Function):
    """x times its sigmoid, as one node that keeps x."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x.sigmoid()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        s = x.sigmoid()
        return grad * (s + x * s * (1 - s))


@swish.mutant(
    "forgets the gradient that comes in",
    why="""
    `backward` gave the slope of y. It is asked for the gradient of the *loss*: what comes in, times
    the slope. Without `grad`, everything between here and the loss is lost.
    """,
)
class Swish(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x.sigmoid()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        s = x.sigmoid()
        return s + x * s * (1 - s)


@swish.mutant(
    "forgets one of the two places of x",
    why="""
    `x` stands in the formula twice, as a factor and inside the sigmoid. This is the part that comes
    through the factor; the other part, `x * s * (1 - s)`, comes through the sigmoid, and they add
    up.
    """,
)
class Swish(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x.sigmoid()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x.sigmoid()


@swish.mutant(
    "keeps x where nobody guards it",
    why="""
    `ctx.x = x` works, and goes around the version check. If `x` is written over before backward,
    the slope is taken at the wrong place, without a word. What `save_for_backward` keeps is
    guarded, freed after backward, and seen by hooks.
    """,
)
class Swish(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.x = x
        return x * x.sigmoid()

    @staticmethod
    def backward(ctx, grad):
        s = ctx.x.sigmoid()
        return grad * (s + ctx.x * s * (1 - s))


@swish.mutant(
    "keeps something it computed on the way",
    why="""
    `s` was computed in `forward`, where nothing is recorded, and kept. To autograd it is a constant
    that has nothing to do with `x`. The first derivative is right; the second takes `s` for a
    number that never changes, and is wrong without a word. Keep inputs and outputs, and compute the
    rest again in `backward`.
    """,
)
class Swish(Function):
    @staticmethod
    def forward(ctx, x):
        s = x.sigmoid()
        ctx.save_for_backward(x, s)
        return x * s

    @staticmethod
    def backward(ctx, grad):
        x, s = ctx.saved_tensors
        return grad * (s + x * s * (1 - s))


@swish.mutant(
    "cuts its own history",
    why="""
    The slope was computed on a detached `x`. It is right, and nobody can take *its* derivative. Use
    `x` as `saved_tensors` gives it: it comes back with its history.
    """,
)
class Swish(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x.sigmoid()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        x = x.detach()
        s = x.sigmoid()
        return grad * (s + x * s * (1 - s))






# what PyTorch gives
SWISH_X = [-2.0, 0.0, 1.0, 3.0]
SWISH_Y = [-0.2384058440442351, 0.0, 0.7310585786300049, 2.8577223804673]
SWISH_FIRST = [-0.09078424878489547, 1.0, 2.7830115356144605, 4.352416424060678]
SWISH_SECOND = [0.050062168694706914, 0.5, 0.3023661188100153, -0.03232140452100613]


@swish.check("the function")
def _(kind):
    yield case(f"Swish.apply(x) for x = {SWISH_X}", lambda: kind.apply(_x(SWISH_X)).detach()).gives(
        _double(SWISH_Y)
    )


@swish.check("its gradient")
def _(kind):
    def first():
        x = _x(SWISH_X)
        kind.apply(x).backward(_double([1.0, 2.0, 3.0, 4.0]))
        return x.grad

    yield case("Swish.apply(x).backward(tensor([1., 2., 3., 4.]))", first).gives(
        _double(SWISH_FIRST)
    )


@swish.check("a second derivative")
def _(kind):
    def second():
        x = _x(SWISH_X)
        (slope,) = torch.autograd.grad(kind.apply(x).sum(), x, create_graph=True)
        (bend,) = torch.autograd.grad(slope.sum(), x)
        return bend

    yield case("the derivative of the derivative", second).gives(_double(SWISH_SECOND))


@swish.check("x is guarded", hidden=True)
def _(kind):
    def written():
        leaf = _x([1.0, 2.0])
        x = leaf * 1
        y = kind.apply(x)
        x.mul_(10)
        y.sum().backward()
        return leaf.grad

    yield case("y = Swish.apply(x); x.mul_(10); y.sum().backward()", written).raises(
        RuntimeError, "modified by an inplace operation"
    )
