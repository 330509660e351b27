"""Two arrays joined by one loop: outer products, slopes of losses, and halves of which one gates the
other."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from toytorch.facts.hints import Array
from toytorch.loops import Recipe
from toytorch.loops.elementwise import Loop
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


@functools.cache
def slope(text: str) -> Loop:
    """The loop of a slope."""
    return Loop(f"y = {text}", arrays="y x t", numbers="p g", smallest=1)


def sloped(x: Array, t: Array, text: str, p: float, g: Array, count: int = 1) -> Any:
    """The gradient of x from a loss in x and t, in a tuple: `text` of these, a number p and the loss's
    gradient g, shared by `count` elements; or None.

    >>> sloped(np.ones(5000), np.zeros(5000), "(x - t) * p * g", 2.0, np.array(0.5))[0][0]
    np.float64(1.0)
    """
    if g.ndim or g.dtype != x.dtype or not x.ndim or not x.size or not x.flags.c_contiguous:
        return None
    made = np.empty(x.shape, x.dtype)
    g = g if count == 1 else g / g.dtype.type(count)
    done = jit.pays(x.size) and slope(text)(made, x, t, p, float(g))
    return (made,) if done else None
