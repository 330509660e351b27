"""Factors and solutions that NumPy has no function for, by the LAPACK that its library brings.

A routine takes matrices in columns. A matrix in rows is its transpose in columns, so systems in rows
are solved from the other side, without a copy. Where NumPy's library does not show these routines
(Accelerate, MKL, Windows), the answer is None, and ops say it in NumPy's words.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from toytorch.facts.hints import Array
from toytorch.loops.runtime import blas
from toytorch.loops.runtime.jit import address_of

LETTERS = {"f": "s", "d": "d", "F": "c", "D": "z"}
OPTIONS = (
    "RULNT"  # right; the upper triangle, or a unit diagonal; the lower; as it is, or transposed
)
options_in_memory = np.frombuffer(OPTIONS.encode(), np.uint8)
first_option = address_of(options_in_memory)


def lu(a: Array) -> Any:
    """(L and U in one matrix, the row each step exchanged with, the first zero of U's diagonal) of
    each matrix, or None (Anderson et al. 1999, getrf)."""
    found = routine("getrf", a)
    if found is None:
        return None
    run, integer = found
    *batch, m, n = a.shape
    k, count = min(m, n), math.prod(batch)
    made = np.array(a.swapaxes(-1, -2), order="C")  # its rows are columns
    pivots, info = np.zeros((count, k), integer), np.zeros(count, integer)
    sizes = np.array([m, n], integer)
    rows, columns = address_of(sizes), address_of(sizes) + integer.itemsize
    at, step = address_of(made), m * n * a.itemsize
    place, told = address_of(pivots), address_of(info)
    for i in range(count):
        size = integer.itemsize * i
        run(rows, columns, at + step * i, rows, place + size * k, told + size)
    pivots = pivots.reshape(*batch, k).astype(np.int32)
    return made.swapaxes(-1, -2), pivots, info.reshape(batch).astype(np.int32)


def triangular(a: Array, b: Array, upper: bool, unit: bool) -> Any:
    """X of AX = B for the upper or lower triangle of A, whose diagonal counts as ones if `unit`; or
    None (Dongarra et al. 1990, trsm)."""
    found = routine("trsm", a) if a.dtype == b.dtype and b.size else None
    if found is None:
        return None
    run, integer = found
    n, width = b.shape[-2:]
    batch = a.shape[:-2]
    if b.shape[:-2] != batch:
        batch = np.broadcast_shapes(batch, b.shape[:-2])
        b = np.broadcast_to(b, (*batch, n, width))
    made = np.array(b, order="C")
    in_columns = a.swapaxes(-1, -2).flags.c_contiguous and not a.flags.c_contiguous
    matrix = np.ascontiguousarray(a.swapaxes(-1, -2) if in_columns else a)
    if matrix.shape[:-2] != batch:
        matrix = np.ascontiguousarray(np.broadcast_to(matrix, (*batch, n, n)))
    words = np.array([width, n], integer)
    wide, high = address_of(words), address_of(words) + integer.itemsize
    one = np.ones(1, a.dtype)
    triangle = "U" if upper == in_columns else "L"
    options = "R", triangle, "T" if in_columns else "N", "U" if unit else "N"
    marks = [first_option + OPTIONS.index(option) for option in options]
    a_step, b_step = n * n * a.itemsize, n * width * a.itemsize
    first, at = address_of(matrix), address_of(made)
    for i in range(math.prod(batch)):
        run(*marks, wide, high, address_of(one), first + a_step * i, high, at + b_step * i, wide)
    return made


def routine(what: str, a: Array) -> Any:
    """A routine for matrices of the type of `a`, which are not empty, and the type of its integers; or
    None."""
    letter = LETTERS.get(a.dtype.char) if a.__class__ is np.ndarray and a.size else None
    return None if letter is None else blas.routine(letter + what)
