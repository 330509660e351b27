"""How fast this machine multiplies and moves bytes, measured in the run whose rows are compared.

A row's share of the roofline (Williams, Waterman and Patterson, 2009) is what it has to do, in
operations or in bytes, over its time and over these. Both are measured by NumPy at a size that the
rows have: a product of matrices by BLAS, and a copy of a million floats, which is as near to the
processor as those of the rows are.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

SIDE = 768  # of the matrices, which a core's second-level cache holds in part
FLOATS = 1_000_000


@dataclass(frozen=True)
class Roofline:
    """The most that this machine was seen to do in a second."""

    flops: float
    bytes: float

    def share(self, seconds: float, flops: int, traffic: int) -> str:
        """What a row reaches, in words; nothing where it is neither kind of work.

        >>> Roofline(1e11, 4e10).share(1e-3, 50_000_000, 0)
        '50 % of 100 GFLOP/s'
        >>> Roofline(1e11, 4e10).share(1e-3, 0, 12_000_000)
        '30 % of 40 GB/s'
        """
        if flops:
            share = flops / seconds / self.flops
            return f"{100 * share:.0f} % of {self.flops / 1e9:.0f} GFLOP/s"
        if traffic:
            share = traffic / seconds / self.bytes
            return f"{100 * share:.0f} % of {self.bytes / 1e9:.0f} GB/s"
        return ""


def fastest(work: Callable[[], object], repeats: int) -> float:
    """The least seconds that some work took."""
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def measured() -> Roofline:
    """This machine, with the threads that NumPy has."""
    a = np.sin(np.arange(SIDE * SIDE, dtype=np.float32)).reshape(SIDE, SIDE)
    product = np.empty_like(a)
    x, y = np.ones(FLOATS, np.float32), np.empty(FLOATS, np.float32)
    b = a[::-1].copy()
    multiplying = fastest(lambda: np.matmul(a, b, out=product), 20)
    copying = fastest(lambda: np.copyto(y, x), 200)
    return Roofline(2 * SIDE**3 / multiplying, 2 * x.nbytes / copying)
