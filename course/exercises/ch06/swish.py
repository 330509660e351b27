"""A Function of two inputs: Swish."""

import toytorch as torch
from course.cases import case
from course.exercises.ch06.common import _double, _x
from course.properties import gradient, restores, second_derivative, untouched
from course.records import Exercise
from toytorch.autograd import Function
from toytorch.core import dispatch
from toytorch.facts import state

swish = Exercise(
    "extending.swish",
    "A Function of two inputs: Swish",
    chapter=6,
    minutes=25,
    prompt="""
    Swish is $y = x\\,\\sigma(\\beta x)$ with $\\sigma(u) = 1/(1 + e^{-u})$. The number $\\beta$ can
    be learned; it is a tensor of no dimension, and all elements of `x` use it. With
    $s = \\sigma(\\beta x)$,

    $$\\frac{\\partial y}{\\partial x} = s + \\beta x\\,s\\,(1 - s), \\qquad
      \\frac{\\partial y}{\\partial \\beta} = x^2\\,s\\,(1 - s).$$

    Written with operations it costs three nodes. Write it as **one** node, a subclass of
    `Function`. Used as `Swish.apply(x, beta)`.

    * Step 1, `forward(ctx, x, beta)`: compute the result, and leave both inputs with
      `ctx.save_for_backward(…)`. No graph is recorded in it. There is `.sigmoid()`.
    * Step 2, `backward(ctx, grad)`: read both from `ctx.saved_tensors`, and return **two**
      gradients, in the order of the inputs of `forward`. All elements used the same `beta`, so its
      gradient is a **sum** over all of them.
    * Step 3: where `beta` is a constant, nobody needs its gradient. `ctx.needs_input_grad` holds
      `True` or `False` for each input. Where it is `False`, **do not compute** that gradient, and
      return `None` in its place.

    `backward` is ordinary tensor code: with `create_graph=True` it is recorded itself, and that is
    how second derivatives come about.
    """,
    without=("torch.nn.functional.silu",),
    hints=(
        """
        There are two jobs. `forward` computes and saves its *inputs*. `backward` multiplies `grad`,
        the gradient of the loss by $y$, with the two derivatives of the formula. What `forward`
        computed in between, $s$ for example, is computed again in `backward`: inside `forward`
        nothing is recorded, so a saved $s$ would be a constant to the second derivative.
        """,
        """
        One element, $x = 1$, with $\\beta = 2$ and `grad` = 3:

        | step | value |
        | --- | --- |
        | $s = \\sigma(2 \\cdot 1)$ | 0.8808 |
        | $y = x s$ | 0.8808 |
        | $s(1 - s)$ | 0.1050 |
        | $\\partial y/\\partial x = s + \\beta x\\,s(1-s) = 0.8808 + 2 \\cdot 0.1050$ | 1.0908 |
        | gradient of $x$: 3 · 1.0908 | 3.2724 |
        | $\\partial y/\\partial \\beta = x^2 s(1-s)$ | 0.1050 |
        | share of this element in the gradient of $\\beta$: 3 · 0.1050 | 0.3150 |

        With more elements, the gradient of $x$ has one entry for each, and the gradient of $\\beta$
        is the sum of their shares. If `ctx.needs_input_grad` is `(True, False)`, the last two rows
        are not computed, and `backward` returns `(gradient of x, None)`.
        """,
        """
        ```python
        class Swish(Function):
            @staticmethod
            def forward(ctx, x, beta):
                ctx.save_for_backward(...)
                return ...

            @staticmethod
            def backward(ctx, grad):
                x, beta = ctx.saved_tensors
                s = ...
                for_x = for_beta = None
                if ctx.needs_input_grad[0]:
                    for_x = ...
                if ctx.needs_input_grad[1]:
                    for_beta = ...
                return for_x, for_beta
        ```
        """,
    ),
)


@swish.reference(stub={
    "forward": "your code here: two lines",
    "backward": "your code here: about 9 lines",
})
class Swish(Function):
    """x times the sigmoid of beta x, as one node; beta: ()."""

    @staticmethod
    def forward(ctx, x, beta):
        ctx.save_for_backward(x, beta)
        return x * (beta * x).sigmoid()

    @staticmethod
    def backward(ctx, grad):
        x, beta = ctx.saved_tensors
        s = (beta * x).sigmoid()
        for_x = for_beta = None
        if ctx.needs_input_grad[0]:
            for_x = grad * (s + beta * x * s * (1 - s))
        if ctx.needs_input_grad[1]:
            for_beta = (grad * x * x * s * (1 - s)).sum()
        return for_x, for_beta


swish.changed(
    "forgets the gradient that comes in",
    """
    `backward` returned the derivative of y. It is asked for the gradient of the *loss*: what comes
    in, times the derivative. Without `grad`, everything between here and the loss is lost.
    """,
    ("grad * (s +", "(s +"),
    ("(grad * x * x", "(x * x"),
)

swish.changed(
    "forgets one of the two places of x",
    """
    `x` stands in the formula twice, as a factor and inside the sigmoid. This is the part that comes
    through the factor; the other part, `beta * x * s * (1 - s)`, comes through the sigmoid, and
    they add up.
    """,
    ("grad * (s + beta * x * s * (1 - s))", "grad * s"),
)

swish.changed(
    "keeps x where nobody guards it",
    """
    `ctx.x = x` works, but its version is not checked. If `x` is overwritten before backward, the
    derivative is computed at another point, and no error is raised. A tensor that is saved with
    `save_for_backward` is checked, and it is freed after backward.
    """,
    ("ctx.save_for_backward(x, beta)", "ctx.x, ctx.beta = x, beta"),
    ("ctx.saved_tensors", "ctx.x, ctx.beta"),
)

swish.changed(
    "keeps an intermediate result of forward",
    """
    `s` was computed in `forward`, where nothing is recorded, and kept. To autograd it is a constant
    that has nothing to do with `x`. The first derivative is right; the second takes `s` for a
    constant and is wrong, without an error. Save inputs and outputs, and compute the rest again in
    `backward`.
    """,
    ("ctx.save_for_backward(x, beta)", "ctx.save_for_backward(x, beta, (beta * x).sigmoid())"),
    ("x, beta = ctx.saved_tensors", "x, beta, s = ctx.saved_tensors"),
    ("        s = (beta * x).sigmoid()\n", ""),
)

swish.changed(
    "cuts its own history",
    """
    The derivative was computed on a detached `x`, or under `no_grad`. Its value is right, but it
    has no history, so a second derivative is impossible. Use `x` as `saved_tensors` gives it, with
    its history.
    """,
    ("x, beta = ctx.saved_tensors", "x, beta = (t.detach() for t in ctx.saved_tensors)"),
)

swish.changed(
    "computes what nobody needs",
    """
    Both gradients were computed, and the engine did not use one of them. The results are right. But
    in the first layer of a network, where `x` is data, this doubles the work of backward. Ask
    `ctx.needs_input_grad`.
    """,
    ("        if ctx.needs_input_grad[0]:\n            for_x", "        if True:\n            for_x"),
    (
        "        if ctx.needs_input_grad[1]:\n            for_beta",
        "        if True:\n            for_beta",
    ),
)

swish.changed(
    "leaves out those that are not needed",
    """
    The list that came back had no place for the input that needs nothing, so the other one moved
    up. The engine goes by position: return one entry for *every* input of `forward`, and `None` for
    an input without a gradient.
    """,
    (
        "return for_x, for_beta",
        "return tuple(g for g in (for_x, for_beta) if g is not None)",
    ),
)

swish.changed(
    "the gradients in another order",
    """
    The gradients came in another order than the inputs of `forward`. The engine pairs gradients
    with inputs by position, so each input got another one's gradient.
    """,
    ("return for_x, for_beta", "return for_beta, for_x"),
)

swish.changed(
    "the mean over the elements",
    """
    The shares of `beta` were averaged. Every element used the same `beta`, and their shares **add
    up**. If the loss is a mean, its 1/n is in `grad` already.
    """,
    ("(1 - s)).sum()", "(1 - s)).mean()"),
)

swish.changed(
    "writes into the gradient that comes in",
    """
    Others may use `grad` as well: another node may have got the same tensor, and the caller of
    `backward(grad)` still holds it. A change in place changes it for all of them. Make a new
    tensor.
    """,
    ("for_x = grad * (s +", "for_x = grad.mul_(s +"),
    ("(grad * x * x * s", "(grad.clone() * x * x * s"),
)


class _Operations:
    """A mode that counts operations."""

    def __init__(self):
        self.count = 0

    def on_call(self, op, args, out):
        self.count += 1
        return dispatch.call(op, args, out)


# what PyTorch gives, for beta = 2
SWISH_X = [-2.0, 0.0, 1.0, 3.0]
SWISH_Y = [-0.03597241992418312, 0.0, 0.8807970779778823, 2.992582130530096]
SWISH_FIRST = [-0.05266461489107291, 1.0, 3.2723527463546866, 4.0493057303660995]
SWISH_BETA = 0.47442591555264185
SWISH_SECOND = [-0.06556786257394859, 1.0, 0.10012433738941402, -0.01958570437912254]


def _inputs(wants_x=True, wants_beta=True):
    x = torch.tensor(SWISH_X, dtype=torch.float64, requires_grad=wants_x)
    return x, torch.tensor(2.0, dtype=torch.float64, requires_grad=wants_beta)


def _by_operations(x, beta):
    return x * (beta * x).sigmoid()


@swish.check("the function")
def _(kind):
    yield case(f"Swish.apply(x, 2) for x = {SWISH_X}", lambda: kind.apply(*_inputs()).detach()).gives(
        _double(SWISH_Y)
    )


def _grads(kind, *wanted):
    inputs = _inputs(*wanted)
    kind.apply(*inputs).backward(_double([1.0, 2.0, 3.0, 4.0]))
    return [None if t.grad is None else t.grad for t in inputs]


@swish.check("its gradients")
def _(kind):
    text = "the gradients of x and beta, for tensor([1., 2., 3., 4.])"
    yield case(text, lambda: _grads(kind, True, True)).gives(
        [_double(SWISH_FIRST), _double(SWISH_BETA)]
    )
    yield case(text + ", where beta is a constant", lambda: _grads(kind, True, False)).gives(
        [_double(SWISH_FIRST), None]
    )
    yield case(text + ", where x is data", lambda: _grads(kind, False, True)).gives(
        [None, _double(SWISH_BETA)]
    )


@swish.check("a second derivative")
def _(kind):
    def second():
        x, beta = _inputs()
        (slope,) = torch.autograd.grad(kind.apply(x, beta).sum(), x, create_graph=True)
        (bend,) = torch.autograd.grad(slope.sum(), x)
        return bend

    yield case("the derivative of the derivative, by x", second).gives(_double(SWISH_SECOND))


def _any(draw):
    x = draw.tensor(draw.shape(), torch.float64, requires_grad=True)
    return x, torch.tensor(draw.number(), dtype=torch.float64, requires_grad=True)


@swish.check("any shape, any beta")
def _(kind):
    yield gradient(kind.apply, _by_operations, _any)
    yield second_derivative(kind.apply, _by_operations, _any)
    yield untouched(kind.apply, _any)
    yield restores(lambda: _grads(kind))

    def same_grad():
        grad = _double([1.0, 2.0, 3.0, 4.0])
        kind.apply(*_inputs()).backward(grad)
        return grad

    yield case("the tensor that was handed to backward, afterwards", same_grad).gives(
        _double([1.0, 2.0, 3.0, 4.0])
    )


@swish.check("nothing is computed in vain", hidden=True)
def _(kind):
    def operations(*wanted):
        result = kind.apply(*_inputs(*wanted))
        counter = _Operations()
        with state.watching(counter):
            result.backward(_double([1.0, 2.0, 3.0, 4.0]))
        return counter.count

    def fewer(*wanted):
        return operations(*wanted) < operations(True, True)

    text = "fewer operations in backward, where "
    yield case(text + "beta is a constant?", lambda: fewer(True, False)).gives(True)
    yield case(text + "x is data?", lambda: fewer(False, True)).gives(True)


@swish.check("x is guarded", hidden=True)
def _(kind):
    def written():
        leaf = _x([1.0, 2.0])
        x = leaf * 1
        y = kind.apply(x, torch.tensor(2.0, dtype=torch.float64))
        x.mul_(10)
        y.sum().backward()
        return leaf.grad

    yield case("y = Swish.apply(x, beta); x.mul_(10); y.sum().backward()", written).raises(
        RuntimeError, "modified by an inplace operation"
    )
