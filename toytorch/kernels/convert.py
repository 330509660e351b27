"""Conversions between types: NumPy's are done on one thread, and some of them one by one."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from toytorch.facts.hints import Array
from toytorch.kernels.copy import in_rows
from toytorch.loops import Program, run
from toytorch.loops.language.types import TYPES
from toytorch.loops.runtime import jit, threads

HALVES = "float16", "bfloat16"
SHARED = 1 << 15  # elements, from which several threads are faster than NumPy's one


def cast(a: Array, kind: np.dtype[Any]) -> Any:
    """The elements in another type, in the order of memory they are in; None where NumPy should
    convert them."""
    if a.__class__ is not np.ndarray or not jit.works():
        return None
    program, alone, fewest = plan(a.dtype, kind)
    if program is None or a.size < fewest or not (alone or threads.thread_count() > 1):
        return None
    if a.flags.c_contiguous:
        made = np.empty(a.shape, kind)
        run(program, made.reshape(-1), a.reshape(-1))
        return made
    order, back = orders(a.strides)
    return cast(in_rows(a.transpose(order)), kind).transpose(back)


@functools.lru_cache(1024)
def orders(strides: tuple[int, ...]) -> tuple[list[int], list[int]]:
    """The order of dimensions in memory, and what undoes it."""
    order = sorted(range(len(strides)), key=lambda d: (-strides[d], d))
    return order, [order.index(d) for d in range(len(order))]


@functools.cache
def plan(source: np.dtype[Any], kind: np.dtype[Any]) -> tuple[Program | None, bool, int]:
    """The loop that converts, whether it is faster than NumPy's on one thread, too, and from how
    many elements."""
    one, other = source.name, kind.name
    half = one in HALVES or other in HALVES
    if one == other or {one, other} - set(TYPES) or (half and "float32" not in (one, other)):
        return None, False, 0
    by_long = other == "uint8" and source.kind == "f"  # as PyTorch does it: then the low byte
    value = "x" if half else "uint8(int64(x))" if by_long else f"{other}(x)"
    program = Program.parse(f"x[i] {one} -> y[i] {other}\n y = {value}")
    return program, half or by_long, jit.SMALLEST if half else SHARED
