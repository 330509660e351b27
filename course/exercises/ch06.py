"""Chapter 06, Extending autograd: a Function, what is needed, checks, rounding, roots, Hessians."""

import toytorch as torch
from course.cases import case
from course.records import Exercise
from toytorch.autograd import Function
from toytorch.core import dispatch
from toytorch.facts import state

# -- an activation of one's own -------------------------------------------------------------------

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


def _x(values, dtype=torch.float64):
    return torch.tensor(values, dtype=dtype, requires_grad=True)


def _double(values):
    return torch.tensor(values, dtype=torch.float64)


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


# -- only what is needed --------------------------------------------------------------------------

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


# -- is it right? ---------------------------------------------------------------------------------

gradcheck = Exercise(
    "extending.gradcheck",
    "Is a gradient right?",
    chapter=6,
    minutes=20,
    prompt="""
    Write `gradients_agree(f, *inputs)`: `True` if what autograd says of `f` agrees with what
    happens when you **move the inputs a little**, one number at a time.

    * `f(*inputs)` gives a tensor of any shape. Make one number of it with random weights:
      `(result * weights).sum()`. A plain sum would not do: errors can cancel in it.
    * Autograd's answer: `torch.autograd.grad(number, inputs)`.
    * For every number of every input, the **central difference**: move it up by `step`, then down
      by `step`, and divide the difference of the two results by `2 * step`. Put it back.
    * If the two differ by more than `tolerance` anywhere, the answer is `False`.

    The inputs are float64 and contiguous, and all want a gradient. `x.detach().view(-1)` is a row
    of all numbers of `x`, over the same memory: writing to it moves `x`.
    """,
)


@gradcheck.stub
def gradients_agree(f, *inputs, step=1e-6, tolerance=1e-5):
    """Whether the gradients of f are those of small movements."""
    # your code here: about 15 lines
    raise NotImplementedError


@gradcheck.reference
def gradients_agree(f, *inputs, step=1e-6, tolerance=1e-5):
    """Whether the gradients of f are those of small movements."""
    result = f(*inputs)
    weights = torch.rand_like(result)
    slopes = torch.autograd.grad((result * weights).sum(), inputs)
    for x, slope in zip(inputs, slopes):
        numbers, slope = x.detach().view(-1), slope.reshape(-1)
        for i in range(len(numbers)):
            before, ends = numbers[i].item(), []
            for move in (step, -step):
                numbers[i] = before + move
                ends.append((f(*inputs) * weights).sum().item())
            numbers[i] = before
            difference = (ends[0] - ends[1]) / (2 * step)
            if abs(difference - slope[i].item()) > tolerance:
                return False
    return True


@gradcheck.mutant(
    "moves to one side only",
    why="""
    `(f(x + h) - f(x)) / h` is off by about half the curvature times h; to both sides, that part
    cancels and what is left is of the order h². Where the curve bends strongly, the one-sided
    difference calls a right gradient wrong.
    """,
)
def gradients_agree(f, *inputs, step=1e-6, tolerance=1e-5):
    result = f(*inputs)
    weights = torch.rand_like(result)
    slopes = torch.autograd.grad((result * weights).sum(), inputs)
    for x, slope in zip(inputs, slopes):
        numbers, slope = x.detach().view(-1), slope.reshape(-1)
        for i in range(len(numbers)):
            before, ends = numbers[i].item(), []
            for move in (step, 0.0):
                numbers[i] = before + move
                ends.append((f(*inputs) * weights).sum().item())
            numbers[i] = before
            difference = (ends[0] - ends[1]) / step
            if abs(difference - slope[i].item()) > tolerance:
                return False
    return True


@gradcheck.mutant(
    "divides by one step",
    why="""
    From `x - step` to `x + step` it is **two** steps. Divided by one, every slope comes out twice
    as steep, and every right gradient is called wrong.
    """,
)
def gradients_agree(f, *inputs, step=1e-6, tolerance=1e-5):
    result = f(*inputs)
    weights = torch.rand_like(result)
    slopes = torch.autograd.grad((result * weights).sum(), inputs)
    for x, slope in zip(inputs, slopes):
        numbers, slope = x.detach().view(-1), slope.reshape(-1)
        for i in range(len(numbers)):
            before, ends = numbers[i].item(), []
            for move in (step, -step):
                numbers[i] = before + move
                ends.append((f(*inputs) * weights).sum().item())
            numbers[i] = before
            if abs((ends[0] - ends[1]) / step - slope[i].item()) > tolerance:
                return False
    return True


@gradcheck.mutant(
    "looks at the first number only",
    why="""
    Only the first number of each input was moved. Wrong gradients are often right at the first
    place: an index that is off by one, a border, a mask. Move every number.
    """,
)
def gradients_agree(f, *inputs, step=1e-6, tolerance=1e-5):
    result = f(*inputs)
    weights = torch.rand_like(result)
    slopes = torch.autograd.grad((result * weights).sum(), inputs)
    for x, slope in zip(inputs, slopes):
        numbers, slope = x.detach().view(-1), slope.reshape(-1)
        before, ends = numbers[0].item(), []
        for move in (step, -step):
            numbers[0] = before + move
            ends.append((f(*inputs) * weights).sum().item())
        numbers[0] = before
        if abs((ends[0] - ends[1]) / (2 * step) - slope[0].item()) > tolerance:
            return False
    return True


@gradcheck.mutant(
    "looks at the first input only",
    why="""
    A function of two inputs has two gradients, with two rules that may be wrong on their own. Check
    them all.
    """,
)
def gradients_agree(f, *inputs, step=1e-6, tolerance=1e-5):
    result = f(*inputs)
    weights = torch.rand_like(result)
    (slope,) = torch.autograd.grad((result * weights).sum(), inputs[0])
    numbers, slope = inputs[0].detach().view(-1), slope.reshape(-1)
    for i in range(len(numbers)):
        before, ends = numbers[i].item(), []
        for move in (step, -step):
            numbers[i] = before + move
            ends.append((f(*inputs) * weights).sum().item())
        numbers[i] = before
        if abs((ends[0] - ends[1]) / (2 * step) - slope[i].item()) > tolerance:
            return False
    return True


@gradcheck.mutant(
    "adds the results up",
    why="""
    All results had the weight 1. A gradient that mixes up the places, or spreads over all of them
    what belongs to one, has the same sums and passes. (The sum of a softmax is always 1, and then
    any gradient that adds up to 0 would pass.) Weigh the results with different numbers.
    """,
)
def gradients_agree(f, *inputs, step=1e-6, tolerance=1e-5):
    slopes = torch.autograd.grad(f(*inputs).sum(), inputs)
    for x, slope in zip(inputs, slopes):
        numbers, slope = x.detach().view(-1), slope.reshape(-1)
        for i in range(len(numbers)):
            before, ends = numbers[i].item(), []
            for move in (step, -step):
                numbers[i] = before + move
                ends.append(f(*inputs).sum().item())
            numbers[i] = before
            if abs((ends[0] - ends[1]) / (2 * step) - slope[i].item()) > tolerance:
                return False
    return True


@gradcheck.mutant(
    "forgets that a difference has a sign",
    why="""
    `difference - slope > tolerance` is never true where the slope is too *large*. What counts is
    how far apart they are: `abs(...)`.
    """,
)
def gradients_agree(f, *inputs, step=1e-6, tolerance=1e-5):
    result = f(*inputs)
    weights = torch.rand_like(result)
    slopes = torch.autograd.grad((result * weights).sum(), inputs)
    for x, slope in zip(inputs, slopes):
        numbers, slope = x.detach().view(-1), slope.reshape(-1)
        for i in range(len(numbers)):
            before, ends = numbers[i].item(), []
            for move in (step, -step):
                numbers[i] = before + move
                ends.append((f(*inputs) * weights).sum().item())
            numbers[i] = before
            if (ends[0] - ends[1]) / (2 * step) - slope[i].item() > tolerance:
                return False
    return True


@gradcheck.mutant(
    "does not put the number back",
    why="""
    After the check the inputs were somewhere else: each number had stayed where it was moved to
    last. The caller's tensors are changed, and the later differences were taken at the wrong place.
    """,
)
def gradients_agree(f, *inputs, step=1e-6, tolerance=1e-5):
    result = f(*inputs)
    weights = torch.rand_like(result)
    slopes = torch.autograd.grad((result * weights).sum(), inputs)
    for x, slope in zip(inputs, slopes):
        numbers, slope = x.detach().view(-1), slope.reshape(-1)
        for i in range(len(numbers)):
            before, ends = numbers[i].item(), []
            for move in (step, -step):
                numbers[i] = before + move
                ends.append((f(*inputs) * weights).sum().item())
            if abs((ends[0] - ends[1]) / (2 * step) - slope[i].item()) > tolerance:
                return False
    return True


def _with_slope(forward, backward):
    """A function whose derivative is whatever `backward(grad, x)` says."""

    class Claimed(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return forward(x)

        @staticmethod
        def backward(ctx, grad):
            return backward(grad, *ctx.saved_tensors)

    return Claimed.apply


def _sin(factor):
    return _with_slope(lambda x: x.sin(), lambda g, x: g * x.cos() * factor)


def _third_wrong(grad, x):
    slope = x.cos()
    slope[2] = 0.5
    return grad * slope


def _bent(x):
    return 500 * x * x


def _seeded(f, *arguments):
    """f, with the same random weights at every run."""
    before = torch.get_rng_state()
    torch.manual_seed(6)
    try:
        return f(*arguments)
    finally:
        torch.set_rng_state(before)


@gradcheck.check("right ones")
def _(f):
    three = _x([0.3, -1.0, 2.0])
    yield case("sin at three numbers", lambda: _seeded(f, torch.sin, three)).gives(True)
    x, w = _x([[0.3, -1.0], [2.0, 0.5]]), _x([[1.0], [3.0]])
    yield case("a matrix product", lambda: _seeded(f, torch.matmul, x, w)).gives(True)
    strong = _x([1.0, 2.0])
    bent = case("500 * x * x, which bends strongly", lambda: _seeded(f, _bent, strong))
    yield bent.gives(True)


@gradcheck.check("wrong ones")
def _(f):
    def claims(text, function, *values):
        return case(text, lambda: _seeded(f, function, *(_x(v) for v in values))).gives(False)

    yield claims("sin with a slope that is a tenth too small", _sin(0.9), [0.3, -0.2])
    yield claims("sin with a slope that is a tenth too large", _sin(1.1), [0.3, -0.2])
    third = _with_slope(lambda x: x.sin(), _third_wrong)
    yield claims("sin with one wrong slope, at the third number", third, [0.3, -1.0, 2.0])
    wrong = _sin(0.9)
    yield claims(
        "x * sin(y) with a wrong slope for y", lambda x, y: x * wrong(y), [1.0, 2.0], [0.3, 0.5]
    )
    spread = _with_slope(lambda x: x * 1, lambda g, x: g.mean() + 0 * x)
    yield claims("x * 1 with the gradient spread evenly", spread, [1.0, 2.0, 3.0])


@gradcheck.check("the inputs stay where they were", hidden=True)
def _(f):
    def after():
        x = _x([0.3, -1.0, 2.0])
        f(torch.sin, x)
        return x.tolist() == [0.3, -1.0, 2.0]

    yield case("are the inputs the same, to the last digit?", after).gives(True)


# -- straight through -----------------------------------------------------------------------------

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


# -- implicit functions ---------------------------------------------------------------------------

implicit = Exercise(
    "extending.implicit",
    "The gradient of a search",
    chapter=6,
    minutes=18,
    prompt="""
    On the unit circle, $f(x, y) = x^2 + y^2 - 1 = 0$. Given `x`, somebody *searches* for a `y`:
    with Newton's method, by trial and error, in another language. No graph leads through a search,
    and none is needed. Moving along the curve, `f` stays 0, so

    $$\\frac{\\partial f}{\\partial x}\\,dx + \\frac{\\partial f}{\\partial y}\\,dy = 0
      \\qquad\\Longrightarrow\\qquad
      \\frac{dy}{dx} = -\\,\\frac{\\partial f/\\partial x}{\\partial f/\\partial y}.$$

    Write the Function `Implicit`. `Implicit.apply(x, f, search)` gives `search(f, x)`, a `y` of the
    shape of `x`; all is elementwise. `backward` computes the slope from one call of `f`:

    * take `x` and `y` from what was saved, detached, and wanting gradients;
    * **inside `backward` no graph is recorded**, unless you ask for it: call `f` under
      `with torch.enable_grad():`;
    * then `torch.autograd.grad(f(x, y).sum(), (x, y))` gives both derivatives.

    `f` and `search` are functions: put `f` on `ctx` itself. They get no gradient.
    """,
)


@implicit.stub
class Implicit(Function):
    """A y with f(x, y) = 0, found by a search, differentiable in x."""

    @staticmethod
    def forward(ctx, x, f, search):
        # your code here: about 4 lines
        raise NotImplementedError

    @staticmethod
    def backward(ctx, grad):
        # your code here: about 5 lines
        raise NotImplementedError


@implicit.reference
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


@implicit.mutant(
    "the sign is lost",
    why="""
    The minus is missing. On the circle, moving right at the upper right means moving *down*: what
    `x` adds to `f`, `y` has to take away again, so that `f` stays 0.
    """,
)
class Implicit(Function):
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
        return grad * by_x / by_y, None, None


@implicit.mutant(
    "upside down",
    why="""
    This is dx/dy. Solve `f_x dx + f_y dy = 0` for dy/dx: the derivative by `y` goes below. Where
    the curve is vertical, `f_y` is 0 and the slope is infinite, as it should be.
    """,
)
class Implicit(Function):
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
        return -grad * by_y / by_x, None, None


@implicit.mutant(
    "forgets that backward records nothing",
    why="""
    During backward, recording is off, unless a second derivative was asked for. So `f(x, y)` left
    no graph, and there was nothing to take a gradient of. Switch it on around that one call:
    `with torch.enable_grad():`.
    """,
)
class Implicit(Function):
    @staticmethod
    def forward(ctx, x, f, search):
        y = search(f, x)
        ctx.f = f
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, grad):
        x, y = (t.detach().requires_grad_() for t in ctx.saved_tensors)
        by_x, by_y = torch.autograd.grad(ctx.f(x, y).sum(), (x, y))
        return -grad * by_x / by_y, None, None


@implicit.mutant(
    "forgets the gradient that comes in",
    why="""
    This is dy/dx. The loss depends on `y` in turn, and how much is what `grad` says: multiply by
    it.
    """,
)
class Implicit(Function):
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
        return -by_x / by_y, None, None


@implicit.mutant(
    "searches again in backward",
    why="""
    The root was searched for a second time. A search is the expensive part, and the slope needs
    none: `y` is known. Save the output as well as the input.
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


# -- the Hessian, times a vector ------------------------------------------------------------------

hessian = Exercise(
    "extending.hvp",
    "The Hessian times a vector",
    chapter=6,
    minutes=10,
    prompt="""
    The Hessian holds all second derivatives: for a million numbers, a million rows of a million.
    Nobody can store it. But its product with a *vector* is one backward pass through a backward
    pass:

    $$H v = \\frac{\\partial}{\\partial x}
      \\,\\Big(\\frac{\\partial f}{\\partial x} \\cdot v\\Big).$$

    Write `hvp(f, x, v)`: `f` gives one number, `x` and `v` have the same shape, and so has the
    result.

    * The first `torch.autograd.grad` has to record what it does: `create_graph=True`.
    * `x` need not want a gradient, and is not to be changed: work on a detached one that does.
    """,
)


@hessian.stub
def hvp(f, x, v):
    """The matrix of second derivatives of f at x, times v."""
    # your code here: about 4 lines
    raise NotImplementedError


@hessian.reference
def hvp(f, x, v):
    """The matrix of second derivatives of f at x, times v."""
    x = x.detach().requires_grad_()
    (slope,) = torch.autograd.grad(f(x), x, create_graph=True)
    (product,) = torch.autograd.grad((slope * v).sum(), x)
    return product


@hessian.mutant(
    "does not record the first pass",
    why="""
    Without `create_graph=True` the first backward pass leaves no graph: the slope is a plain
    tensor, and there is nothing to take a derivative of.
    """,
)
def hvp(f, x, v):
    x = x.detach().requires_grad_()
    (slope,) = torch.autograd.grad(f(x), x)
    (product,) = torch.autograd.grad((slope * v).sum(), x)
    return product


@hessian.mutant(
    "multiplies too late",
    why="""
    `slope.sum()` adds up the rows of the Hessian before `v` had a say, and then `v` was multiplied
    number by number. That is right only where the Hessian is diagonal, as for a sum of powers. `v`
    has to be in the sum.
    """,
)
def hvp(f, x, v):
    x = x.detach().requires_grad_()
    (slope,) = torch.autograd.grad(f(x), x, create_graph=True)
    (product,) = torch.autograd.grad(slope.sum(), x)
    return product * v


@hessian.mutant(
    "collects in .grad",
    why="""
    `backward` was called twice, and both passes *added* to `x.grad`: what came out is the slope
    plus the product. `torch.autograd.grad` hands the gradient back and adds to nothing.
    """,
)
def hvp(f, x, v):
    x = x.detach().requires_grad_()
    f(x).backward(create_graph=True)
    (x.grad * v).sum().backward()
    return x.grad.detach()


@hessian.mutant(
    "the slope times v",
    why="""
    This is the slope in the direction of v, number by number: a *first* derivative. Take the
    derivative of its sum once more.
    """,
)
def hvp(f, x, v):
    x = x.detach().requires_grad_()
    (slope,) = torch.autograd.grad(f(x), x, create_graph=True)
    return (slope * v).detach()


@hessian.mutant(
    "v on both sides",
    why="""
    `v · H · v` is one number, the curvature along v. Asked for was the vector H v: leave the second
    `v` away.
    """,
)
def hvp(f, x, v):
    x = x.detach().requires_grad_()
    (slope,) = torch.autograd.grad(f(x), x, create_graph=True)
    (product,) = torch.autograd.grad((slope * v).sum(), x)
    return (product * v).sum()


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
