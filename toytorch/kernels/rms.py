"""RMS norm compiled: rows divided by the root of the mean of their squares."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from toytorch.facts.hints import Array, Sizes
from toytorch.kernels.norm import fits
from toytorch.loops import Recipe
from toytorch.loops.runtime.jit import SMALLEST
from toytorch.loops.runtime.kernel import ready

RMS = Recipe("""x[i,j], w[j], eps -> y[i,j], r[i]
    r = rsqrt(mean[j](x*x) + eps)
    y = x*r*w""")
RMS_INPUT = Recipe("""g[i,j], x[i,j], w[j], r[i] -> dx[i,j]
    k = g * w
    h = x * r
    dx = (k - h * mean[j](k * h)) * r""")
RMS_WEIGHT = Recipe("""g[i,j], x[i,j], r[i] -> dw[j]
    dw = sum[i](g * x * r)""")


def rms_norm(a: Array, n: int, w: Array | None, eps: float) -> Any:
    """(y, 1/rms) of rows of n elements, or None."""
    if not fits(a, w):
        return None
    x = np.ascontiguousarray(a).reshape(-1, n)
    y, r = np.empty(a.shape, a.dtype), np.empty(len(x), a.dtype)
    run(RMS, y.reshape(x.shape), r, x, weights(w, x), eps)
    return y, r


def rms_norm_input(g: Array, a: Array, w: Array | None, r: Array) -> Any:
    """The gradient of x, in a tuple, or None."""
    if not fits(a, g, w, r):
        return None
    made = np.empty(a.shape, a.dtype)
    rows = [np.ascontiguousarray(v).reshape(r.size, -1) for v in (g, a)]
    run(RMS_INPUT, made.reshape(rows[0].shape), *rows, weights(w, rows[0]), r.reshape(-1))
    return (made,)


def rms_norm_weight(g: Array, a: Array, shape: Sizes, r: Array) -> Any:
    """The gradient of the weight, in a tuple, or None."""
    if not fits(a, g, r):
        return None
    made = np.empty(shape, a.dtype)
    rows = [np.ascontiguousarray(v).reshape(r.size, -1) for v in (g, a)]
    run(RMS_WEIGHT, made.reshape(-1), *rows, r.reshape(-1))
    return (made,)


def weights(w: Array | None, rows: Array) -> Any:
    """The weights in a row; ones where there are none."""
    return (
        ones(rows.shape[1], rows.dtype.char) if w is None else np.ascontiguousarray(w).reshape(-1)
    )


@functools.lru_cache(64)
def ones(n: int, kind: str) -> Any:
    """So many times 1, only to be read."""
    return np.ones(n, kind)


def run(recipe: Recipe, *args: Any) -> None:
    """A recipe's kernel; for few numbers one that was made for their shapes."""
    first = args[recipe.outputs]
    if first.size >= SMALLEST:
        recipe(*args)
        return
    arrays = [a for a in args if a.__class__ is np.ndarray]
    shapes = tuple([a.shape for a in arrays])
    few(recipe, first.dtype.char, shapes, *args[len(arrays) :])(*arrays)


few = functools.lru_cache(256)(ready)
