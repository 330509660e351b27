"""Chapter 01, Tensors: shape, dtype, promotion, factories, and thinking without loops."""

import math

import toytorch as torch
from course.cases import call, case
from course.records import Exercise

# -- the shape of a nested list -------------------------------------------------------------------

shape = Exercise(
    "tensors.shape",
    "The shape of a nested list",
    chapter=1,
    minutes=10,
    prompt="""
    `torch.tensor([[1, 2, 3], [4, 5, 6]])` has shape `(2, 3)`: two rows of three. Write
    `nested_shape(data)`, which finds that tuple for lists nested to any depth.

    * A plain number has the shape `()`.
    * An empty list has the shape `(0,)`.
    * Rows of different shapes do not make a tensor: raise a `ValueError` that says *ragged*.
    """,
)


@shape.stub
def nested_shape(data):
    """The shape of nested lists: [[1, 2, 3], [4, 5, 6]] -> (2, 3)."""
    # your code here: about 7 lines
    raise NotImplementedError


@shape.reference
def nested_shape(data):
    """The shape of nested lists: [[1, 2, 3], [4, 5, 6]] -> (2, 3)."""
    if not isinstance(data, list):
        return ()
    inner = [nested_shape(row) for row in data]
    if any(other != inner[0] for other in inner):
        raise ValueError(f"ragged: the rows have the shapes {inner}")
    return (len(data), *(inner[0] if inner else ()))


@shape.mutant(
    "believes the first row",
    why="""
    The length of `data[0]` was taken for the length of every row. A list of lists may be ragged,
    and the first row cannot know it. Look at all rows, and refuse when they differ.
    """,
)
def nested_shape(data):
    if not isinstance(data, list):
        return ()
    return (len(data), *(nested_shape(data[0]) if data else ()))


@shape.mutant(
    "knows only two levels",
    why="""
    Rows and columns are handled, and what is inside a column is not asked. Tensors have any
    number of dimensions: a shape is the length of the list, followed by the *shape* (not just the
    length) of what is in it. That sentence is recursive, and so can the function be.
    """,
)
def nested_shape(data):
    if not isinstance(data, list):
        return ()
    if not data or not isinstance(data[0], list):
        return (len(data),)
    if any(len(row) != len(data[0]) for row in data):
        raise ValueError("ragged")
    return (len(data), len(data[0]))


@shape.mutant(
    "inner dimension first",
    why="""
    The dimensions come out in reverse. The outermost list is dimension 0, so its length stands
    first: `[[1, 2, 3], [4, 5, 6]]` is 2 × 3.
    """,
)
def nested_shape(data):
    if not isinstance(data, list):
        return ()
    inner = [nested_shape(row) for row in data]
    if any(other != inner[0] for other in inner):
        raise ValueError("ragged")
    return (*(inner[0] if inner else ()), len(data))


@shape.mutant(
    "looks down the first branch only",
    why="""
    The rows of every level are compared, but only below the first row, and
    `[[[1], [2]], [[3], [4, 5]]]` is ragged in its *second* row. Find the
    shape of every row, and compare those.
    """,
)
def nested_shape(data):
    lengths = []
    while isinstance(data, list):
        lengths.append(len(data))
        if len({len(row) if isinstance(row, list) else -1 for row in data}) > 1:
            raise ValueError("ragged")
        data = data[0] if data else None
    return tuple(lengths)


@shape.check("a number, a list, a table")
def _(f):
    yield call(f, 7).gives(())
    yield call(f, [1, 2, 3]).gives((3,))
    yield call(f, [[1, 2, 3], [4, 5, 6]]).gives((2, 3))


@shape.check("four levels deep")
def _(f):
    yield call(f, [[[[1, 2]], [[3, 4]], [[5, 6]]]]).gives((1, 3, 1, 2))


@shape.check("empty lists")
def _(f):
    yield call(f, []).gives((0,))
    yield call(f, [[], []]).gives((2, 0))


@shape.check("ragged lists are refused", hidden=True)
def _(f):
    yield call(f, [[1, 2], [3]]).raises(ValueError, "ragged")
    yield call(f, [[1], 2]).raises(ValueError, "ragged")
    yield call(f, [[[1], [2]], [[3], [4, 5]]]).raises(ValueError, "ragged")


# -- the dtype of Python numbers ------------------------------------------------------------------

dtype = Exercise(
    "tensors.dtype",
    "The dtype of a list of numbers",
    chapter=1,
    minutes=10,
    prompt="""
    One list, one dtype. Write `infer_dtype(numbers)` for a flat list of Python numbers:

    | the list holds | dtype |
    | --- | --- |
    | only `True`/`False` | `torch.bool` |
    | integers, perhaps bools | `torch.int64` |
    | a float anywhere | `torch.float32` |
    | a complex number anywhere | `torch.complex64` |

    Two things to think of: in Python `isinstance(True, int)` holds, and an empty list becomes
    `torch.float32`.
    """,
)


@dtype.stub
def infer_dtype(numbers):
    """The dtype that torch.tensor(numbers) has."""
    # your code here: about 9 lines
    raise NotImplementedError


@dtype.reference
def infer_dtype(numbers):
    """The dtype that torch.tensor(numbers) has."""
    kinds = {type(number) for number in numbers}
    if complex in kinds:
        return torch.complex64
    if float in kinds or not kinds:
        return torch.float32
    if int in kinds:
        return torch.int64
    return torch.bool


@dtype.mutant(
    "asks the first number only",
    why="""
    `[1, 2.5]` holds a float, in second place. The whole list has to fit into one dtype, so every
    number has a say, and the widest kind wins.
    """,
)
def infer_dtype(numbers):
    if not numbers:
        return torch.float32
    kinds = {bool: torch.bool, int: torch.int64, float: torch.float32}
    return kinds.get(type(numbers[0]), torch.complex64)


@dtype.mutant(
    "a bool is an int",
    why="""
    In Python it is, `isinstance(True, int)` holds, and so a list of truths became a list of
    numbers. A bool tensor is a kind of its own: it is what comparisons give and what masks need.
    Ask for `bool` first, or compare `type(x)`.
    """,
)
def infer_dtype(numbers):
    if any(isinstance(number, complex) for number in numbers):
        return torch.complex64
    if not numbers or any(isinstance(number, float) for number in numbers):
        return torch.float32
    return torch.int64


@dtype.mutant(
    "Python floats are doubles",
    why="""
    They are, they have 64 bits, and NumPy keeps them. PyTorch does not: its default is `float32`
    (and `complex64`), because networks gain nothing from the other half of the bits and pay for
    moving it.
    """,
)
def infer_dtype(numbers):
    kinds = {type(number) for number in numbers}
    if complex in kinds:
        return torch.complex128
    if float in kinds or not kinds:
        return torch.float64
    return torch.int64 if int in kinds else torch.bool


@dtype.mutant(
    "an empty list is an integer list",
    why="""
    With no number in the list none of the tests strikes, and the last `return` decides. PyTorch
    decided: `torch.tensor([])` is `float32`, the default dtype.
    """,
)
def infer_dtype(numbers):
    kinds = {type(number) for number in numbers}
    if complex in kinds:
        return torch.complex64
    if float in kinds:
        return torch.float32
    return torch.bool if kinds == {bool} else torch.int64


@dtype.check("one kind each")
def _(f):
    yield call(f, [1, 2, 3]).gives(torch.int64)
    yield call(f, [0.5, 1.5]).gives(torch.float32)
    yield call(f, [1j, 2j]).gives(torch.complex64)
    yield call(f, [True, False]).gives(torch.bool)


@dtype.check("mixed kinds")
def _(f):
    yield call(f, [1, 2.5]).gives(torch.float32)
    yield call(f, [True, 2]).gives(torch.int64)
    yield call(f, [1, 2.0, 3j]).gives(torch.complex64)
    yield call(f, [False, 0.5]).gives(torch.float32)


@dtype.check("nothing at all", hidden=True)
def _(f):
    yield call(f, []).gives(torch.float32)


# -- a tensor meets a Python number ---------------------------------------------------------------

scalar = Exercise(
    "tensors.scalar",
    "A tensor meets a Python number",
    chapter=1,
    minutes=12,
    prompt="""
    `torch.tensor([1, 2], dtype=torch.uint8) + 1000` stays `uint8`, yet
    `torch.tensor([1, 2]) + 0.5` becomes `float32`. The rule: kinds are ordered,

    $$\\text{bool} < \\text{integer} < \\text{floating} < \\text{complex}.$$

    A Python number changes a tensor's dtype only if its kind is *higher*; then the result has the
    default dtype of that kind, `int64`, `float32` or `complex64`. (A `float64` tensor that meets
    a complex number becomes `complex128`, so that no bits are lost.)

    Write `with_number(dtype, number)`. A dtype has `.is_floating_point` and `.is_complex`.
    """,
)


@scalar.stub
def with_number(dtype, number):
    """The dtype of (a tensor of this dtype) + number."""
    # your code here: about 12 lines
    raise NotImplementedError


@scalar.reference
def with_number(dtype, number):
    """The dtype of (a tensor of this dtype) + number."""
    if dtype.is_complex:
        return dtype
    if isinstance(number, complex):
        wide = dtype == torch.float64
        return torch.complex128 if wide else torch.complex64
    if dtype.is_floating_point:
        return dtype
    if isinstance(number, float):
        return torch.float32
    if dtype == torch.bool and not isinstance(number, bool):
        return torch.int64
    return dtype


@scalar.mutant(
    "the number brings its own dtype",
    why="""
    The number was turned into a tensor of `int64` or `float32` first, and the wider of the two
    dtypes won. Then one innocent `+ 1` would make eight bytes of every `uint8`. A Python number has
    a *kind* but no width: within its own kind, or below, the tensor's dtype stays.
    """,
)
def with_number(dtype, number):
    if dtype.is_complex:
        return dtype
    if isinstance(number, complex):
        return torch.complex128 if dtype == torch.float64 else torch.complex64
    if isinstance(number, float):
        return torch.float64 if dtype == torch.float64 else torch.float32
    if dtype.is_floating_point or isinstance(number, bool):
        return dtype
    return torch.int64


@scalar.mutant(
    "the tensor always wins",
    why="""
    The tensor's dtype was kept whatever came. But `int64` has no room for 0.5: if the result could
    not have the number's kind, adding 0.5 to an integer tensor would do nothing, silently.
    """,
)
def with_number(dtype, number):
    return dtype


@scalar.mutant(
    "a float number is a double",
    why="""
    An integer tensor that meets `0.5` becomes the *default* floating dtype, `float32`. That Python
    keeps its floats in 64 bits does not matter: a number has a kind, and no width.
    """,
)
def with_number(dtype, number):
    if dtype.is_complex:
        return dtype
    if isinstance(number, complex):
        return torch.complex128
    if dtype.is_floating_point:
        return dtype
    if isinstance(number, float):
        return torch.float64
    return torch.int64 if dtype == torch.bool and type(number) is int else dtype


@scalar.mutant(
    "bool and integer are one kind",
    why="""
    A mask `+ 1` counts: `torch.tensor([True, False]) + 1` is `tensor([2, 1])`, an `int64` tensor.
    Bool is the lowest kind, below the integers.
    """,
)
def with_number(dtype, number):
    if dtype.is_complex:
        return dtype
    if isinstance(number, complex):
        return torch.complex128 if dtype == torch.float64 else torch.complex64
    if dtype.is_floating_point:
        return dtype
    return torch.float32 if isinstance(number, float) else dtype


# what PyTorch 2 gives for torch.zeros(1, dtype=dtype) + number
RECORDED = {
    "bool": ("bool", "int64", "float32", "complex64"),
    "uint8": ("uint8", "uint8", "float32", "complex64"),
    "int16": ("int16", "int16", "float32", "complex64"),
    "int64": ("int64", "int64", "float32", "complex64"),
    "bfloat16": ("bfloat16", "bfloat16", "bfloat16", "complex64"),
    "float32": ("float32", "float32", "float32", "complex64"),
    "float64": ("float64", "float64", "float64", "complex128"),
    "complex64": ("complex64", "complex64", "complex64", "complex64"),
}
NUMBERS = (True, 1000, 0.5, 2j)


def _row(f, *names):
    for name in names:
        for number, wanted in zip(NUMBERS, RECORDED[name], strict=True):
            yield call(f, getattr(torch, name), number).gives(getattr(torch, wanted))


@scalar.check("integer tensors")
def _(f):
    yield from _row(f, "uint8", "int16", "int64")


@scalar.check("floating tensors")
def _(f):
    yield from _row(f, "bfloat16", "float32", "float64")


@scalar.check("masks and complex tensors", hidden=True)
def _(f):
    yield from _row(f, "bool", "complex64")


# -- arange ---------------------------------------------------------------------------------------

arange = Exercise(
    "tensors.arange",
    "Counting without drifting",
    chapter=1,
    minutes=10,
    prompt="""
    `torch.arange(start, end, step)` holds *start*, *start + step*, … and stops **before** *end*.
    Write `count_up(start, end, step)`, which returns those values as a list of floats.

    The step may be negative, or a float. Take care with `0.1`: it is not quite a tenth, and
    whoever adds it up a hundred times adds its error up a hundred times.
    """,
)


@arange.stub
def count_up(start, end, step):
    """The values of torch.arange(start, end, step) as a list of floats."""
    # your code here: about 3 lines. How many values are there?
    raise NotImplementedError


@arange.reference
def count_up(start, end, step):
    """The values of torch.arange(start, end, step) as a list of floats."""
    count = max(0, math.ceil((end - start) / step))
    return [float(start + index * step) for index in range(count)]


@arange.mutant(
    "adds the step again and again",
    why="""
    Each addition rounds, and the next one builds on what was rounded: after many steps of 0.1 the
    values have visibly drifted. `start + index * step` rounds twice, however far along it is. (All
    values are also independent of each other then, so that many cores can compute them.)
    """,
)
def count_up(start, end, step):
    values = []
    count = max(0, math.ceil((end - start) / step))
    value = float(start)
    for _ in range(count):
        values.append(value)
        value += step
    return values


@arange.mutant(
    "includes the end",
    why="""
    Ranges are half open, as Python's are: the end is the first value that is *not* there. That is
    why `arange(0, n, 1)` has n values, and why `arange(0, 5)` and `arange(5, 10)` fit together.
    """,
)
def count_up(start, end, step):
    count = max(0, math.floor((end - start) / step) + 1)
    return [float(start + index * step) for index in range(count)]


@arange.mutant(
    "rounds the count down",
    why="""
    From 0 to 1 in steps of 0.3 there is room for 0, 0.3, 0.6 **and** 0.9: (1 − 0) / 0.3 is 3.33,
    and a started step counts. The number of values is the *ceiling* of the quotient.
    """,
)
def count_up(start, end, step):
    count = max(0, int((end - start) / step))
    return [float(start + index * step) for index in range(count)]


@arange.mutant(
    "only counts up",
    why="""
    With a negative step the values fall, and the end lies below the start. A condition such as
    `value < end` is then false from the beginning. The quotient (end − start) / step has the
    right sign for both directions.
    """,
)
def count_up(start, end, step):
    values, index = [], 0
    while step > 0 and start + index * step < end:
        values.append(float(start + index * step))
        index += 1
    return values


@arange.check("whole steps")
def _(f):
    yield call(f, 0, 5, 1).gives([0.0, 1.0, 2.0, 3.0, 4.0])
    yield call(f, 2, 9, 3).gives([2.0, 5.0, 8.0])


@arange.check("a step that does not fit exactly")
def _(f):
    yield call(f, 0, 1, 0.3).gives([0.0, 0.3, 0.6, 0.9])


@arange.check("downwards, and nowhere")
def _(f):
    yield call(f, 3, 0, -1).gives([3.0, 2.0, 1.0])
    yield call(f, 3, 3, 1).gives([])
    yield call(f, 3, 0, 1).gives([])


@arange.check("no drift after ten thousand steps", hidden=True)
def _(f):
    last = case("the last value of count_up(0, 1000, 0.1)", lambda: f(0, 1000, 0.1)[-1])
    yield last.gives(999.9000000000001, tolerance=1e-14)


# -- one-hot --------------------------------------------------------------------------------------

one_hot = Exercise(
    "tensors.one_hot",
    "One-hot without a loop",
    chapter=1,
    minutes=8,
    prompt="""
    Labels such as `[2, 0, 1]` often have to become rows with a single one:

    ```
    0 0 1
    1 0 0
    0 1 0
    ```

    Write `to_one_hot(labels, classes)` for a 1-d integer tensor; the result is `float32`. One
    comparison does it: hold the labels as a *column* against the class numbers as a *row*, and let
    broadcasting make the table.
    """,
)


@one_hot.stub
def to_one_hot(labels, classes):
    """(n,) integer labels -> (n, classes) float32 with one 1 a row."""
    # your code here: one or two lines
    raise NotImplementedError


@one_hot.reference
def to_one_hot(labels, classes):
    """(n,) integer labels -> (n, classes) float32 with one 1 a row."""
    return (labels[:, None] == torch.arange(classes)).float()


@one_hot.mutant(
    "rows and columns swapped",
    why="""
    The table stands on its side: classes go down and examples go across. Dimension 0 is the
    example nearly everywhere in PyTorch, so the labels have to be the column: `labels[:, None]`.
    """,
)
def to_one_hot(labels, classes):
    return (labels[None, :] == torch.arange(classes)[:, None]).float()


@one_hot.mutant(
    "leaves truths instead of numbers",
    why="""
    A comparison gives a `bool` tensor. It prints `True` and `False`, and a matrix product refuses
    it. Say `.float()`.
    """,
)
def to_one_hot(labels, classes):
    return labels[:, None] == torch.arange(classes)


@one_hot.mutant(
    "as wide as the labels need",
    why="""
    The width came from the largest label that happened to be there. In a batch without a 9 the
    table would have one column too few, and the next batch would not fit it. That is why the
    number of classes is handed in.
    """,
)
def to_one_hot(labels, classes):
    return (labels[:, None] == torch.arange(int(labels.max()) + 1)).float()


@one_hot.check("three labels")
def _(f):
    wanted = torch.tensor([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    yield call(f, torch.tensor([2, 0, 1]), 3).gives(wanted)


@one_hot.check("classes nobody has")
def _(f):
    wanted = torch.tensor([[0.0, 1.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]])
    yield call(f, torch.tensor([1, 1]), 4).gives(wanted)


@one_hot.check("every row sums to one", hidden=True)
def _(f):
    labels = torch.arange(50) % 7
    sums = case("row sums for 50 labels, 10 classes", lambda: f(labels, 10).sum(1).tolist())
    yield sums.gives([1.0] * 50)


# -- class means ----------------------------------------------------------------------------------

means = Exercise(
    "tensors.means",
    "Every class's mean in one matrix product",
    chapter=1,
    minutes=12,
    prompt="""
    Given `x` of shape `(n, features)` and one-hot `rows` of shape `(n, classes)`, write
    `class_means(x, rows)` of shape `(classes, features)`: row *k* is the mean of the examples of
    class *k*. No loop: the product $R^\\top X$ adds up the examples of each class, and what is
    left is to divide each sum by *its own* count.

    A class without examples has the mean 0, not `nan`.
    """,
)


@means.stub
def class_means(x, rows):
    """(n, features), (n, classes) -> (classes, features)."""
    # your code here: about 3 lines
    raise NotImplementedError


@means.reference
def class_means(x, rows):
    """(n, features), (n, classes) -> (classes, features)."""
    sums = rows.T @ x  # (classes, features)
    counts = rows.sum(0).clamp(min=1)  # (classes,)
    return sums / counts[:, None]


@means.mutant(
    "divides by all examples",
    why="""
    Each sum was divided by n, the number of *all* examples. A class's mean is over its own: the
    column sums of the one-hot table count them, `rows.sum(0)`.
    """,
)
def class_means(x, rows):
    return (rows.T @ x) / x.shape[0]


@means.mutant(
    "sums, not means",
    why="""
    The product adds up the examples of each class, and the division is missing: a class with more
    examples would seem brighter.
    """,
)
def class_means(x, rows):
    return rows.T @ x


@means.mutant(
    "counts stand in a row",
    why="""
    Broadcasting lines shapes up **from the right**: counts of shape `(classes,)` met the columns,
    that is the features, and not the rows. It raises no error when there are as many classes as
    features, which is the worst of it. Make a column of them: `counts[:, None]`.
    """,
)
def class_means(x, rows):
    return (rows.T @ x) / rows.sum(0).clamp(min=1)


@means.mutant(
    "0 / 0 for an empty class",
    why="""
    A class without examples has the sum 0 and the count 0, and 0 / 0 is `nan`, which from then on
    infects everything that touches it. `counts.clamp(min=1)` makes it 0 / 1.
    """,
)
def class_means(x, rows):
    return (rows.T @ x) / rows.sum(0)[:, None]


def _table():
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0], [10.0, 20.0]])
    rows = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    return x, rows


@means.check("two classes, two features")
def _(f):
    x, rows = _table()
    yield call(f, x, rows).gives(torch.tensor([[2.0, 3.0], [10.0, 20.0]]))


@means.check("more features than classes")
def _(f):
    x = torch.arange(12.0).reshape(4, 3)
    rows = torch.tensor([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    yield call(f, x, rows).gives(torch.tensor([[3.0, 4.0, 5.0], [5.0, 6.0, 7.0]]))


@means.check("a class without examples", hidden=True)
def _(f):
    x, _rows = _table()
    rows = torch.tensor([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    yield call(f, x, rows).gives(torch.tensor([[2.0, 3.0], [0.0, 0.0], [10.0, 20.0]]))
