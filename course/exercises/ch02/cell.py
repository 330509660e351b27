"""The cell behind an index."""

from course.cases import call
from course.properties import agrees
from course.records import Exercise

cell = Exercise(
    "memory.cell",
    "The cell behind an index",
    chapter=2,
    minutes=8,
    prompt="""
    A tensor finds a number by arithmetic alone: it starts at its **offset** and takes
    `stride[d]` steps for each 1 in `index[d]`,

    $$\\text{cell} = \\text{offset} + \\sum_d \\text{index}_d \\cdot \\text{stride}_d.$$

    Write `cell_of(index, shape, stride, offset)`. All but the offset are tuples of one length.

    * `-1` is the last index, as everywhere in Python.
    * An index that is too large or too small is an `IndexError`. Without it you would read a cell
      that is not part of the tensor.
    """,
    hints=(
        """
        Start at the offset and add one product per dimension: index times stride. Before that, ask
        two questions about each index: is it in range, and if it is negative, which index does it
        stand for?
        """,
        """
        `cell_of((-1, 2), (3, 4), (4, 1), 5)`:

        | dimension | index | in range? | stands for | times stride | so far |
        | --- | --- | --- | --- | --- | --- |
        | | | | | | 5 |
        | 0 | -1 | -3 ≤ -1 < 3 | 2 | 2 · 4 = 8 | 13 |
        | 1 | 2 | -4 ≤ 2 < 4 | 2 | 2 · 1 = 2 | 15 |

        The cell is 15. With an index of 4 in dimension 1 it would not be in range: `IndexError`.
        """,
        """
        ```python
        def cell_of(index, shape, stride, offset):
            found = offset
            for i, size, step in zip(index, shape, stride):
                if not ...:
                    raise IndexError(f"index {i} is out of range for size {size}")
                found += ...
            return found
        ```
        """,
    ),
)


@cell.reference(stub="your code here: about 7 lines")
def cell_of(index, shape, stride, offset):
    """The memory cell of the number at an index."""
    found = offset
    for i, size, step in zip(index, shape, stride, strict=True):
        if not -size <= i < size:
            raise IndexError(f"index {i} is out of range for size {size}")
        found += (i % size) * step
    return found


cell.changed(
    "forgets where the tensor starts",
    """
    The offset is missing. A slice such as `x[1:]` has the strides of x and starts at a later cell
    of the same memory. Without the offset, every slice would show the beginning of x.
    """,
    ("found = offset", "found = 0"),
)


@cell.mutant(
    "counts by the shape",
    why="""
    The strides were computed from the shape, as if the rows always followed each other without
    gaps. That holds for a new tensor, but not for a transposed one or for every second column. The
    stride says how far a step is; the shape only says how many steps there are.
    """,
)
def cell_of(index, shape, stride, offset):
    found = 0
    for i, size in zip(index, shape, strict=True):
        if not -size <= i < size:
            raise IndexError(f"index {i} is out of range for size {size}")
        found = found * size + i % size
    return offset + found


cell.changed(
    "walks backwards for a negative index",
    """
    An index of -1 went one step *before* the beginning, into memory that this tensor may not show.
    It means the last one: add the size first (in Python, `i % size` does).
    """,
    ("found += (i % size) * step", "found += i * step"),
)


@cell.mutant(
    "does not look at the limits",
    why="""
    An index beyond its size was accepted. `x[0, 4]` of a 3 × 4 table would return the first element
    of the next row, without an error. (With a remainder it returns the wrong element too: 4 % 4 is
    0.) Raise an `IndexError`.
    """,
)
def cell_of(index, shape, stride, offset):
    pairs = zip(index, shape, stride, strict=True)
    return offset + sum((i % size) * step for i, size, step in pairs)


@cell.mutant(
    "dimensions of size 1 are not checked",
    why="""
    A dimension of size 1 has the one index 0 (or -1). Any other index is out of range there as
    elsewhere, although the stride would not matter.
    """,
)
def cell_of(index, shape, stride, offset):
    found = offset
    for i, size, step in zip(index, shape, stride):
        if size == 1:
            continue
        if not -size <= i < size:
            raise IndexError(f"index {i} is out of range")
        found += (i % size) * step
    return found


@cell.mutant(
    "an empty dimension divides by zero",
    why="""
    `i % size` came before the check of the limits, and in a dimension of size 0 that divides by
    zero. Check first: no index is in range there.
    """,
)
def cell_of(index, shape, stride, offset):
    found = offset
    for i, size, step in zip(index, shape, stride):
        place = i % size
        if not -size <= i < size:
            raise IndexError(f"index {i} is out of range")
        found += place * step
    return found


@cell.mutant(
    "looks at the upper limit only",
    why="""
    An index may be too small as well: -4 in a dimension of size 3 lies before the beginning.
    Both limits need a check: `-size <= i < size`.
    """,
)
def cell_of(index, shape, stride, offset):
    found = offset
    for i, size, step in zip(index, shape, stride):
        if i >= size:
            raise IndexError(f"index {i} is out of range")
        found += (i + size if i < 0 else i) * step
    return found


@cell.check("a table and the same table transposed")
def _(f):
    yield call(f, (1, 2), (3, 4), (4, 1), 0).gives(6)
    yield call(f, (2, 1), (4, 3), (1, 4), 0).gives(6)
    yield call(f, (3, 0), (4, 3), (1, 4), 0).gives(3)


@cell.check("an offset")
def _(f):
    yield call(f, (0, 0), (2, 2), (4, 1), 5).gives(5)
    yield call(f, (1, 1), (2, 2), (4, 2), 1).gives(7)


@cell.check("negative indices")
def _(f):
    yield call(f, (-1, -1), (3, 4), (4, 1), 0).gives(11)
    yield call(f, (-3, 1), (3, 4), (4, 1), 0).gives(1)


@cell.check("a number alone, and one shown many times")
def _(f):
    yield call(f, (), (), (), 7).gives(7)
    yield call(f, (2, 3), (3, 4), (1, 0), 0).gives(2)


@cell.check("out of range", hidden=True)
def _(f):
    yield call(f, (0, 4), (3, 4), (4, 1), 0).raises(IndexError)
    yield call(f, (-4, 0), (3, 4), (4, 1), 0).raises(IndexError)


@cell.check("any index")
def _(f):
    def place(draw):
        shape = draw.shape(0, 3, (0, 1, 2, 3))
        # one in ten is too large or too small
        index = tuple(draw.randint(-size, max(size - 1, -size)) if draw.random() < 0.9
                      else draw.choice((size, -size - 1)) for size in shape)
        stride = tuple(draw.randint(0, 9) for _ in shape)
        return index, shape, stride, draw.choice((0, 0, 5))

    yield agrees(f, cell.answer.value, place, count=200)
