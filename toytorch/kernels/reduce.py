"""Sums and means over dimensions of large arrays, by compiled loops.

Dimensions that lie together in memory are one: what is left are rows, columns, or something in the
middle. Sums of blocks are added in float64.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Collection
from typing import Any

import numpy as np

from toytorch.facts.hints import Array, Sizes
from toytorch.loops import Recipe
from toytorch.loops.runtime import jit
from toytorch.loops.runtime.jit import SMALLEST

SHARED = 1 << 18  # elements that are summed by parts, for any number of threads the same
PARTS = 64
# By which of the dimensions, in the order of memory, are summed ("s") and which are kept ("k").
SUMS = {
    "s": Recipe("x[i] -> s[]\n s = sum[i](x)"),
    "ks": Recipe("x[i,j] -> s[i]\n s = sum[j](x)"),
    "sk": Recipe("x[i,j] -> s[j]\n s = sum[i](x)"),
    "ksk": Recipe("x[i,j,k] -> s[i,k]\n s = sum[j](x)"),
    "sks": Recipe("x[i,j,k] -> s[j]\n s = sum[i,k](x)"),
}
HALVES = {sums: Recipe(sums.text.replace("\n", " float32\n", 1)) for sums in SUMS.values()}
COLUMNS = (SUMS["sk"], SUMS["ksk"])
EXTREMES = {name: Recipe(f"x[i,j] -> y[i]\n y = {name}[j](x)") for name in ("max", "min")}


def grouped(shape: Sizes, gone: Collection[int]) -> tuple[str, list[int]]:
    """Dimensions that lie together as one: "s" for those that are reduced, "k" for the others."""
    pattern, sizes = "", list[int]()
    for d, n in enumerate(shape):
        letter = "s" if d in gone else "k"
        if pattern[-1:] == letter:
            sizes[-1] *= n
        else:
            pattern += letter
            sizes.append(n)
    return pattern, sizes


@functools.lru_cache(4096)
def plan(shape: Sizes, over: tuple[int, ...]) -> tuple[Any, ...]:
    """The recipe, the sizes of the groups of dimensions, those that are kept, and all that are."""
    pattern, sizes = grouped(shape, over)
    kept = [n for letter, n in zip(pattern, sizes) if letter == "k"]
    return (
        SUMS.get(pattern),
        tuple(sizes),
        tuple(kept),
        tuple(n for d, n in enumerate(shape) if d not in over),
    )


def extreme_of_rows(name: str, a: Array) -> Any:
    """The "max" or "min" along the last dimension of many real numbers in rows, NaN where there is one;
    or None."""
    if a.__class__ is not np.ndarray or a.dtype.char not in "fd" or not a.flags.c_contiguous:
        return None
    if a.size < SMALLEST or a.ndim < 2 or not jit.works():
        return None
    made = np.empty(a.shape[:-1], a.dtype)
    EXTREMES[name](made.reshape(-1), a.reshape(-1, a.shape[-1]))
    return made


def total(a: Array, over: tuple[int, ...] | None = None, mean: bool = False) -> Any:
    """The sum (or the mean) over dimensions (or all), without them, of half types in float32; None where
    NumPy has to do it.

    >>> total(np.ones((100, 64)), (0,)).sum(), total(np.ones(5), (0,))
    (np.float64(6400.0), None)
    """
    if a.__class__ is not np.ndarray or a.size < SMALLEST or a.dtype.char not in "fdeE":
        return None
    if over is None:
        over = tuple(range(a.ndim))
    elif not over:
        return None
    if not a.flags.c_contiguous:
        return reordered(a, over, mean)
    if not jit.works():
        return None
    count = a.size
    if len(over) == a.ndim:
        made = everything(a.reshape(-1))
    else:
        recipe, sizes, groups, kept = plan(a.shape, over)
        if recipe is None:
            return None
        if a.dtype.char == "d" and recipe in COLUMNS:
            sizes, a = in_blocks(sizes, a)
            recipe = SUMS["ksk"]
        made = np.empty(groups, wide(a))
        flat = made if recipe is not SUMS["ksk"] else made.reshape(sizes[0], -1)
        (recipe if made.dtype == a.dtype else HALVES[recipe])(
            flat, a if sizes == a.shape else a.reshape(sizes)
        )
        if kept != groups:
            made = made.reshape(kept)
    if mean:
        made /= made.dtype.type(count // max(made.size, 1))
    return made


def wide(a: Array) -> Any:
    """The type of sums."""
    return np.dtype(np.float32) if a.dtype.itemsize == 2 else a.dtype


def in_blocks(sizes: Sizes, a: Array) -> tuple[tuple[int, ...], Array]:
    """Columns of float64 with many rows become sums of blocks of rows, whose roundings do not add up
    as those of one long sum would; float32 is added in float64 anyway."""
    *outer, n, inner = sizes
    blocks = most_even(n)
    if blocks < 8:
        return (math.prod(outer), n, inner), a
    partial = np.empty((math.prod(outer) * blocks, inner), a.dtype)
    SUMS["ksk"](partial, a.reshape(len(partial), n // blocks, inner))
    return (math.prod(outer), blocks, inner), partial


@functools.lru_cache(4096)
def most_even(n: int) -> int:
    """The largest divisor of n up to its root."""
    return next(k for k in range(math.isqrt(n), 0, -1) if n % k == 0)


def repeat(number: Array, shape: Sizes) -> Any:
    """An array of a shape whose every element is the one of an array without dimensions; None for
    an array that has some. (`np.broadcast_to` takes six times as long.)"""
    if number.ndim:
        return None
    return np.ndarray(tuple(shape), number.dtype, number, 0, (0,) * len(shape))


def reordered(a: Array, over: tuple[int, ...], mean: bool) -> Any:
    """`total` of an array whose dimensions lie in another order in memory."""
    order = sorted(range(a.ndim), key=lambda d: -a.strides[d])
    moved = a.transpose(order)
    if not moved.flags.c_contiguous:
        return None
    made = total(moved, tuple(k for k, d in enumerate(order) if d in over), mean)
    if made is None:
        return None
    left = [d for d in order if d not in over]
    return made.transpose([left.index(d) for d in sorted(left)])


def everything(flat: Array) -> Any:
    """The sum of all numbers, as an array without dimensions."""
    made = np.empty((), wide(flat))
    half = made.dtype != flat.dtype
    if flat.size < SHARED and made.dtype.char == "f":
        (HALVES[SUMS["s"]] if half else SUMS["s"])(made, flat)
        return made
    each = flat.size // PARTS  # roundings of float64, too, add up less in parts
    whole = each * PARTS
    parts = np.empty(PARTS + (whole < flat.size), made.dtype)
    (HALVES[SUMS["ks"]] if half else SUMS["ks"])(parts[:PARTS], flat[:whole].reshape(PARTS, each))
    if whole < flat.size:
        parts[PARTS] = flat[whole:].astype(made.dtype).sum(dtype=np.float64)
    SUMS["s"](made, parts)
    return made


def spread_mean(g: Array, shape: Sizes, over: tuple[int, ...], keepdim: bool) -> Any:
    """The gradient of a mean over some dimensions, in a tuple; or None."""
    if g.dtype.char not in "fd":
        return None
    if not keepdim and g.ndim:
        g = g.reshape([1 if d in over else n for d, n in enumerate(shape)])
    count = math.prod([shape[d] for d in over])
    return (np.asarray(np.broadcast_to(g, shape) / g.dtype.type(count)),)
