"""The Hessian times a vector."""

import toytorch as torch
from course.cases import case
from course.exercises.ch06.common import _double, _x
from course.properties import agrees, restores, untouched
from course.records import Exercise

hessian = Exercise(
    "extending.hvp",
    "The Hessian times a vector",
    chapter=6,
    minutes=10,
    prompt="""
    The Hessian holds all second derivatives. For a million parameters it has a million rows of a
    million entries, too many to store. Its product with a *vector* needs only one backward pass
    through a backward pass:

    $$H v = \\frac{\\partial}{\\partial x}
      \\,\\Big(\\frac{\\partial f}{\\partial x} \\cdot v\\Big).$$

    Write `hvp(f, x, v)`: `f` gives one number, `x` and `v` have the same shape, and so has the
    result.

    * The first `torch.autograd.grad` has to record what it does: `create_graph=True`.
    * `x` need not want a gradient, and is not to be changed: work on a detached one that does.
    * `x` may have any shape. A difference of two gradients is no answer: it loses half of the digits.
    """,
    without=("torch.autograd.functional.hvp", "torch.autograd.functional.vhp", "torch.autograd.functional.hessian",),
    hints=(
        """
        A gradient is a tensor like any other, if autograd recorded how it was computed. So take the
        gradient of `f`, make *one number* of it with the help of `v`, and take the gradient of that
        number.

        Row `i` of the Hessian is the derivative of `slope[i]`, and a weighted sum of the entries of
        the gradient gives the same weighted sum of the rows.
        """,
        """
        $f(x) = x_0^2\\,x_1$ at $x = [2, 3]$, with $v = [1, 10]$:

        | step | value |
        | --- | --- |
        | gradient: $[2 x_0 x_1,\\; x_0^2]$ | $[12, 4]$ |
        | gradient · v, as a formula: $2 x_0 x_1 \\cdot 1 + x_0^2 \\cdot 10$ | 52 |
        | its derivative by $x_0$: $2 x_1 + 20 x_0$ | 46 |
        | its derivative by $x_1$: $2 x_0$ | 4 |

        The result is $[46, 4]$. The Hessian is [[6, 4], [4, 0]], and its product with [1, 10] is the same.
        """,
        """
        ```python
        def hvp(f, x, v):
            x = ...  # the same numbers, without a history, wanting a gradient
            (slope,) = torch.autograd.grad(f(x), x, ...)
            (product,) = torch.autograd.grad(..., x)
            return product
        ```
        """,
    ),
)


@hessian.reference(stub="your code here: about 4 lines")
def hvp(f, x, v):
    """The matrix of second derivatives of f at x, times v."""
    x = x.detach().requires_grad_()
    (slope,) = torch.autograd.grad(f(x), x, create_graph=True)
    (product,) = torch.autograd.grad((slope * v).sum(), x)
    return product


hessian.changed(
    "does not record the first pass",
    """
    Without `create_graph=True` the first backward pass leaves no graph: the gradient is a plain
    tensor, and there is nothing to take a derivative of.
    """,
    ("(f(x), x, create_graph=True)", "(f(x), x)"),
)

hessian.changed(
    "multiplies too late",
    """
    `slope.sum()` adds up the rows of the Hessian, and only afterwards the result was multiplied by
    `v`, element by element. That is right only where the Hessian is diagonal, as for a sum of
    powers. Multiply by `v` before you take the sum.
    """,
    ("(slope * v)", "slope"),
    ("return product", "return product * v"),
)


@hessian.mutant(
    "collects in .grad",
    why="""
    `backward` was called twice, and both passes *added* to `x.grad`: what came out is the gradient
    plus the product. `torch.autograd.grad` hands the gradient back and adds to nothing.
    """,
)
def hvp(f, x, v):
    x = x.detach().requires_grad_()
    f(x).backward(create_graph=True)
    (x.grad * v).sum().backward()
    return x.grad.detach()


@hessian.mutant(
    "the gradient times v",
    why="""
    This is the derivative in the direction of v, number by number: a *first* derivative. Take the
    derivative of its sum once more.
    """,
)
def hvp(f, x, v):
    x = x.detach().requires_grad_()
    (slope,) = torch.autograd.grad(f(x), x, create_graph=True)
    return (slope * v).detach()


hessian.changed(
    "v on both sides",
    """
    `v · H · v` is one number, the curvature along v. Asked for was the vector H v: leave the second
    `v` away.
    """,
    ("return product", "return (product * v).sum()"),
)


@hessian.check("powers: the Hessian of x⁴ is 12 x² on the diagonal")
def _(f):
    x, v = _double([1.0, -2.0, 0.5]), _double([1.0, 1.0, 2.0])
    yield case(
        "hvp(f, x, v) for f = (x**4).sum(), x = [1, -2, 0.5], v = [1, 1, 2]",
        lambda: f(lambda t: (t**4).sum(), x, v),
    ).gives(_double([12.0, 48.0, 6.0]))


@hessian.check("numbers that have to do with one another")
def _(f):
    x, v = _double([2.0, 3.0]), _double([1.0, 10.0])
    yield case(
        "f = x[0]**2 * x[1], x = [2, 3], v = [1, 10]", lambda: f(lambda t: t[0] ** 2 * t[1], x, v)
    ).gives(_double([46.0, 4.0]))


@hessian.check("nothing is left behind", hidden=True)
def _(f):
    def traces():
        x = _x([1.0, 2.0])
        f(lambda t: (t**4).sum(), x, _double([1.0, 1.0]))
        return x.grad is None, x.tolist()

    yield case("x.grad is None? and x, after the call", traces).gives((True, [1.0, 2.0]))


hessian.changed(
    "x wants a gradient afterwards",
    """
    `requires_grad_()` was called on the caller's own tensor. From then on everything that the
    caller computes with `x` is recorded. `x.detach()` gives a tensor of your own, over the same
    numbers.
    """,
    ("x = x.detach().requires_grad_()", "x.requires_grad_()"),
)

hessian.changed(
    "works for vectors only",
    """
    `slope @ v` is the sum of the products for vectors only; for matrices it is a matrix product.
    `(slope * v).sum()` means the same for every shape.
    """,
    ("(slope * v).sum()", "slope @ v"),
)


@hessian.mutant(
    "a difference of two gradients",
    why="""
    The gradient was taken at two neighbouring points. That is close, and half of the digits are lost:
    with a large step the curve bends in between, with a small step the two gradients are nearly equal.
    A second backward pass is exact.
    """,
)
def hvp(f, x, v):
    def slope(x):
        x = x.detach().requires_grad_()
        return torch.autograd.grad(f(x), x)[0]

    h = 1e-5
    return (slope(x + h * v) - slope(x - h * v)) / (2 * h)


def _coupled(x):
    return (x.sin() * x.flatten().cumsum(0).reshape(x.shape)).sum()


def _any(draw):
    shape = draw.shape(least=1)
    x, v = (draw.tensor(shape, torch.float64) for _ in range(2))
    return _coupled, x, v


@hessian.check("any shape, to ten digits")
def _(f):
    yield agrees(f, hessian.answer.value, _any, count=20, tolerance=1e-10)
    yield untouched(f, _any)
    yield restores(lambda: f(_coupled, _double([1.0, 2.0]), _double([1.0, 1.0])))

    def wants():
        x, v = _double([1.0, 2.0]), _double([1.0, 1.0])
        f(_coupled, x, v)
        return x.requires_grad

    yield case("x wants no gradient. Does it want one after the call?", wants).gives(False)
