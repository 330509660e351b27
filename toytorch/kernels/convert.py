"""Conversions between float32 and the types of two bytes, which NumPy does one by one."""

from __future__ import annotations

from typing import Any

import numpy as np

from toytorch.facts.hints import Array
from toytorch.loops import Program, run
from toytorch.loops.runtime import jit

CASTS = {
    (one, other): Program.parse(f"x[i] {one} -> y[i] {other}\n y = x")
    for half in ("float16", "bfloat16")
    for one, other in (("float32", half), (half, "float32"))
}


def cast(a: Array, kind: np.dtype[Any]) -> Any:
    """The elements in another type; None where NumPy should convert them."""
    if a.__class__ is not np.ndarray or a.size < jit.SMALLEST or not a.flags.c_contiguous:
        return None
    program = CASTS.get((a.dtype.name, kind.name))
    if program is None or not jit.works():
        return None
    made = np.empty(a.shape, kind)
    run(program, made.reshape(-1), a.reshape(-1))
    return made
