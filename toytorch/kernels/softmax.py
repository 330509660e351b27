"""Softmax, its logarithm and their gradients along rows, as programs of the loop language.

Each function returns None where there is little to do or the arrays are not of the kind; the op
does it in the array module's words then.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from toytorch.facts.hints import Array
from toytorch.loops import Recipe
from toytorch.loops.runtime import jit
from toytorch.loops.runtime.jit import SMALLEST

# A NaN in the row makes every result NaN, whatever the largest of the others is.
SOFTMAX = Recipe("x[i,j] -> y[i,j]\n e = exp(x - fmax[j](x))\n y = e / sum[j](e)")
LOG_SOFTMAX = Recipe("""x[i,j] -> y[i,j]
    z = x - fmax[j](x)
    y = z - log(sum[j](exp(z)))""")
LOG_SUM = Recipe("x[i,j] -> m[i], s[i]\n m = fmax[j](x)\n s = sum[j](exp(x - m))")
MINUS = Recipe("x[i,j], l[i] -> y[i,j]\n y = x - l")
SOFTMAX_BACKWARD = Recipe("g[i,j], y[i,j] -> d[i,j]\n d = (g - sum[j](g * y)) * y")
LOG_SOFTMAX_BACKWARD = Recipe("g[i,j], y[i,j] -> d[i,j]\n d = g - exp(y) * sum[j](g)")
NARROW = 256  # elements in a row; for shorter ones, NumPy's logarithm of all totals is faster


def fits(a: Array, dim: int) -> bool:
    """Whether there is enough to do along the last dimension, in a type that is compiled."""
    return bool(
        a.size >= SMALLEST
        and a.dtype.char in "fd"
        and a.ndim
        and dim in (-1, a.ndim - 1)
        and jit.works()
    )


def softmax(a: Array, dim: int) -> Any:
    """eˣ/Σeˣ along the last dimension, or None."""
    if not fits(a, dim) or not a.flags.c_contiguous:
        return None
    y, rows = np.empty_like(a), (-1, a.shape[-1])
    SOFTMAX(y.reshape(rows), a.reshape(rows))
    return y


def log_softmax(a: Array, dim: int) -> Any:
    """The logarithm of softmax along the last dimension, or None."""
    if not fits(a, dim) or not a.flags.c_contiguous:
        return None
    made = np.empty_like(a)
    y, x = (v.reshape(-1, a.shape[-1]) for v in (made, a))
    if x.shape[1] >= NARROW:
        LOG_SOFTMAX(y, x)
        return made
    largest = np.empty(len(x), x.dtype)
    total = np.empty_like(largest)
    LOG_SUM(largest, total, x)
    MINUS(y, x, largest + np.log(total))
    return made


def softmax_backward(g: Array, y: Array, dim: int) -> Any:
    """The gradient of softmax from that of its result, or None."""
    return _backward(SOFTMAX_BACKWARD, g, y, dim)


def log_softmax_backward(g: Array, y: Array, dim: int) -> Any:
    """The gradient of log_softmax from that of its result, or None."""
    return _backward(LOG_SOFTMAX_BACKWARD, g, y, dim)


def _backward(recipe: Recipe, g: Array, y: Array, dim: int) -> Any:
    if not fits(y, dim) or g.dtype != y.dtype:
        return None
    made, rows = np.empty(y.shape, y.dtype), (-1, y.shape[-1])
    recipe(made.reshape(rows), *(np.ascontiguousarray(v).reshape(rows) for v in (g, y)))
    return made
