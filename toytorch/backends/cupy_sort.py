"""Rows in order on NVIDIA's cards, each sorted by a block of threads in the memory that they share.

The network is Batcher's bitonic one (1968): log²(n) rounds, in each of which every thread compares
pairs that lie apart. Equal elements keep their order, since places are compared, too. CuPy sorts many
rows as one array with two keys, which takes ten times as long; it sorts the rows that are longer than
shared memory holds.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from toytorch.backends.cupy_hand import GRID, THREADS, compiled, typed
from toytorch.facts.hints import Array, ArrayModule

SHARED = 48 << 10  # bytes that every card has for a block
SOURCE = """
__device__ bool behind(T x, int i, T y, int j, int n) {  // whether x, of place i, comes after y
    if (i >= n || j >= n) return i > j;  // what fills the row up is last
    if (x BEFORE y || y BEFORE x) return y BEFORE x;
    const bool no_number = x != x, nor_that = y != y;
    return no_number == nor_that ? i > j : NAN_LAST ? no_number : nor_that;
}
extern "C" __global__ void __launch_bounds__(256) kernel(T* values, long long* places, const T* given,
        long long rows, int n, int k) {
    __shared__ T keys[SIZE];
    __shared__ int at[SIZE];
    for (long long row = blockIdx.x; row < rows; row += gridDim.x) {
        for (int j = threadIdx.x; j < SIZE; j += 256) {
            keys[j] = j < n ? given[row * n + j] : (T)0;
            at[j] = j;
        }
        __syncthreads();
        for (int size = 2; size <= SIZE; size *= 2)
            for (int step = size / 2; step; step /= 2) {
                for (int t = threadIdx.x; t < SIZE / 2; t += 256) {
                    const int low = 2 * t - (t & (step - 1)), high = low + step;
                    const bool up = !(low & size);
                    if (behind(keys[low], at[low], keys[high], at[high], n) == up) {
                        const T key = keys[low];
                        const int place = at[low];
                        keys[low] = keys[high], at[low] = at[high];
                        keys[high] = key, at[high] = place;
                    }
                }
                __syncthreads();
            }
        for (int j = threadIdx.x; j < k; j += 256) {
            values[row * k + j] = keys[j];
            places[row * k + j] = at[j];
        }
        __syncthreads();
    }
}
"""


def source_of(type: str, size: int, descending: bool) -> str:
    """The kernel that sorts up to `size` elements of a type."""
    words = {"SIZE": size, "BEFORE": ">" if descending else "<",
             "NAN_LAST": "false" if descending else "true"}  # fmt: skip
    code = SOURCE
    for word, value in words.items():
        code = code.replace(word, str(value))
    return typed(code, type)


def sorted_rows(xp: ArrayModule, a: Array, k: int, d: int, descending: bool) -> Any:
    """The first k (values, places) along a dimension; None for rows that are too long, or of types
    with two bytes or two parts."""
    n = a.shape[d] if a.ndim else 0
    size = 1 << max(n - 1, 1).bit_length()
    if a.dtype.kind not in "fiub" or a.dtype.name in ("float16", "uint16", "uint32", "uint64"):
        return None
    if not a.size or not k or size * (a.itemsize + 4) > SHARED:
        return None
    key = xp, a.dtype, size, descending
    kernel = compiled(key, lambda: source_of(a.dtype.name, size, descending))
    rows = xp.ascontiguousarray(xp.moveaxis(a, d, -1))
    shape = (*rows.shape[:-1], k)
    values, places = xp.empty(shape, a.dtype), xp.empty(shape, np.int64)
    count = a.size // n
    given = values, places, rows, np.int64(count), np.int32(n), np.int32(k)
    kernel((min(count, GRID),), (THREADS,), given)
    return tuple(xp.ascontiguousarray(xp.moveaxis(v, -1, d)) for v in (values, places))


def ordered(xp: ArrayModule, a: Array, d: int, descending: bool) -> Any:
    """(values, places) in order along a dimension; NaN counts as the largest. Or None."""
    return sorted_rows(xp, a, a.shape[d] if a.ndim else 0, d, bool(descending))


def top(xp: ArrayModule, a: Array, k: int, d: int, largest: bool, tell: bool = False) -> Any:
    """The k largest (or smallest) values and their places along a dimension, or None; asked to `tell`,
    also that it is not known whether some are equal."""
    made = sorted_rows(xp, a, k, d, bool(largest))
    return (*made, False) if tell and made is not None else made
