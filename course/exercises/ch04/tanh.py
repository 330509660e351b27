"""The derivative of tanh."""

import toytorch as torch
from course.cases import call, case
from course.exercises.ch04.common import _derivative
from course.records import Exercise

tanh = Exercise(
    "autograd.tanh",
    "The derivative of tanh",
    chapter=4,
    minutes=8,
    inject=_derivative(torch.ops.tanh, "d_self"),
    prompt="""
    For $y = \\tanh x$ the derivative is $1 - y^2$: whoever kept the *result* needs no $x$. Write
    `d_tanh(g, result)`, which takes the gradient `g` of the result and gives the gradient of the
    input.

    * `g` and `result` are tensors of the same shape, and so is what you return.
    * Keep the two names: toytorch reads them to know **what to save** for the backward pass. Asked
      for `result`, it keeps the result and lets the input go.
    * Use tensor operations that make something new. What was saved is shared with the user.
    """,
)


@tanh.stub
def d_tanh(g, result):
    """The gradient of x, for result = x.tanh() with gradient g."""
    # your code here: one line
    raise NotImplementedError


@tanh.reference
def d_tanh(g, result):
    """The gradient of x, for result = x.tanh() with gradient g."""
    return g * (1 - result * result)


@tanh.mutant(
    "forgets the gradient that comes in",
    why="""
    `1 - y²` is how much y changes when x does. A node is asked how much the *loss* changes, and
    that is the chain rule: `g` times this slope. Without `g`, everything between here and the loss
    is lost.
    """,
)
def d_tanh(g, result):
    return 1 - result * result


@tanh.mutant(
    "takes the result for the input",
    why="""
    The tanh was taken once more. `result` *is* tanh x already: that is why it was saved, so that
    the slope costs a product and no second tanh.
    """,
)
def d_tanh(g, result):
    y = result.tanh()
    return g * (1 - y * y)


@tanh.mutant(
    "the square is missing",
    why="""
    `1 - y` is not the slope. For x far to the left y is -1, and the curve is flat there: the slope
    is 0, as 1 - (-1)² is, while 1 - (-1) is 2.
    """,
)
def d_tanh(g, result):
    return g * (1 - result)


@tanh.mutant(
    "writes into what was saved",
    why="""
    The square was computed *in place*. The saved tensor is no copy: it is the very result that the
    user holds, so their numbers change behind their back, and a second backward pass is wrong. Make
    new tensors in a derivative: `result * result`, not `result.mul_(result)`.
    """,
)
def d_tanh(g, result):
    return g * (1 - result.mul_(result))


@tanh.mutant(
    "cuts its own history",
    why="""
    The value is right, but it was computed on a detached tensor, so nobody can take its derivative:
    second derivatives come out as 0. A derivative is ordinary tensor code, and autograd records it
    as well when asked to (`create_graph=True`).
    """,
)
def d_tanh(g, result):
    y = result.detach()
    return g * (1 - y * y)


@tanh.mutant(
    "renames its arguments",
    why="""
    The formula is right, and toytorch cannot use it: the argument names say what to save. `g` is
    the gradient of the result, `result` the result itself, and an argument of the op goes by its
    own name. Any other name stands for nothing.
    """,
)
def d_tanh(g, y):
    return g * (1 - y * y)


# what PyTorch gives for x = [-1, 0, 0.5, 2] and g = [1, 2, 3, 4]
TANH_X = [-1.0, 0.0, 0.5, 2.0]
TANH_Y = [-0.7615941762924194, 0.0, 0.46211716532707214, 0.9640275835990906]
TANH_FIRST = [0.41997429728507996, 2.0, 2.3593430519104004, 0.28260326385498047]
TANH_SECOND = [0.6396999359130859, 0.0, -0.7268619537353516, -0.13621866703033447]


@tanh.check("the chain rule at four points")
def _(f):
    g, y = torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.tensor(TANH_Y)
    yield call(f, g, y).gives(torch.tensor(TANH_FIRST), tolerance=1e-5)


@tanh.check("what was saved stays as it was")
def _(f):
    def after():
        y = torch.tensor(TANH_Y)
        f(torch.ones(4), y)
        return y

    yield case("result, after the call", after).gives(torch.tensor(TANH_Y))


@tanh.check("as a part of toytorch")
def _(f):
    def first():
        x = torch.tensor(TANH_X, requires_grad=True)
        with tanh.inject(f):
            x.tanh().backward(torch.tensor([1.0, 2.0, 3.0, 4.0]))
        return x.grad

    plugged = case("x.tanh().backward(g), through toytorch.ops.tanh", first)
    yield plugged.gives(torch.tensor(TANH_FIRST), tolerance=1e-5)


@tanh.check("a second derivative", hidden=True)
def _(f):
    def second():
        x = torch.tensor(TANH_X, requires_grad=True)
        with tanh.inject(f):
            (slope,) = torch.autograd.grad(x.tanh().sum(), x, create_graph=True)
            (bend,) = torch.autograd.grad(slope.sum(), x, allow_unused=True, materialize_grads=True)
        return bend

    twice = case("the derivative of the derivative of x.tanh()", second)
    yield twice.gives(torch.tensor(TANH_SECOND), tolerance=1e-4)
