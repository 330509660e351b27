"""The strides of a new tensor."""

from course.cases import call
from course.properties import agrees
from course.records import Exercise

strides = Exercise(
    "memory.strides",
    "The strides of a new tensor",
    chapter=2,
    minutes=8,
    without=("torch.Tensor.stride",),
    prompt="""
    A new tensor lies in memory row by row: the last index counts fastest. From that its strides
    follow. One step in the last dimension is 1, and one step in any other is as far as *everything
    to its right* together.

    Write `row_major(shape)`, which gives the strides as a tuple. For a dimension of size 0 there is
    nothing to step over, and PyTorch counts it as 1.
    """,
    hints=(
        """
        Walk from the last dimension to the first and carry the number of elements that lie to the right. At
        the end that number is 1. Each dimension's own size joins it only after its stride was noted.
        """,
        """
        `row_major((2, 3, 4))`, from the right:

        | size | stride (what lies to the right) | afterwards |
        | --- | --- | --- |
        | 4 | 1 | 1 · 4 = 4 |
        | 3 | 4 | 4 · 3 = 12 |
        | 2 | 12 | |

        The strides were found from right to left: 1, 4, 12. Turned round: `(12, 4, 1)`.

        `row_major((2, 0, 3))`: 1, then 3, and the size 0 counts as 1, so it stays 3: `(3, 3, 1)`.
        """,
        """
        ```python
        def row_major(shape):
            found, step = [], 1
            for size in reversed(shape):
                found.append(...)
                step *= ...  # a size of 0 counts as 1
            return ...  # the other way round, as a tuple
        ```
        """,
    ),
)


@strides.reference(stub="your code here: about 5 lines")
def row_major(shape):
    """The strides of a new tensor of this shape, in elements."""
    found, step = [], 1
    for size in reversed(shape):
        found.append(step)
        step *= max(size, 1)
    return tuple(reversed(found))


strides.changed(
    "column by column",
    """
    Here the *first* index counts fastest. That is the order of Fortran, MATLAB and R. C, NumPy and
    PyTorch go row by row: the last stride is 1.
    """,
    ("reversed(shape)", "shape"),
    ("reversed(found)", "found"),
)

strides.changed(
    "counts bytes",
    """
    The strides were multiplied by 4, the bytes of a float32. NumPy counts its strides in bytes;
    PyTorch counts in elements, so the strides are the same whatever the dtype.
    """,
    ("[], 1", "[], 4"),
)

strides.changed(
    "steps over itself",
    """
    Each stride includes its own size. A step to the next *row* passes the elements of one row: the
    product of the sizes to the right, without the number of rows. The last stride is then an empty
    product, 1.
    """,
    ("for size in reversed(shape):", "for size in reversed(shape):\n        step *= max(size, 1)"),
    ("found.append(step)\n        step *= max(size, 1)", "found.append(step)"),
)

strides.changed(
    "an empty dimension wipes out the rest",
    """
    A size of 0 was multiplied in, so everything to its left has the stride 0. It does no harm, as
    there are no elements. But `torch.empty(2, 0, 3).stride()` is `(3, 3, 1)`: PyTorch counts an
    empty dimension as 1, so that a stride of 0 always means *the same cell again*.
    """,
    ("max(size, 1)", "size"),
)


@strides.mutant(
    "the neighbour's size alone",
    why="""
    The stride of a dimension is the product of *all* sizes to its right. Only the next size was
    taken, which is right for the last two dimensions and no further.
    """,
)
def row_major(shape):
    return (*[max(size, 1) for size in shape[1:]], 1)[: len(shape)]


strides.changed(
    "nothing is stepped along a size of 1",
    """
    It is true that no step is ever taken there. PyTorch still gives that dimension the stride of
    the rule: the product of the sizes to its right.
    """,
    ("(step)", "(0 if size == 1 else step)"),
)


# torch.empty(shape).stride() in PyTorch
ROW_MAJOR = {
    (5,): (1,),
    (3, 4): (4, 1),
    (2, 3, 4): (12, 4, 1),
    (32, 3, 8, 8): (192, 64, 8, 1),
    (): (),
    (1, 5, 1): (5, 1, 1),
    (2, 0, 3): (3, 3, 1),
    (0,): (1,),
}


@strides.check("one to four dimensions")
def _(f):
    for shape in ((5,), (3, 4), (2, 3, 4), (32, 3, 8, 8)):
        yield call(f, shape).gives(ROW_MAJOR[shape])


@strides.check("no dimension, and sizes of 1")
def _(f):
    for shape in ((), (1, 5, 1)):
        yield call(f, shape).gives(ROW_MAJOR[shape])


@strides.check("no elements at all", hidden=True)
def _(f):
    for shape in ((2, 0, 3), (0,)):
        yield call(f, shape).gives(ROW_MAJOR[shape])


@strides.check("any shape")
def _(f):
    yield agrees(f, strides.answer.value, lambda draw: (draw.shape(0, 6, (0, 1, 2, 3, 5)),))
