"""Another shape over the same cells."""

import numpy as np

from course.cases import case
from course.exercises.ch02.common import _cells, _restrided, _stride_of
from course.properties import drawn, every
from course.records import Exercise
from toytorch.core.op import registry


def _inject_view(f):
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
    without=("torch.Tensor.view", "torch.Tensor.reshape"),
    inject=_inject_view,
    prompt="""
    `x.view(2, 6)` shows the same cells, in the same order, in another shape. For that, new strides
    are needed, and sometimes there are none: then `view` raises an error and `reshape` copies.

    Write `view_strides(shape, stride, new_shape)`, which gives the new strides as a tuple, or
    `None` if only a copy would do. Both shapes have the same number of elements, and at least one.

    1. **Join** neighbouring dimensions as long as they lie evenly: `(size, step)` and then
       `(size2, step2)` are one run of `size * size2` elements if `step == size2 * step2`. Leave out
       dimensions of size 1.
    2. **Cut** the runs again, from the right. Each new dimension takes its size from the run on the
       right end; what it takes must divide what is left of the run. A dimension may not reach from
       one run into the next.

    The stride you give a new dimension of size 1 does not matter.

    By hand, for the shape `(2, 2, 3)` with strides `(12, 3, 1)`: two blocks of six elements, with a
    gap between them. *Join*: `(3, 1)` comes after `(2, 3)`, and 3 == 3 · 1, so the two are one run
    of 6 elements with step 1. `(2, 12)` stays alone, because 12 is not 2 · 3. *Cut*, from the
    right:

    | new shape | 1st from the right | 2nd | 3rd | strides |
    | --- | --- | --- | --- | --- |
    | `(2, 6)` | 6 takes all of the run of 6 | 2 takes the run of 2 | | `(12, 1)` |
    | `(2, 3, 2)` | 2 takes from 6, leaves 3 | 3 takes the rest, step 2 | 2 takes the next run | `(12, 2, 1)` |
    | `(3, 4)` | 4 does not divide 6 | | | `None` |
    """,
    hints=(
        """
        What matters are the *runs*: groups of elements at equal distances in memory. The shape does
        not show them. First write the tensor as a list of runs, each a pair of a length and a step.
        Then hand the runs out to the new dimensions from the right. A new dimension must fit into
        one run.
        """,
        """
        A 2 × 3 × 4 tensor with strides `(24, 4, 1)` becomes `(2, 12)`.

        **Join**, from the left. A dimension joins the run before it if that run's step is `size * step` of
        the dimension.

        | dimension | run before | question | runs |
        | --- | --- | --- | --- |
        | (2, 24) | none | | (2, 24) |
        | (3, 4) | (2, 24) | 24 == 3 · 4? no | (2, 24), (3, 4) |
        | (4, 1) | (3, 4) | 4 == 4 · 1? yes: 3 · 4 elements, step 1 | (2, 24), (12, 1) |

        **Cut**, from the right. `left` is what is left of the current run.

        | new size | take a run? | divides what is left? | stride | left afterwards | next step |
        | --- | --- | --- | --- | --- | --- |
        | 12 | yes: (12, 1) | 12 divides 12 | 1 | 1 | 12 |
        | 2 | yes, `left` is 1: (2, 24) | 2 divides 2 | 24 | 1 | 48 |

        The strides are `(24, 1)`. For the new shape `(6, 4)`, 4 takes from (12, 1) and leaves 3; then 6 does
        not divide 3: `None`.
        """,
        """
        ```python
        def view_strides(shape, stride, new_shape):
            runs = []  # (elements, step between them)
            for size, step in zip(shape, stride):
                if size == 1:
                    continue
                if runs and ...:  # does it join the run before?
                    runs[-1] = ...
                else:
                    runs.append((size, step))
            found, left, step = [], 1, 1
            for size in reversed(new_shape):
                if size > 1 and left == 1:
                    left, step = runs.pop()
                if ...:
                    return None
                found.append(step)
                left //= ...
                step *= ...
            return tuple(reversed(found))
        ```
        """,
    ),
)


@view.reference(stub="your code here: about 18 lines")
def view_strides(shape, stride, new_shape):
    """Strides that show the same cells in new_shape, or None."""
    runs = []  # (elements, step between them)
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
    Only contiguous tensors were given a view. Much more is possible: every second element of a row,
    a transposed table whose columns are split in two, or a table with a gap after each row that
    keeps its rows. What counts is that no new dimension extends over a gap.
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
    The strides are those of a *new* tensor of that shape. They ignore how the elements lie in
    memory: for a transposed table they would show the elements in another order. `view` never moves
    an element, so the old strides decide what is possible.
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
    run of evenly spaced elements. Where a gap follows a row, the next row begins further on. A new
    dimension that extends over the gap has no stride: `None`.
    """,
)
def view_strides(shape, stride, new_shape):
    sizes = [(s, t) for s, t in zip(shape, stride, strict=True) if s != 1]
    found, step = [], sizes[-1][1] if sizes else 1
    for size in reversed(new_shape):
        found.append(step)
        step *= size
    return tuple(reversed(found))


view.changed(
    "stumbles over dimensions of size 1",
    """
    A dimension of size 1 took part when runs were joined. Its stride has no meaning, but it split a
    run in two. Leave such dimensions out before you compare steps.
    """,
    (
        "        if size == 1:\n"
        "            continue\n",
        "",
    ),
    ("if size > 1 and left == 1:", "while size > 1 and left == 1:"),
)

view.changed(
    "cuts without joining first",
    """
    Each old dimension was cut by itself, so a new one could never be longer than an old one, and
    not even `x.view(-1)` of a fresh table was possible. First join the dimensions that lie evenly:
    a contiguous tensor is a single run.
    """,
    (
        "    runs = []  # (elements, step between them)\n"
        "    for size, step in zip(shape, stride, strict=True):\n"
        "        if size == 1:\n"
        "            continue\n"
        "        if runs and runs[-1][1] == size * step:\n"
        "            runs[-1] = (runs[-1][0] * size, step)\n"
        "        else:\n"
        "            runs.append((size, step))",
        "    runs = [(s, t) for s, t in zip(shape, stride, strict=True) if s != 1]",
    ),
)


def _runs(shape, stride):
    runs = []
    for size, step in zip(shape, stride):
        if size == 1:
            continue
        if runs and runs[-1][1] == size * step:
            runs[-1] = (runs[-1][0] * size, step)
        else:
            runs.append((size, step))
    return runs


def _cut(runs, new_shape):
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


@view.mutant(
    "one run or nothing",
    why="""
    For a tensor of several runs the answer was always `None`. A new shape may still respect the
    gaps: the rows of a transposed table can be split, it only cannot be flattened.
    """,
)
def view_strides(shape, stride, new_shape):
    runs = _runs(shape, stride)
    return None if len(runs) > 1 else _cut(runs, new_shape)


@view.mutant(
    "joins each pair once",
    why="""
    After two dimensions were joined, the next one was not compared with the *joined* run. Three
    dimensions that lie evenly are one run: go on joining.
    """,
)
def view_strides(shape, stride, new_shape):
    pairs = [(size, step) for size, step in zip(shape, stride) if size != 1]
    runs = []
    while pairs:
        size, step = pairs.pop(0)
        if pairs and step == pairs[0][0] * pairs[0][1]:
            more, step = pairs.pop(0)
            size *= more
        runs.append((size, step))
    return _cut(runs, new_shape)


@view.mutant(
    "repeated elements have no view",
    why="""
    A stride of 0 is a stride like any other. Dimensions that repeat can be cut, and even joined
    with one another: `0 == size * 0`.
    """,
)
def view_strides(shape, stride, new_shape):
    if any(step == 0 for size, step in zip(shape, stride) if size > 1):
        return None
    return _cut(_runs(shape, stride), new_shape)


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
    for key in keys:
        yield _view(f, *key, VIEWS[key])


def _view(f, shape, stride, new, possible):
    name = getattr(f, "__name__", "f")

    def run(shape=shape, stride=stride, new=new):
        found = f(shape, stride, new)
        if isinstance(found, tuple) and len(found) == len(new):
            return f"{_cells(new, found)} by strides {found}"
        return found

    wanted = f"{_cells(shape, stride)} by any strides" if possible else None

    def right(got, wanted=wanted):
        if wanted is None or not isinstance(got, str):
            return got is wanted
        return got.split(" by ")[0] == wanted.split(" by ")[0]

    said = "None" if wanted is None else f"a tuple that shows the cells {wanted[:-15]}"
    return case(f"{name}({shape}, {stride}, {new})", run).holds(said, right)


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


def _any_view(draw):
    """A tensor that was transposed, cut or stretched, and a shape with as many numbers."""
    dims = []  # (size, step), in the order of memory
    step = draw.choice((1, 1, 2))
    for _ in range(draw.randint(0, 4)):
        size = draw.choice((1, 2, 2, 3, 4))
        dims.insert(0, (size, 0 if draw.random() < 0.07 else step))
        step *= size * draw.choice((1, 1, 1, 2))
    if draw.random() < 0.3:
        draw.shuffle(dims)
    sizes = [1] * draw.randint(0, 2)
    for size, _ in dims:
        sizes += [2, 2] if size == 4 else [size]
    draw.shuffle(sizes)
    new = []
    for size in sizes:  # factors join at random
        if new and draw.random() < 0.4:
            new[-1] *= size
        else:
            new.append(size)
    shape, stride = (tuple(column) for column in zip(*dims)) if dims else ((), ())
    return shape, stride, tuple(new)


@view.check("any tensor and any shape")
def _(f):
    def cases():
        for make in drawn(_any_view, 200):
            yield _view(f, *make(), view.answer.value(*make()) is not None)

    yield every("200 random views", cases)
