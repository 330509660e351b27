"""Softmax and layer norm on NVIDIA's cards: the programs of `toytorch.kernels`, each one launch.

CuPy's functions take five to nine passes over memory for the same. Each kernel returns None where
the arrays are not of the kind; the op says it in CuPy's functions then.
"""

from __future__ import annotations

import math
from typing import Any

from toytorch.facts.hints import Array, ArrayModule, Fn, Sizes
from toytorch.kernels import norm, softmax
from toytorch.loops import Recipe


def real(*arrays: Array | None) -> bool:
    """Whether arrays are of float32 or of float64, all of one."""
    given = [a for a in arrays if a is not None]
    kind = given[0].dtype
    return kind.char in "fd" and all(a.dtype == kind for a in given)


def launch(xp: ArrayModule, recipe: Recipe, type: str, *args: Any) -> None:
    from toytorch.loops.runtime import cuda  # loaded where there is a card only

    cuda.run(xp, recipe.program(type), *args)


def program(xp: ArrayModule, recipe: Recipe, *args: Any) -> None:
    """Runs a program over arrays (outputs, then inputs) of any layout and one type."""
    launch(xp, recipe, args[0].dtype.name, *args)


def along_rows(
    xp: ArrayModule, recipe: Recipe, dim: int, first: Array, *more: Array
) -> Array | None:
    """A program that makes of arrays, row by row of their last dimension, one of the same shape."""
    if not (first.size and first.ndim and dim in (-1, first.ndim - 1) and real(first, *more)):
        return None
    made, rows = xp.empty(first.shape, first.dtype), (-1, first.shape[-1])
    given = [xp.ascontiguousarray(a).reshape(rows) for a in (first, *more)]
    launch(xp, recipe, first.dtype.name, made.reshape(rows), *given)
    return made


def softmax_backward(xp: ArrayModule, g: Array, y: Array, dim: int) -> Any:
    """The gradient of softmax from that of its result, or None."""
    return along_rows(xp, softmax.SOFTMAX_BACKWARD, dim, g, y)


def log_softmax_backward(xp: ArrayModule, g: Array, y: Array, dim: int) -> Any:
    """The gradient of log_softmax from that of its result, or None."""
    return along_rows(xp, softmax.LOG_SOFTMAX_BACKWARD, dim, g, y)


def layer_norm(
    xp: ArrayModule, a: Array, n: int, weight: Array | None, bias: Array | None, eps: float
) -> Any:
    """(y, mean, rstd) of rows of n elements, each normalised by itself, or None."""
    if not a.size or not n or not real(a, weight, bias):
        return None
    w = xp.ones(n, a.dtype) if weight is None else weight.reshape(-1)
    b = xp.zeros(n, a.dtype) if bias is None else bias.reshape(-1)
    y, mean = xp.empty(a.shape, a.dtype), xp.empty(a.size // n, a.dtype)
    rstd, rows = xp.empty_like(mean), xp.ascontiguousarray(a).reshape(-1, n)
    launch(xp, norm.LAYER, a.dtype.name, y.reshape(-1, n), mean, rstd, rows, w, b, eps)
    return y, mean, rstd


def layer_norm_input(
    xp: ArrayModule, g: Array, a: Array, w: Array | None, mean: Array, rstd: Array
) -> Any:
    """The gradient of x of layer norm, in a tuple, or None."""
    if not mean.size or not a.size or not real(a, g, w, mean, rstd):
        return None
    n = a.size // mean.size
    made = xp.empty(a.shape, a.dtype)
    rows = [xp.ascontiguousarray(v).reshape(-1, n) for v in (g, a)]
    weight = xp.ones(n, a.dtype) if w is None else xp.ascontiguousarray(w).reshape(-1)
    args = made.reshape(-1, n), *rows, weight, mean.reshape(-1), rstd.reshape(-1)
    launch(xp, norm.LAYER_INPUT, a.dtype.name, *args)
    return (made,)


def layer_norm_weight(
    xp: ArrayModule, g: Array, a: Array, shape: Sizes, mean: Array, rstd: Array
) -> Any:
    """The gradients of weight and bias of layer norm, or None."""
    n = math.prod(shape)
    if not a.size or not n or not real(a, g, mean, rstd):
        return None
    dw, db = xp.empty(n, a.dtype), xp.empty(n, a.dtype)
    rows = [xp.ascontiguousarray(v).reshape(-1, n) for v in (g, a)]
    launch(xp, norm.LAYER_WEIGHT, a.dtype.name, dw, db, *rows, mean.reshape(-1), rstd.reshape(-1))
    return dw.reshape(shape), db.reshape(shape)


TABLE: dict[str, Fn] = {
    "softmax": lambda xp, a, dim: along_rows(xp, softmax.SOFTMAX, dim, a),
    "log_softmax": lambda xp, a, dim: along_rows(xp, softmax.LOG_SOFTMAX, dim, a),
    "softmax_backward": softmax_backward,
    "log_softmax_backward": log_softmax_backward,
    "layer_norm": layer_norm,
    "layer_norm_input": layer_norm_input,
    "layer_norm_weight": layer_norm_weight,
}
