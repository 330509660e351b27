"""A thousand rows from one."""

from course.cases import call
from course.exercises.ch02.common import _restrided, _stride_of
from course.properties import agrees
from course.records import Exercise
from toytorch.core.op import registry


def _inject_expand(f):
    """toytorch's expand, with the submission finding the strides."""

    def kernel(xp, array, sizes):
        lead = len(sizes) - array.ndim
        old = (1,) * lead + tuple(array.shape)
        new = tuple(o if n == -1 else n for n, o in zip(sizes, old, strict=True))
        return _restrided(array, new, f(tuple(array.shape), _stride_of(array), new))

    return registry["expand"].using(kernel=kernel)


expand = Exercise(
    "memory.expand",
    "A thousand rows from one",
    chapter=2,
    minutes=12,
    optional=True,
    without=("torch.Tensor.expand", "torch.Tensor.expand_as", "torch.broadcast_to"),
    inject=_inject_expand,
    prompt="""
    If a stride is 0, a step leads to the same cell again. So one row can be shown a thousand times
    without being copied once. That is how broadcasting works.

    Write `expand_strides(shape, stride, new_shape)`, the strides as a tuple.

    * Shapes line up from the right; dimensions that are new on the left repeat everything.
    * A size 1 may become any size: repeat. Equal sizes stay as they are.
    * Any other change is a `RuntimeError` that says *expand*: a size of 3 that becomes 4 or 1, or
      a new shape with fewer dimensions.
    """,
    hints=(
        """
        There are four cases for a dimension of the new shape: it is new, it stays, it is stretched,
        or it is an error. A new and a stretched one have the stride 0, because a step must lead to
        the same cell.
        """,
        """
        `expand_strides((3, 1), (1, 5), (2, 3, 4))`: the new shape has one dimension more.

        | old size | old stride | new size | | stride |
        | --- | --- | --- | --- | --- |
        | | | 2 | new | 0 |
        | 3 | 1 | 3 | stays | 1 |
        | 1 | 5 | 4 | stretched | 0 |

        The answer is `(0, 1, 0)`. An old size of 3 over a new size of 4 would be none of the first three.
        """,
        """
        ```python
        def expand_strides(shape, stride, new_shape):
            lead = len(new_shape) - len(shape)  # how many dimensions are new
            if ...:
                raise RuntimeError(f"cannot expand {shape} to {new_shape}")
            found = [0] * lead
            for size, step, new in zip(shape, stride, new_shape[lead:]):
                if size == new:
                    found.append(...)
                elif ...:
                    found.append(0)
                else:
                    raise RuntimeError(f"cannot expand size {size} to {new}")
            return tuple(found)
        ```
        """,
    ),
)


@expand.reference(stub="your code here: about 10 lines")
def expand_strides(shape, stride, new_shape):
    """Strides that repeat dimensions of size 1, with no copy."""
    lead = len(new_shape) - len(shape)
    if lead < 0:
        raise RuntimeError(f"cannot expand {shape} to {new_shape}")
    found = [0] * lead
    for size, step, new in zip(shape, stride, new_shape[lead:]):
        if size == new:
            found.append(step)
        elif size == 1:
            found.append(0)
        else:
            raise RuntimeError(f"cannot expand size {size} to {new}")
    return tuple(found)


@expand.mutant(
    "goes on to the next cell",
    why="""
    The stretched dimension kept its old stride, so the second \"copy\" shows the cell *after* the
    first: another element, or memory beyond the end. To stay at the same cell, the stride must be
    0.
    """,
)
def expand_strides(shape, stride, new_shape):
    lead = len(new_shape) - len(shape)
    found = [0] * lead
    for size, step, new in zip(shape, stride, new_shape[lead:], strict=True):
        if size not in (1, new):
            raise RuntimeError(f"cannot expand size {size} to {new}")
        found.append(step)
    return tuple(found)


@expand.mutant(
    "strides of a copy",
    why="""
    These are the strides that the stretched tensor would have as a *new* one, with a cell for every
    repetition. The memory holds each element once: a repeated dimension has the stride 0.
    """,
)
def expand_strides(shape, stride, new_shape):
    lead = len(new_shape) - len(shape)
    for size, new in zip(shape, new_shape[lead:], strict=True):
        if size not in (1, new):
            raise RuntimeError(f"cannot expand size {size} to {new}")
    found, step = [], 1
    for size in reversed(new_shape):
        found.append(step)
        step *= size
    return tuple(reversed(found))


@expand.mutant(
    "new dimensions go to the right",
    why="""
    The shapes were lined up from the left. In broadcasting they line up from the **right**: a row
    of 4 becomes a 3 × 4 table by getting a new dimension on its left.
    """,
)
def expand_strides(shape, stride, new_shape):
    found = []
    for size, step, new in zip(shape, stride, new_shape, strict=False):
        if size == new:
            found.append(step)
        elif size == 1:
            found.append(0)
        else:
            raise RuntimeError(f"cannot expand size {size} to {new}")
    return tuple(found + [0] * (len(new_shape) - len(shape)))


@expand.mutant(
    "stretches anything",
    why="""
    A size of 3 was stretched to 4, and it is not defined which of the three elements would be
    repeated. Only a size of 1 can be stretched; everything else is an error.
    """,
)
def expand_strides(shape, stride, new_shape):
    lead = len(new_shape) - len(shape)
    pairs = zip(shape, stride, new_shape[lead:], strict=True)
    return (*[0] * lead, *(step if size == new else 0 for size, step, new in pairs))


@expand.mutant(
    "a shorter target is cut off in silence",
    why="""
    A new shape with fewer dimensions would have to leave elements out, and `expand` never does.
    The number of dimensions may grow, on the left, and not shrink.
    """,
)
def expand_strides(shape, stride, new_shape):
    found = []
    for d in range(-1, -len(new_shape) - 1, -1):
        if -d > len(shape):
            found.append(0)
        elif shape[d] == new_shape[d]:
            found.append(stride[d])
        elif shape[d] == 1:
            found.append(0)
        else:
            raise RuntimeError("cannot expand")
    return tuple(reversed(found))


@expand.mutant(
    "shrinks to 1",
    why="""
    The rule was read in both directions, as for broadcasting two shapes. Here one of them is
    given: a size of 1 may grow, and a size of 3 cannot become 1, because two elements would be lost.
    """,
)
def expand_strides(shape, stride, new_shape):
    lead = len(new_shape) - len(shape)
    if lead < 0:
        raise RuntimeError("cannot expand to fewer dimensions")
    found = [0] * lead
    for size, step, new in zip(shape, stride, new_shape[lead:]):
        if size != new and 1 not in (size, new):
            raise RuntimeError("cannot expand")
        found.append(step if size == new else 0)
    return tuple(found)


@expand.mutant(
    "a size of 1 always gets the stride 0",
    why="""
    Where nothing is stretched, the dimension keeps its stride, a size of 1 too. It would show
    the same cell, but PyTorch keeps what was there.
    """,
)
def expand_strides(shape, stride, new_shape):
    lead = len(new_shape) - len(shape)
    if lead < 0:
        raise RuntimeError("cannot expand to fewer dimensions")
    found = [0] * lead
    for size, step, new in zip(shape, stride, new_shape[lead:]):
        if size not in (1, new):
            raise RuntimeError("cannot expand")
        found.append(0 if size == 1 else step)
    return tuple(found)


# PyTorch's expand(...).stride()
EXPANDED = {
    ((3, 4), (4, 1), (3, 4)): (4, 1),
    ((3, 1), (1, 1), (3, 4)): (1, 0),
    ((1, 4), (4, 1), (3, 4)): (0, 1),
    ((4,), (1,), (3, 4)): (0, 1),
    ((4,), (2,), (5, 3, 4)): (0, 0, 2),
    ((), (), (2, 3)): (0, 0),
    ((3, 1), (1, 5), (2, 3, 4)): (0, 1, 0),
}


def _expanded(f, *keys):
    for key in keys:
        yield call(f, *key).gives(EXPANDED[key])


@expand.check("sizes of 1")
def _(f):
    yield from _expanded(f, *list(EXPANDED)[:3])


@expand.check("new dimensions")
def _(f):
    yield from _expanded(f, *list(EXPANDED)[3:6])


@expand.check("both at once")
def _(f):
    yield from _expanded(f, *list(EXPANDED)[6:])


@expand.check("what cannot be stretched", hidden=True)
def _(f):
    yield call(f, (3,), (1,), (4,)).raises(RuntimeError, "expand")
    yield call(f, (2, 4), (4, 1), (4, 4)).raises(RuntimeError, "expand")
    yield call(f, (4,), (1,), (1,)).raises(RuntimeError, "expand")
    yield call(f, (3, 4), (4, 1), (4,)).raises(RuntimeError, "expand")


@expand.check("any shapes")
def _(f):
    def pair(draw):
        shape = draw.shape(0, 3, (1, 1, 2, 3))
        new = [draw.randint(1, 4) if size == 1 and draw.random() < 0.7 else size for size in shape]
        if new and draw.random() < 0.15:
            new[draw.randrange(len(new))] = draw.randint(1, 4)
        if new and draw.random() < 0.1:
            new.pop(0)
        new = [*draw.shape(0, 2, (2, 3, 4)), *new]
        return shape, tuple(draw.randint(0, 9) for _ in shape), tuple(new)

    yield agrees(f, expand.answer.value, pair, count=150)
