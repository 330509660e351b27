"""Running sums and products along rows on NVIDIA's cards: a block of threads for each row.

256 elements at a time are joined in eight steps (Hillis and Steele, 1986), each with what the ones
before have come to; CuPy's functions take several passes over memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from toytorch.backends.cupy_hand import GRID, THREADS, compiled, typed
from toytorch.backends.cupy_rows import real
from toytorch.facts.hints import Array, ArrayModule

FEWEST = 32  # rows, below which most of the card would be idle
SOURCE = """
extern "C" __global__ void __launch_bounds__(256) kernel(T* made, const T* given, long long rows,
        long long n) {
    __shared__ T parts[256];
    for (long long row = blockIdx.x; row < rows; row += gridDim.x) {
        T before = START;
        for (long long first = 0; first < n; first += 256) {
            const long long j = first + threadIdx.x;
            T mine = j < n ? given[row * n + j] : T(START);
            for (int step = 1; step < 256; step *= 2) {
                parts[threadIdx.x] = mine;
                __syncthreads();
                if (threadIdx.x >= step) mine = parts[threadIdx.x - step] OP mine;
                __syncthreads();
            }
            parts[threadIdx.x] = mine;
            __syncthreads();
            if (j < n) made[row * n + j] = before OP mine;
            before = before OP parts[255];
            __syncthreads();
        }
    }
}
"""


def source_of(type: str, op: str, start: str) -> str:
    """The kernel that joins elements of a type by an operator."""
    return typed(SOURCE.replace("START", start).replace("OP", op), type)


def running(xp: ArrayModule, a: Array, d: int, op: str, start: str) -> Any:
    """The running total along the last dimension, or None."""
    if d != a.ndim - 1 or not real(a) or not a.shape[d] or a.size // a.shape[d] < FEWEST:
        return None
    kernel = compiled((xp, a.dtype, op), lambda: source_of(a.dtype.name, op, start))
    n, made = a.shape[d], xp.empty(a.shape, a.dtype)
    rows = a.size // n
    given = made, xp.ascontiguousarray(a), np.int64(rows), np.int64(n)
    kernel((min(rows, GRID),), (THREADS,), given)
    return made


def running_sum(xp: ArrayModule, a: Array, d: int) -> Any:
    """The sums of the first 1, 2, … elements along a dimension, or None."""
    return running(xp, a, d, "+", "0")


def running_product(xp: ArrayModule, a: Array, d: int) -> Any:
    """The products of the first 1, 2, … elements along a dimension, or None."""
    return running(xp, a, d, "*", "1")
