"""Contiguous or not?."""

import itertools
import math

from course.cases import call
from course.properties import agrees, every
from course.records import Exercise

contiguous = Exercise(
    "memory.contiguous",
    "Contiguous or not?",
    chapter=2,
    minutes=10,
    optional=True,
    without=("torch.Tensor.is_contiguous",),
    prompt="""
    A tensor is *contiguous* if its elements, read in order, lie in memory one after the other,
    without gaps. Many fast kernels require it. Write `is_row_major(shape, stride)`, which says
    whether that is so: `True` or `False`.

    * A dimension of size 1 is never stepped along: **its stride does not matter**.
    * A tensor without elements is contiguous: nothing can be out of order.
    """,
    hints=(
        """
        You know which strides a new tensor of this shape has. Walk from the right as for those, and compare.
        Two things need care: skip dimensions of size 1, and answer at once if the tensor is empty.
        """,
        """
        `is_row_major((2, 1, 3), (3, 50, 1))`, from the right, with the step that is expected:

        | size | stride | expected | |
        | --- | --- | --- | --- |
        | 3 | 1 | 1 | agrees; expected grows to 3 |
        | 1 | 50 | 3 | skipped, because its size is 1 |
        | 2 | 3 | 3 | agrees |

        All agree: `True`. For `(3, 4)` with strides `(5, 1)` the last comparison is 5 with 4: `False`.
        """,
        """
        ```python
        def is_row_major(shape, stride):
            if ...:
                return True
            step = 1
            for size, its in zip(reversed(shape), reversed(stride)):
                if size == 1:
                    ...
                if its != step:
                    return ...
                step *= ...
            return True
        ```
        """,
    ),
)


@contiguous.reference(stub="your code here: about 8 lines")
def is_row_major(shape, stride):
    """Whether the elements, in order, lie in neighbouring cells."""
    if 0 in shape:
        return True
    step = 1
    for size, its in zip(reversed(shape), reversed(stride), strict=True):
        if size == 1:
            continue
        if its != step:
            return False
        step *= size
    return True


contiguous.changed(
    "takes strides of size 1 seriously",
    """
    The strides were compared one by one with those of a new tensor. Where the size is 1, as in
    `x[:, :1]`, the stride may have any value, because no step is ever taken along it. Leave such
    dimensions out of the comparison.
    """,
    (
        "        if size == 1:\n"
        "            continue\n",
        "",
    ),
)


@contiguous.mutant(
    "only asks whether strides fall",
    why="""
    Falling strides rule out a transposed table, but gaps are not found: three columns of a
    table with five have strides (5, 1), falling, with two cells skipped at the end of each row.
    Each stride has to be *exactly* what lies to its right.
    """,
)
def is_row_major(shape, stride):
    if 0 in shape:
        return True
    steps = [its for size, its in zip(shape, stride, strict=True) if size != 1]
    return steps == sorted(steps, reverse=True) and (not steps or steps[-1] == 1)


@contiguous.mutant(
    "only looks at the last stride",
    why="""
    A last stride of 1 says that the elements of each *row* lie next to each other. The rows
    themselves may still be anywhere: far apart, in another order, or all in the same place (stride
    0).
    """,
)
def is_row_major(shape, stride):
    if 0 in shape:
        return True
    steps = [its for size, its in zip(shape, stride, strict=True) if size != 1]
    return not steps or steps[-1] == 1


contiguous.changed(
    "an empty tensor is not contiguous",
    """
    A tensor with a dimension of size 0 shows no cell at all. No two elements can be out of order,
    so it is contiguous, whatever its strides are.
    """,
    (
        "    if 0 in shape:\n"
        "        return True\n",
        "",
    ),
)


@contiguous.mutant(
    "looks at the last two dimensions",
    why="""
    Only rows and columns were checked, but tensors have any number of dimensions. Go on to the left
    until none is left, with the step growing by each size.
    """,
)
def is_row_major(shape, stride):
    if 0 in shape:
        return True
    pairs = [(size, step) for size, step in zip(shape, stride) if size != 1][-2:]
    wanted = 1
    for size, step in reversed(pairs):
        if step != wanted:
            return False
        wanted *= size
    return True


@contiguous.mutant(
    "falling strides without a gap at the end",
    why="""
    The strides fall and the last element lies where it should. In between, elements can still
    overlap or leave gaps: a 3 × 3 table with strides (2, 2) is an example. Compare each stride with
    the one that a new tensor has.
    """,
)
def is_row_major(shape, stride):
    if 0 in shape:
        return True
    pairs = [(size, step) for size, step in zip(shape, stride) if size != 1]
    steps = [step for _, step in pairs]
    falls = steps == sorted(steps, reverse=True)
    return falls and sum((size - 1) * step for size, step in pairs) == math.prod(shape) - 1


@contiguous.mutant(
    "sees a 0 in the last dimension only",
    why="""
    A size of 0 anywhere makes the tensor empty, and an empty tensor is contiguous. Ask for `0
    in shape`.
    """,
)
def is_row_major(shape, stride):
    if shape and shape[-1] == 0:
        return True
    wanted = 1
    for size, step in zip(reversed(shape), reversed(stride)):
        if size == 1:
            continue
        if step != wanted:
            return False
        wanted *= size
    return True


@contiguous.mutant(
    "no gaps is enough",
    why="""
    The distance from the first to the last number is right for every table without gaps, a
    transposed one too. Contiguous also means in *order*: the last dimension steps by 1.
    """,
)
def is_row_major(shape, stride):
    if 0 in shape:
        return True
    return sum((n - 1) * step for n, step in zip(shape, stride)) == math.prod(shape) - 1


# PyTorch's is_contiguous() for torch.empty(1000).as_strided(shape, stride)
CONTIGUOUS = {
    ((3, 4), (4, 1)): True,
    ((3, 4), (1, 3)): False,
    ((4,), (2,)): False,
    ((3, 4), (5, 1)): False,
    ((2, 2, 2), (4, 1, 2)): False,
    ((3, 4), (0, 1)): False,
    ((), ()): True,
    ((1, 4), (99, 1)): True,
    ((4, 1), (1, 7)): True,
    ((2, 1, 3), (3, 50, 1)): True,
    ((1, 4), (1, 2)): False,
    ((2, 0), (5, 9)): True,
}


def _verdicts(f, *pairs):
    for shape, stride in pairs:
        yield call(f, shape, stride).gives(CONTIGUOUS[shape, stride])


@contiguous.check("a new tensor, and one transposed")
def _(f):
    yield from _verdicts(f, ((3, 4), (4, 1)), ((3, 4), (1, 3)), ((), ()))


@contiguous.check("gaps and jumps")
def _(f):
    yield from _verdicts(
        f, ((4,), (2,)), ((3, 4), (5, 1)), ((2, 2, 2), (4, 1, 2)), ((3, 4), (0, 1))
    )


@contiguous.check("dimensions of size 1", hidden=True)
def _(f):
    yield from _verdicts(
        f, ((1, 4), (99, 1)), ((4, 1), (1, 7)), ((2, 1, 3), (3, 50, 1)), ((1, 4), (1, 2))
    )


@contiguous.check("no elements at all", hidden=True)
def _(f):
    yield from _verdicts(f, ((2, 0), (5, 9)))


@contiguous.check("any shape and strides")
def _(f):
    right = contiguous.answer.value

    def small():
        for shape in itertools.product((0, 1, 2, 3), repeat=2):
            for stride in itertools.product(range(4), repeat=2):
                yield call(f, shape, stride).gives(right(shape, stride))

    yield every("every table up to 3 × 3 with strides up to 3", small)

    def larger(draw):
        shape = draw.shape(3, 4, (0, 1, 2, 3))
        stride, step = [], 1
        for size in reversed(shape):
            stride.insert(0, step if draw.random() < 0.8 else draw.randint(0, 9))
            step *= max(size, 1)
        return shape, tuple(stride)

    yield agrees(f, right, larger, count=80)
