"""Softmax, its logarithm and their gradients along rows, as programs of the loop language.

Each function returns None where the arrays are not of the kind; the op does it in the array
module's words then. A few numbers are work enough: one call of a kernel takes 0.4 µs, and the five
or six functions of NumPy that it replaces 4.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from toytorch.facts.hints import Array, Sizes
from toytorch.kernels import copy
from toytorch.loops import Recipe
from toytorch.loops.runtime import jit
from toytorch.loops.runtime.jit import SMALLEST
from toytorch.loops.runtime.kernel import ready

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
FEW = 64  # rows; for fewer, a second and a third call cost more than logarithms one by one


def fits(a: Array, dim: int) -> bool:
    """Whether there is something to do along the last dimension, in a type that is compiled."""
    return bool(
        a.dtype.char in "fd"
        and (dim == -1 or dim == a.ndim - 1)
        and a.size
        and a.ndim
        and jit.works()
    )


def softmax(a: Array, dim: int) -> Any:
    """eˣ/Σeˣ along the last dimension, or None."""
    if not fits(a, dim):
        return None
    a = copy.in_rows(a)
    y = np.empty(a.shape, a.dtype)
    over_rows(SOFTMAX, y, a)
    return y


def over_rows(recipe: Recipe, *arrays: Array) -> None:
    """Runs a recipe over arrays of one shape that lie in rows, as matrices of these rows."""
    first = arrays[0]
    if first.size < SMALLEST:
        rows_ready(recipe, first.dtype.char, first.shape, len(arrays))(*arrays)
    else:
        recipe(*in_rows(*arrays))


@functools.lru_cache(256)
def rows_ready(recipe: Recipe, kind: str, shape: Sizes, count: int) -> Any:
    """The kernel of `over_rows` for few numbers in so many arrays of a shape."""
    return ready(recipe, kind, ((math.prod(shape[:-1]), shape[-1]),) * count)


def in_rows(*arrays: Array) -> Sequence[Array]:
    """Arrays as matrices, whose rows are their last dimension."""
    first = arrays[0]
    return arrays if first.ndim == 2 else [a.reshape(-1, first.shape[-1]) for a in arrays]


def log_softmax(a: Array, dim: int) -> Any:
    """The logarithm of softmax along the last dimension, or None."""
    if not fits(a, dim):
        return None
    a = copy.in_rows(a)
    made, n = np.empty(a.shape, a.dtype), a.shape[-1]
    if n >= NARROW or a.size < FEW * n:
        over_rows(LOG_SOFTMAX, made, a)
        return made
    y, x = in_rows(made, a)
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
    g, y = copy.in_rows(g), copy.in_rows(y)
    made = np.empty(y.shape, y.dtype)
    over_rows(recipe, made, g, y)
    return made
