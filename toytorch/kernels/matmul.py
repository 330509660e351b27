"""Products of matrices: BLAS does them, and of A·Aᵀ only half.

A product of a matrix and its own transpose is symmetric. NumPy asks BLAS's `syrk` for half of it and
copies the rest element by element, which takes longer than the half that was saved: for 1024 x 128
float32 on one thread of an AVX2 processor 5.4 ms, against 4.1 for a product of two matrices. Here
blocks of rows up to the diagonal are products of BLAS's and what is above it is transposed by
blocks, 2.9 ms.

A kernel of our own for small matrices gained 8 % of the products of a training step with registers
of 512 bits and lost half with fewer, so there is none any more.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from toytorch.facts.hints import Array
from toytorch.kernels.memory_format import transpose
from toytorch.loops.llvm.builder import BLOCK
from toytorch.loops.runtime import blas_threads, jit
from toytorch.loops.runtime.native import Call, Native

if TYPE_CHECKING:
    from llvmlite.ir import Value


ROWS = 128  # of a block: fewer make small products, more do more of what is not needed
LEAST = 512  # rows, from which a product by halves is faster
SYMMETRIC = 1 << 14  # elements of a product, from which it is worth looking whether it is symmetric


def product(a: Array, b: Array) -> Any:
    """A·B of matrices where B is Aᵀ; None where BLAS should do all of it.

    So it should with several threads, which would have to meet after each of the blocks.
    """
    if (
        len(a) >= LEAST
        and is_transpose(a, b)
        and dense_rows(a)
        and blas_threads.of_blas() == 1
        and jit.works()
    ):
        return by_halves(a)
    return None


def dense_rows(a: Array) -> bool:
    """Whether BLAS can read a matrix as it lies, along its rows or its columns."""
    return a.dtype.char in "fd" and min(a.strides) == a.itemsize


def is_transpose(a: Array, b: Array) -> bool:
    """Whether two matrices are one and its transpose, in the same memory."""
    return bool(
        a.strides == b.strides[::-1]
        and a.shape == b.shape[::-1]
        and a.__array_interface__["data"][0] == b.__array_interface__["data"][0]
    )


def by_halves(a: Array) -> Any:
    """A·Aᵀ, of at least BLOCK rows.

    >>> a = np.arange(2048.0).reshape(1024, 2)
    >>> bool((by_halves(a) == a @ a.T).all())
    True
    """
    n, transposed = len(a), a.T
    made = np.empty((n, n), a.dtype)
    line, each = made.strides
    start = made.ctypes.data
    for i in range(0, n, ROWS):
        end = min(i + ROWS, n)
        if end - i < BLOCK:  # too few to transpose: some are done twice
            i = end - BLOCK
        # On the diagonal NumPy copies half of a small product, which then is symmetric bit by bit.
        np.matmul(a[i:end], transposed[:, i:end], out=made[i:end, i:end])
        if i:
            np.matmul(a[i:end], transposed[:, :i], out=made[i:end, :i])
            places = start + i * each, start + i * line
            transpose(a.dtype.char, False, (*places, 1, 0, 0, 1, 0, 0, end - i, i, line, line))
    return made


def is_symmetric(a: Array) -> bool:
    """Whether a large square matrix on the CPU equals its transpose, element for element.

    NumPy, which has to read one of the two down its columns, takes twelve times as long.
    """
    n, kind, step = len(a), a.dtype.char, a.itemsize
    if (
        a.shape != (n, n)
        or kind not in "fd"
        or a.strides != (n * step, step)
        or (n < 2 * BLOCK or n % BLOCK)
        or not jit.works()
    ):
        return False
    found = np.ones(1, np.int64)
    symmetry(kind)(-(-n // (2 * BLOCK)), a.size * jit.TRAFFIC, n, a.ctypes.data, found.ctypes.data)
    return bool(found[0])


@functools.cache
def symmetry(kind: str) -> Call:
    """The compiled question whether a matrix is symmetric."""
    return Call(f"symmetric {kind}", lambda name: Symmetry(name, kind))


class Symmetry(Native):
    """LLVM for result[0] = 0 unless A equals its transpose; the range is bands of 16 rows.

    Blocks of 8 by 16 (whole lines of the cache) are compared with the ones across the diagonal.
    """

    def __init__(self, name: str, kind: str) -> None:
        super().__init__(name, kind, ("rows", "A", "result"))
        b, self.n, self.a = self.b, self.word_of["rows"], self.array("A")
        self.vector = self.ir.VectorType(self.real, BLOCK)
        self.end = self.block("end")
        high, wide = self.word(2 * BLOCK), self.word(BLOCK)

        def band(i: Value) -> None:
            i = self.smaller(b.mul(i, high), b.sub(self.n, high))
            last = b.sub(self.n, wide)
            self.count(b.add(i, high), lambda j: self.compare(i, self.smaller(j, last)), BLOCK)

        self.loop(self.lo, self.hi, 1, band)
        b.branch(self.end)
        b.position_at_end(self.end)

    def compare(self, i: Value, j: Value) -> None:
        """Rows i... to i + 16 from column j, with the columns i... of rows j... to j + 8."""
        b = self.b
        differs = None
        for half in (0, BLOCK):
            top = b.add(i, self.word(half))
            lines, others = (self.rows(row, at) for row, at in ((top, j), (j, top)))
            for x, y in zip(lines, self.transposed(others)):
                apart = b.fcmp_unordered("!=", x, y)
                differs = apart if differs is None else b.or_(differs, apart)
        bits = b.bitcast(differs, self.ir.IntType(BLOCK))
        following, no = self.block(), self.block()
        b.cbranch(b.icmp_unsigned("==", bits, self.ir.IntType(BLOCK)(0)), following, no)
        b.position_at_end(no)
        b.store(self.word(0), self.array("result", "word"))
        b.branch(self.end)
        b.position_at_end(following)

    def rows(self, first: Any, column: Value) -> list[Any]:
        """BLOCK elements of each of BLOCK rows."""
        b = self.b
        return [
            self.read(self.a, b.add(b.mul(b.add(first, self.word(r)), self.n), column), self.vector)
            for r in range(BLOCK)
        ]
