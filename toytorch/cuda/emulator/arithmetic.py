"""What C's operators do to numbers, for all threads at once.

Values are NumPy scalars, where all threads have the same, or arrays with an element a thread.
Overflow wraps around, division of integers rounds toward zero, and a float that does not fit into
an integer gives the nearest one, as on NVIDIA GPUs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from toytorch.cuda.emulator.types import BOOL, Pointer, Scalar, Type
from toytorch.facts.hints import Array

COMPARE = {
    "==": np.equal, "!=": np.not_equal, "<": np.less, "<=": np.less_equal,
    ">": np.greater, ">=": np.greater_equal,
}  # fmt: skip
PLAIN = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "&": np.bitwise_and, "|": np.bitwise_or,
    "^": np.bitwise_xor,
}  # fmt: skip


def converted(value: Array, source: Type, target: Type) -> Any:
    """A value of one type as one of another."""
    if source == target or isinstance(source, Pointer) or isinstance(target, Pointer):
        return value
    assert isinstance(source, Scalar) and isinstance(target, Scalar)
    if source.dtype == target.dtype:
        return value
    if target is BOOL:
        return value != 0
    if source.is_float and not target.is_float:
        limits = np.iinfo(target.dtype)
        whole = np.nan_to_num(np.trunc(value.astype(np.float64)), nan=0.0)
        above = whole >= float(limits.max)
        inside = np.where(above, 0.0, np.maximum(whole, float(limits.min))).astype(target.dtype)
        return np.where(above, target.dtype.type(limits.max), inside)[()]
    return value.astype(target.dtype)


def unary(sign: str, value: Array) -> Any:
    """`-x`, `~x` and `!x`."""
    if sign == "-":
        return np.negative(value)
    return np.invert(value) if sign == "~" else np.logical_not(value)


def binary(sign: str, left: Array, right: Array, type: Type) -> Any:
    """`left sign right`, both of one type; ZeroDivisionError for integers divided by 0."""
    if sign in PLAIN:
        return PLAIN[sign](left, right)
    if sign in COMPARE:
        return COMPARE[sign](left, right)
    if sign in ("<<", ">>"):
        return shifted(sign, left, right)
    assert isinstance(type, Scalar)
    if type.is_float:
        return np.divide(left, right)
    if np.any(right == 0):
        raise ZeroDivisionError
    if sign == "/":
        return quotient(left, right, type)
    return np.fmod(left, right)


def quotient(left: Array, right: Array, type: Scalar) -> Any:
    """Integers divided, rounded toward zero.

    >>> from toytorch.cuda.emulator.types import INT
    >>> quotient(np.int32([7, -7, 7, -7]), np.int32([2, 2, -2, -2]), INT).tolist()
    [3, -3, -3, 3]
    """
    down = np.floor_divide(left, right)
    if not type.is_signed or (np.min(left) >= 0 and np.min(right) > 0):
        return down
    inexact = np.multiply(down, right) != left
    return down + (inexact & (down < 0)).astype(type.dtype)


def shifted(sign: str, left: Array, right: Array) -> Any:
    """A shift; by as many bits as there are or more, all bits leave, as on NVIDIA GPUs."""
    bits = left.dtype.itemsize * 8
    count = np.minimum(
        right.astype(np.uint64)
        if right.dtype.itemsize == 8
        else right.astype(np.int64) & 0xFFFFFFFF,
        bits,
    ).astype(left.dtype)
    return np.left_shift(left, count) if sign == "<<" else np.right_shift(left, count)
