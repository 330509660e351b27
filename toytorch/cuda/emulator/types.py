"""C's types as CUDA has them: sizes, promotion, and which type an operation is done in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from toytorch.facts.parts import of_part


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number.

    rank  the order in which conversions go: of two types, an operation is done in the higher one
    """

    name: str
    dtype: np.dtype[Any]
    rank: int

    size = alignment = of_part("dtype.itemsize")

    @property
    def is_float(self) -> bool:
        return self.dtype.kind == "f"

    @property
    def is_signed(self) -> bool:
        return self.dtype.kind in "if"

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Vector:
    """`float4` and its kin: members x, y, z, w, read and written by one instruction."""

    name: str
    element: Scalar
    count: int

    @property
    def size(self) -> int:
        return self.element.size * self.count

    @property
    def alignment(self) -> int:
        return self.element.size if self.count == 3 else self.size

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Pointer:
    """An address of elements of one type."""

    target: Type
    const: bool = False
    size: int = 8

    @property
    def alignment(self) -> int:
        return 8

    def __str__(self) -> str:
        return f"{'const ' * self.const}{self.target}*"


@dataclass(frozen=True, slots=True)
class Array:
    """Elements side by side; several dimensions are arrays of arrays."""

    element: Type
    length: int

    @property
    def size(self) -> int:
        return self.element.size * self.length

    alignment = of_part("element.alignment")

    def __str__(self) -> str:
        inner: Type = self
        lengths = ""
        while isinstance(inner, Array):
            lengths += f"[{inner.length}]"
            inner = inner.element
        return f"{inner}{lengths}"


@dataclass(frozen=True, slots=True)
class Void:
    """The result of a function that has none."""

    size: int = 1
    alignment: int = 1

    def __str__(self) -> str:
        return "void"


Type = Scalar | Vector | Pointer | Array | Void


def _scalar(name: str, dtype: str, rank: int) -> Scalar:
    return Scalar(name, np.dtype(dtype), rank)


VOID = Void()
BOOL = _scalar("bool", "bool", 0)
CHAR, UCHAR = _scalar("char", "int8", 1), _scalar("unsigned char", "uint8", 1)
SHORT, USHORT = _scalar("short", "int16", 2), _scalar("unsigned short", "uint16", 2)
INT, UINT = _scalar("int", "int32", 3), _scalar("unsigned int", "uint32", 3)
LONG, ULONG = _scalar("long", "int64", 4), _scalar("unsigned long", "uint64", 4)
LLONG = _scalar("long long", "int64", 5)
ULLONG = _scalar("unsigned long long", "uint64", 5)
HALF = _scalar("half", "float16", 6)
FLOAT, DOUBLE = _scalar("float", "float32", 7), _scalar("double", "float64", 8)

SCALARS = (BOOL, CHAR, UCHAR, SHORT, USHORT, INT, UINT, LONG, ULONG, LLONG, ULLONG, HALF, FLOAT, DOUBLE)  # fmt: skip
VECTORS = tuple(
    Vector(f"{name}{count}", element, count)
    for name, element in (("float", FLOAT), ("int", INT), ("uint", UINT), ("double", DOUBLE))
    for count in (2, 3, 4)
    if element.size * count <= 16
)

NAMES: dict[str, Type] = {
    "void": VOID, **{type.name: type for type in SCALARS}, **{type.name: type for type in VECTORS},
    "dim3": Vector("dim3", UINT, 3), "__half": HALF, "size_t": ULONG, "ptrdiff_t": LONG,
    "uint": UINT, "int8_t": CHAR, "uint8_t": UCHAR, "int16_t": SHORT, "uint16_t": USHORT,
    "int32_t": INT, "uint32_t": UINT, "int64_t": LONG, "uint64_t": ULONG,
}  # fmt: skip


def promoted(type: Scalar) -> Scalar:
    """What a number becomes before it is computed with: nothing is smaller than `int`."""
    return INT if type.rank < INT.rank else type


def common(left: Scalar, right: Scalar) -> Scalar:
    """The type that an operation on two numbers is done in.

    >>> print(common(UINT, INT), common(CHAR, SHORT), common(UINT, LLONG), common(INT, FLOAT))
    unsigned int int long long float
    """
    left, right = promoted(left), promoted(right)
    high, low = (left, right) if left.rank >= right.rank else (right, left)
    if high.is_float or high.is_signed == low.is_signed or not high.is_signed:
        return high
    if high.rank == low.rank:
        return low  # the unsigned one
    if high.size > low.size:
        return high  # holds every value of the unsigned one
    return ULLONG if high is LLONG else ULONG


def element_of(type: Type) -> Type:
    """The type of single elements of an array of any dimensions."""
    while isinstance(type, Array):
        type = type.element
    return type
