"""The two orders of memory that images (N, C, H, W) come in, and transposition in registers.

Images in rows are transposed in blocks on their way to kernels that want channels last
(`image_steps.py`): a few at a time, so that they are still in the second-level cache when used.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import numpy.typing as npt

from toytorch.facts.hints import Array, Shape, Value
from toytorch.loops import processor
from toytorch.loops.llvm.builder import BLOCK
from toytorch.loops.processor import LINE
from toytorch.loops.runtime import jit
from toytorch.loops.runtime.native import Call, Native


def chunk_of(size: int, itemsize: int) -> int:
    """How many images of a size the second-level cache of a core holds, one at least."""
    return max(1, processor.this().l2 // max(size * itemsize, 1))


def channels_last(a: Any) -> bool:
    """Whether images (N, C, H, W) lie in memory as (N, H, W, C), and not as they are.

    >>> channels_last(np.zeros((1, 5, 5, 2)).transpose(0, 3, 1, 2))
    True
    >>> channels_last(np.zeros((1, 2, 5, 5)))
    False
    """
    if a.ndim != 4 or not isinstance(a, np.ndarray):
        return False
    _, c, h, w = a.shape
    if a.flags.c_contiguous and (c > 1 or a.strides[1] != a.itemsize):
        return False  # the usual case is soon known
    wanted = (h * w * c, 1, w * c, c)
    if not all(s == k * a.itemsize for s, k, n in zip(a.strides, wanted, a.shape) if n > 1):
        return False
    # One channel, or one pixel, lies both ways: then the stride of the channels says what is meant.
    return not a.flags.c_contiguous or (c == 1 and a.strides[1] == a.itemsize and h * w > 1)


def empty_images(shape: Shape, kind: npt.DTypeLike, last: bool) -> Any:
    """New images (N, C, H, W) in either order of memory."""
    if not last:
        return np.empty(shape, kind)
    n, c, h, w = shape
    return np.empty((n, h, w, c), kind).transpose(0, 3, 1, 2)


def plain(a: Any) -> Any:
    """Images in one of the two orders, copied if they were in neither."""
    return a if a.flags.c_contiguous or channels_last(a) else np.ascontiguousarray(a)


def in_order(a: Array, last: bool) -> Any:
    """Images in the order of memory that is asked for."""
    if not last and not channels_last(a):
        return plain(a)
    return with_last(a) if last else np.ascontiguousarray(a)


def with_last(a: Array) -> Any:
    """Images, or volumes, with their channels last: also strides over sizes of 1 say so.

    >>> with_last(np.zeros((2, 3, 1, 1), np.int8)).strides
    (3, 1, 3, 3)
    """
    inner = range(2, a.ndim)
    moved = a.transpose(0, *inner, 1)  # `moveaxis` takes ten times as long
    if not moved.flags.c_contiguous:
        return moved.copy("C").transpose(0, a.ndim - 1, *[d - 1 for d in inner])
    step, strides = a.itemsize, [0] * a.ndim
    for d in (1, *range(a.ndim - 1, 1, -1), 0):
        strides[d], step = step, step * max(a.shape[d], 1)
    if a.strides == tuple(strides):
        return a
    memory = a if a.flags.c_contiguous else moved  # `as_strided` would hide whose memory it is
    return np.ndarray(a.shape, a.dtype, memory, 0, strides)


def lines_of(a: Array) -> Any:
    """Images whose channels lie last as (N, H, W, C), else None."""
    moved = a.transpose(0, 2, 3, 1)
    return moved if moved.flags.c_contiguous else None


# -- transposing blocks in registers --------------------------------------------------------------

CROWDED = 1024  # bytes; lines so far apart share few places of the first-level cache
WORDS = (
    *("to", "from", "count", "to's step", "from's step", "lines", "to's line", "from's line"),
    *("rows", "columns", "to's row", "from's row"),
)


def transpose(kind: str, words: tuple[int, ...]) -> None:
    """Transposes matrices: to[j, i] = from[i, j] for i < rows, j < columns, both at least BLOCK.

    The words are WORDS. There are count x lines matrices; steps are bytes, those of columns one
    element.
    """
    call, turns = transposition(kind, *words[2:])
    count, lines, rows, columns = words[2], words[5], words[8], words[9]
    each = 8 if kind == "d" else 4
    call(turns, count * lines * rows * columns * each // 4 * jit.TRAFFIC * 2, *words)


@functools.lru_cache(1024)
def transposition(kind: str, *words: int) -> tuple[Call, int]:
    """The compiled kernel for matrices, by WORDS without the first two, and in how many turns.

    A turn goes along a few rows of one matrix from end to end, and writes to each row of the other;
    or along a few columns, and reads from each row. Rows whose distance is a multiple of a high power
    of two share few places of the cache: 512 x 512 float32 in 171 us this way, in 77 that way. So
    it goes along the side where that power is smaller. Where it is high on both, and where registers
    hold a whole line of the cache, blocks are so wide that no line is touched twice (52 us).
    """
    count, _, _, lines, _, _, rows, columns, to, source = words
    power, other = (max(LINE, step & -step) for step in (to, source))
    by_rows = (power, columns) < (other, rows)
    wide = LINE // 4 if kind == "f" else BLOCK
    if min(rows, columns) < wide or (
        processor.this().vector < LINE and min(power, other) < CROWDED
    ):
        wide = BLOCK
    return Transposition.kernel(kind, by_rows, wide), count * lines * -(
        -(rows if by_rows else columns) // wide
    )


class Transposition(Native, family="transpose"):
    """LLVM for `transpose`, of `block` rows and columns at least; the last block of a row or column
    overlaps the one before it.

    By hand, since a program of loops would read or write one element at a time: its loops cannot
    hold a block of rows and of columns at once.
    """

    def __init__(self, name: str, kind: str, by_rows: bool, block: int) -> None:
        super().__init__(name, kind, WORDS)
        b, word = self.b, self.word_of
        self.to, self.source = self.array("to", "byte"), self.array("from", "byte")
        self.size, self.vector = block, self.ir.VectorType(self.real, block)
        self.latest = [b.sub(word[n], self.word(block)) for n in ("rows", "columns")]
        long, short = ("rows", "columns") if by_rows else ("columns", "rows")
        wide = self.word(block)
        bands = b.udiv(b.add(word[long], self.word(block - 1)), wide)

        def band(i: Value) -> None:
            """A band of rows or columns of one matrix."""
            matrix, which = b.udiv(i, bands), b.mul(b.urem(i, bands), wide)
            first, line = b.udiv(matrix, word["lines"]), b.urem(matrix, word["lines"])
            to, source = (
                b.gep(
                    p, [b.add(b.mul(first, word[f"{n}'s step"]), b.mul(line, word[f"{n}'s line"]))]
                )
                for p, n in ((self.to, "to"), (self.source, "from"))
            )
            self.count(
                word[short],
                lambda k: self.piece(to, source, *((which, k) if by_rows else (k, which))),
                block,
            )

        self.loop(self.lo, self.hi, 1, band)

    def piece(self, to: Value, source: Value, r: Value, c: Value) -> None:
        """One block of a matrix."""
        b, word = self.b, self.word_of
        r, c = (self.smaller(i, last) for i, last in zip((r, c), self.latest))

        def place(base: Value, r: Value, step: str, c: Value) -> Any:
            return b.gep(base, [b.add(b.mul(r, word[step]), b.mul(c, self.word(self.bytes)))])

        lines = [
            self.read(place(source, b.add(r, self.word(q)), "from's row", c), 0, self.vector)
            for q in range(self.size)
        ]
        for q, line in enumerate(self.transposed(lines)):
            self.write(line, place(to, b.add(c, self.word(q)), "to's row", r), 0)
