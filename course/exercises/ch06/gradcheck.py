"""Is a gradient right?."""

import math

import toytorch as torch
from course.cases import case
from course.exercises.ch06.common import _x
from course.records import Exercise
from toytorch.autograd import Function

gradcheck = Exercise(
    "extending.gradcheck",
    "Is a gradient right?",
    chapter=6,
    minutes=25,
    prompt="""
    Write `gradients_agree(f, *inputs)`. It returns `True` if autograd's gradient of `f` agrees with
    difference quotients, for which you **move the inputs a little**, one element at a time.

    * `f(*inputs)` gives a tensor of any shape. Make one number of it with random weights:
      `(result * weights).sum()`. A plain sum would not do: errors can cancel in it.
    * Autograd's answer: `torch.autograd.grad(number, inputs)`.
    * For every element of every input, the **central difference**: move it up by `step`, then down
      by `step`, and divide the difference of the two results by `2 * step`. Put it back.
    * If the two differ by more than `tolerance` anywhere, the answer is `False`. So it is where one
      of them is `nan`: every comparison with `nan` is false, so ask "is it close?", not "is it
      far?".
    * Afterwards the inputs are as they were: their elements, their `.grad`, that they want a
      gradient.

    The inputs are float64 and contiguous, and all want a gradient. `x.detach().view(-1)` is a row
    of all elements of `x`, over the same memory: writing to it moves `x`.
    """,
    without=("torch.autograd.gradcheck",),
    hints=(
        """
        There are two ways to compute a derivative. Autograd computes it from derivative rules; that
        is what may be wrong. A small movement needs no rules: change one element of an input by
        `step`, evaluate `f`, and see how much the result changed. Do this for every element of
        every input, and compare the two numbers each time.
        """,
        """
        `f` is `torch.sin`, `x = [0.3, -1.0]`, and the random weights happen to be `[0.5, 0.2]`. The number
        is `0.5 * sin(x[0]) + 0.2 * sin(x[1])`. To read it easily, take `step = 0.01`:

        | element | moved up: the number | moved down: the number | difference / 0.02 | autograd |
        | --- | --- | --- | --- | --- |
        | `x[0] = 0.3` | at 0.31: −0.015765 | at 0.29: −0.025318 | 0.47766 | 0.5 · cos 0.3 = 0.47767 |
        | `x[1] = -1.0` | at −0.99: −0.019445 | at −1.01: −0.021606 | 0.10806 | 0.2 · cos(−1) = 0.10806 |

        Before the second row is computed, `x[0]` is 0.3 again. Both rows agree, so the answer is `True`. If
        the rule for `sin` said `0.9 * cos`, autograd's 0.42990 would be 0.048 away from 0.47766: `False`.
        """,
        """
        ```python
        def gradients_agree(f, *inputs, step=1e-6, tolerance=1e-5):
            result = f(*inputs)
            weights = ...  # random, of the result's shape
            slopes = torch.autograd.grad(..., inputs)
            for x, slope in zip(inputs, slopes):
                numbers, slope = x.detach().view(-1), slope.reshape(-1)
                for i in range(len(numbers)):
                    before, ends = numbers[i].item(), []
                    for move in (step, -step):
                        numbers[i] = ...
                        ends.append(...)
                    ...  # put it back
                    difference = ...
                    if not abs(difference - slope[i].item()) <= tolerance:
                        return False
            return True
        ```
        """,
    ),
)


@gradcheck.reference(stub="your code here: about 15 lines")
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
            if not abs(difference - slope[i].item()) <= tolerance:
                return False
    return True


gradcheck.changed(
    "moves to one side only",
    """
    `(f(x + h) - f(x)) / h` is off by about half the curvature times h; to both sides, that part
    cancels and what is left is of the order h². Where the curve bends strongly, the one-sided
    difference calls a right gradient wrong.
    """,
    ("for move in (step, -step):", "for move in (step, 0.0):"),
    ("difference = (ends[0] - ends[1]) / (2 * step)", "difference = (ends[0] - ends[1]) / step"),
)

gradcheck.changed(
    "divides by one step",
    """
    From `x - step` to `x + step` it is **two** steps. Divided by one, every derivative comes out
    twice as large, and every right gradient is called wrong.
    """,
    ("difference = (ends[0] - ends[1]) / (2 * step)", "difference = (ends[0] - ends[1]) / step"),
)


@gradcheck.mutant(
    "looks at the first element only",
    why="""
    Only the first number of each input was moved. Wrong gradients are often right at the first
    place: an index that is off by one, a border, a mask. Move every element.
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
        if not abs((ends[0] - ends[1]) / (2 * step) - slope[0].item()) <= tolerance:
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
        if not abs((ends[0] - ends[1]) / (2 * step) - slope[i].item()) <= tolerance:
            return False
    return True


gradcheck.changed(
    "adds the results up",
    """
    All results had the weight 1. A gradient that mixes up the places, or spreads over all of them
    what belongs to one, has the same sums and passes. (The sum of a softmax is always 1, and then
    any gradient that adds up to 0 would pass.) Weigh the results with different numbers.
    """,
    (
        "    result = f(*inputs)\n"
        "    weights = torch.rand_like(result)\n"
        "    slopes = torch.autograd.grad((result * weights).sum(), inputs)",
        "    slopes = torch.autograd.grad(f(*inputs).sum(), inputs)",
    ),
    ("ends.append((f(*inputs) * weights).sum().item())", "ends.append(f(*inputs).sum().item())"),
)

gradcheck.changed(
    "forgets that a difference has a sign",
    """
    `difference - slope > tolerance` is never true where the derivative is too *large*. What counts is
    how far apart they are: `abs(...)`.
    """,
    (
        "if not abs(difference - slope[i].item()) <= tolerance:",
        "if difference - slope[i].item() > tolerance:",
    ),
)

gradcheck.changed(
    "does not put the element back",
    """
    After the check the inputs were somewhere else: each element had stayed where it was moved to
    last. The caller's tensors are changed, and the later differences were taken at the wrong place.
    """,
    ("            numbers[i] = before\n", ""),
)


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


gradcheck.changed(
    "lets nan agree",
    """
    `abs(...) > tolerance` is false where one of the two is `nan`, as every comparison with `nan`
    is. So a rule that gives `nan` passes. Ask the other way round: `not abs(...) <= tolerance`.
    """,
    ("not abs(difference - slope[i].item()) <= tolerance", "abs(difference - slope[i].item()) > tolerance"),
)

gradcheck.changed(
    "does not use the step and the tolerance it is given",
    """
    `step` and `tolerance` stand in the first line so that the caller can choose them: a larger
    step for float32, a smaller tolerance for a strict test. Here fixed numbers were used.
    """,
    ("    result = f(*inputs)\n", "    step, tolerance = 1e-6, 1e-5\n    result = f(*inputs)\n"),
)

gradcheck.changed(
    "leaves gradients behind",
    """
    `backward()` adds its gradients to `x.grad`, and there they stay. Whoever trains with these
    tensors afterwards has them in their next step. `torch.autograd.grad` returns the gradients and
    leaves `.grad` alone.
    """,
    (
        "slopes = torch.autograd.grad((result * weights).sum(), inputs)",
        "(result * weights).sum().backward()\n    slopes = [x.grad for x in inputs]",
    ),
)

gradcheck.changed(
    "lets the mean error decide",
    """
    The differences were averaged. In a large tensor one wrong element hardly moves the mean, and a
    single wrong element is a wrong gradient. Every difference has to be within the tolerance.
    """,
    (
        "    for x, slope in zip(inputs, slopes):",
        "    errors = []\n"
        "    for x, slope in zip(inputs, slopes):",
    ),
    (
        "            if not abs(difference - slope[i].item()) <= tolerance:\n"
        "                return False\n"
        "    return True",
        "            errors.append(abs(difference - slope[i].item()))\n"
        "    return sum(errors) / len(errors) <= tolerance",
    ),
)


def _one_of_twenty(grad, x):
    slope = x.cos()
    slope[13] += 1e-4
    return grad * slope


@gradcheck.check("nan, a single small mistake, a derivative of 0")
def _(f):
    nothing = _with_slope(lambda x: x.sin(), lambda g, x: g * float("nan"))
    yield case("sin with the slope nan", lambda: _seeded(f, nothing, _x([0.3]))).gives(False)
    one = _with_slope(lambda x: x.sin(), _one_of_twenty)
    many = [0.1 * n for n in range(20)]
    yield case(
        "sin at 20 numbers, with one slope 0.0001 too large", lambda: _seeded(f, one, _x(many))
    ).gives(False)
    flat = case(
        "1000 * sin(x) at its top, where the slope is 0",
        lambda: _seeded(f, lambda x: 1000 * x.sin(), _x([math.pi / 2])),
    )
    yield flat.gives(True)


@gradcheck.check("the step and the tolerance of the caller")
def _(f):
    yield case(
        "relu at 0.05 with step=0.1, which reaches over the kink",
        lambda: _seeded(lambda *a: f(*a, step=0.1), torch.relu, _x([0.05])),
    ).gives(False)
    yield case(
        "sin with a slope that is a tenth too small, tolerance=0.5",
        lambda: _seeded(lambda *a: f(*a, tolerance=0.5), _sin(0.9), _x([0.3])),
    ).gives(True)


@gradcheck.check("nothing is left behind", hidden=True)
def _(f):
    def left():
        x = _x([[0.3, -1.0], [0.5, 2.0]])
        f(torch.sin, x)
        return x.requires_grad, x.grad is None, torch.is_grad_enabled()

    text = "x wants a gradient; x.grad is None; gradients are recorded; after the call"
    yield case(text, left).gives((True, True, True))
