"""Two arrays joined by one loop: outer products, and halves of which one gates the other."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from toytorch.facts.hints import Array
from toytorch.loops import Recipe
from toytorch.loops.runtime import jit
from toytorch.loops.runtime.jit import SMALLEST

OUTER = Recipe("a[i], b[j] -> y[i,j]\n y = a * b")
GATED = Recipe("a[i,j], b[i,j] -> y[i,j]\n y = a * sigmoid(b)")
GATED_BACKWARD = Recipe("""g[i,j], a[i,j], b[i,j] -> da[i,j], db[i,j]
    s = sigmoid(b)
    da = g * s
    db = g * a * (s * (1 - s))""")


def outer(a: Array, b: Array) -> Any:
    """a[i]·b[j], or None.

    >>> outer(np.ones(100), np.arange(100.0))[3, 7], outer(np.ones(2), np.ones(2))
    (np.float64(7.0), None)
    """
    if a.size * b.size < SMALLEST or a.dtype.char not in "fd" or not jit.works():
        return None
    made = np.empty((a.size, b.size), a.dtype)
    OUTER(made, a, b)
    return made


def gated(a: Array, b: Array) -> Any:
    """a·sigmoid(b) of the halves of an array in rows, or None."""
    if not a.size or a.dtype.char not in "fd" or not jit.works():
        return None
    made = np.empty(a.shape, a.dtype)
    if a.ndim == 2:
        GATED(made, a, b)
    else:
        GATED(*(v.reshape(-1, a.shape[-1]) for v in (made, a, b)))
    return made


def gated_backward(g: Array, x: Array, dim: int) -> Any:
    """The gradient of an array whose first half along a dimension the other one gates, in a tuple; or
    None."""
    if not x.size or x.dtype.char not in "fd" or g.dtype != x.dtype or not jit.works():
        return None
    rows = (math.prod(x.shape[: dim % x.ndim]), 2, -1)
    made = np.empty(x.shape, x.dtype)
    into, halves = made.reshape(rows), np.ascontiguousarray(x).reshape(rows)
    g = np.ascontiguousarray(g).reshape(rows[0], -1)
    GATED_BACKWARD(into[:, 0], into[:, 1], g, halves[:, 0], halves[:, 1])
    return (made,)
