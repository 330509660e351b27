"""Nested lists become a flat array and a shape, and text again."""

import re
from functools import partial

import numpy as np

import toytorch as torch
from course.cases import call, case
from course.properties import agrees, drawn, every, untouched
from course.records import Exercise

parse = Exercise(
    "tensors.parse",
    "From nested lists to a flat array, and to text",
    chapter=1,
    minutes=40,
    prompt="""
    What does `torch.tensor([[1, 2], [3, 4]])` do with the list, and `print` with the tensor? Write a
    class `Array` that does both. It becomes `creation.py`, the first file of your package `mytorch`.

    | attribute | what it holds |
    | --- | --- |
    | `shape` | the sizes, a tuple |
    | `flat` | all elements in one flat NumPy array, in row-major order |

    1. **Shape.** `shape_of(data)` follows the *first* element of each list (or tuple) down and notes
       the lengths. An empty list ends the shape with a 0.
    2. **Elements.** `elements_of(data, shape)` returns all elements in one list, the last index
       running fastest, and checks every part. A list of another length, a number in place of a list
       and a list in place of a number are a `ValueError` that says *ragged* and names the place:
       `ragged at [1][0]: …`. An element that is no bool, int or float is a `TypeError` that names
       its place. The first such place, in row-major order, is the one to name.
    3. **Dtype.** `dtype_of(elements)` is `np.float32` if there is a float or nothing at all, else
       `np.int64` if there is an int, else `np.bool_`. `__init__` is given and puts the three together.
    4. **Text.** `texts()` writes all elements with equal widths, padded on the left: floats as `2.`
       if all of them are whole, and otherwise all with four digits. `__repr__` nests them as PyTorch
       does: rows are separated by `,` and a line break, blocks of rows by two, and so on, and each
       row begins below the first one. An empty array of several dimensions is
       `tensor([], size=(2, 0))`. Infinities, scientific notation and very long rows are left out.

    A trace, for `Array([[1, 2.5], [30, True]])`:

    | call | result |
    | --- | --- |
    | `shape_of` | a list of 2, in it a list of 2, in it the number 1: `(2, 2)` |
    | `elements_of` | `[1, 2.5, 30, True]` |
    | `dtype_of` | there is a float: `np.float32` |
    | `flat` | `[1., 2.5, 30., 1.]` |
    | `texts` | `" 1.0000"`, `" 2.5000"`, `"30.0000"`, `" 1.0000"` |
    | `repr` | see below |

    ```text
    tensor([[ 1.0000,  2.5000],
            [30.0000,  1.0000]])
    ```
    """,
    without=(
        "torch.tensor",
        "torch.as_tensor",
        "torch.asarray",
        "numpy.array_repr",
        "numpy.array_str",
        "numpy.array2string",
    ),
    hints=(
        """
        The first elements say which shape is meant, and everything else has to fit it. So look for the shape
        first, without any check, and let the walk over all elements compare each list with the size that the
        shape has for it. The walk is recursive: each call handles one list, one size shorter, and one index
        further in the place.
        """,
        """
        `elements_of([[1, 2], [3]], (2, 2))`:

        | call | what it does |
        | --- | --- |
        | the whole, shape (2, 2), place `""` | a list of 2: right; asks its two parts |
        | `[1, 2]`, shape (2,), place `"[0]"` | a list of 2: right; asks its two parts |
        | `1`, shape (), place `"[0][0]"` | a number: gives `[1]` |
        | `2`, shape (), place `"[0][1]"` | a number: gives `[2]` |
        | `[3]`, shape (2,), place `"[1]"` | a list of 1: ragged at `[1]` |

        The text of six elements in the shape (2, 3) is made in the opposite order. The row `[1, 2, 3]` is one
        line. The two rows are joined by `","`, one line break and 8 spaces, which is the width of `tensor([`. For
        the shape (2, 2, 3), each of the two blocks is such a text, one space further in. They are joined by `","`, two
        line breaks and 8 spaces.
        """,
        """
        ```python
        class Array:
            def __init__(self, data):
                self.shape = Array.shape_of(data)
                elements = Array.elements_of(data, self.shape)
                self.flat = np.array(elements, Array.dtype_of(elements))

            @staticmethod
            def shape_of(data):
                shape = []
                while isinstance(data, (list, tuple)):
                    shape.append(len(data))
                    if ...:
                        break
                    data = ...
                return tuple(shape)

            @staticmethod
            def elements_of(data, shape, place=""):
                nested = isinstance(data, (list, tuple))
                if not shape:
                    ...  # a ValueError, a TypeError, or the list of this one element
                if ...:
                    raise ValueError(f"ragged at {place}: a number, no list")
                if ...:
                    ...
                elements = []
                for index, part in enumerate(data):
                    below = ...  # the place of this part
                    elements += ...
                return elements

            @staticmethod
            def dtype_of(elements):
                if ...:
                    return np.float32
                if ...:
                    return np.bool_
                return np.int64

            def texts(self):
                values = self.flat.tolist()
                if ...:
                    texts = [str(value) for value in values]
                elif ...:
                    texts = ...
                else:
                    texts = [f"{value:.4f}" for value in values]
                width = max(map(len, texts), default=0)
                return ...

            def __repr__(self):
                if 0 in self.shape and len(self.shape) > 1:
                    return ...
                indent = len("tensor([")
                return f"tensor({self._nested(self.texts(), self.shape, indent)})"

            def _nested(self, texts, shape, indent):
                if not shape:
                    return texts[0]
                if len(shape) == 1:
                    return ...
                step = len(texts) // shape[0]  # elements of one row
                rows = []
                for start in range(0, len(texts), step):
                    row = ...
                    rows.append(self._nested(...))
                between = ...
                return "[" + between.join(rows) + "]"
        ```
        """,
    ),
)


@parse.reference(stub={
    "shape_of": "stage 1, your code here: about 7 lines",
    "elements_of": "stage 2, your code here: about 20 lines",
    "dtype_of": "stage 3, your code here: about 5 lines",
    "texts": "stage 4, your code here: about 9 lines",
    "__repr__": "stage 4, your code here: about 15 lines, with a method that nests",
    "_nested": "",
})
class Array:
    """The elements of nested lists: a flat array, and a shape."""

    def __init__(self, data):
        self.shape = Array.shape_of(data)
        elements = Array.elements_of(data, self.shape)
        self.flat = np.array(elements, Array.dtype_of(elements))

    @staticmethod
    def shape_of(data):
        """The lengths, from the outside in, along the first elements."""
        shape = []
        while isinstance(data, (list, tuple)):
            shape.append(len(data))
            if not data:
                break
            data = data[0]
        return tuple(shape)

    @staticmethod
    def elements_of(data, shape, place=""):
        """All elements, row-major; place is an index like [1][0]."""
        nested = isinstance(data, (list, tuple))
        if not shape:
            if nested:
                raise ValueError(f"ragged at {place}: a list, no number")
            if not isinstance(data, (bool, int, float)):
                where, kind = place or "the top", type(data).__name__
                raise TypeError(f"no number at {where}: {kind}")
            return [data]
        if not nested:
            raise ValueError(f"ragged at {place}: a number, no list")
        if len(data) != shape[0]:
            found = f"a list of {len(data)}, not of {shape[0]}"
            raise ValueError(f"ragged at {place}: {found}")
        elements = []
        for index, part in enumerate(data):
            below = f"{place}[{index}]"
            elements += Array.elements_of(part, shape[1:], below)
        return elements

    @staticmethod
    def dtype_of(elements):
        """np.float32, np.int64 or np.bool_."""
        if not elements or any(isinstance(x, float) for x in elements):
            return np.float32
        if all(isinstance(x, bool) for x in elements):
            return np.bool_
        return np.int64

    def texts(self):
        """Every element as a text; all texts have the same width."""
        values = self.flat.tolist()
        if self.flat.dtype != np.float32:
            texts = [str(value) for value in values]
        elif all(value % 1 == 0 for value in values):
            texts = [f"{value:.0f}." for value in values]
        else:
            texts = [f"{value:.4f}" for value in values]
        width = max(map(len, texts), default=0)
        return [text.rjust(width) for text in texts]

    def __repr__(self):
        if 0 in self.shape and len(self.shape) > 1:
            return f"tensor([], size={self.shape})"
        indent = len("tensor([")
        return f"tensor({self._nested(self.texts(), self.shape, indent)})"

    def _nested(self, texts, shape, indent):
        if not shape:
            return texts[0]
        if len(shape) == 1:
            return "[" + ", ".join(texts) + "]"
        step = len(texts) // shape[0]  # elements of one row
        rows = []
        for start in range(0, len(texts), step):
            row = texts[start : start + step]
            rows.append(self._nested(row, shape[1:], indent + 1))
        between = "," + "\n" * (len(shape) - 1) + " " * indent
        return "[" + between.join(rows) + "]"

parse.changed(
    "the first element decides the dtype",
    """
    One float anywhere makes all elements floats, also where the first one is an integer. So look at
    all of them.
    """,
    ("any(isinstance(x, float) for x in elements)", "isinstance(elements[0], float)"),
)

parse.changed(
    "lengths are not compared",
    """
    The length of a list was not compared with the shape. So a row that is too long or too short is taken as it
    is, and the elements after it move to other indices. Compare `len(data)` with `shape[0]` in each call.
    """,
    ("if len(data) != shape[0]:", "if False:"),
)

parse.changed(
    "the error names the row within its parent only",
    """
    The place was begun anew in every call, so the error says `[0]` for `[1][0]`. In a list of a thousand rows
    that does not help. Add the index to the place that was handed in.
    """,
    ('below = f"{place}[{index}]"', 'below = f"[{index}]"'),
)

parse.changed(
    "a list in place of a number goes through",
    """
    Where the shape is used up, there must be a number. A list was passed on as if it were an element, and NumPy
    fails later with a message that names no place. Check both: whether a list is there, and whether one should be.
    """,
    ("            if nested:\n                raise ValueError(f\"ragged at {place}: a list, no number\")\n", ""),
    ("if not isinstance(data, (bool, int, float)):", "if not isinstance(data, (bool, int, float, list)):"),
)

parse.changed(
    "columns first",
    """
    The elements were collected column by column, so the *first* index runs fastest. Row-major order goes through
    each row from its beginning to its end before it begins the next one.
    """,
    (
        "            elements += Array.elements_of(part, shape[1:], below)\n        return elements",
        (
            "            elements.append(Array.elements_of(part, shape[1:], below))\n"
            "        return [x for column in zip(*elements) for x in column]"
        ),
    ),
)

parse.changed(
    "the shape of an empty list is lost",
    """
    The walk down ended *before* an empty list was noted. An empty list has a length too, 0, and it is the last
    size of the shape: `[[], []]` has the shape `(2, 0)`.
    """,
    ("        while isinstance(data, (list, tuple)):", "        while isinstance(data, (list, tuple)) and len(data):"),
)

parse.changed(
    "floats are doubles",
    """
    NumPy's own choice for Python floats is float64. PyTorch's default is float32, which needs half the memory.
    """,
    ("            return np.float32", "            return np.float64"),
    ("if self.flat.dtype != np.float32:", "if self.flat.dtype != np.float64:"),
)

parse.changed(
    "each element has digits of its own",
    """
    Whether there are digits behind the point was decided for each element. PyTorch decides it for all of them:
    if one needs four digits, all have four, so that the points stand below each other.
    """,
    (
        "        elif all(value % 1 == 0 for value in values):\n"
        '            texts = [f"{value:.0f}." for value in values]\n'
        "        else:\n"
        '            texts = [f"{value:.4f}" for value in values]\n',
        "        else:\n"
        '            texts = [f"{v:.0f}." if v % 1 == 0 else f"{v:.4f}" for v in values]\n',
    ),
)

parse.changed(
    "the widths differ",
    """
    Columns only stand below each other if all elements are equally wide. Find the widest text, and pad the others
    on the left with `rjust`.
    """,
    ("return [text.rjust(width) for text in texts]", "return texts"),
)

parse.changed(
    "rows begin at the left margin",
    """
    A new row begins below the first one. So behind the line break stand as many spaces as there are characters
    before the first row: 8 for `tensor([`, and one more for each level further in.
    """,
    ('" " * indent\n', '""\n'),
)

parse.changed(
    "one line break between blocks",
    """
    Rows are separated by one line break, blocks of rows by two, and blocks of blocks by three: as many as there
    are dimensions below.
    """,
    ('"\\n" * (len(shape) - 1)', '"\\n"'),
)

parse.changed(
    "a list of bools is a list of integers",
    """
    `True` is an int to Python, so a list of bools became an array of int64. It has a dtype of its own, `np.bool_`:
    ask whether *all* elements are bools before you answer int64.
    """,
    ("        if all(isinstance(x, bool) for x in elements):\n            return np.bool_\n", ""),
)

parse.changed(
    "every float has four digits",
    """
    If all floats are whole, PyTorch writes only the point, `2.`, since four zeros would say nothing.
    """,
    ("elif all(value % 1 == 0 for value in values):", "elif False:"),
)

parse.changed(
    "whole floats look like integers",
    """
    A whole float is written with a point, `2.`, so that one can tell it from an integer.
    """,
    ('f"{value:.0f}." for value', 'f"{value:.0f}" for value'),
)

parse.changed(
    "pads on the right",
    """
    The spaces were put behind the elements. Numbers are read from the right: the ones stand below the ones, and the
    points below the points. So the spaces belong in front, `rjust`.
    """,
    ("text.rjust(width)", "text.ljust(width)"),
)

parse.changed(
    "further levels are not moved in",
    """
    All rows begin in the same column. Those of an inner block stand behind one more bracket, so they begin one
    character further right, and those of a block in it two.
    """,
    ("self._nested(row, shape[1:], indent + 1)", "self._nested(row, shape[1:], indent)"),
)

parse.changed(
    "tuples are elements",
    """
    Only lists were followed down. `torch.tensor` takes tuples in the same places: test for both,
    `isinstance(data, (list, tuple))`.
    """,
    ("while isinstance(data, (list, tuple)):", "while isinstance(data, list):"),
    ("nested = isinstance(data, (list, tuple))", "nested = isinstance(data, list)"),
)


# -- checks ---------------------------------------------------------------------------------------


@parse.check("1 · shape")
def _(Array):
    f = Array.shape_of
    yield call(f, [[1, 2, 3], [4, 5, 6]]).gives((2, 3))
    yield call(f, 7).gives(())
    yield call(f, [1, 2]).gives((2,))
    yield call(f, ((1, 2), (3, 4), (5, 6))).gives((3, 2))
    yield call(f, [[[[1, 2]], [[3, 4]], [[5, 6]]]]).gives((1, 3, 1, 2))
    yield call(f, []).gives((0,))
    yield call(f, [[], []]).gives((2, 0))


@parse.check("2 · elements, and the places of what does not fit")
def _(Array):
    f = Array.elements_of
    yield call(f, [[1, 2, 3], [4, 5, 6]], (2, 3)).gives([1, 2, 3, 4, 5, 6])
    yield call(f, 7, ()).gives([7])
    yield call(f, [[], []], (2, 0)).gives([])
    yield call(f, [[[1], [2]], [[3], [4]]], (2, 2, 1)).gives([1, 2, 3, 4])
    yield call(f, ((1, 2.5), [True, 4]), (2, 2)).gives([1, 2.5, True, 4])
    yield call(f, [[1, 2], [3]], (2, 2)).raises(ValueError, "ragged at [1]:")
    yield call(f, [[1], [2, 3]], (2, 1)).raises(ValueError, "ragged at [1]:")
    yield call(f, [[1], 2], (2, 1)).raises(ValueError, "ragged at [1]:")
    yield call(f, [1, [2]], (2,)).raises(ValueError, "ragged at [1]:")
    deep = [[[1], [2]], [[3], [4, 5]]]
    yield call(f, deep, (2, 2, 1)).raises(ValueError, "ragged at [1][1]:")
    yield call(f, [[1, "2"]], (1, 2)).raises(TypeError, "[0][1]")
    yield call(f, [1, None], (2,)).raises(TypeError, "[1]")


@parse.check("3 · a dtype, and all of it together")
def _(Array):
    f = Array.dtype_of
    for given, wanted in (
        ([1, 2], np.int64),
        ([1, 2.0], np.float32),
        ([True, 2], np.int64),
        ([True, False], np.bool_),
        ([False, 0.5], np.float32),
        ([], np.float32),
    ):
        told = f"the name of dtype_of({given})"
        name = case(told, partial(lambda given: np.dtype(f(given)).name, given))
        yield name.gives(np.dtype(wanted).name)

    def parts(data):
        made = Array(data)
        flat = made.flat
        return tuple(made.shape), flat.ndim, flat.dtype.name, flat.tolist()

    yield call(parts, [[1, 2.5], [30, True]]).gives(((2, 2), 1, "float32", [1.0, 2.5, 30.0, 1.0]))
    yield call(parts, 3).gives(((), 1, "int64", [3]))
    yield call(parts, [[], []]).gives(((2, 0), 1, "float32", []))
    yield call(parts, [[1], [2, 3]]).raises(ValueError, "ragged at [1]")


@parse.check("4 · text")
def _(Array):
    yield case("Array([1, 20, -3]).texts()", lambda: list(Array([1, 20, -3]).texts())).gives(
        [" 1", "20", "-3"]
    )
    for data in (
        [1, 2, 3],
        [1, -20, 300],
        7,
        2.5,
        True,
        [True, False],
        [1.0, -20.0],
        [1.0, 2.5, -30.25],
        [[1, 2], [30, 4]],
        [[1.0, 2.5], [30, True]],
        [[[1, 2], [3, 4]], [[5, 6], [7, 8]]],
        [[[[1.5]], [[2]]], [[[3]], [[4]]]],
        [0.0, 0.12345],
        [],
        [[], []],
    ):
        yield case(f"repr(Array({data}))", partial(lambda data: repr(Array(data)), data)).gives(
            repr(torch.tensor(data))
        )


def _nest(draw, shape, kinds):
    if shape:
        return [_nest(draw, shape[1:], kinds) for _ in range(shape[0])]
    kind = draw.choice(kinds)
    if kind is bool:
        return draw.random() < 0.5
    if kind is int:
        return draw.randint(-40, 40)
    return draw.choice((0.5, 1.0, 2.0, -3.0, 12.25, -0.125, 7.0))


def _even(draw):
    shape = draw.shape(0, 4, (1, 2, 3)) if draw.random() < 0.85 else draw.shape(1, 3, (0, 1, 2))
    return (_nest(draw, shape, draw.sample((bool, int, float), draw.randint(1, 3))),)


def _any_list(draw):
    """Nested lists with, at most, one part somewhere exchanged for another, and the shape."""
    (made,) = _even(draw)
    place = made
    while draw.random() < 0.8 and isinstance(place, list) and place:
        at = draw.randrange(len(place))
        if draw.random() < 0.5 or not isinstance(place[at], list):
            place[at] = draw.choice((1, [1], [1, 2], [], [[1]], "text", None, 1j))
            break
        place = place[at]
    shape, inner = [], made
    while isinstance(inner, list):
        shape.append(len(inner))
        inner = inner[0] if inner else None
    return made, tuple(shape)


@parse.check("5 · any nested lists")
def _(Array):
    def both(data):
        made = Array(data)
        return tuple(made.shape), made.flat.dtype.name, made.flat.tolist(), repr(made)

    def real(data):
        made = torch.tensor(data)
        values = made.flatten().tolist()
        return tuple(made.shape), str(made.dtype).removeprefix("torch."), values, repr(made)

    def cases():
        for make in drawn(_even, 120):
            (data,) = make()
            yield case(f"Array({data})", partial(both, data)).as_by(partial(real, data))

    yield every("120 random lists, as torch.tensor has them", cases)
    yield agrees(
        Array.shape_of,
        lambda data: parse.answer.value.shape_of(data),
        lambda draw: _any_list(draw)[:1],
    )
    yield untouched(lambda data: repr(Array(data)), _even)


def _place(f, data, shape):
    """What ``f`` gives; of an error its kind and the first place in its message."""
    try:
        return f(data, shape)
    except (ValueError, TypeError) as error:
        found = re.search(r"(\[\d+\])+", str(error))
        return type(error).__name__, found.group() if found else "no place"


@parse.check("6 · any mistake is found in its place", hidden=True)
def _(Array):
    def cases():
        for make in drawn(_any_list, 150):
            data, shape = make()
            said = f"elements_of({data}, {shape}), or the error and its place"
            one = case(said, partial(_place, Array.elements_of, data, shape))
            yield one.as_by(partial(_wanted, data, shape))

    yield every("150 random lists, most with a part exchanged", cases)


def _wanted(data, shape):
    return _place(parse.answer.value.elements_of, data, shape)
