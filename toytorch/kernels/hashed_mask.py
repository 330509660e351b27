"""Random masks of dropout: what each element is follows from its place and a key alone."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import numpy.typing as npt

from toytorch.facts.hints import Ints
from toytorch.loops import Program, run

MIX = ((16, 0x7FEB352D), (15, 0x846CA68B), (16, 1))  # shifts and factors; Wellons 2018, lowbias32


def mask(shape: Ints, dtype: npt.DTypeLike, p: float, key: int) -> Any:
    """An array that is 0 with probability p, and 1/(1 - p) elsewhere.

    Element i is decided by a hash of i and the 64 bits of the key alone (Salmon et al. 2011,
    "Parallel random numbers: as easy as 1, 2, 3"), so it is the same with and without a compiler.

    >>> mask(8, np.float32, 0.5, key=5)
    array([2., 0., 0., 0., 2., 0., 0., 2.], dtype=float32)
    """
    made = np.empty(shape, dtype)
    limit = min(round(p * (1 << 32)), (1 << 32) - 1)
    program = mask_program(made.dtype.name)
    run(program, made.reshape(-1), 1 / (1 - p), *map(signed, (key, key >> 32, limit ^ 1 << 31)))
    return made


def signed(number: int) -> int:
    """The lower 32 bits of a number as an integer with a sign."""
    return (number + (1 << 31)) % (1 << 32) - (1 << 31)


@functools.cache
def mask_program(type: str) -> Program:
    """The hash as a program. Its numbers have a sign: what `>>` shifts in is cut off, and numbers
    without a sign are compared with their upper bits turned over."""
    mixed = "".join(
        f"    h = (h ^ ((h >> {shift}) & {(1 << 32 - shift) - 1})) * {signed(factor)}\n"
        for shift, factor in MIX
    )
    return Program.parse(
        f"""scale, low int32, high int32, limit int32 -> y[i]
    k = index(i)
    h = int32(k) + low
{mixed}    h = h ^ (high + int32(k >> 32))
{mixed}    y = scale if (h ^ -2147483648) >= limit else 0""",
        type,
    )
