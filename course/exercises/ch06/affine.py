"""Only the gradients that somebody wants."""

import toytorch as torch
from course.cases import case
from course.records import Exercise
from toytorch.autograd import Function
from toytorch.core import dispatch
from toytorch.facts import state

affine = Exercise(
    "extending.affine",
    "Only the gradients that somebody wants",
    chapter=6,
    minutes=12,
    prompt="""
    A linear layer as one node: `Affine.apply(x, w, b)` is `x @ w + b`, with shapes `(n, k)`,
    `(k, m)` and `(m,)`. It has three inputs, so `backward` returns **three** gradients, in the
    order of the inputs of `forward`:

    * for `x`: `grad @ w.t()`; for `w`: `x.t() @ grad`; for `b`: the sum of `grad` over its rows.
    * In the first layer of a network `x` is data, and nobody wants its gradient. That product would
      be thrown away. `ctx.needs_input_grad` holds a `True` or `False` for each input: where it is
      `False`, **do not compute** the gradient, and return `None` in its place.
    """,
)


@affine.stub
class Affine(Function):
    """x @ w + b, which computes the gradients that are wanted."""

    @staticmethod
    def forward(ctx, x, w, b):
        # your code here: two lines
        raise NotImplementedError

    @staticmethod
    def backward(ctx, grad):
        # your code here: about 8 lines
        raise NotImplementedError


@affine.reference
class Affine(Function):
    """x @ w + b, which computes the gradients that are wanted."""

    @staticmethod
    def forward(ctx, x, w, b):
        ctx.save_for_backward(x, w)
        return x @ w + b

    @staticmethod
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        for_x = for_w = for_b = None
        if ctx.needs_input_grad[0]:
            for_x = grad @ w.t()
        if ctx.needs_input_grad[1]:
            for_w = x.t() @ grad
        if ctx.needs_input_grad[2]:
            for_b = grad.sum(0)
        return for_x, for_w, for_b


@affine.mutant(
    "computes what nobody wants",
    why="""
    All three gradients were computed, and the engine threw away the one for the data. The numbers
    are right. In the first layer of a network this doubles the work of backward for nothing; ask
    `ctx.needs_input_grad`.
    """,
)
class Affine(Function):
    @staticmethod
    def forward(ctx, x, w, b):
        ctx.save_for_backward(x, w)
        return x @ w + b

    @staticmethod
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        return grad @ w.t(), x.t() @ grad, grad.sum(0)


@affine.mutant(
    "leaves out those that are not wanted",
    why="""
    The list that came back had no place for the inputs that want nothing, so the others moved up.
    The engine goes by position: return one entry for *every* input of `forward`, and `None` where
    there is nothing to say.
    """,
)
class Affine(Function):
    @staticmethod
    def forward(ctx, x, w, b):
        ctx.save_for_backward(x, w)
        return x @ w + b

    @staticmethod
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        all_three = [lambda: grad @ w.t(), lambda: x.t() @ grad, lambda: grad.sum(0)]
        return tuple(f() for f, asked in zip(all_three, ctx.needs_input_grad) if asked)


@affine.mutant(
    "the order of the output's formula",
    why="""
    The gradients came in another order than the inputs of `forward`. Nothing in a gradient says
    whose it is; the engine goes by position. Here the shapes gave it away. With two inputs of one
    shape nothing would.
    """,
)
class Affine(Function):
    @staticmethod
    def forward(ctx, x, w, b):
        ctx.save_for_backward(x, w)
        return x @ w + b

    @staticmethod
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        for_x = for_w = for_b = None
        if ctx.needs_input_grad[0]:
            for_x = grad @ w.t()
        if ctx.needs_input_grad[1]:
            for_w = x.t() @ grad
        if ctx.needs_input_grad[2]:
            for_b = grad.sum(0)
        return for_w, for_x, for_b


@affine.mutant(
    "the mean over the rows",
    why="""
    Every row used the same bias, so the gradients of all rows **add up**. If the loss is a mean,
    its 1/n is in `grad` already.
    """,
)
class Affine(Function):
    @staticmethod
    def forward(ctx, x, w, b):
        ctx.save_for_backward(x, w)
        return x @ w + b

    @staticmethod
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        for_x = for_w = for_b = None
        if ctx.needs_input_grad[0]:
            for_x = grad @ w.t()
        if ctx.needs_input_grad[1]:
            for_w = x.t() @ grad
        if ctx.needs_input_grad[2]:
            for_b = grad.mean(0)
        return for_x, for_w, for_b


@affine.mutant(
    "forgets to transpose w",
    why="""
    `grad @ w` fits where `w` is square, and is wrong there. Forward, `w` leads from k to m; the way
    back leads from m to k, and that is `w.t()`.
    """,
)
class Affine(Function):
    @staticmethod
    def forward(ctx, x, w, b):
        ctx.save_for_backward(x, w)
        return x @ w + b

    @staticmethod
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        for_x = for_w = for_b = None
        if ctx.needs_input_grad[0]:
            for_x = grad @ w
        if ctx.needs_input_grad[1]:
            for_w = x.t() @ grad
        if ctx.needs_input_grad[2]:
            for_b = grad.sum(0)
        return for_x, for_w, for_b


class _Products:
    """A mode that counts matrix products."""

    def __init__(self):
        self.count = 0

    def on_call(self, op, args, out):
        self.count += op.name in ("mm", "matmul", "bmm")
        return dispatch.call(op, args, out)


def _affine_inputs(*wanted):
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    w = torch.tensor([[1.0, -1.0], [2.0, 0.0]])
    inputs = [x, w, torch.tensor([10.0, 20.0])]
    return [t.requires_grad_(want) for t, want in zip(inputs, wanted, strict=True)]


AFFINE_GRAD = [[1.0, 0.0], [10.0, 0.0], [100.0, 1.0]]


@affine.check("the function")
def _(kind):
    yield case(
        "Affine.apply(x, w, b)", lambda: kind.apply(*_affine_inputs(True, True, True)).detach()
    ).gives(torch.tensor([[15.0, 19.0], [21.0, 17.0], [27.0, 15.0]]))


def _affine_grads(kind, *wanted):
    inputs = _affine_inputs(*wanted)
    kind.apply(*inputs).backward(torch.tensor(AFFINE_GRAD))
    return [None if t.grad is None else t.grad.tolist() for t in inputs]


# what PyTorch gives
AFFINE_X = [[1.0, 2.0], [10.0, 20.0], [99.0, 200.0]]
AFFINE_W = [[531.0, 5.0], [642.0, 6.0]]
AFFINE_B = [111.0, 1.0]


@affine.check("all three gradients")
def _(kind):
    yield case(
        "backward where all three are wanted", lambda: _affine_grads(kind, True, True, True)
    ).gives([AFFINE_X, AFFINE_W, AFFINE_B])


@affine.check("some of them")
def _(kind):
    yield case("where x is data", lambda: _affine_grads(kind, False, True, True)).gives(
        [None, AFFINE_W, AFFINE_B]
    )
    yield case("where w is frozen", lambda: _affine_grads(kind, True, False, False)).gives(
        [AFFINE_X, None, None]
    )


@affine.check("no product for nothing", hidden=True)
def _(kind):
    def products(*wanted):
        result = kind.apply(*_affine_inputs(*wanted))
        counter = _Products()
        with state.watching(counter):
            result.backward(torch.tensor(AFFINE_GRAD))
        return counter.count

    text = "matrix products in backward, where "
    yield case(text + "x is data", lambda: products(False, True, True)).gives(1)
    yield case(text + "x and w are constants", lambda: products(False, False, True)).gives(0)
    yield case(text + "all are wanted", lambda: products(True, True, True)).gives(2)
