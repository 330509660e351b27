"""Products of small matrices on one thread: C = A·B (+ bias), for any order of memory of A and B.

BLAS libraries are made for large matrices. For a layer on a batch of 64 they spend a third of the
time off the multipliers; this one keeps the ROWS x COLUMNS tile of C in registers through the whole
sum, with B packed into a strip that the tile reads in order (Goto and van de Geijn 2008, with one
level of blocking, which is what matrices that fit the second-level cache need). The last tile of a
row or column overlaps the one before it, so there is no separate code for the remainder.

The tile holds ROWS·2 sums, which only processors with 32 registers of 512 bits keep there: with the
16 of AVX2 products took twice BLAS's time, so everywhere else BLAS does them.

A product of a matrix and its own transpose is symmetric: the tiles on and below the diagonal are
computed, and stored a second time, turned, above it.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np

from toytorch.kernels.llvm_builder import Emitter, linked
from toytorch.loops import processor
from toytorch.loops.runtime import blas_threads, jit
from toytorch.loops.runtime.trampoline import DATA

ROWS = 8  # of a tile of C; each row of it is two vectors
BLOCK = 8  # numbers in the vectors that are turned
LARGEST = 1 << 19  # elements of an operand: what a second-level cache holds
LEAST = 24  # terms of a sum; of fewer, BLAS makes as much as this, which sets up each tile
SMALLEST = 1 << 17  # multiplications; below, a call of NumPy's is as fast


def fits() -> bool:
    """Whether this processor's registers hold a tile: 32 of 512 bits."""
    return jit.works() and processor.this().vector == 64


def product(a: Any, b: Any, bias: Any = None) -> Any:
    """A·B, plus `bias` in every row, in a new matrix; None where BLAS should do it."""
    rows, inner = a.shape
    columns = b.shape[1]
    if rows < ROWS or columns < 2 * BLOCK or inner < LEAST:
        return None
    kind, step = a.dtype.char, a.itemsize
    if not (
        rows * columns * inner >= SMALLEST
        and kind in "fd"
        and kind == b.dtype.char
        and a.size <= LARGEST
        and b.size <= LARGEST
        and blas_threads.of_blas() == 1
        and fits()
    ):
        return None  # with several threads, BLAS is left the larger products
    width = 2 * processor.this().lanes(kind)
    done = -(-rows // ROWS) * ROWS * -(-columns // width) * width  # with what tiles do twice
    if done > 1.1 * rows * columns:
        return None
    turned = b.strides[0] == step != b.strides[1]
    if (
        columns < width
        or b.strides[not turned] != step
        or b.shape[0] != inner
        or (bias is not None and (bias.dtype.char != kind or bias.strides != (step,)))
        or any(s % step or s < 0 for s in (*a.strides, *b.strides))
    ):
        return None
    c, strip = np.empty((rows, columns), a.dtype), np.empty(inner * width, a.dtype)
    run = product_kernel(kind, turned, bias is not None, bias is None and are_twins(a, b))
    run(
        rows,
        columns,
        inner,
        a.strides[0] // step,
        a.strides[1] // step,
        b.strides[turned] // step,
        id(c),
        id(a),
        id(b),
        id(strip),
        id(c if bias is None else bias),
    )
    return c


def are_twins(a: Any, b: Any) -> bool:
    """Whether two matrices are one and its transpose, in the same memory."""
    return bool(
        a.strides == b.strides[::-1]
        and a.shape == b.shape[::-1]
        and a.__array_interface__["data"][0] == b.__array_interface__["data"][0]
    )


def is_symmetric(a: Any) -> bool:
    """Whether a large square matrix on the CPU equals its transpose, number for number."""
    rows, kind, step = len(a), a.dtype.char, a.itemsize
    if (
        a.shape != (rows, rows)
        or kind not in "fd"
        or a.strides != (rows * step, step)
        or (rows < 2 * BLOCK or rows % BLOCK)
    ):
        return False
    if not jit.works():
        return False
    found = np.zeros(1, np.int64)
    symmetry_kernel(kind)(rows, id(a), id(found))
    return bool(found[0])


@functools.cache
def product_kernel(kind: str, turned: bool, biased: bool, symmetric: bool) -> Any:
    """The compiled product; arrays are given as the addresses of their Python objects."""

    def build(name: str) -> str:
        from llvmlite import ir

        return str(Product(ir, name, kind, turned, biased, symmetric).module)

    return linked(
        f"product {kind} {turned} {biased} {symmetric} {processor.this().lanes(kind)}",
        build,
        [ctypes.c_int64] * 6 + [ctypes.c_void_p] * 5,
    )


@functools.cache
def symmetry_kernel(kind: str) -> Any:
    """The compiled question whether a matrix is symmetric."""

    def build(name: str) -> str:
        from llvmlite import ir

        return str(Symmetry(ir, name, kind).module)

    return linked(f"symmetric {kind}", build, [ctypes.c_int64] + [ctypes.c_void_p] * 2)


class Matrices(Emitter):
    """An LLVM function over arrays that are given as the addresses of their Python objects.

    `id(array)` takes 30 ns, `array.ctypes.data` 700, of which a small product would need five.
    """

    def elements(self, array: Any, pointer: Any) -> Any:
        """The address of the elements of an array object."""
        place = self.b.gep(array, [self.size(8 * DATA)])
        return self.b.load(self.b.bitcast(place, pointer.as_pointer()))

    def load(self, base: Any, at: Any, kind: Any) -> Any:
        return self.b.load(self.at(base, at, kind), align=self.bytes)

    def store(self, value: Any, base: Any, at: Any) -> None:
        self.b.store(value, self.at(base, at, value.type), align=self.bytes)


class Product(Matrices):
    """LLVM for product(M, N, K, A's two strides, B's long stride, C, A, B, strip, bias)."""

    def __init__(
        self, ir: Any, name: str, kind: str, turned: bool, biased: bool, symmetric: bool
    ) -> None:
        super().__init__(ir, name, kind, "wwwwwwbbbbb")
        self.biased, self.symmetric = biased, symmetric
        self.width = processor.this().lanes(kind)
        if self.width % BLOCK:  # `mirror` and `pack_turned` go by whole blocks
            raise ValueError(f"vectors of {self.width} numbers are no multiple of {BLOCK}")
        self.vector = ir.VectorType(self.real, self.width)
        self.fma = ir.Function(  # x·y + z, rounded once
            self.module,
            ir.FunctionType(self.vector, [self.vector] * 3),
            f"llvm.fma.v{self.width}f{32 if kind == 'f' else 64}",
        )
        m, n, k, self.down, self.along, self.long, *arrays = self.function.args
        b = self.b
        self.c, self.a, self.bm, self.strip, self.bias = (
            self.elements(a, self.real.as_pointer()) for a in arrays
        )
        self.n, self.k = n, k
        tile = self.size(2 * self.width)

        def strips(j: Any) -> None:
            j = self.smaller(j, b.sub(n, tile))
            (self.pack_turned if turned else self.pack)(j)
            start = b.and_(j, self.size(-ROWS)) if symmetric else self.size(0)
            self.loop(
                start,
                m,
                self.size(ROWS),
                lambda i: self.tile(self.smaller(i, b.sub(m, self.size(ROWS))), j),
            )

        self.count(n, strips, 2 * self.width)
        b.ret_void()

    def pack(self, j: Any) -> None:
        """Copies columns j... of B, row after row, into the strip."""
        b, width = self.b, self.size(2 * self.width)

        def row(k: Any) -> None:
            for half in (0, self.width):
                at = b.add(b.mul(k, self.long), b.add(j, self.size(half)))
                self.store(
                    self.load(self.bm, at, self.vector),
                    self.strip,
                    b.add(b.mul(k, width), self.size(half)),
                )

        self.count(self.k, row)

    def pack_turned(self, j: Any) -> None:
        """The same for a B that lies column after column: blocks of 8 by 8 turned in registers."""
        b, width = self.b, self.size(2 * self.width)
        block = self.ir.VectorType(self.real, BLOCK)

        def rows(k: Any) -> None:
            k = self.smaller(k, b.sub(self.k, self.size(BLOCK)))
            for first in range(0, 2 * self.width, BLOCK):
                lines = [
                    self.load(
                        self.bm, b.add(b.mul(b.add(j, self.size(first + r)), self.long), k), block
                    )
                    for r in range(BLOCK)
                ]
                for r, line in enumerate(transposed(self.ir, b, lines)):
                    self.store(
                        line,
                        self.strip,
                        b.add(b.mul(b.add(k, self.size(r)), width), self.size(first)),
                    )

        self.count(self.k, rows, BLOCK)

    def tile(self, i: Any, j: Any) -> None:
        """ROWS rows of C from row i, two vectors from column j."""
        b, ir, width = self.b, self.ir, self.width
        zero = ir.Constant(self.vector, [0.0] * width)
        first = [b.gep(self.a, [b.mul(b.add(i, self.size(r)), self.down)]) for r in range(ROWS)]

        def step(k: Any, *sums: Any) -> list[Any]:
            at = b.mul(k, self.size(2 * width))
            halves = [
                self.load(self.strip, b.add(at, self.size(h)), self.vector) for h in (0, width)
            ]
            along = b.mul(k, self.along)
            out = []
            for r in range(ROWS):
                spread = self.spread(b.load(b.gep(first[r], [along])), self.vector)
                out += [
                    b.call(self.fma, [spread, half, sums[2 * r + h]])
                    for h, half in enumerate(halves)
                ]
            return out

        sums = self.count(self.k, step, carried=[zero] * (2 * ROWS))
        for r in range(ROWS):
            for h in (0, 1):
                value = sums[2 * r + h]
                column = b.add(j, self.size(h * width))
                if self.biased:
                    value = b.fadd(value, self.load(self.bias, column, self.vector))
                self.store(value, self.c, b.add(b.mul(b.add(i, self.size(r)), self.n), column))
        if self.symmetric:
            self.mirror(sums, i, j)

    def mirror(self, sums: list[Any], i: Any, j: Any) -> None:
        """Stores a tile as rows j... from column i."""
        b, mask = self.b, self.ir.VectorType(self.ir.IntType(32), BLOCK)
        for h in (0, 1):
            for first in range(0, self.width, BLOCK):
                lines = [
                    b.shuffle_vector(
                        sums[2 * r + h], sums[2 * r + h], mask([first + k for k in range(BLOCK)])
                    )
                    for r in range(ROWS)
                ]
                for r, line in enumerate(transposed(self.ir, b, lines)):
                    row = b.add(j, self.size(h * self.width + first + r))
                    self.store(line, self.c, b.add(b.mul(row, self.n), i))


class Symmetry(Matrices):
    """LLVM for symmetric(N, A, result): result[0] = 1 if A equals its transpose.

    Blocks of 8 by 16 (whole lines of the cache) are compared with the ones across the diagonal.
    """

    def __init__(self, ir: Any, name: str, kind: str) -> None:
        super().__init__(ir, name, kind, "wbb")
        self.vector = ir.VectorType(self.real, BLOCK)
        self.n, a, found = self.function.args
        b = self.b
        self.a = self.elements(a, self.real.as_pointer())
        self.found = self.elements(found, self.size.as_pointer())
        self.end = self.function.append_basic_block("end")
        high, wide = self.size(2 * BLOCK), self.size(BLOCK)

        def band(i: Any) -> None:
            i = self.smaller(i, b.sub(self.n, high))
            self.loop(
                self.size(0),
                b.add(i, high),
                wide,
                lambda j: self.compare(i, self.smaller(j, b.sub(self.n, wide))),
            )

        self.count(self.n, band, 2 * BLOCK)
        b.store(self.size(1), self.found)
        b.branch(self.end)
        b.position_at_end(self.end)
        b.ret_void()

    def compare(self, i: Any, j: Any) -> None:
        """Rows i... to i + 16 from column j, with the columns i... of rows j... to j + 8."""
        b, ir = self.b, self.ir
        differs = None
        for half in (0, BLOCK):
            top = b.add(i, self.size(half))
            lines, others = (self.rows(row, at) for row, at in ((top, j), (j, top)))
            for x, y in zip(lines, transposed(ir, b, others)):
                apart = b.fcmp_unordered("!=", x, y)
                differs = apart if differs is None else b.or_(differs, apart)
        bits = b.bitcast(differs, ir.IntType(BLOCK))
        following = self.function.append_basic_block()
        b.cbranch(b.icmp_unsigned("==", bits, ir.IntType(BLOCK)(0)), following, self.end)
        b.position_at_end(following)

    def rows(self, first: Any, column: Any) -> list[Any]:
        """BLOCK numbers of each of BLOCK rows."""
        b = self.b
        return [
            self.load(self.a, b.add(b.mul(b.add(first, self.size(r)), self.n), column), self.vector)
            for r in range(BLOCK)
        ]


def transposed(ir: Any, b: Any, block: list[Any]) -> list[Any]:
    """Eight vectors turned into the eight of their columns, in three rounds of exchanges."""
    block = list(block)
    mask = ir.VectorType(ir.IntType(32), BLOCK)
    for step in (1, 2, 4):
        for k in range(BLOCK):
            if not k & step:  # rows k and k + step exchange the blocks off their diagonal
                x, y = block[k], block[k + step]
                first = [n if not n & step else n - step + BLOCK for n in range(BLOCK)]
                second = [n + step if not n & step else n + BLOCK for n in range(BLOCK)]
                block[k] = b.shuffle_vector(x, y, mask(first))
                block[k + step] = b.shuffle_vector(x, y, mask(second))
    return block
