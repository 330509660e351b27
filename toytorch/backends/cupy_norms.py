"""Batch and group norm on NVIDIA's cards: the programs of `toytorch.kernels.norm`."""

from __future__ import annotations

from typing import Any

from toytorch.backends.cupy_hand import in_rows, lies_last, with_last
from toytorch.backends.cupy_rows import launch, real
from toytorch.facts.hints import Array, ArrayModule
from toytorch.kernels import norm


def table(xp: ArrayModule, a: Array) -> Any:
    """Images as (N, C, P); rows as they are."""
    a = in_rows(xp, a)
    return a if a.ndim == 2 else a.reshape(*a.shape[:2], -1)


def each_channel(xp: ArrayModule, w: Array | None, a: Array, fill: float = 1) -> Any:
    """A weight, or what stands for none."""
    return xp.full(a.shape[1], fill, a.dtype) if w is None else xp.ascontiguousarray(w)


def as_given(xp: ArrayModule, a: Array, made: Array) -> Any:
    """A result in the order of memory of the images that it was made of."""
    return with_last(xp, made) if lies_last(a) else made


def batch_norm(xp: ArrayModule, a: Array, w: Array | None, b: Array | None, eps: float) -> Any:
    """(y, mean, variance, rstd) of images normalised by channel, or None."""
    if a.ndim < 2 or not a.size or not real(a, w, b):
        return None
    made, last = xp.empty(a.shape, a.dtype), a.ndim == 2
    m, v, r = (xp.empty(a.shape[1], a.dtype) for _ in range(3))
    given = each_channel(xp, w, a), each_channel(xp, b, a, 0)
    recipe, type = norm.BATCH[last], a.dtype.name
    launch(xp, recipe, type, table(xp, made), m, v, r, table(xp, a), *given, eps)
    return as_given(xp, a, made), m, v, r


def batch_norm_affine(
    xp: ArrayModule, a: Array, mean: Array, scale: Array, bias: Array | None
) -> Any:
    """(x - mean)·scale + bias by channel, or None."""
    if a.ndim < 2 or not a.size or not real(a, mean, scale, bias):
        return None
    made = xp.empty(a.shape, a.dtype)
    given = xp.ascontiguousarray(mean), xp.ascontiguousarray(scale), each_channel(xp, bias, a, 0)
    recipe = norm.AFFINE[a.ndim == 2]
    launch(xp, recipe, a.dtype.name, table(xp, made), table(xp, a), *given)
    return as_given(xp, a, made)


def batch_norm_backward(
    xp: ArrayModule, g: Array, a: Array, w: Array | None, mean: Array, rstd: Array
) -> Any:
    """The gradients (of x, of the weight, of the bias) from that of the result, or None."""
    if a.ndim < 2 or not a.size or not real(a, g, w, mean, rstd):
        return None
    made = xp.empty(a.shape, a.dtype)
    dw, db = xp.empty(a.shape[1], a.dtype), xp.empty(a.shape[1], a.dtype)
    given = each_channel(xp, w, a), mean, rstd, float(a.size // a.shape[1])
    recipe, type = norm.BATCH_BACKWARD[a.ndim == 2], a.dtype.name
    launch(xp, recipe, type, table(xp, made), dw, db, table(xp, a), table(xp, g), *given)
    return as_given(xp, a, made), dw, db


# -- groups of channels ---------------------------------------------------------------------------


def of_groups(a: Array) -> bool:
    """Whether images have so many places that the sums for each channel come first."""
    return a.ndim > 2 and a.size // a.shape[0] // a.shape[1] >= 8


def group_norm(
    xp: ArrayModule, a: Array, w: Array | None, b: Array | None, groups: int, eps: float
) -> Any:
    """(y, mean, rstd) of images normalised by groups of channels, or None."""
    if not a.size or not real(a, w, b) or not of_groups(a):
        return None
    (n, c), type, x = a.shape[:2], a.dtype.name, table(xp, a)
    m, v, shift, scale = (xp.empty((n, groups, c // groups), a.dtype) for _ in range(4))
    launch(xp, norm.MOMENTS[False], type, m.reshape(n, c), v.reshape(n, c), x)
    mean, rstd = xp.empty((n, groups), a.dtype), xp.empty((n, groups), a.dtype)
    weight = each_channel(xp, w, a).reshape(groups, -1)
    launch(xp, norm.GROUPED, type, mean, rstd, shift, scale, m, v, weight, eps)
    made = xp.empty(a.shape, a.dtype)
    given = shift.reshape(n, c), scale.reshape(n, c), each_channel(xp, b, a, 0)
    launch(xp, norm.SCALED[False], type, table(xp, made), x, *given)
    return as_given(xp, a, made), mean, rstd


def group_norm_backward(
    xp: ArrayModule, g: Array, a: Array, w: Array | None, mean: Array, rstd: Array
) -> Any:
    """The gradients (of x, of the weight, of the bias), or None; see `toytorch.kernels.norm`."""
    if not a.size or not real(a, g, w, mean, rstd) or not of_groups(a):
        return None
    (n, c), type, groups = a.shape[:2], a.dtype.name, mean.shape[1]
    x, g = table(xp, a), table(xp, g)
    s, t, of_x, shift, scale, dw = (xp.empty((n, groups, c // groups), a.dtype) for _ in range(6))
    m = xp.repeat(mean, c // groups, 1)
    launch(xp, norm.SHARES[False], type, s.reshape(n, c), t.reshape(n, c), x, g, m)
    weight = each_channel(xp, w, a).reshape(groups, -1)
    count = a.size // n // groups
    launch(xp, norm.GROUP_SHARES, type, of_x, shift, scale, dw, s, t, weight, rstd, count)
    made = xp.empty(a.shape, a.dtype)
    given = (v.reshape(n, c) for v in (of_x, shift, scale))
    launch(xp, norm.MIXED[False], type, table(xp, made), x, g, m, *given)
    return as_given(xp, a, made), dw.reshape(n, c).sum(0), t.reshape(n, c).sum(0)
