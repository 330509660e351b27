"""A layout: shape, strides and offset over a flat memory."""

import itertools
import math
from functools import partial

import numpy as np

import toytorch as torch
from course.cases import call, case
from course.records import Exercise

layout = Exercise(
    "memory.layout",
    "A layout over flat memory",
    chapter=2,
    minutes=45,
    prompt="""
    Everything of this chapter in one class, the next file of your package `mytorch`. A `Layout`
    says where in a flat memory each element of an array lies. It holds no data.

    | attribute | what it holds |
    | --- | --- |
    | `shape` | the sizes, a tuple |
    | `strides` | for each dimension, how many cells further its next element lies |
    | `offset` | the cell of the first element |

    The element at index (i, j, …) lies in cell `offset + i * strides[0] + j * strides[1] + …`.

    1. **Cells.** `Layout((2, 3))` without strides is row-major. `cell(i, j)` gives one cell, also for
       negative indices, and `cells()` all of them, the last index running fastest.
    2. **Views.** `transpose`, `narrow` and `expand` return a new layout over the same memory. An
       expanded dimension has stride 0.
    3. **Windows.** `windows(dim, size, step)` gives all windows along a dimension: `dim` then counts
       windows, and a new last dimension counts the places inside one. A convolution in chapter 10
       stands on it.
    4. **Another shape.** `is_contiguous()`, and `view(*shape)` for contiguous layouts.

    A trace, for `Layout((3, 4))` with strides (4, 1):

    | call | shape | strides | offset | cells |
    | --- | --- | --- | --- | --- |
    | `.transpose(0, 1)` | (4, 3) | (1, 4) | 0 | 0, 4, 8, 1, 5, 9, 2, … |
    | `.narrow(1, 1, 2)` | (3, 2) | (4, 1) | 1 | 1, 2, 5, 6, 9, 10 |
    | `.narrow(0, 0, 2, step=2)` | (2, 4) | (8, 1) | 0 | 0, 1, 2, 3, 8, 9, 10, 11 |
    | `.windows(1, 2)` | (3, 3, 2) | (4, 1, 1) | 0 | 0, 1, 1, 2, 2, 3, 4, 5, … |

    Indices and sizes that do not fit are an `IndexError` in `cell` and `narrow`, and a `ValueError`
    in `expand`, `windows` and `view`.
    """,
    hints=(
        """
        A layout is three things: shape, strides and offset. No method moves a number. Each view works out
        these three anew and returns another `Layout`. So ask of each method only: which sizes change, which
        strides change, and does the first element move?
        """,
        """
        `Layout((3, 4))` has strides (4, 1) and offset 0. All elements of columns 1 and 3:

        | call | what changes | shape | strides | offset |
        | --- | --- | --- | --- | --- |
        | `.narrow(1, 1, 2, step=2)` | the first element moves 1 · 1 cells | (3, 2) | (4, 2) | 1 |
        | `.transpose(0, 1)` | sizes and strides change places | (2, 3) | (2, 4) | 1 |
        | `.windows(1, 2)` | 3 - 2 + 1 = 2 windows of two | (2, 2, 2) | (2, 4, 4) | 1 |

        `cell(1, 0, 1)` of the last one: 1 + 1 · 2 + 0 · 4 + 1 · 4 = 7. In the windows, two strides are equal:
        from one window to the next, and from one place inside to the next, it is the same step here. With
        `step=2` between windows, only the first of the two would double.
        """,
        """
        ```python
        class Layout:
            def __init__(self, shape, strides=None, offset=0):
                self.shape = tuple(shape)
                if strides is None:
                    strides, cells = [], 1
                    for size in reversed(self.shape):
                        ...
                self.strides = tuple(strides)
                self.offset = offset

            def __repr__(self):
                return f"Layout({self.shape}, {self.strides}, {self.offset})"

            def cell(self, *index):
                if len(index) != len(self.shape):
                    raise IndexError(f"{len(index)} indices for {self.shape}")
                found = self.offset
                for i, size, stride in zip(index, self.shape, self.strides):
                    ...
                return found

            def cells(self):
                every = itertools.product(*map(range, self.shape))
                return [... for index in every]

            def transpose(self, first, second):
                order = list(range(len(self.shape)))
                ...
                shape = [self.shape[d] for d in order]
                return Layout(shape, ..., self.offset)

            def narrow(self, dim, start, length, step=1):
                last = start + (length - 1) * step
                if ...:
                    raise IndexError(f"{start} to {last} leaves {self.shape}")
                shape, strides = list(self.shape), list(self.strides)
                offset = ...
                shape[dim], strides[dim] = ...
                return Layout(shape, strides, offset)

            def expand(self, *shape):
                lead = len(shape) - len(self.shape)
                if lead < 0:
                    raise ValueError(f"{shape} is shorter than {self.shape}")
                strides = [0] * lead
                for old, new, stride in zip(self.shape, shape[lead:], self.strides):
                    ...
                return Layout(shape, strides, self.offset)

            def windows(self, dim, size, step=1):
                count = ...
                if size < 1 or count < 1:
                    raise ValueError(f"no window of {size} in {self.shape}")
                shape, strides = list(self.shape), list(self.strides)
                shape[dim], strides[dim] = ...
                strides.append(...)  # the place inside a window
                return Layout([*shape, size], strides, self.offset)
        ```

        `is_contiguous` and `view` are the two exercises before, in one class; `of` stays as it is.
        """,
    ),
)


@layout.reference(stub={
    "__init__": "stage 1, your code here: about 8 lines",
    "cell": "stage 1, your code here: about 8 lines",
    "cells": "stage 1, your code here: about 2 lines",
    "transpose": "stage 2, your code here: about 4 lines",
    "narrow": "stage 2, your code here: about 7 lines",
    "expand": "stage 2, your code here: about 10 lines",
    "windows": "stage 3, your code here: about 7 lines",
    "is_contiguous": "stage 4, your code here: about 9 lines",
    "view": "stage 4, your code here: about 5 lines",
})
class Layout:
    """Which cell of a flat memory holds each element of an array."""

    def __init__(self, shape, strides=None, offset=0):
        self.shape = tuple(shape)
        if strides is None:  # row-major: the last dimension is dense
            strides, cells = [], 1
            for size in reversed(self.shape):
                strides.insert(0, cells)
                cells *= max(size, 1)
        self.strides = tuple(strides)
        self.offset = offset

    def __repr__(self):
        return f"Layout({self.shape}, {self.strides}, {self.offset})"

    def cell(self, *index):
        """The cell of one element."""
        if len(index) != len(self.shape):
            raise IndexError(f"{len(index)} indices for {self.shape}")
        found = self.offset
        for i, size, stride in zip(index, self.shape, self.strides):
            if not -size <= i < size:
                raise IndexError(f"index {i} leaves size {size}")
            found += (i % size) * stride
        return found

    def cells(self):
        """The cells of all elements, the last index running fastest."""
        every = itertools.product(*map(range, self.shape))
        return [self.cell(*index) for index in every]

    def transpose(self, first, second):
        """Two dimensions exchanged."""
        order = list(range(len(self.shape)))
        order[first], order[second] = order[second], order[first]
        shape = [self.shape[d] for d in order]
        return Layout(shape, [self.strides[d] for d in order], self.offset)

    def narrow(self, dim, start, length, step=1):
        """Every step-th element from start on, along one dimension."""
        last = start + (length - 1) * step
        if length > 0 and not (start >= 0 and last < self.shape[dim]):
            raise IndexError(f"{start} to {last} leaves {self.shape}")
        shape, strides = list(self.shape), list(self.strides)
        offset = self.offset + start * strides[dim]
        shape[dim], strides[dim] = length, strides[dim] * step
        return Layout(shape, strides, offset)

    def expand(self, *shape):
        """Dimensions of size 1 repeated, new ones on the left."""
        lead = len(shape) - len(self.shape)
        if lead < 0:
            raise ValueError(f"{shape} is shorter than {self.shape}")
        strides = [0] * lead
        sizes = zip(self.shape, shape[lead:], self.strides)
        for old, new, stride in sizes:
            if old not in (1, new):
                raise ValueError(f"{self.shape} is not {shape}")
            strides.append(stride if old == new else 0)
        return Layout(shape, strides, self.offset)

    def windows(self, dim, size, step=1):
        """All windows along a dimension; places inside come last."""
        count = (self.shape[dim] - size) // step + 1
        if size < 1 or count < 1:
            raise ValueError(f"no window of {size} in {self.shape}")
        shape, strides = list(self.shape), list(self.strides)
        shape[dim], strides[dim] = count, strides[dim] * step
        strides.append(self.strides[dim])
        return Layout([*shape, size], strides, self.offset)

    def is_contiguous(self):
        """Whether the elements lie one after the other, without gaps."""
        if 0 in self.shape:
            return True
        cells = 1
        pairs = list(zip(self.shape, self.strides))
        for size, stride in reversed(pairs):
            if size != 1 and stride != cells:
                return False
            cells *= size
        return True

    def view(self, *shape):
        """Another shape over the same cells in the same order."""
        if math.prod(shape) != math.prod(self.shape):
            raise ValueError(f"{self.shape} and {shape} differ in size")
        if not self.is_contiguous():
            raise ValueError("only contiguous elements have another view")
        return Layout(shape, None, self.offset)

    def of(self, memory):
        """A NumPy array that shows a flat array's cells in this layout."""
        size = memory.itemsize
        strides = [stride * size for stride in self.strides]
        return np.ndarray(
            self.shape, memory.dtype, memory, self.offset * size, strides
        )


layout.changed(
    "column-major strides",
    """
    The first dimension got stride 1. That is Fortran's order. In row-major order the last dimension
    has stride 1, and each stride is the product of all sizes to its right.
    """,
    (
        ("for size in reversed(self.shape):\n                strides.insert(0, cells)"),
        ("for size in self.shape:\n                strides.append(cells)"),
    ),
)

layout.changed(
    "forgets the offset",
    """
    The cell of an element starts at `offset`, the cell of the first one. A layout that begins in
    the middle of memory, a column for example, then shows the wrong cells.
    """,
    ("found = self.offset\n", "found = 0\n"),
)

layout.changed(
    "negative indices are taken as they are",
    """
    Index -1 means the last element. Here it gave a cell before the first one: count it from the
    end, `i % size`.
    """,
    ("found += (i % size) * stride", "found += i * stride"),
)

layout.changed(
    "transposes the shape only",
    """
    The sizes were exchanged and the strides were not. Then the array has the right shape, and its
    elements are read in the old order.
    """,
    (
        "return Layout(shape, [self.strides[d] for d in order], self.offset)",
        "return Layout(shape, self.strides, self.offset)",
    ),
)

layout.changed(
    "the start is not multiplied by the stride",
    """
    A step along a dimension moves by its stride. So starting at element `start` moves the offset by
    `start * strides[dim]`, not by `start`.
    """,
    ("offset = self.offset + start * strides[dim]", "offset = self.offset + start"),
)

layout.changed(
    "the step does not reach the stride",
    """
    Every second element lies two strides further. With a step, the stride of that dimension is
    multiplied by it.
    """,
    ("shape[dim], strides[dim] = length, strides[dim] * step", "shape[dim] = length"),
)

layout.changed(
    "an expanded dimension keeps its stride",
    """
    A repeated element lies in the same cell each time: its stride is 0. With the old stride, the
    next element of the memory is read instead.
    """,
    ("strides.append(stride if old == new else 0)", "strides.append(stride)"),
)

layout.changed(
    "expand lines shapes up from the left",
    """
    Shapes line up from the right, and new dimensions stand on the left. So `(3,)` expands to `(2,
    3)`, and its stride belongs to the last dimension.
    """,
    ("strides = [0] * lead", "strides = []"),
    (
        "strides.append(stride if old == new else 0)\n",
        ("strides.append(stride if old == new else 0)\n        strides += [0] * lead\n"),
    ),
)

layout.changed(
    "one window short",
    """
    There are size - window + 1 places for a window with step 1: a window as long as the dimension
    fits once.
    """,
    ("(self.shape[dim] - size) // step + 1", "(self.shape[dim] - size) // step"),
)

layout.changed(
    "windows do not overlap",
    """
    The windows were put side by side, a whole window apart. With step 1 the next one begins one
    element further and shares the rest.
    """,
    ("def windows(self, dim, size, step=1):", "def windows(self, dim, size, step=None):"),
    (
        "        count = (self.shape[dim] - size) // step + 1",
        ("        step = size\n        count = (self.shape[dim] - size) // step + 1"),
    ),
)

layout.changed(
    "the place inside a window moves by the step",
    """
    Two strides were confused. From window to window one moves by `step` elements; inside a window,
    from one place to the next, by one element.
    """,
    ("strides.append(self.strides[dim])", "strides.append(strides[dim])"),
)

layout.changed(
    "a size of 1 must have the right stride",
    """
    Where a dimension has one element, no step is ever taken along it, so its stride does not
    matter. Skip such dimensions.
    """,
    ("if size != 1 and stride != cells:", "if stride != cells:"),
)

layout.changed(
    "view starts at cell 0",
    """
    The new shape shows the same cells, so it begins at the same offset.
    """,
    ("return Layout(shape, None, self.offset)", "return Layout(shape)"),
)


layout.changed(
    "a 0 makes strides of 0",
    """
    A dimension of size 0 counts as 1 when strides are worked out: a stride of 0 already means
    *the same cell again*. PyTorch does the same.
    """,
    ("cells *= max(size, 1)", "cells *= size"),
)

layout.changed(
    "narrow takes a negative start",
    """
    Only the end was checked. A start before the first element moves the offset out of the layout,
    into cells that it does not show.
    """,
    ("not (start >= 0 and last < self.shape[dim])", "last >= self.shape[dim]"),
)

layout.changed(
    "expand shrinks to 1",
    """
    A size of 1 may grow to any size. The other way round, elements would be lost: a size of 3
    cannot become 1. Only the *old* size may be 1.
    """,
    ("if old not in (1, new):", "if old != new and 1 not in (old, new):"),
)

layout.changed(
    "counts windows that were only begun",
    """
    A window that reaches beyond the end shows cells outside the layout. Only whole windows count:
    round the quotient down.
    """,
    ("(self.shape[dim] - size) // step + 1", "-((size - self.shape[dim]) // step) + 1"),
)


def _random(seed):
    """A chain of views of a toytorch tensor, and the same calls for a layout."""
    draw = np.random.default_rng(seed)
    shape = tuple(int(n) for n in draw.integers(1, 5, size=draw.integers(1, 4)))
    real = torch.arange(math.prod(shape)).reshape(shape)
    calls = []
    for _ in range(int(draw.integers(1, 4))):
        dim = int(draw.integers(real.ndim))
        size = real.shape[dim]
        kind = str(draw.choice(["transpose", "narrow", "expand", "windows"]))
        if kind == "transpose":
            other = int(draw.integers(real.ndim))
            real, given = real.transpose(dim, other), (dim, other)
        elif kind == "narrow":
            start, step = int(draw.integers(size)), int(draw.integers(1, 3))
            length = int(draw.integers(1, (size - start - 1) // step + 2))
            cut = [slice(None)] * dim + [slice(start, start + (length - 1) * step + 1, step)]
            real, given = real[tuple(cut)], (dim, start, length, step)
        elif kind == "expand":
            wide = [3 if n == 1 else n for n in real.shape]
            given = (2, *wide) if real.ndim < 4 else tuple(wide)
            real = real.expand(given)
        else:
            window, step = int(draw.integers(1, size + 1)), int(draw.integers(1, 3))
            real, given = real.unfold(dim, window, step), (dim, window, step)
        calls.append((kind, given))
    return shape, calls, real


def _told(shape, calls):
    return f"Layout({shape})" + "".join(
        f".{name}({', '.join(map(str, given))})" for name, given in calls
    )


def _made(Layout, shape, calls):
    found = Layout(shape)
    for name, given in calls:
        found = getattr(found, name)(*given)
    return tuple(found.shape), found.offset, list(found.cells())


def _parts(found):
    return tuple(found.shape), tuple(found.strides), found.offset


@layout.check("1 · cells")
def _(Layout):
    for shape in ((3, 4), (5,), (2, 3, 4), (), (2, 1, 3), (2, 0, 3)):
        strides = torch.empty(shape).stride()
        yield case(
            f"Layout({shape}).strides", partial(lambda s: tuple(Layout(s).strides), shape)
        ).gives(strides)
    yield case("Layout((3, 4)).cell(1, 2)", lambda: Layout((3, 4)).cell(1, 2)).gives(6)
    yield case("Layout((3, 4)).cell(-1, -2)", lambda: Layout((3, 4)).cell(-1, -2)).gives(10)
    yield case("Layout([2, 3]).shape, of a list", lambda: Layout([2, 3]).shape).gives((2, 3))
    column = "Layout((3,), (4,), 2)"
    yield case(f"{column}.cell(1)", lambda: Layout((3,), (4,), 2).cell(1)).gives(6)
    yield case(f"{column}.cells()", lambda: list(Layout((3,), (4,), 2).cells())).gives([2, 6, 10])
    yield case("Layout((2, 3)).cells()", lambda: list(Layout((2, 3)).cells())).gives(
        [0, 1, 2, 3, 4, 5]
    )
    yield case("Layout(()).cells()", lambda: list(Layout(()).cells())).gives([0])
    yield case("Layout((2, 0)).cells()", lambda: list(Layout((2, 0)).cells())).gives([])
    yield case("Layout((3, 4)).cell(3, 0)", lambda: Layout((3, 4)).cell(3, 0)).raises(IndexError)
    yield case("Layout((3, 4)).cell(0, -5)", lambda: Layout((3, 4)).cell(0, -5)).raises(IndexError)
    yield case("Layout((3, 4)).cell(1)", lambda: Layout((3, 4)).cell(1)).raises(IndexError)


@layout.check("2 · views")
def _(Layout):
    def base():
        return Layout((3, 4))

    def view(text, run, *wanted):
        return case(f"Layout((3, 4)).{text}", lambda: _parts(run())).gives(wanted)

    yield view("transpose(0, 1)", lambda: base().transpose(0, 1), (4, 3), (1, 4), 0)
    yield view("transpose(-1, 0)", lambda: base().transpose(-1, 0), (4, 3), (1, 4), 0)
    yield view("narrow(1, 1, 2)", lambda: base().narrow(1, 1, 2), (3, 2), (4, 1), 1)
    yield view("narrow(0, 1, 2)", lambda: base().narrow(0, 1, 2), (2, 4), (4, 1), 4)
    yield view("narrow(0, 0, 2, 2)", lambda: base().narrow(0, 0, 2, 2), (2, 4), (8, 1), 0)
    yield view("expand(2, 3, 4)", lambda: base().expand(2, 3, 4), (2, 3, 4), (0, 4, 1), 0)
    yield case("Layout((3, 1)).expand(3, 5)", lambda: _parts(Layout((3, 1)).expand(3, 5))).gives(
        ((3, 5), (1, 0), 0)
    )
    yield case("Layout((3,)).expand(2, 3)", lambda: _parts(Layout((3,)).expand(2, 3))).gives(
        ((2, 3), (0, 1), 0)
    )

    def kept():
        first = base()
        first.transpose(0, 1)
        first.narrow(1, 1, 2)
        return _parts(first)

    yield case("a layout after its views were made", kept).gives(((3, 4), (4, 1), 0))
    yield case("Layout((3, 4)).narrow(1, 3, 2)", lambda: base().narrow(1, 3, 2)).raises(IndexError)
    yield case("Layout((3, 4)).narrow(1, -1, 1)", lambda: base().narrow(1, -1, 1)).raises(
        IndexError
    )
    yield case("Layout((3, 4)).expand(3, 5)", lambda: base().expand(3, 5)).raises(ValueError)
    yield case("Layout((3, 4)).expand(1, 4)", lambda: base().expand(1, 4)).raises(ValueError)
    yield case("Layout((3, 4)).expand(4)", lambda: base().expand(4)).raises(ValueError)


@layout.check("3 · windows")
def _(Layout):
    yield case(
        "Layout((5,)).windows(0, 3).cells()", lambda: list(Layout((5,)).windows(0, 3).cells())
    ).gives([0, 1, 2, 1, 2, 3, 2, 3, 4])
    yield case(
        "Layout((5,)).windows(0, 2, 2)", lambda: _parts(Layout((5,)).windows(0, 2, 2))
    ).gives(((2, 2), (2, 1), 0))
    yield case("Layout((4,)).windows(0, 4)", lambda: _parts(Layout((4,)).windows(0, 4))).gives(
        ((1, 4), (1, 1), 0)
    )
    square = torch.arange(16).reshape(4, 4).unfold(0, 3, 1).unfold(1, 3, 1)
    yield case(
        "all 3 by 3 windows of an image of 4 by 4",
        lambda: _made(Layout, (4, 4), [("windows", (0, 3, 1)), ("windows", (1, 3, 1))]),
    ).gives((tuple(square.shape), 0, square.flatten().tolist()))
    yield case("Layout((3,)).windows(0, 4)", lambda: Layout((3,)).windows(0, 4)).raises(ValueError)
    yield case("Layout((3,)).windows(0, 0)", lambda: Layout((3,)).windows(0, 0)).raises(ValueError)


@layout.check("4 · another shape")
def _(Layout):
    def contiguous(shape, strides):
        return bool(Layout(shape, strides).is_contiguous())

    for shape, strides in (
        ((3, 4), (4, 1)),
        ((4, 3), (1, 4)),
        ((3, 2), (4, 1)),
        ((1, 4), (9, 1)),
        ((3, 1), (1, 7)),
        ((2, 0), (5, 5)),
        ((2, 3), (0, 1)),
        ((), ()),
    ):
        real = torch.empty(64).as_strided(shape, strides).is_contiguous()
        yield call(contiguous, shape, strides).gives(real)
    yield case("Layout((3, 4)).view(2, 6)", lambda: _parts(Layout((3, 4)).view(2, 6))).gives(
        ((2, 6), (6, 1), 0)
    )
    yield case(
        "Layout((4,), (1,), 8).view(2, 2)", lambda: _parts(Layout((4,), (1,), 8).view(2, 2))
    ).gives(((2, 2), (2, 1), 8))
    yield case("Layout((3, 4)).view(5)", lambda: Layout((3, 4)).view(5)).raises(ValueError)
    yield case(
        "Layout((3, 4)).transpose(0, 1).view(12)", lambda: Layout((3, 4)).transpose(0, 1).view(12)
    ).raises(ValueError)


@layout.check("5 · random chains of views", hidden=True)
def _(Layout):
    for seed in range(60):
        shape, calls, real = _random(seed)
        wanted = tuple(real.shape), real.storage_offset(), real.flatten().tolist()
        yield case(_told(shape, calls), partial(_made, Layout, shape, calls)).gives(wanted)
