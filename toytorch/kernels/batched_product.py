"""Products of many small matrices by register tiles, in one call that threads share.

NumPy calls BLAS once for each matrix; of 64 rows and 32 columns that call costs as much as half of
the product, and threads wait for each other at every one. Here the matrices are a loop around the
tiles, which threads share. Tiles read rows of B: where its columns lie side by side (as keys of
attention do, transposed), it is copied first.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from toytorch.facts.hints import Array, Sizes
from toytorch.kernels import blas_product, copy, tiled_product
from toytorch.kernels.blas_product import batches_of, rows_of
from toytorch.kernels.conv_tile import rows, table, tile
from toytorch.kernels.tiled_product import ADDRESSES, FEWEST_OF_STACKS, PAGE, VECTORS, wide, zeros
from toytorch.loops import processor
from toytorch.loops.llvm.builder import BLOCK
from toytorch.loops.runtime import jit, threads
from toytorch.loops.runtime.array_call import ArrayCall


def product(a: Array, b: Array, out: Array | None = None) -> Any:
    """A·B of stacks of matrices of one real type, in `out` if it is given; None where NumPy should
    do it.

    >>> a, b = np.ones((8, 64, 32), "f"), np.ones((8, 32, 64), "f")
    >>> made = product(a, b)
    >>> made is None or float(made.sum()) == 8 * 64 * 32 * 64
    True
    """
    kind = a.dtype.char
    if (
        a.__class__ is not np.ndarray
        or b.__class__ is not np.ndarray
        or kind not in "fd"
        or b.dtype is not a.dtype
        or a.shape[:-2] != b.shape[:-2]
        or a.size * b.shape[-1] < FEWEST_OF_STACKS
        or not jit.works()
    ):
        return None
    several, shape = threads.thread_count() > 1, (*a.shape[:-1], b.shape[-1])
    strides = rows_of(shape, a.itemsize) if out is None else out.strides
    calls = plan(kind, a.shape, b.shape[-1], a.strides, b.strides, strides, several)
    if calls is None:
        return one_by_one(a, b, out) if tiled_product.beats_blas() else None
    transpose, products = calls
    made = np.empty(shape, a.dtype) if out is None else out
    if transpose is not None:
        lying = np.empty(b.shape, b.dtype)
        transpose(lying, b)
        b = lying
    start = zeros(b.shape[-1], b.dtype)
    for call in products:
        call(a, b, made, start)
    return made


def product_into(a: Array, b: Array, out: Array) -> Array:
    """A·B of stacks of matrices of one real type, in `out`, by whatever is faster."""
    return blas_product.matmul(a, b, out) if product(a, b, out) is None else out


def one_by_one(a: Array, b: Array, made: Array | None) -> Any:
    """Products of matrices that are too large for one call, or lie otherwise; None if they are for
    BLAS.

    >>> one_by_one(np.ones((2, 1, 1), "f"), np.ones((2, 1, 1), "f"), None) is None
    True
    """
    for at in np.ndindex(a.shape[:-2]):
        here = tiled_product.multiply(a[at], b[at])
        if here is None:
            return None
        if made is None:
            made = np.empty((*a.shape[:-1], b.shape[-1]), a.dtype)
        made[at] = here
    return made


@functools.lru_cache(1024)
def plan(
    kind: str,
    shape: Sizes,
    n: int,
    a: tuple[int, ...],
    b: tuple[int, ...],
    c: tuple[int, ...],
    several: bool,
) -> tuple[ArrayCall | None, list[ArrayCall]] | None:
    """The call that copies B (…, k, n) in rows, if need be, and those that multiply A (…, m, k) by
    it, for arrays of these strides in bytes; None where BLAS is as fast, or strides do not fit.

    several   whether threads share it: then it is faster for larger matrices, too
    """
    item, width, (m, k) = 8 if kind == "d" else 4, wide(kind), shape[-2:]
    transpose, caches = None, processor.this()
    if b[-1] != item:
        seen = *shape[:-2], k, n
        lying = rows_of(seen, item)
        transpose, b = copy.plan(item, seen, lying, b), lying
        if transpose is None:
            return None
    if (
        n < width
        or min(m, k) < BLOCK
        or any(s % item or s < 0 for s in (*a, *b, *c))
        or c[-1] != item
        or k * n * item > (caches.l2 // 8 if several else caches.l1)
        or m * k * item > caches.l2 // 8
        or b[-2] % PAGE == 0
        or (a[-1] > item and a[-1] % PAGE == 0)
    ):
        return None
    panels, rest = divmod(n, width)
    batches = batches_of(shape[:-2], a[:-2], b[:-2], c[:-2])
    if len(batches) > 2:
        return None
    batches += [(1, 0, 0, 0)] * (2 - len(batches))
    (first, a0, b0, c0), (second, a2, b2, c2) = batches
    tall = rows(m, VECTORS)
    step = a[-2] // item
    kernel = tile(kind, tall, VECTORS, step, False)
    sizes = {"n0": first, "n2": second, "n3": m, "sum2": k, "shared": 0}
    steps = {
        "a0": a0 // item, "b0": b0 // item, "c0": c0 // item,
        "a2": a2 // item, "b2": b2 // item, "c2": c2 // item,
        "b1": width, "c1": width,
        "a3": step, "c3": c[-2] // item, "row": c[-2] // item, "step": step,
        "sa2": a[-1] // item, "sb2": b[-2] // item,
    }  # fmt: skip
    products = []
    # The last panel overlaps the one before it.
    for count, column in [(panels, 0), *[(1, n - width)] * bool(rest)]:
        own = {"n1": count, "B": column * item, "C": column * item, "start": column * item}
        work = first * second * m * k * count * width
        words = table(sizes | steps | own)
        products.append(ArrayCall(kernel, words, ADDRESSES, first, work))
    return transpose, products
