"""The lower or upper triangle of matrices in one pass: NumPy makes a mask first."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from toytorch.facts.hints import Array
from toytorch.loops import Program, run
from toytorch.loops.language.types import TYPES
from toytorch.loops.runtime import jit


def triangle(a: Array, lower: bool, diagonal: int) -> Any:
    """Matrices with zeros above, or below, a diagonal; None where NumPy should make them."""
    if a.__class__ is not np.ndarray or a.size < jit.SMALLEST or not a.flags.c_contiguous:
        return None
    kind = a.dtype.name
    if kind not in TYPES or kind == "bool" or not jit.works():
        return None
    made, shape = np.empty(a.shape, a.dtype), (-1, *a.shape[-2:])
    run(program(kind, lower), made.reshape(shape), a.reshape(shape), np.array(diagonal))
    return made


@functools.cache
def program(kind: str, lower: bool) -> Program:
    """For elements of a type."""
    kept = "<=" if lower else ">="
    return Program.parse(
        f"x[k,i,j] {kind}, diagonal int64 -> y[k,i,j] {kind}\n"
        f"    y = where(index(j) - index(i) {kept} diagonal, x, 0)"
    )
