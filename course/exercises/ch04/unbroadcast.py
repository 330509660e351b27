"""Undo a broadcast."""

import numpy as np

import toytorch as torch
from course.cases import case
from course.properties import agrees, gradient
from course.records import Exercise

unbroadcast = Exercise(
    "autograd.unbroadcast",
    "Undo a broadcast",
    chapter=4,
    minutes=12,
    prompt="""
    In `x + bias`, a bias of shape `(4,)` is used once for each row of `x`. So there are many paths
    from each element of the bias to the loss, and its gradient is **the sum over all paths**. What
    broadcasting copied forward is summed backward.

    Write `sum_to(g, shape)`: `g` has the broadcast shape, `shape` is what the input had, and the
    result is `g` summed down to exactly `shape`.

    * Shapes line up from the right. What `shape` lacks on the left is summed away.
    * Where `shape` says 1 and `g` has more, sum that dimension and keep it as 1
      (`g.sum(dim, keepdims=True)`).
    * `g` may be a tensor of toytorch or a NumPy array: your own package calls `sum_to` as well. Use
      what both have: `g.ndim`, `g.shape` and `g.sum`. As a tensor it may itself be part of a graph.
    """,
    without=("torch.Tensor.sum_to_size",),
    hints=(
        """
        Two things happened forward, and each is undone by a sum. Dimensions were added on the left: sum
        until `g` has as many dimensions as `shape`. Then both line up, and where `shape` has a 1 and `g`
        more, that dimension is summed as well.
        """,
        """
        A bias of shape `(3, 1)` met an array of `(2, 3, 4)`, so `g` has the shape `(2, 3, 4)`:

        | step | `g.shape` | `shape` |
        | --- | --- | --- |
        | at first | (2, 3, 4) | (3, 1) |
        | one dimension too many: sum the first away | (3, 4) | (3, 1) |
        | dimension 0: 3 and 3, nothing to do | (3, 4) | (3, 1) |
        | dimension 1: 4 in `g`, 1 in `shape`; sum, and keep it as 1 | (3, 1) | (3, 1) |

        While the first loop runs, `g` has another number of dimensions than `shape`. So compare sizes only
        after it.
        """,
        """
        ```python
        def sum_to(g, shape):
            while ...:  # g has too many dimensions
                g = ...
            for dim, size in enumerate(shape):
                if ...:  # this dimension was stretched
                    g = ...
            return g
        ```
        """,
    ),
)


@unbroadcast.reference(stub="your code here: about 6 lines")
def sum_to(g, shape):
    """Sum g down to a shape that broadcasts to g's own."""
    while g.ndim > len(shape):
        g = g.sum(0)
    for dim, size in enumerate(shape):
        if size == 1 and g.shape[dim] != 1:
            g = g.sum(dim, keepdims=True)
    return g


@unbroadcast.mutant(
    "only drops the dimensions on the left",
    why="""
    Broadcasting does two things: it adds dimensions on the left, and it stretches dimensions of
    size 1. Only the first was undone. After that, every dimension where `shape` says 1 and `g` is
    wider still has to be summed.
    """,
)
def sum_to(g, shape):
    while g.ndim > len(shape):
        g = g.sum(0)
    return g


unbroadcast.changed(
    "only sums the ones",
    """
    Dimensions of size 1 were summed, and those that `shape` does not have at all were left. A bias
    of shape (4,) that met a (3, 4) got a dimension on its left: that has to go again.
    """,
    ("while g.ndim > len(shape):\n        g = g.sum(0)", "lead = g.ndim - len(shape)"),
    ("1 and g.shape[dim] != 1:", "1:"),
    ("g = g.sum(dim, keepdims=True)", "g = g.sum(lead + dim, keepdims=True)"),
)

unbroadcast.changed(
    "takes the mean",
    """
    Every copy's influence counts in full: if a number is used a thousand times and each use moves
    the loss by 1, then moving the number moves the loss by 1000. Gradients of copies are summed,
    never averaged.
    """,
    ("g.sum(0)", "g.mean(0)"),
    ("g = g.sum(dim, keepdims=True)", "g = g.mean(dim, keepdims=True)"),
)

unbroadcast.changed(
    "lines shapes up from the left",
    """
    Shapes line up from the **right**: (4,) meets the *last* dimension of (2, 3, 4), and the extra
    ones stand on the left. Sum those away first; from then on the dimensions have equal numbers.
    """,
    ("g = g.sum(0)", "g = g.sum(-1)"),
)


@unbroadcast.mutant(
    "the summed dimension vanishes",
    why="""
    The values are right, but a dimension of size 1 is missing: a sum removes its dimension unless
    told `keepdims=True`. A gradient has exactly the shape of its tensor, ones included.
    """,
)
def sum_to(g, shape):
    lead = g.ndim - len(shape)
    dims = [d for d in range(g.ndim) if d < lead or shape[d - lead] == 1 != g.shape[d]]
    return g.sum(dims) if dims else g


unbroadcast.changed(
    "takes the first copy",
    """
    All copies of a number have a share in the loss, and one of them alone was taken. `expand` forward
    is `sum` backward: add up the gradients of all copies.
    """,
    ("g = g.sum(0)", "g = g[0]"),
    ("g = g.sum(dim, keepdims=True)", "g = g[(slice(None),) * dim + (slice(0, 1),)]"),
)


@unbroadcast.mutant(
    "finds dimensions by their size",
    why="""
    A dimension of `g` was taken for the one of `shape` that has the same size. Two dimensions may well
    have one size: then the wrong one is summed, or none. What belongs together is decided by the place,
    counted from the right.
    """,
)
def sum_to(g, shape):
    gone = [d for d, size in enumerate(g.shape) if size not in shape]
    for d in reversed(gone):
        g = g.sum(d)
    return g.reshape(shape)


unbroadcast.changed(
    "leaves the graph",
    """
    The values are right, but the result is cut off from what `g` was computed from. A gradient may be
    part of a graph itself: that is how second derivatives come about. Call operations of `g` only, no
    `detach` and no conversion.
    """,
    ("    while g.ndim", '    g = g.detach() if hasattr(g, "detach") else g\n    while g.ndim'),
)

unbroadcast.changed(
    "works on toytorch's tensors only",
    """
    NumPy's arrays have no `dim()` and no `size(dim)`, and say `keepdims` and `axis` where tensors also
    know `keepdim` and `dim`. `g.ndim`, `g.shape` and `g.sum(dim, keepdims=True)` work for both.
    """,
    ("g.ndim", "g.dim()"),
)

unbroadcast.changed(
    "a dimension of size 0 is left",
    """
    A size of 1 can also be stretched to 0: broadcasting `(1,)` with `(0,)` gives `(0,)`. The sum over no
    copies is 0, and it has to be made. Ask whether the size is another one than 1, not whether it is
    greater.
    """,
    ("g.shape[dim] != 1", "g.shape[dim] > 1"),
)


# what PyTorch gives for the gradient of p in p + zeros(2, 3, 4), for g = arange(24)
UNBROADCAST = {
    (2, 3, 4): None,
    (4,): [60.0, 66.0, 72.0, 78.0],
    (3, 4): [[12.0, 14.0, 16.0, 18.0], [20.0, 22.0, 24.0, 26.0], [28.0, 30.0, 32.0, 34.0]],
    (1, 4): [[60.0, 66.0, 72.0, 78.0]],
    (3, 1): [[60.0], [92.0], [124.0]],
    (2, 1, 1): [[[66.0]], [[210.0]]],
    (): 276.0,
}


def _sums(f, *shapes):
    g = torch.arange(24.0).reshape(2, 3, 4)
    for shape in shapes:
        wanted = g if UNBROADCAST[shape] is None else torch.tensor(UNBROADCAST[shape])
        run = case(f"sum_to(g, {shape}) for g = arange(24.).reshape(2, 3, 4)",
                   lambda shape=shape: f(g, shape))
        yield run.gives(wanted)


@unbroadcast.check("nothing was broadcast")
def _(f):
    yield from _sums(f, (2, 3, 4))


@unbroadcast.check("dimensions on the left")
def _(f):
    yield from _sums(f, (4,), (3, 4), ())


@unbroadcast.check("dimensions of size 1")
def _(f):
    yield from _sums(f, (2, 1, 1))


@unbroadcast.check("both at once", hidden=True)
def _(f):
    yield from _sums(f, (1, 4), (3, 1))


@unbroadcast.check("arrays of NumPy")
def _(f):
    g = np.arange(24.0).reshape(2, 3, 4)
    for shape in ((4,), (3, 1), (2, 3, 4)):
        wanted = g if UNBROADCAST[shape] is None else np.array(UNBROADCAST[shape])
        run = case(f"sum_to(g, {shape}) for a NumPy array g", lambda shape=shape: f(g, shape))
        yield run.gives(wanted)


def _narrowed(draw, sizes, **options):
    """A gradient, and a shape that broadcasts to its shape."""
    wide = draw.shape(0, 4, sizes)
    shape = wide[draw.randint(0, len(wide)) :]
    return draw.tensor(wide, **options), tuple(draw.choice((1, n)) for n in shape)


@unbroadcast.check("any shapes")
def _(f):
    yield agrees(f, unbroadcast.answer.value, lambda draw: _narrowed(draw, (1, 2, 3)))
    yield agrees(f, unbroadcast.answer.value, lambda draw: _narrowed(draw, (0, 1, 2)))


@unbroadcast.check("a gradient that has a gradient")
def _(f):
    yield gradient(
        f,
        unbroadcast.answer.value,
        lambda draw: _narrowed(draw, (1, 2, 3), requires_grad=True),
    )
