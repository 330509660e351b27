"""A tensor meets a Python number."""

import toytorch as torch
from course.cases import call
from course.properties import every
from course.records import Exercise

scalar = Exercise(
    "tensors.scalar",
    "A tensor meets a Python number",
    chapter=1,
    minutes=12,
    without=("torch.result_type", "torch.Tensor.__add__", "torch.Tensor.__mul__", "torch.add"),
    prompt="""
    `torch.tensor([1, 2], dtype=torch.uint8) + 1000` stays `uint8`, yet
    `torch.tensor([1, 2]) + 0.5` becomes `float32`. The rule: kinds are ordered,

    $$\\text{bool} < \\text{integer} < \\text{floating} < \\text{complex}.$$

    A Python number changes a tensor's dtype only if its kind is *higher*; then the result has the
    default dtype of that kind, `int64`, `float32` or `complex64`. (A `float64` tensor that meets
    a complex number becomes `complex128`, so that no bits are lost.)

    Write `with_number(dtype, number)`. A dtype has `.is_floating_point` and `.is_complex`.
    """,
    hints=(
        """
        Compare two kinds: that of the dtype and that of the number. If the number's kind is not higher, the
        dtype stays as it is. If it is higher, the result is the default dtype of the *number's* kind.
        """,
        """
        | dtype | number | kinds | result |
        | --- | --- | --- | --- |
        | `uint8` | `1000` | integer, integer | stays `uint8` |
        | `uint8` | `0.5` | integer, floating: higher | default of floating: `float32` |
        | `float64` | `0.5` | floating, floating | stays `float64` |
        | `bool` | `3` | bool, integer: higher | default of integer: `int64` |
        | `bool` | `True` | bool, bool | stays `bool` |
        | `float64` | `2j` | floating, complex: higher | `complex128`, because it was `float64` |

        Go through the kinds from the top: is the dtype complex? Is the number? Is the dtype floating? Is the
        number? What is left are integers and bools.
        """,
        """
        ```python
        def with_number(dtype, number):
            if dtype.is_complex:
                return dtype
            if isinstance(number, complex):
                return ...  # one of two
            if dtype.is_floating_point:
                return ...
            if isinstance(number, float):
                return ...
            if ...:  # the dtype is bool, and the number is more than that
                return torch.int64
            return dtype
        ```
        """,
    ),
)


@scalar.reference(stub="your code here: about 12 lines")
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
    dtypes won. Then `+ 1` would turn a `uint8` tensor into one of eight bytes per element. A Python
    number has a *kind* but no width: if the tensor's kind is the same or higher, the tensor's dtype
    stays.
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
    The tensor's dtype was kept in every case. But `int64` cannot hold 0.5: with this rule,
    adding 0.5 to an integer tensor would change nothing and raise no error.
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


@scalar.mutant(
    "True counts as an integer",
    why="""
    In Python `True` is an int, but here bool is the lowest kind: a mask plus `True` stays a mask.
    Test for `isinstance(number, bool)` as well.
    """,
)
def with_number(dtype, number):
    if dtype.is_complex:
        return dtype
    if isinstance(number, complex):
        return torch.complex128 if dtype == torch.float64 else torch.complex64
    if dtype.is_floating_point:
        return dtype
    if isinstance(number, float):
        return torch.float32
    return torch.int64 if dtype == torch.bool else dtype


@scalar.mutant(
    "int64 is wide enough for a double",
    why="""
    The width of the tensor was carried over: 64 bits of integer became 64 bits of float. When
    the kind rises, the result has the *default* dtype of the new kind, `float32`, however wide
    the tensor was.
    """,
)
def with_number(dtype, number):
    if dtype.is_complex:
        return dtype
    if isinstance(number, complex):
        return torch.complex128 if dtype in (torch.float64, torch.int64) else torch.complex64
    if dtype.is_floating_point:
        return dtype
    if isinstance(number, float):
        return torch.float64 if dtype == torch.int64 else torch.float32
    return torch.int64 if dtype == torch.bool and not isinstance(number, bool) else dtype


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


# complex numbers are left out for float16: PyTorch has a small complex dtype for them
_DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32",
           "float64", "complex64", "complex128")
_MORE = (True, False, 0, 3, -1, 70_000, 4_000_000_000, 0.5, 2.0, -3.0, 2j, complex(1, 0))


@scalar.check("every dtype with numbers of every kind")
def _(f):
    def cases():
        for name in _DTYPES:
            for number in _MORE[:-2] if name == "float16" else _MORE:
                given = getattr(torch, name), number
                yield call(f, *given).gives(scalar.answer.value(*given))

    yield every(f"{len(_DTYPES)} dtypes with {len(_MORE)} numbers", cases)
