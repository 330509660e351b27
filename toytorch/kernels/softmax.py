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


@functools.lru_cache(1024)
def of_few(recipe: Recipe, kind: np.dtype, shape: Sizes, dim: int, count: int) -> Any:
    """A recipe's kernel for few numbers in so many arrays of a shape, along the last dimension: a function
    of arrays in rows. None for other types and dimensions, and where another way is faster."""
    size = math.prod(shape)
    if not shape or kind.char not in "fd" or dim not in (-1, len(shape) - 1):
        return None
    if not 0 < size < SMALLEST:
        return None
    n = shape[-1]
    if not jit.works() or (recipe is LOG_SOFTMAX and by_parts(size, n)):
        return None
    return ready(recipe, kind.char, ((size // n, n),) * count)


def softmax(a: Array, dim: int) -> Any:
    """eˣ/Σeˣ along the last dimension, or None."""
    return _of_one(SOFTMAX, a, dim)


def _of_one(recipe: Recipe, a: Array, dim: int) -> Any:
    """What a recipe makes of an array along its last dimension, or None."""
    run = of_few(recipe, a.dtype, a.shape, dim, 2)
    if run is None and not fits(a, dim):
        return None
    a = copy.in_rows(a)
    made = np.empty(a.shape, a.dtype)
    if run is not None:
        run(made, a)
    else:
        recipe(*in_rows(made, a))
    return made


def in_rows(*arrays: Array) -> Sequence[Array]:
    """Arrays as matrices, whose rows are their last dimension."""
    first = arrays[0]
    return arrays if first.ndim == 2 else [a.reshape(-1, first.shape[-1]) for a in arrays]


def log_softmax(a: Array, dim: int) -> Any:
    """The logarithm of softmax along the last dimension, or None."""
    if not (a.ndim and by_parts(a.size, a.shape[-1])):
        return _of_one(LOG_SOFTMAX, a, dim)
    if not fits(a, dim):
        return None
    a = copy.in_rows(a)
    made = np.empty(a.shape, a.dtype)
    y, x = in_rows(made, a)
    largest = np.empty(len(x), x.dtype)
    total = np.empty_like(largest)
    LOG_SUM(largest, total, x)
    MINUS(y, x, largest + np.log(total))
    return made


def by_parts(size: int, n: int) -> bool:
    """Whether log_softmax of many short rows takes the logarithms of all their totals together."""
    return n < NARROW and size >= FEW * n


def softmax_backward(g: Array, y: Array, dim: int) -> Any:
    """The gradient of softmax from that of its result, or None."""
    return _backward(SOFTMAX_BACKWARD, g, y, dim)


def log_softmax_backward(g: Array, y: Array, dim: int) -> Any:
    """The gradient of log_softmax from that of its result, or None."""
    return _backward(LOG_SOFTMAX_BACKWARD, g, y, dim)


def _backward(recipe: Recipe, g: Array, y: Array, dim: int) -> Any:
    run = of_few(recipe, y.dtype, y.shape, dim, 3)
    if (run is None and not fits(y, dim)) or g.dtype != y.dtype:
        return None
    g, y = copy.in_rows(g), copy.in_rows(y)
    made = np.empty(y.shape, y.dtype)
    if run is not None and g.shape == y.shape:
        run(made, g, y)
    else:
        recipe(*in_rows(made, g, y))
    return made
