"""A tensor meets a Python number."""

import toytorch as torch
from course.cases import call
from course.records import Exercise

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
