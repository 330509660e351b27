"""Chapter 02, Memory: cells, strides, contiguity, views, stretched dimensions, windows."""

import itertools

import numpy as np

import toytorch as torch
from course.cases import call, case
from course.records import Exercise
from toytorch.core.op import registry


def _cells(shape, stride, offset=0):
    """The memory cells that a tensor shows, one after the other."""
    return [
        offset + sum(i * step for i, step in zip(index, stride, strict=True))
        for index in itertools.product(*map(range, shape))
    ]


def _restrided(array, shape, stride):
    """A NumPy view of an array with other strides, which count elements."""
    steps = [step * array.itemsize for step in stride]
    return np.lib.stride_tricks.as_strided(array, shape, steps)


def _stride_of(array):
    return tuple(step // array.itemsize for step in array.strides)


# -- the cell behind an index ---------------------------------------------------------------------

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
    * An index that is too large or too small is an `IndexError`. Without it you would read a number
      that belongs to somebody else.
    """,
)


@cell.stub
def cell_of(index, shape, stride, offset):
    """The memory cell of the number at an index."""
    # your code here: about 7 lines
    raise NotImplementedError


@cell.reference
def cell_of(index, shape, stride, offset):
    """The memory cell of the number at an index."""
    found = offset
    for i, size, step in zip(index, shape, stride, strict=True):
        if not -size <= i < size:
            raise IndexError(f"index {i} is out of range for size {size}")
        found += (i % size) * step
    return found


@cell.mutant(
    "forgets where the tensor starts",
    why="""
    The offset is missing. A slice such as `x[1:]` has the strides of x and starts further along in
    the same memory; without its offset, every slice would show the beginning of x.
    """,
)
def cell_of(index, shape, stride, offset):
    found = 0
    for i, size, step in zip(index, shape, stride, strict=True):
        if not -size <= i < size:
            raise IndexError(f"index {i} is out of range for size {size}")
        found += (i % size) * step
    return found


@cell.mutant(
    "counts by the shape",
    why="""
    The steps were worked out from the shape, as if rows always lay end to end. That is true of a
    new tensor, and no longer of a transposed one or of every second column. The stride says how far
    a step is; the shape only says how far you may go.
    """,
)
def cell_of(index, shape, stride, offset):
    found = 0
    for i, size in zip(index, shape, strict=True):
        if not -size <= i < size:
            raise IndexError(f"index {i} is out of range for size {size}")
        found = found * size + i % size
    return offset + found


@cell.mutant(
    "walks backwards for a negative index",
    why="""
    An index of -1 went one step *before* the beginning, into memory that this tensor may not show.
    It means the last one: add the size first (in Python, `i % size` does).
    """,
)
def cell_of(index, shape, stride, offset):
    found = offset
    for i, size, step in zip(index, shape, stride, strict=True):
        if not -size <= i < size:
            raise IndexError(f"index {i} is out of range for size {size}")
        found += i * step
    return found


@cell.mutant(
    "does not look at the limits",
    why="""
    An index beyond its size was accepted. `x[0, 4]` of a 3 × 4 table would quietly give the first
    number of the next row. (A remainder makes it worse: 4 % 4 is 0.) Raise an `IndexError`.
    """,
)
def cell_of(index, shape, stride, offset):
    pairs = zip(index, shape, stride, strict=True)
    return offset + sum((i % size) * step for i, size, step in pairs)


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


# -- row-major strides ----------------------------------------------------------------------------

strides = Exercise(
    "memory.strides",
    "The strides of a new tensor",
    chapter=2,
    minutes=8,
    prompt="""
    A new tensor lies in memory row by row: the last index counts fastest. From that its strides
    follow. One step in the last dimension is 1, and one step in any other is as far as *everything
    to its right* together.

    Write `row_major(shape)`, which gives the strides as a tuple. For a dimension of size 0 there is
    nothing to step over, and PyTorch counts it as 1.
    """,
)


@strides.stub
def row_major(shape):
    """The strides of a new tensor of this shape, in elements."""
    # your code here: about 5 lines
    raise NotImplementedError


@strides.reference
def row_major(shape):
    """The strides of a new tensor of this shape, in elements."""
    found, step = [], 1
    for size in reversed(shape):
        found.append(step)
        step *= max(size, 1)
    return tuple(reversed(found))


@strides.mutant(
    "column by column",
    why="""
    Here the *first* index counts fastest. That is the order of Fortran, MATLAB and R. C, NumPy and
    PyTorch go row by row: the last stride is 1.
    """,
)
def row_major(shape):
    found, step = [], 1
    for size in shape:
        found.append(step)
        step *= max(size, 1)
    return tuple(found)


@strides.mutant(
    "counts bytes",
    why="""
    The strides were multiplied by 4, the bytes of a float32. NumPy counts its strides in bytes;
    PyTorch counts in elements, so the strides are the same whatever the dtype.
    """,
)
def row_major(shape):
    found, step = [], 4
    for size in reversed(shape):
        found.append(step)
        step *= max(size, 1)
    return tuple(reversed(found))


@strides.mutant(
    "steps over itself",
    why="""
    Each stride includes its own size. A step to the next *row* passes one row's worth of numbers:
    the product of the sizes to the right, without the number of rows. The last stride is then an
    empty product, 1.
    """,
)
def row_major(shape):
    found, step = [], 1
    for size in reversed(shape):
        step *= max(size, 1)
        found.append(step)
    return tuple(reversed(found))


@strides.mutant(
    "an empty dimension wipes out the rest",
    why="""
    A size of 0 was multiplied in, so everything to its left has the stride 0. It does no harm, as
    there are no numbers to find, and yet `torch.empty(2, 0, 3).stride()` says `(3, 3, 1)`: PyTorch
    counts an empty dimension as 1, so that a stride of 0 is left to mean *the same cell again*.
    """,
)
def row_major(shape):
    found, step = [], 1
    for size in reversed(shape):
        found.append(step)
        step *= size
    return tuple(reversed(found))


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


@strides.check("no numbers at all", hidden=True)
def _(f):
    for shape in ((2, 0, 3), (0,)):
        yield call(f, shape).gives(ROW_MAJOR[shape])


# -- contiguous or not ----------------------------------------------------------------------------

contiguous = Exercise(
    "memory.contiguous",
    "Contiguous or not?",
    chapter=2,
    minutes=10,
    prompt="""
    A tensor is *contiguous* if its numbers, read in order, lie in memory one after the other, with
    no gap and no jump. Fast kernels insist on it. Write `is_row_major(shape, stride)`, which says
    whether that is so: `True` or `False`.

    * A dimension of size 1 is never stepped along: **its stride does not matter**.
    * With no numbers at all, nothing can be out of order: contiguous.
    """,
)


@contiguous.stub
def is_row_major(shape, stride):
    """Whether numbers in order lie in neighbouring cells."""
    # your code here: about 8 lines
    raise NotImplementedError


@contiguous.reference
def is_row_major(shape, stride):
    """Whether numbers in order lie in neighbouring cells."""
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


@contiguous.mutant(
    "takes strides of size 1 seriously",
    why="""
    The strides were compared one by one with those of a new tensor. A column `x[:, :1]` cut from a
    vector's neighbour may say any stride where the size is 1: nobody ever takes that step. Leave
    such dimensions out of the comparison.
    """,
)
def is_row_major(shape, stride):
    if 0 in shape:
        return True
    step = 1
    for size, its in zip(reversed(shape), reversed(stride), strict=True):
        if its != step:
            return False
        step *= size
    return True


@contiguous.mutant(
    "only asks whether strides fall",
    why="""
    Falling strides rule out a transposed table, and leave gaps undiscovered: three columns of a
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
    A last stride of 1 says that each *row* lies in one piece. The rows themselves may still be
    anywhere: far apart, in another order, or all in the same place (stride 0).
    """,
)
def is_row_major(shape, stride):
    if 0 in shape:
        return True
    steps = [its for size, its in zip(shape, stride, strict=True) if size != 1]
    return not steps or steps[-1] == 1


@contiguous.mutant(
    "finds fault with nothing",
    why="""
    A tensor with a dimension of size 0 shows no cell at all. There are no two numbers that could be
    out of order, so it is contiguous, whatever its strides say.
    """,
)
def is_row_major(shape, stride):
    step = 1
    for size, its in zip(reversed(shape), reversed(stride), strict=True):
        if size == 1:
            continue
        if its != step:
            return False
        step *= size
    return True


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


@contiguous.check("no numbers at all", hidden=True)
def _(f):
    yield from _verdicts(f, ((2, 0), (5, 9)))


# -- another shape over the same cells ------------------------------------------------------------


def _view_door(f):
    """toytorch's view, with the submission finding the strides."""

    def kernel(xp, array, shape):
        if len(shape) == 1 and not isinstance(shape[0], int):
            return array.view(shape[0].numpy)  # the same memory as another dtype
        new = np.empty(array.size, bool).reshape(shape).shape  # -1 becomes a number
        if array.size == 0:
            return array.reshape(new)
        stride = f(tuple(array.shape), _stride_of(array), new)
        if stride is None:
            raise RuntimeError("view size is not compatible with input tensor's size and stride")
        return _restrided(array, new, stride)

    return registry["view"].using(kernel=kernel)


view = Exercise(
    "memory.view",
    "Another shape over the same cells",
    chapter=2,
    minutes=25,
    door=_view_door,
    prompt="""
    `x.view(2, 6)` shows the same cells, in the same order, in another shape. For that somebody must
    find strides, and sometimes there are none: then `view` gives up and `reshape` copies.

    Write `view_strides(shape, stride, new_shape)`, which gives the new strides as a tuple, or
    `None` if only a copy would do. Both shapes hold the same number of numbers, and at least one.

    1. **Join** neighbouring dimensions as long as they lie evenly: `(size, step)` and then
       `(size2, step2)` are one run of `size * size2` numbers if `step == size2 * step2`. Leave
       dimensions of size 1 away.
    2. **Cut** the runs again, from the right. Each new dimension takes its size from the run on the
       right end; what it takes must divide what is left of the run. A dimension may not reach from
       one run into the next.

    The stride you give a new dimension of size 1 does not matter.
    """,
)


@view.stub
def view_strides(shape, stride, new_shape):
    """Strides that show the same cells in new_shape, or None."""
    # your code here: about 18 lines
    raise NotImplementedError


@view.reference
def view_strides(shape, stride, new_shape):
    """Strides that show the same cells in new_shape, or None."""
    runs = []  # (numbers, step between them)
    for size, step in zip(shape, stride, strict=True):
        if size == 1:
            continue
        if runs and runs[-1][1] == size * step:
            runs[-1] = (runs[-1][0] * size, step)
        else:
            runs.append((size, step))
    found, left, step = [], 1, 1
    for size in reversed(new_shape):
        if size > 1 and left == 1:  # the run is used up: take the next
            left, step = runs.pop()
        if left % size:
            return None
        found.append(step)
        left //= size
        step *= size
    return tuple(reversed(found))


@view.mutant(
    "needs a contiguous tensor",
    why="""
    Only contiguous tensors were given a view. Much more is possible: every second number of a row,
    a transposed table whose columns are cut in two, a table with a gap after each row that keeps
    its rows. What counts is that no new dimension reaches over a jump.
    """,
)
def view_strides(shape, stride, new_shape):
    def row_major(shape):
        found, step = [], 1
        for size in reversed(shape):
            found.append(step)
            step *= size
        return tuple(reversed(found))

    for size, its, wanted in zip(shape, stride, row_major(shape), strict=True):
        if size != 1 and its != wanted:
            return None
    return row_major(new_shape)


@view.mutant(
    "looks at the new shape only",
    why="""
    The strides are those of a *new* tensor of that shape. They forget how the numbers lie: over a
    transposed table they would show other numbers, in another order. `view` never moves a number,
    so the old strides decide what is possible.
    """,
)
def view_strides(shape, stride, new_shape):
    found, step = [], 1
    for size in reversed(new_shape):
        found.append(step)
        step *= size
    return tuple(reversed(found))


@view.mutant(
    "takes the last step for all of it",
    why="""
    The step of the last dimension was continued through the whole tensor. That is right within a
    run of evenly spaced numbers; where a row ends and memory jumps, the next row lies elsewhere. A
    new dimension that reaches over the jump has no stride: `None`.
    """,
)
def view_strides(shape, stride, new_shape):
    sizes = [(s, t) for s, t in zip(shape, stride, strict=True) if s != 1]
    found, step = [], sizes[-1][1] if sizes else 1
    for size in reversed(new_shape):
        found.append(step)
        step *= size
    return tuple(reversed(found))


@view.mutant(
    "stumbles over dimensions of size 1",
    why="""
    A dimension of size 1 took part when runs were joined, and its stride, which means nothing, tore
    a run apart. Leave such dimensions away before you compare steps.
    """,
)
def view_strides(shape, stride, new_shape):
    runs = []
    for size, step in zip(shape, stride, strict=True):
        if runs and runs[-1][1] == size * step:
            runs[-1] = (runs[-1][0] * size, step)
        else:
            runs.append((size, step))
    found, left, step = [], 1, 1
    for size in reversed(new_shape):
        while size > 1 and left == 1:
            left, step = runs.pop()
        if left % size:
            return None
        found.append(step)
        left //= size
        step *= size
    return tuple(reversed(found))


@view.mutant(
    "cuts without joining first",
    why="""
    Each old dimension was cut by itself, so a new one could never be longer than an old one, and
    not even `x.view(-1)` of a fresh table was possible. First join the dimensions that lie evenly:
    a contiguous tensor is a single run.
    """,
)
def view_strides(shape, stride, new_shape):
    runs = [(s, t) for s, t in zip(shape, stride, strict=True) if s != 1]
    found, left, step = [], 1, 1
    for size in reversed(new_shape):
        if size > 1 and left == 1:
            left, step = runs.pop()
        if left % size:
            return None
        found.append(step)
        left //= size
        step *= size
    return tuple(reversed(found))


# (shape, stride, new shape) and whether PyTorch's view finds strides for it
VIEWS = {
    ((3, 4), (4, 1), (12,)): True,
    ((3, 4), (4, 1), (2, 6)): True,
    ((2, 3, 4), (12, 4, 1), (4, 1, 6)): True,
    ((4,), (2,), (2, 2)): True,
    ((3, 4), (1, 3), (3, 2, 2)): True,
    ((2, 3, 4), (24, 4, 1), (2, 12)): True,
    ((3, 4), (0, 1), (3, 2, 2)): True,
    ((3, 4), (1, 3), (12,)): False,
    ((3, 4), (1, 3), (2, 6)): False,
    ((2, 3, 4), (24, 4, 1), (6, 4)): False,
    ((2, 3, 4), (24, 4, 1), (24,)): False,
    ((3, 4), (0, 1), (12,)): False,
    ((6, 2), (1, 6), (4, 3)): False,
    ((4, 1, 3), (3, 99, 1), (12,)): True,
    ((1, 6), (7, 2), (3, 2)): True,
    ((), (), (1, 1)): True,
}


def _views(f, *keys):
    for shape, stride, new in keys:
        name = getattr(f, "__name__", "f")

        def run(shape=shape, stride=stride, new=new):
            found = f(shape, stride, new)
            if isinstance(found, tuple) and len(found) == len(new):
                return f"{_cells(new, found)} by strides {found}"
            return found

        wanted = f"{_cells(shape, stride)} by any strides" if VIEWS[shape, stride, new] else None

        def right(got, wanted=wanted):
            if wanted is None or not isinstance(got, str):
                return got is wanted
            return got.split(" by ")[0] == wanted.split(" by ")[0]

        said = "None" if wanted is None else f"a tuple that shows the cells {wanted[:-15]}"
        yield case(f"{name}({shape}, {stride}, {new})", run).holds(said, right)


@view.check("contiguous tensors")
def _(f):
    yield from _views(f, *list(VIEWS)[:3])


@view.check("views of views")
def _(f):
    yield from _views(f, *list(VIEWS)[3:7])


@view.check("where only a copy would do")
def _(f):
    yield from _views(f, *list(VIEWS)[7:13])


@view.check("dimensions of size 1", hidden=True)
def _(f):
    yield from _views(f, *list(VIEWS)[13:])


# -- stretching -----------------------------------------------------------------------------------


def _expand_door(f):
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
    door=_expand_door,
    prompt="""
    If a stride is 0, a step leads to the same cell again. So one row can be shown a thousand times
    without being copied once. That is how broadcasting works.

    Write `expand_strides(shape, stride, new_shape)`, the strides as a tuple.

    * Shapes line up from the right; dimensions that are new on the left repeat everything.
    * A size 1 may become any size: repeat. Equal sizes stay as they are.
    * Any other change is a `RuntimeError` that says *expand*.
    """,
)


@expand.stub
def expand_strides(shape, stride, new_shape):
    """Strides that repeat dimensions of size 1, with no copy."""
    # your code here: about 10 lines
    raise NotImplementedError


@expand.reference
def expand_strides(shape, stride, new_shape):
    """Strides that repeat dimensions of size 1, with no copy."""
    lead = len(new_shape) - len(shape)
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
    first: somebody else's numbers, or memory beyond the end. To stay where you are, step by 0.
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
    These are the strides that the stretched tensor would have as a *new* one, with room for every
    repetition. The memory holds each number once: a repeated dimension has the stride 0.
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
    A size of 3 was stretched to 4. Which of the three should come again? Only a size of 1 can be
    repeated without a question; everything else is an error.
    """,
)
def expand_strides(shape, stride, new_shape):
    lead = len(new_shape) - len(shape)
    pairs = zip(shape, stride, new_shape[lead:], strict=True)
    return (*[0] * lead, *(step if size == new else 0 for size, step, new in pairs))


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


# -- windows --------------------------------------------------------------------------------------

sliding = Exercise(
    "memory.windows",
    "All windows of an image at once",
    chapter=2,
    minutes=15,
    prompt="""
    A convolution looks at an image through a small window, at every place. With strides you can
    have *all* windows at once, as one tensor, without copying a pixel.

    Write `windows(x, k)`: for `x` of shape `(..., H, W)` the result has the shape
    `(..., H-k+1, W-k+1, k, k)`, and `result[..., i, j, :, :]` is the window whose upper left corner
    is at `(i, j)`.

    Use `x.as_strided(shape, stride)`, which starts where `x` starts. How far is it from one window
    to the one below, and how far from one row of a window to the next? `x.stride()` knows. Let your
    function also work for images that are slices or transposed.
    """,
)


@sliding.stub
def windows(x, k):
    """(..., H, W) -> (..., H-k+1, W-k+1, k, k), the same memory."""
    # your code here: about 4 lines
    raise NotImplementedError


@sliding.reference
def windows(x, k):
    """(..., H, W) -> (..., H-k+1, W-k+1, k, k), the same memory."""
    *lead, height, width = x.shape
    *steps, down, right = x.stride()
    shape = (*lead, height - k + 1, width - k + 1, k, k)
    return x.as_strided(shape, (*steps, down, right, down, right))


@sliding.mutant(
    "one window short",
    why="""
    There are H - k + 1 places: a window as high as the image fits exactly once, not zero times. The
    last row and the last column of windows are missing.
    """,
)
def windows(x, k):
    *lead, height, width = x.shape
    *steps, down, right = x.stride()
    shape = (*lead, height - k, width - k, k, k)
    return x.as_strided(shape, (*steps, down, right, down, right))


@sliding.mutant(
    "takes every image for contiguous",
    why="""
    The strides were worked out from the shape: W to the next row, 1 to the next column. That holds
    for a fresh image only. A slice keeps the strides of the image it was cut from, and a transposed
    one has them exchanged. Ask `x.stride()`.
    """,
)
def windows(x, k):
    *lead, height, width = x.shape
    steps = [height * width] * len(lead)
    shape = (*lead, height - k + 1, width - k + 1, k, k)
    return x.as_strided(shape, (*steps, width, 1, width, 1))


@sliding.mutant(
    "starts at the beginning of the memory",
    why="""
    With `storage_offset=0` the windows begin at cell 0 of the storage. A slice begins further on.
    Leave the offset away, and `as_strided` starts where `x` starts.
    """,
)
def windows(x, k):
    *lead, height, width = x.shape
    *steps, down, right = x.stride()
    shape = (*lead, height - k + 1, width - k + 1, k, k)
    return x.as_strided(shape, (*steps, down, right, down, right), 0)


@sliding.mutant(
    "windows lie on their side",
    why="""
    Within each window, rows and columns are exchanged: the last two strides came in the other
    order. Down is down, for a step of the window as for a step inside it.
    """,
)
def windows(x, k):
    *lead, height, width = x.shape
    *steps, down, right = x.stride()
    shape = (*lead, height - k + 1, width - k + 1, k, k)
    return x.as_strided(shape, (*steps, down, right, right, down))


@sliding.mutant(
    "copies every window",
    why="""
    The numbers are right, and each pixel was copied up to k² times. Nothing has to be copied: the
    windows are the same cells, seen with other strides. A test is whether writing into the image
    shows up in the windows.
    """,
)
def windows(x, k):
    height, width = x.shape[-2:]
    rows = [
        torch.stack([x[..., i : i + k, j : j + k] for j in range(width - k + 1)], -3)
        for i in range(height - k + 1)
    ]
    return torch.stack(rows, -4)


# what PyTorch's x.unfold(-2, k, 1).unfold(-2, k, 1) gives
WINDOWS = [
    [[[0.0, 1.0], [3.0, 4.0]], [[1.0, 2.0], [4.0, 5.0]]],
    [[[3.0, 4.0], [6.0, 7.0]], [[4.0, 5.0], [7.0, 8.0]]],
]


def _picture(height, width):
    return torch.arange(float(height * width)).reshape(height, width)


@sliding.check("a 3 × 3 image")
def _(f):
    yield call(f, _picture(3, 3), 2).gives(torch.tensor(WINDOWS))


@sliding.check("higher than wide, and a window as large as the image")
def _(f):
    yield case("windows(x, 3).shape for a 6 × 4 image", lambda: tuple(f(_picture(6, 4), 3).shape)
               ).gives((4, 2, 3, 3))
    yield call(f, _picture(2, 2), 2).gives(_picture(2, 2)[None, None])


@sliding.check("a slice and a transposed image")
def _(f):
    corner = case("windows(x[1:, 1:], 2) for a 4 × 4 image", lambda: f(_picture(4, 4)[1:, 1:], 2))
    wanted = [[[[5.0, 6.0], [9.0, 10.0]], [[6.0, 7.0], [10.0, 11.0]]],
              [[[9.0, 10.0], [13.0, 14.0]], [[10.0, 11.0], [14.0, 15.0]]]]
    yield corner.gives(torch.tensor(wanted))
    turned = case("windows(x.t(), 2) for a 3 × 3 image", lambda: f(_picture(3, 3).t(), 2))
    yield turned.gives(torch.tensor(WINDOWS).permute(1, 0, 3, 2).contiguous())


@sliding.check("many images at once", hidden=True)
def _(f):
    def batch():
        x = torch.arange(54.0).reshape(3, 2, 3, 3)
        got = f(x, 2)
        return tuple(got.shape), got[2, 1, 0, 1].tolist()

    pair = case("the shape for a (3, 2, 3, 3) batch, and window [2, 1, 0, 1]", batch)
    yield pair.gives(((3, 2, 2, 2, 2, 2), [[46.0, 47.0], [49.0, 50.0]]))


@sliding.check("no pixel is copied", hidden=True)
def _(f):
    def written():
        x = _picture(3, 3)
        got = f(x, 2)
        x[1, 1] = 100.0  # in the middle: all four windows see it
        return (got == 100.0).sum().item()

    yield case("how many windows see a write to x[1, 1]", written).gives(4)
