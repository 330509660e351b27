"""A number as an element of a tensor: converted, or refused where it has no place there."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from toytorch.facts.dtype import IN_C, PAIR, dtype, too_large
from toytorch.facts.hints import ArrayModule, Scalar
from toytorch.facts.schema import Argument

NUMBERS = (bool, int, float, complex, np.number, np.bool_)
# What a refused number would have been converted to.
C_NAMES = {**IN_C, **{n: f"{n}_t" for n in ("uint8", "int8", "int16", "int64")}}


def as_element(xp: ArrayModule, value: Any, kind: np.dtype[Any]) -> Any:
    """`value`, a number or 0-d array, as a 0-d array of the NumPy type `kind`.

    Floats are cut to integers; what is too large, or complex where `kind` is real, is a
    RuntimeError; negative numbers wrap in unsigned types.

    >>> int(as_element(np, 2.7, np.dtype("int64")))
    2
    """
    number = value
    if hasattr(value, "dtype"):
        if value.dtype == kind:
            return xp.asarray(value)
        number = value.item()
    elif value.__class__ is int and not -(1 << 63) <= value < 1 << 64:
        raise too_large(value)
    # Most numbers, without the rest, which takes ten times as long: reading `kind.name` alone does.
    finite = kind.char in "fd" and number.__class__ in (float, int, bool) and abs(number) < 3.4e38
    if finite or (kind.char in "fd" and number in (math.inf, -math.inf)):
        return xp.asarray(np.array(number, kind))
    if kind.char == "?":
        return xp.asarray(bool(number))
    name = kind.name
    if isinstance(number, complex) and kind.kind not in "cW":
        if number.imag:
            raise_overflow(name)
        number = number.real
    if kind.kind in "iu":
        if number != number or number in (float("inf"), -float("inf")):
            raise_overflow(name)
        limits, whole = np.iinfo(kind), int(number)
        low = -limits.max if kind.kind == "u" and isinstance(number, int) else limits.min
        if not low <= number <= limits.max:
            raise_overflow(name)
        return xp.asarray(np.asarray(whole).astype(kind))
    with np.errstate(over="ignore"):
        made = np.asarray(number).astype(kind)
    if kind.kind == PAIR:  # PyTorch writes infinity
        return xp.asarray(made)
    for part, given in ((made.real, complex(number).real), (made.imag, complex(number).imag)):
        if np.isinf(part) and not np.isinf(given):
            raise_overflow(name)
    return xp.asarray(made)


def as_filling(xp: ArrayModule, value: Any, kind: np.dtype[Any], count: int = 1) -> Any:
    """`as_element` for what is filled in `count` times: into one element of a half type PyTorch writes
    infinity where the number is too large."""
    if count != 1 or kind.itemsize != 2 or kind.kind in "iu":
        return as_element(xp, value, kind)
    return as_element(xp, value, np.dtype("float64")).astype(kind)


def raise_overflow(name: str) -> None:
    """PyTorch's refusal of a number."""
    raise RuntimeError(f"value cannot be converted to type {C_NAMES[name]} without overflow")


def scalar(xp: ArrayModule, value: Scalar, common: dtype | None, work: Any) -> Any:
    """A number of the common type; integers wrap, as C's do. It is no array, so that kernels tell it
    from a tensor without dimensions (`power` does)."""
    if xp is not np and hasattr(xp, "RawModule"):  # a kernel on a card takes NumPy's scalars along
        return scalar(np, value, common, work)[()]
    if common is None:
        return xp.asarray(value)
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 64:
        raise too_large(value)
    made = xp.asarray(value).astype(work)
    return made[()] if xp is np else made


def fits(argument: Argument, value: object) -> bool:
    """Whether something that is no tensor may stand where the schema has one."""
    if value is None:
        return bool(argument.is_optional)
    return bool(argument.takes_number) and isinstance(value, NUMBERS)
