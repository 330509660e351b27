"""Products of matrices by BLAS, in pieces that threads of the one pool share.

OpenBLAS has threads of its own, which go on asking for work for some 25 ms after a product. A core on
which one of them waits is not there for other kernels: on two cores, a step of training that is half
products and half loops took as long with two threads as with one. So BLAS is told to use one thread,
and each thread of the pool asks it for a piece of the product, some rows or some columns, or for some
matrices of a stack.

On one thread, for few numbers, and where NumPy's library does not show the routine (Accelerate, MKL,
Windows), a product is `np.matmul`.
"""

from __future__ import annotations

import ctypes
import functools
import math
import struct
from typing import Any

import numpy as np

from toytorch.facts.hints import Array, Sizes, Value
from toytorch.loops.runtime import blas, jit, threads
from toytorch.loops.runtime.array_call import ArrayCall
from toytorch.loops.runtime.native import Native

LEAST = 1 << 20  # multiplications, from which a second thread is worth its start
LARGE = (
    1 << 15
)  # elements of a result, from which np.matmul pays: unlike dot, it writes no zeros first
PIECES = 2  # for each thread: BLAS packs the other factor anew for each
NARROWEST = 32  # rows or columns of a piece
ROUND = 12  # of whose rows a piece has a multiple: OpenBLAS's tiles then have the same sums as in the whole
Batch = tuple[int, int, int, int]  # a size, and the steps of A, B and C from one matrix to the next
WORDS = (
    *("gemm", "A", "B", "C", "turn_a", "turn_b", "a_line", "b_line", "c_line"),
    *("high", "wide", "deep", "alpha", "beta", "rows", "side", "piece", "pieces"),
    *("a_piece", "b_piece", "c_piece", "a_next", "b_next", "c_next"),
)


def matmul(a: Array, b: Array, out: Array | None = None) -> Array:
    """A·B of matrices, or of stacks of them, of one real type; in `out` if it is given.

    >>> a, b = np.ones((128, 96), "f"), np.ones((96, 128), "f")
    >>> float(matmul(a, b)[3, 4])
    96.0
    """
    if threads.thread_count() > 1 and a.dtype is b.dtype and a.size * b.shape[-1] >= LEAST:
        shape = (*a.shape[:-1], b.shape[-1])
        c = rows_of(shape, a.itemsize) if out is None else out.strides
        call = plan(a.dtype, a.shape, b.shape, a.strides, b.strides, c, threads.thread_count())
        if call is not None:
            if out is None:
                out = np.empty(shape, a.dtype)
            with blas.one_thread:
                call(a, b, out)
            return out
    if out is None and a.ndim == 2 >= b.ndim and len(a) * b.shape[-1] < LARGE:
        return a.dot(b)
    return np.matmul(a, b, out=out)


@functools.lru_cache(1024)
def plan(
    kind: np.dtype,
    x: Sizes,
    y: Sizes,
    a: tuple[int, ...],
    b: tuple[int, ...],
    c: tuple[int, ...],
    count: int,
) -> ArrayCall | None:
    """The call of (A, B, C) for stacks of these shapes, and strides in bytes, that so many threads
    share; None where there is none."""
    routine = address(kind.char)
    if routine is None or len(x) != len(y) or x[:-2] != y[:-2] or x[-1] != y[-2]:
        return None
    item, (m, k), n = kind.itemsize, x[-2:], y[-1]
    left, right = turned(a[-2:], x[-2:], item), turned(b[-2:], y[-2:], item)
    batches = batches_of(x[:-2], a[:-2], b[:-2], c[:-2])
    if left is None or right is None or len(batches) > 1:
        return None
    if c[-1] != item or c[-2] < n * item or c[-2] % item:
        return None
    (turn_a, a_line), (turn_b, b_line) = left, right
    stack, a_next, b_next, c_next = batches[0] if batches else (1, 0, 0, 0)
    rows, side = m >= n, max(m, n)
    pieces = max(1, min(-(-PIECES * count // stack), side // NARROWEST))
    piece = -(-side // (pieces * ROUND)) * ROUND if pieces > 1 else side
    pieces = -(-side // piece)
    one = struct.unpack("q", struct.pack(kind.char, 1).ljust(8, b"\0"))[0]
    words = {
        "gemm": routine, "A": 0, "B": 0, "C": 0,
        "turn_a": ord(turn_a), "turn_b": ord(turn_b),
        "a_line": a_line, "b_line": b_line, "c_line": c[-2] // item,
        "high": m, "wide": n, "deep": k, "alpha": one, "beta": 0,
        "rows": int(rows), "side": side, "piece": piece, "pieces": pieces,
        "a_piece": a[-2] * piece if rows else 0,
        "b_piece": 0 if rows else b[-1] * piece,
        "c_piece": (c[-2] if rows else item) * piece,
        "a_next": a_next, "b_next": b_next, "c_next": c_next,
    }  # fmt: skip
    places = [WORDS.index(w) for w in "ABC"]
    table, work = [words[w] for w in WORDS], stack * m * k * n
    return ArrayCall(Pieces.kernel(kind.char), table, places, stack * pieces, work)


@functools.cache
def address(kind: str) -> int | None:
    """Where BLAS's product of such numbers is, with integers of 64 bits (Dongarra et al. 1990, gemm)."""
    found = (
        blas.routine({"f": "s", "d": "d"}[kind] + "gemm") if kind in "fd" and jit.works() else None
    )
    if found is None or found[1] != np.int64 or not blas.can_be_told():
        return None
    return ctypes.cast(found[0].found, ctypes.c_void_p).value


def turned(steps: tuple[int, ...], shape: Sizes, item: int) -> tuple[str, int] | None:
    """How BLAS, to which a matrix in rows is its transpose in columns, reads a matrix: N as it lies, T
    turned; and the elements from one line to the next. None where it cannot.

    >>> turned((12, 4), (2, 3), 4), turned((4, 8), (2, 3), 4), turned((24, 8), (2, 3), 4)
    (('N', 3), ('T', 2), None)
    """
    for letter, (line, step), length in (("N", steps, shape[1]), ("T", steps[::-1], shape[0])):
        if step == item and line >= length * item and not line % item:
            return letter, line // item
    return None


def rows_of(shape: Sizes, item: int) -> tuple[int, ...]:
    """The strides of an array in rows, of elements of so many bytes."""
    return tuple(item * math.prod(shape[d + 1 :]) for d in range(len(shape)))


def batches_of(
    shape: Sizes, a: tuple[int, ...], b: tuple[int, ...], c: tuple[int, ...]
) -> list[Batch]:
    """The dimensions of a stack, those that lie side by side in all three as one.

    >>> batches_of((4, 8), (800, 100), (1600, 200), (400, 50))
    [(32, 100, 200, 50)]
    """
    made: list[Batch] = []
    for n, *steps in zip(shape[::-1], a[::-1], b[::-1], c[::-1]):
        if n == 1:
            continue
        if made and steps == [made[-1][0] * step for step in made[-1][1:]]:
            size, *inner = made.pop()
            made.append((size * n, inner[0], inner[1], inner[2]))
        else:
            made.append((n, steps[0], steps[1], steps[2]))
    return made[::-1]


class Pieces(Native, family="gemm"):
    """LLVM for pieces of C = A·B; the range is pieces. By hand: it calls BLAS.

    BLAS counts in columns, in which these matrices are their transposes: it is asked for Cᵀ = Bᵀ·Aᵀ.
    """

    def __init__(self, name: str, kind: str) -> None:
        super().__init__(name, kind, WORDS)
        b, word = self.b, self.word_of
        table = self.function.args[0]
        wide, high = self.alloca("word"), self.alloca("word")

        def at(name: str) -> Any:
            """Where a word is: routines of Fortran take addresses."""
            return b.gep(table, [self.word(WORDS.index(name))])

        def piece(i: Value) -> None:
            matrix, part = b.sdiv(i, word["pieces"]), b.srem(i, word["pieces"])
            length = b.sub(word["side"], b.mul(part, word["piece"]))
            length = self.smaller(length, word["piece"])
            rows = b.icmp_signed("!=", word["rows"], self.word(0))
            b.store(b.select(rows, word["wide"], length), wide)
            b.store(b.select(rows, length, word["high"]), high)
            x, y, z = (
                b.add(
                    b.add(word[letter], b.mul(matrix, word[f"{letter.lower()}_next"])),
                    b.mul(part, word[f"{letter.lower()}_piece"]),
                )
                for letter in "ABC"
            )
            factors = (y, at("b_line"), x, at("a_line"))
            sizes = wide, high, at("deep")
            options = at("turn_b"), at("turn_a")
            self.call(
                word["gemm"],
                "void",
                *options,
                *sizes,
                at("alpha"),
                *factors,
                at("beta"),
                z,
                at("c_line"),
            )

        self.loop(self.lo, self.hi, 1, piece)
