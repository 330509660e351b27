"""The dtype of a list of numbers."""

import toytorch as torch
from course.cases import call
from course.properties import agrees
from course.records import Exercise

dtype = Exercise(
    "tensors.dtype",
    "The dtype of a list of numbers",
    chapter=1,
    minutes=10,
    without=("torch.tensor", "torch.as_tensor", "torch.asarray"),
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
    hints=(
        """
        It is not the order of the numbers that matters, but which kinds occur at all. Collect the types in a
        set, then ask for the highest kind first: complex, then float, then int, and bool if nothing else is
        there.
        """,
        """
        `infer_dtype([1, 2.5, True])`: the types are `{int, float, bool}`.

        | question | answer |
        | --- | --- |
        | is `complex` among them? | no |
        | is `float` among them? | yes: `torch.float32`, and we are done |

        `infer_dtype([True, 2])`: `{bool, int}`. No complex, no float, but an int: `torch.int64`.

        `infer_dtype([])`: the set is empty. None of the answers is yes, so an empty list needs a
        condition of its own.
        """,
        """
        ```python
        def infer_dtype(numbers):
            kinds = {type(number) for number in numbers}
            if complex in kinds:
                return torch.complex64
            if ...:  # a float, or nothing at all
                return torch.float32
            if ...:
                return torch.int64
            return ...
        ```
        """,
    ),
)


@dtype.reference(stub="your code here: about 9 lines")
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
    "looks at the first number only",
    why="""
    `[1, 2.5]` holds a float, in second place. The whole list must fit into one dtype, so the types
    of all elements count, and the highest kind decides.
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
    In Python, `isinstance(True, int)` is true, so a list of bools became an integer tensor. A bool
    tensor has a dtype of its own: comparisons return it, and masks need it. Test for `bool` first,
    or compare `type(x)`.
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
    A Python float has 64 bits, and NumPy keeps them. PyTorch does not: its default is `float32`
    (and `complex64`). Networks rarely need the precision of 64 bits, and they would take twice the
    memory and time to move.
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
    An empty list passes none of the tests, so the last `return` was reached. In PyTorch,
    `torch.tensor([])` has the default dtype, `float32`.
    """,
)
def infer_dtype(numbers):
    kinds = {type(number) for number in numbers}
    if complex in kinds:
        return torch.complex64
    if float in kinds:
        return torch.float32
    return torch.bool if kinds == {bool} else torch.int64


@dtype.mutant(
    "2.0 is an integer",
    why="""
    The *value* was tested, and 2.0 has no fraction. The type decides: 2.0 is a float, so
    `torch.tensor([2.0])` is `float32`.
    """,
)
def infer_dtype(numbers):
    if any(isinstance(x, complex) for x in numbers):
        return torch.complex64
    if not numbers or any(float(x) != int(x) for x in numbers):
        return torch.float32
    return torch.bool if all(isinstance(x, bool) for x in numbers) else torch.int64


@dtype.mutant(
    "the last number decides",
    why="""
    A loop that overwrites its result in each step ends with the kind of the last element. All
    elements count: the highest kind in the list decides.
    """,
)
def infer_dtype(numbers):
    kinds = {bool: torch.bool, int: torch.int64, float: torch.float32, complex: torch.complex64}
    return kinds[type(numbers[-1])] if numbers else torch.float32


@dtype.mutant(
    "a complex number without an imaginary part is a float",
    why="""
    `2+0j` is a complex number whose imaginary part happens to be 0. Its type decides, not its
    value: otherwise the dtype would change with the data.
    """,
)
def infer_dtype(numbers):
    kinds = {type(x) for x in numbers}
    if complex in kinds:
        return torch.complex64 if any(complex(x).imag for x in numbers) else torch.float32
    if float in kinds or not kinds:
        return torch.float32
    return torch.int64 if int in kinds else torch.bool


@dtype.mutant(
    "a large integer is a float",
    why="""
    Integers become `int64` whatever their size, up to about 9 · 10¹⁸. A float32 could not even
    hold them: above 16,777,216 it begins to skip integers.
    """,
)
def infer_dtype(numbers):
    kinds = {type(x) for x in numbers}
    if complex in kinds:
        return torch.complex64
    if float in kinds or not kinds or any(abs(x) >= 2**31 for x in numbers):
        return torch.float32
    return torch.int64 if int in kinds else torch.bool


@dtype.mutant(
    "one bool makes all of it bool",
    why="""
    A bool among integers was taken as the kind of all of them, and `[True, 2]` would lose its
    2. The *highest* kind in the list decides, and bool is the lowest.
    """,
)
def infer_dtype(numbers):
    kinds = {type(x) for x in numbers}
    if bool in kinds:
        return torch.bool
    if complex in kinds:
        return torch.complex64
    return torch.float32 if float in kinds or not kinds else torch.int64


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
    yield call(f, [0.5, 2]).gives(torch.float32)


@dtype.check("types, not values")
def _(f):
    yield call(f, [2.0, 4.0]).gives(torch.float32)
    yield call(f, [4_000_000_000, 1]).gives(torch.int64)
    yield call(f, [complex(2, 0)]).gives(torch.complex64)


@dtype.check("nothing at all", hidden=True)
def _(f):
    yield call(f, []).gives(torch.float32)


_NUMBERS = (True, False, 0, 1, -3, 4_000_000_000, 2.0, 0.5, 1j, complex(2, 0))


@dtype.check("any list")
def _(f):
    def numbers(draw):
        kinds = draw.sample(_NUMBERS, draw.randint(1, 3))
        return ([draw.choice(kinds) for _ in range(draw.randint(0, 4))],)

    yield agrees(f, dtype.answer.value, numbers, count=150)
