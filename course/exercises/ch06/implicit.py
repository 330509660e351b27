"""The gradient of a search."""

import toytorch as torch
from course.cases import case
from course.exercises.ch06.common import _double, _x
from course.properties import gradient, restores
from course.records import Exercise
from toytorch.autograd import Function

implicit = Exercise(
    "extending.implicit",
    "The gradient of a search",
    chapter=6,
    minutes=25,
    prompt="""
    On the unit circle, $f(x, y) = x^2 + y^2 - 1 = 0$. Given `x`, a program *searches* for a `y`:
    with Newton's method, by trial and error, in another language. The search is not in the graph,
    and its derivative is known without it. Along the curve `f` stays 0, so

    $$\\frac{\\partial f}{\\partial x}\\,dx + \\frac{\\partial f}{\\partial y}\\,dy = 0
      \\qquad\\Longrightarrow\\qquad
      \\frac{dy}{dx} = -\\,\\frac{\\partial f/\\partial x}{\\partial f/\\partial y}.$$

    Write the Function `Implicit`. `Implicit.apply(x, f, search)` gives `search(f, x)`, a `y` of the
    shape of `x`; all is elementwise. `backward` computes the derivative from one call of `f`:

    * take `x` and `y` from what was saved, detached, and wanting gradients;
    * **inside `backward` no graph is recorded**, unless you ask for it: call `f` under
      `with torch.enable_grad():`;
    * then `torch.autograd.grad(f(x, y).sum(), (x, y))` gives both derivatives.

    `f` and `search` are functions: store `f` as an attribute of `ctx`. They get no gradient. Only a
    first derivative is asked for.
    """,
    optional=True,
    hints=(
        """
        The search gives a `y`, and no graph leads through it. But `f(x, y)` is ordinary tensor code, and
        its two derivatives are all that the formula asks for. So `backward` evaluates `f` once at the saved
        `x` and `y`, with recording switched on, and asks autograd for both derivatives.
        """,
        """
        The circle at $x = 0.6$: the search finds $y = 0.8$. Let `grad` be 3.

        | step | value |
        | --- | --- |
        | $f(x, y) = x^2 + y^2 - 1$ at the saved point | 0 |
        | $\\partial f/\\partial x = 2x$ | 1.2 |
        | $\\partial f/\\partial y = 2y$ | 1.6 |
        | $dy/dx = -1.2 / 1.6$ | −0.75 |
        | gradient of $x$: 3 · (−0.75) | −2.25 |

        `backward` returns `(-2.25, None, None)`: one entry for each of `x`, `f`, `search`.
        """,
        """
        ```python
        class Implicit(Function):
            @staticmethod
            def forward(ctx, x, f, search):
                y = ...
                ctx.f = f
                ctx.save_for_backward(...)
                return y

            @staticmethod
            def backward(ctx, grad):
                x, y = (t.detach().requires_grad_() for t in ctx.saved_tensors)
                with torch.enable_grad():
                    value = ...
                by_x, by_y = torch.autograd.grad(...)
                return ..., None, None
        ```
        """,
    ),
)


@implicit.reference(stub={
    "forward": "your code here: about 4 lines",
    "backward": "your code here: about 5 lines",
})
class Implicit(Function):
    """A y with f(x, y) = 0, found by a search, differentiable in x."""

    @staticmethod
    def forward(ctx, x, f, search):
        y = search(f, x)
        ctx.f = f
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, grad):
        x, y = (t.detach().requires_grad_() for t in ctx.saved_tensors)
        with torch.enable_grad():
            value = ctx.f(x, y).sum()
        by_x, by_y = torch.autograd.grad(value, (x, y))
        return -grad * by_x / by_y, None, None


implicit.changed(
    "the sign is lost",
    """
    The minus is missing. On the circle, moving right at the upper right means moving *down*: what
    `x` adds to `f`, `y` has to take away again, so that `f` stays 0.
    """,
    ("return -grad * by_x / by_y, None, None", "return grad * by_x / by_y, None, None"),
)

implicit.changed(
    "upside down",
    """
    This is dx/dy. Solve `f_x dx + f_y dy = 0` for dy/dx: the derivative by `y` goes below. Where
    the curve is vertical, `f_y` is 0 and the derivative is infinite, as it should be.
    """,
    ("return -grad * by_x / by_y, None, None", "return -grad * by_y / by_x, None, None"),
)

implicit.changed(
    "forgets that backward records nothing",
    """
    During backward, recording is off, unless a second derivative was asked for. So `f(x, y)` left
    no graph, and there was nothing to take a gradient of. Switch it on around that one call:
    `with torch.enable_grad():`.
    """,
    (
        "        with torch.enable_grad():\n"
        "            value = ctx.f(x, y).sum()\n"
        "        by_x, by_y = torch.autograd.grad(value, (x, y))",
        "        by_x, by_y = torch.autograd.grad(ctx.f(x, y).sum(), (x, y))",
    ),
)

implicit.changed(
    "forgets the gradient that comes in",
    """
    This is dy/dx. `backward` is asked for the gradient of the loss, and `grad` is the gradient of
    the loss with respect to `y`. Multiply by it.
    """,
    ("return -grad * by_x / by_y, None, None", "return -by_x / by_y, None, None"),
)


@implicit.mutant(
    "searches again in backward",
    why="""
    The root was searched for a second time. A search is the expensive part, and the derivative
    needs none: `y` is known. Save the output as well as the input.
    """,
)
class Implicit(Function):
    @staticmethod
    def forward(ctx, x, f, search):
        ctx.f, ctx.search = f, search
        ctx.save_for_backward(x)
        return search(f, x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        y = ctx.search(ctx.f, x.detach()).detach().requires_grad_()
        x = x.detach().requires_grad_()
        with torch.enable_grad():
            value = ctx.f(x, y).sum()
        by_x, by_y = torch.autograd.grad(value, (x, y))
        return -grad * by_x / by_y, None, None


def _circle(x, y):
    return x * x + y * y - 1


def _halving(low, high):
    """A search that halves an interval; f must change its sign in it."""

    def search(f, x):
        a, b = torch.full_like(x, low), torch.full_like(x, high)
        for _ in range(60):
            middle = (a + b) / 2
            same = f(x, middle) * f(x, a) > 0
            a, b = torch.where(same, middle, a), torch.where(same, b, middle)
        return ((a + b) / 2).detach()

    return search


@implicit.check("the upper half of the unit circle")
def _(kind):
    def slope():
        x = _x([0.5, 0.0, -0.6])
        y = kind.apply(x, _circle, _halving(0.0, 2.0))
        y.sum().backward()
        return y.detach(), x.grad

    yield case("y and dy/dx at x = 0.5, 0, -0.6", slope).gives(
        (_double([0.8660254037844386, 1.0, 0.8]), _double([-0.5773502691896257, 0.0, 0.75]))
    )


@implicit.check("in the middle of a computation")
def _(kind):
    def chained():
        x = _x([0.25, 0.5])
        y = kind.apply(x * 2, lambda x, y: y * y * y - x, _halving(0.0, 2.0))
        (y * _double([3.0, 30.0])).sum().backward()
        return x.grad

    # y is the cube root of 2x
    yield case("y * y * y = 2x, followed by a product", chained).gives(
        _double([3.1748021039363987, 20.0])
    )


@implicit.check("one search is enough", hidden=True)
def _(kind):
    def searches():
        count = [0]

        def search(f, x):
            count[0] += 1
            return (1 - x * x).sqrt()

        x = _x([0.5])
        kind.apply(x, _circle, search).sum().backward()
        return count[0]

    yield case("how often was searched, forward and backward?", searches).gives(1)


implicit.changed(
    "keeps x and y where nobody guards them",
    """
    The versions of attributes of `ctx` are not checked. If `x` is overwritten before backward, the
    derivative is computed at another point, and no error is raised. Tensors go through
    `save_for_backward`.
    """,
    ("ctx.save_for_backward(x, y)", "ctx.kept = x, y"),
    ("ctx.saved_tensors", "ctx.kept"),
)

implicit.changed(
    "adds a small number to the divisor",
    """
    `by_y + 1e-6` avoids a division by 0 and makes every derivative a little wrong; where the curve
    is steep, `by_y` is small itself and the mistake is large. A vertical curve has no derivative:
    an infinite result says so.
    """,
    ("/ by_y,", "/ (by_y + 1e-6),"),
)


@implicit.check("any point of the half circle")
def _(kind):
    def found(x):
        return kind.apply(x, _circle, _halving(0.0, 2.0))

    def known(x):
        return (1 - x * x).sqrt()

    def inputs(draw):
        shape = draw.shape(most=2)
        return (draw.tensor(shape, torch.float64, low=-0.9, high=0.9, requires_grad=True),)

    yield gradient(found, known, inputs, tolerance=1e-7)

    def steep():
        x = _x([0.9999])
        found(x).backward(_double([1.0]))
        return x.grad

    yield case("x = 0.9999, where the circle is steep", steep).gives(_double([-70.7053748]))


@implicit.check("what was saved is guarded, what was set is put back", hidden=True)
def _(kind):
    def written():
        leaf = _x([0.5, 0.6])
        x = leaf * 1
        y = kind.apply(x, _circle, _halving(0.0, 2.0))
        x.mul_(0.5)
        y.sum().backward()
        return leaf.grad

    yield case("y = Implicit.apply(x, …); x.mul_(0.5); y.sum().backward()", written).raises(
        RuntimeError, "modified by an inplace operation"
    )

    yield restores(lambda: kind.apply(_x([0.5]), _circle, _halving(0.0, 2.0)).sum().backward())
