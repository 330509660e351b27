"""Products of matrices: BLAS does them, and of A·Aᵀ only half.

A product of a matrix and its own transpose is symmetric. NumPy asks BLAS's `syrk` for half of it and
copies the rest element by element, which takes longer than the half that was saved: for 1024 x 128
float32 on one thread of an AVX2 processor 5.4 ms, against 4.1 for a product of two matrices. Here
bands of columns are computed from the diagonal down and transposed to the right of it. Large
matrices leave the bands to BLAS, 2.9 ms; for others the register tiles of convolutions, which pack
their operand once, need a quarter less than that.

Other products are BLAS's, but for those that `tiled_product` does in less time.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from toytorch.facts.hints import Array, Value
from toytorch.kernels import blas_product, tiled_product
from toytorch.kernels.conv_tile import TILES, most_rows, table, tile
from toytorch.kernels.memory_format import transpose, transposition
from toytorch.kernels.tiled_product import ADDRESSES, VECTORS, packed, wide, zeros
from toytorch.loops import processor
from toytorch.loops.llvm.builder import BLOCK
from toytorch.loops.runtime import blas, jit, threads
from toytorch.loops.runtime.array_call import ArrayCall
from toytorch.loops.runtime.native import Native

ROWS = 256  # of a band of BLAS's: fewer make small products, more do more of what is not needed
LEAST, LEAST_OF_BLAS = 128, 512  # rows, from which a product by halves is faster
LONG = 256  # terms of a sum, from which halves by BLAS are faster on several threads, too
SYMMETRIC = 1 << 14  # elements of a product, from which it is worth looking whether it is symmetric


def product(a: Array, b: Array) -> Any:
    """A·B of matrices by halves where B is Aᵀ, or by register tiles; None where BLAS should do it.

    Halves of large matrices by BLAS are for one thread or long sums: one thread at a time does a block on
    the diagonal.
    """
    if (
        len(a) >= LEAST
        and is_transpose(a, b)
        and a.dtype.char in "fd"
        and min(a.strides) == a.itemsize  # BLAS reads it along its rows or its columns
        and jit.works()
        and (
            fits_tiles(a)
            or (len(a) >= LEAST_OF_BLAS and (threads.thread_count() == 1 or a.shape[1] >= LONG))
        )
    ):
        return by_halves(a)
    return tiled_product.multiply(a, b)


def is_transpose(a: Array, b: Array) -> bool:
    """Whether two matrices are one and its transpose, in the same memory."""
    return bool(
        a.strides == b.strides[::-1]
        and a.shape == b.shape[::-1]
        and a.__array_interface__["data"][0] == b.__array_interface__["data"][0]
    )


def by_halves(a: Array) -> Any:
    """A·Aᵀ, of at least ROWS rows.

    >>> a = np.arange(2048.0).reshape(1024, 2)
    >>> bool((by_halves(a) == a @ a.T).all())
    True
    """
    if fits_tiles(a):
        return by_tiles(a)
    n = len(a)
    made = np.empty((n, n), a.dtype)
    line, each = made.strides
    start = made.ctypes.data
    for first, end in bands(n):
        band_of(a, made, first, end)
        if end < n:  # what is below these columns, to their right
            places = start + first * line + end * each, start + end * line + first * each
            words = (*places, 1, 0, 0, 1, 0, 0, n - end, end - first, line, line)
            transpose(a.dtype.char, words)
    return made


def bands(n: int) -> Iterator[tuple[int, int]]:
    """Where bands of columns begin and end; below each there are none or BLOCK rows at least.

    >>> list(bands(600)), list(bands(516))
    ([(0, 256), (256, 512), (512, 600)], [(0, 256), (256, 516)])
    """
    first = 0
    while first < n:
        end = first + ROWS if n - first >= ROWS + BLOCK else n
        yield first, end
        first = end


def band_of(a: Array, made: Array, first: int, end: int) -> None:
    """Writes a band of columns from the diagonal down."""
    band, transposed = slice(first, end), a.T[:, first:end]
    # On the diagonal NumPy copies half of a small product, which then is symmetric bit by bit.
    with blas.one_thread:
        np.matmul(a[band], transposed, out=made[band, band])
    if end < len(a):
        blas_product.matmul(a[end:], transposed, made[end:, band])


def fits_tiles(a: Array) -> bool:
    """Whether the register tiles of convolutions do it: the rows stay in the second-level cache,
    and panels can be transposed."""
    return bool(
        a.strides[1] == a.itemsize
        and a.nbytes <= processor.this().l2 // 2
        and min(wide(a.dtype.char), a.shape[1]) >= BLOCK
    )


def by_tiles(a: Array) -> Any:
    """`by_halves` by register tiles: the columns are packed once, and a band is one panel of them.

    A sum is the same for both orders of its two rows, so that this is symmetric bit by bit.
    """
    n, k = a.shape
    packing, room, calls = tile_plan(a.dtype.char, n, k, a.strides[0])
    panels, made = np.empty(room, a.dtype), np.empty((n, n), a.dtype)
    for call in packing:
        call(panels, a)
    start = zeros(n, a.dtype)
    for product, mirror in calls:
        product(a, panels, made, start)
        if mirror is not None:
            mirror(made, made)
    return made


@functools.lru_cache(64)
def tile_plan(
    kind: str, n: int, k: int, line: int
) -> tuple[list[ArrayCall], int, list[tuple[ArrayCall, ArrayCall | None]]]:
    """The calls of `by_tiles` for rows `line` bytes apart: those that pack, how many elements that
    makes, and for each band the product and the copy across the diagonal."""
    item, width = 8 if kind == "d" else 4, wide(kind)
    panel, count, rest = k * width, *divmod(n, width)
    packing = [packed(kind, count, 0, 0, k, width, line)]
    if rest:  # the last panel overlaps the one before it
        packing.append(packed(kind, 1, count * panel, n - width, k, width, line))
    step, calls = line // item, []
    for at, first in enumerate([*range(0, count * width, width), *[n - width] * bool(rest)]):
        tall = min(most_rows(VECTORS), n - first)
        words = {
            "n3": n - first, "a3": step, "c3": n, "row": n, "step": step,
            "sum2": k, "sa2": 1, "sb2": width, "shared": TILES - 1,
            "A": first * line, "B": at * panel * item, "C": first * (n + 1) * item,
        }  # fmt: skip
        kernel, turns = tile(kind, tall, VECTORS, step, False), -(-(n - first) // tall)
        product = ArrayCall(kernel, table(words), ADDRESSES, turns, (n - first) * panel)
        calls.append((product, mirrored(kind, n, first, first + width)))
    return packing, (count + bool(rest)) * panel, calls


def mirrored(kind: str, n: int, first: int, end: int) -> ArrayCall | None:
    """The call that copies what is below columns first … end to their right, across the diagonal."""
    if end == n:
        return None
    item = 8 if kind == "d" else 4
    # Fewer rows than a block has: some of those above, which are on the diagonal's side, once more.
    below = min(end, n - BLOCK)
    to, source = (first * n + below) * item, (below * n + first) * item
    words = (to, source, 1, 0, 0, 1, 0, 0, n - below, end - first, n * item, n * item)
    work = (n - below) * (end - first) * item // 4 * jit.TRAFFIC * 2
    call, turns = transposition(kind, *words[2:])
    return ArrayCall(call, words, (0, 1), turns, work)


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
    Symmetry.kernel(kind)(
        -(-n // (2 * BLOCK)), a.size * jit.TRAFFIC, n, a.ctypes.data, found.ctypes.data
    )
    return bool(found[0])


class Symmetry(Native, family="symmetric"):
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
