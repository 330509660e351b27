"""The shape of a nested list."""

from course.cases import call
from course.properties import agrees, untouched
from course.records import Exercise

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
    hints=(
        """
        The shape of a list is its length, followed by the shape of what is in it. That definition
        refers to itself, so the function can be recursive. It stops at what is no list, because
        that has the shape `()`.
        """,
        """
        `nested_shape([[1, 2, 3], [4, 5, 6]])`:

        1. The list has 2 rows. Ask for the shape of each row.
        2. `[1, 2, 3]` has 3 parts, each of shape `()`, so it is `(3,)`. The second row is `(3,)` as well.
        3. All rows agree, so the answer is 2 followed by `(3,)`: `(2, 3)`.

        `nested_shape([[1, 2], [3]])`: the rows have the shapes `(2,)` and `(1,)`. They differ: ragged.

        `nested_shape([])`: there are no rows to ask. The length is 0, and nothing follows: `(0,)`.
        """,
        """
        ```python
        def nested_shape(data):
            if not isinstance(data, list):
                return ...
            inner = [nested_shape(row) for row in data]
            if ...:  # do they differ?
                raise ValueError("ragged: ...")
            first = inner[0] if inner else ()
            return ...  # the length, followed by `first`
        ```
        """,
    ),
)


@shape.reference(stub="your code here: about 7 lines")
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
    which the first row alone does not show. Compare all rows, and raise an error when they differ.
    """,
)
def nested_shape(data):
    if not isinstance(data, list):
        return ()
    return (len(data), *(nested_shape(data[0]) if data else ()))


@shape.mutant(
    "knows only two levels",
    why="""
    Rows and columns are handled, but not what is inside a column. Tensors have any number of
    dimensions: a shape is the length of the list, followed by the *shape* (not just the length) of
    what is in it. That definition is recursive, so the function can be recursive too.
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


shape.changed(
    "inner dimension first",
    """
    The dimensions come out in reverse order. The outermost list is dimension 0, so its length comes
    first: `[[1, 2, 3], [4, 5, 6]]` is 2 × 3.
    """,
    ("(len(data), *(inner[0] if inner else ()))", "(*(inner[0] if inner else ()), len(data))"),
)


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


@shape.mutant(
    "compares how many elements the rows hold, not their shapes",
    why="""
    Two rows can hold the same number of elements and still differ in shape, as `[[1, 2]]` and
    `[[1], [2]]` do. Compare the *shapes* of the rows, which your own function finds.
    """,
)
def nested_shape(data):
    def count(part):
        return sum(map(count, part)) if isinstance(part, list) else 1

    if not isinstance(data, list):
        return ()
    if len({count(row) for row in data}) > 1 or len({isinstance(r, list) for r in data}) > 1:
        raise ValueError("ragged")
    return (len(data), *(nested_shape(data[0]) if data else ()))


@shape.mutant(
    "compares the first row with the last",
    why="""
    The rows in between were not looked at, and one of them may be longer. Every row has to have
    the shape of the first.
    """,
)
def nested_shape(data):
    if not isinstance(data, list):
        return ()
    if not data:
        return (0,)
    if nested_shape(data[0]) != nested_shape(data[-1]):
        raise ValueError("ragged")
    return (len(data), *nested_shape(data[0]))


@shape.mutant(
    "takes the rows out of the learner's list",
    why="""
    `pop` removes the rows from the list that was passed in, and the caller still needs them. Use a
    loop over the rows, which leaves the list unchanged.
    """,
)
def nested_shape(data):
    if not isinstance(data, list):
        return ()
    inner = []
    while data:
        inner.append(nested_shape(data.pop()))
    if any(other != inner[0] for other in inner):
        raise ValueError("ragged")
    return (len(inner), *(inner[0] if inner else ()))


shape.changed(
    "stops at an empty list",
    """
    Empty rows were left out before the shapes were compared. An empty row has a shape too,
    `(0,)`, and it takes part: `[[], []]` has the shape `(2, 0)`.
    """,
    ("[nested_shape(row) for row in data]", "[nested_shape(row) for row in data if row != []]"),
)


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
    yield call(f, [[[1, 2]], [[3], [4]]]).raises(ValueError, "ragged")


def _any_list(draw):
    """Nested lists, most of them even; some have a row exchanged somewhere."""

    def nested(shape):
        return [nested(shape[1:]) for _ in range(shape[0])] if shape else draw.randint(0, 9)

    made = nested(draw.shape(0, 3, (0, 1, 2, 3)))
    place = made
    while draw.random() < 0.6 and isinstance(place, list) and place:
        at = draw.randrange(len(place))
        if draw.random() < 0.4 or not isinstance(place[at], list):
            place[at] = nested(draw.shape(0, 2, (0, 1, 2)))
            break
        place = place[at]
    return (made,)


@shape.check("any list")
def _(f):
    yield agrees(f, shape.answer.value, _any_list, count=150)
    yield untouched(f, lambda draw: ([[draw.randint(0, 9), 1], [2, 3]],))
