"""A kernel that does not overflow."""

import warnings

import numpy as np

import toytorch as torch
from course.cases import case
from course.records import Exercise

sigmoid = Exercise(
    "ops.sigmoid",
    "A kernel that does not overflow",
    chapter=3,
    minutes=12,
    inject=lambda f: torch.ops.sigmoid.using(kernel=f),
    prompt="""
    $$\\sigma(x) = \\frac{1}{1 + e^{-x}} = \\frac{e^{x}}{1 + e^{x}}$$

    Two formulas for one function, and each has a side on which it breaks: $e^{1000}$ is more than
    any float can hold. The left one is safe for $x \\ge 0$, the right one for $x < 0$. Both then
    hold the same $z = e^{-|x|}$, which is never more than 1.

    Write the kernel `stable_sigmoid(xp, a)`: `xp` is the array module (here NumPy, on a GPU another
    one with the same names), `a` an array of floats, of any shape, and what you return has the same
    shape **and dtype**. Use `xp.exp`, `xp.abs` and `xp.where(condition, yes, no)`, which computes
    both sides and picks: so neither may overflow. And `a` is the user's memory: do not write to it.
    """,
)


@sigmoid.stub
def stable_sigmoid(xp, a):
    """An array of floats -> 1 / (1 + exp(-a)), of the same dtype."""
    # your code here: two lines
    raise NotImplementedError


@sigmoid.reference
def stable_sigmoid(xp, a):
    """An array of floats -> 1 / (1 + exp(-a)), of the same dtype."""
    z = xp.exp(-xp.abs(a))  # at most 1
    return xp.where(a >= 0, 1, z) / (1 + z)


@sigmoid.mutant(
    "overflows to the right",
    why="""
    `exp(x) / (1 + exp(x))` is infinity over infinity for a large x, and that is `nan`. One `nan` in
    a batch makes the loss `nan`, and then every weight. This formula is for the negative side.
    """,
)
def stable_sigmoid(xp, a):
    with xp.errstate(all="ignore"):
        z = xp.exp(a)
        return z / (1 + z)


@sigmoid.mutant(
    "overflows on its way",
    why="""
    `exp` overflowed on the way, even where the *result* is right (1 / infinity happens to be 0):
    NumPy warns, and a program that treats warnings as errors stops. `where` does not help if both
    of its sides are computed. Take the exponential of -|x|, which cannot overflow.
    """,
)
def stable_sigmoid(xp, a):
    return xp.where(a >= 0, 1 / (1 + xp.exp(-a)), xp.exp(a) / (1 + xp.exp(a)))


@sigmoid.mutant(
    "picks the wrong branch",
    why="""
    The two sides are swapped, and what comes out is 1 - sigmoid: large where it should be small.
    At 0 it makes no difference, so look at one number on each side. For x > 0 the numerator is 1.
    """,
)
def stable_sigmoid(xp, a):
    z = xp.exp(-xp.abs(a))
    return xp.where(a >= 0, z, 1) / (1 + z)


@sigmoid.mutant(
    "makes doubles",
    why="""
    float32 went in and float64 came out: an array made without a dtype is float64, and it draws
    all others with it. Everything downstream then moves twice the bytes. Build on `a` itself, or
    say `dtype=a.dtype`. (Python's own numbers, as in `1 + z`, are harmless.)
    """,
)
def stable_sigmoid(xp, a):
    z = xp.exp(-xp.abs(a))
    return xp.where(a >= 0, xp.ones(a.shape), z) / (1 + z)


@sigmoid.mutant(
    "loses what is small",
    why="""
    For x = -20 the sigmoid is 0.000000002, and 0 came out. The difference of two nearly equal
    numbers keeps only the digits in which they differ, here none: 1 - 1 = 0. A logarithm of that
    is minus infinity. For negative x use z / (1 + z), which subtracts nothing.
    """,
)
def stable_sigmoid(xp, a):
    z = xp.exp(-xp.abs(a))
    y = 1 / (1 + z)
    return xp.where(a >= 0, y, 1 - y)


@sigmoid.mutant(
    "cuts the ends off",
    why="""
    Large inputs were clamped so that nothing overflows. It does not, but every x below the limit
    now has the *same* small result, and a bit of slope is lost. There is an exact way that costs
    less.
    """,
)
def stable_sigmoid(xp, a):
    return 1 / (1 + xp.exp(-xp.clip(a, -15, 15)))


@sigmoid.mutant(
    "writes to the user's memory",
    why="""
    `out=a`, or an operator such as `a *= -1`, saves memory that is not yours. The kernel is handed
    the very array the user holds. `x.sigmoid()` must leave x as it was; whoever wants the other
    says `x.sigmoid_()`.
    """,
)
def stable_sigmoid(xp, a):
    positive = a >= 0
    xp.negative(xp.abs(a), out=a)
    z = xp.exp(a)
    return xp.where(positive, 1, z) / (1 + z)


# what PyTorch gives for torch.sigmoid
SIGMOID_X = [-2.0, -0.5, 0.0, 0.5, 2.0]
SIGMOID_Y = [0.11920291930437088, 0.3775406777858734, 0.5, 0.622459352016449, 0.8807970285415649]


@sigmoid.check("both sides of 0")
def _(f):
    x = np.array(SIGMOID_X, dtype="float32")
    wanted = torch.tensor(SIGMOID_Y)
    given = case(f"stable_sigmoid(np, {SIGMOID_X})", lambda: f(np, x.copy()).tolist())
    yield given.gives(wanted.tolist(), tolerance=1e-5)


@sigmoid.check("of the same dtype and shape")
def _(f):
    for name in ("float32", "float64"):
        x = np.zeros((2, 3), dtype=name)
        facts = case(
            f"dtype and shape for {name} of shape (2, 3)",
            lambda x=x: (str(f(np, x).dtype), f(np, x).shape),
        )
        yield facts.gives((name, (2, 3)))


@sigmoid.check("the array handed in stays as it was", hidden=True)
def _(f):
    def after():
        x = np.array([1.0, -2.0, 3.0])
        f(np, x)
        return x.tolist()

    yield case("the array, after the call", after).gives([1.0, -2.0, 3.0])


@sigmoid.check("far to the right")
def _(f):
    big = np.array([50.0, 1000.0], dtype="float32")
    yield case("stable_sigmoid(np, [50, 1000])", lambda: _quiet(f, big)).gives([1.0, 1.0])


@sigmoid.check("small results keep their digits")
def _(f):
    small = np.array([-20.0, -80.0], dtype="float32")
    ratios = case(
        "stable_sigmoid(np, [-20, -80]), each divided by PyTorch's result",
        lambda: [y / r for y, r in zip(_quiet(f, small), (2.0611535811454473e-9, 1.8048513e-35))],
    )
    yield ratios.gives([1.0, 1.0], tolerance=1e-4)


def _quiet(f, x):
    with np.errstate(all="ignore"):
        return f(np, x.copy()).tolist()


@sigmoid.check("nothing overflows on the way", hidden=True)
def _(f):
    def warned():
        with warnings.catch_warnings(record=True) as seen, np.errstate(over="warn", invalid="warn"):
            warnings.simplefilter("always")
            f(np, np.array([-1000.0, 1000.0], dtype="float32"))
        return [str(w.message).split(" encountered")[0] for w in seen]

    yield case("NumPy's warnings for [-1000, 1000]", warned).gives([])


@sigmoid.check("as a part of toytorch")
def _(f):
    def slope():
        x = torch.tensor([-1.0, 2.0], requires_grad=True)
        with sigmoid.inject(f):
            x.sigmoid().sum().backward()
        return x.grad

    plugged = case("the slope of x.sigmoid() at -1 and 2, through toytorch", slope)
    yield plugged.gives(torch.tensor([0.19661194, 0.10499358]), tolerance=1e-5)
