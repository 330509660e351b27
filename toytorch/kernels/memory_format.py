"""Images as convolutions want them: channels last, with a border at both ends of a line.

Images come as (N, C, H, W) in one of two orders of memory. Where channels lie last already, a few
are copied at a time with their border; else they are turned in blocks of registers on the way. A
few at a time, so that what was copied is still in the second-level cache when it is used.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np

from toytorch.kernels.llvm_builder import Emitter, linked
from toytorch.kernels.matmul import BLOCK, transposed

CHUNK = 1 << 18  # elements of images that are copied at a time


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
    wanted = (h * w * c, 1, w * c, c)
    if not all(s == k * a.itemsize for s, k, n in zip(a.strides, wanted, a.shape) if n > 1):
        return False
    # One channel, or one pixel, lies both ways: then the stride of the channels says what is meant.
    return not a.flags.c_contiguous or (c == 1 and a.strides[1] == a.itemsize and h * w > 1)


def empty_images(shape: Any, kind: Any, last: bool) -> Any:
    """New images (N, C, H, W) in either order of memory."""
    if not last:
        return np.empty(shape, kind)
    n, c, h, w = shape
    return np.empty((n, h, w, c), kind).transpose(0, 3, 1, 2)


def plain(a: Any) -> Any:
    """Images in one of the two orders, copied if they were in neither."""
    return a if a.flags.c_contiguous or channels_last(a) else np.ascontiguousarray(a)


def lines_of(a: Any) -> Any:
    """Images whose channels lie last as (N, H, W, C), else None."""
    moved = a.transpose(0, 2, 3, 1)
    return moved if moved.flags.c_contiguous else None


def pack(images: Any, into: Any, left: int) -> None:
    """Copies images (n, C, H, W) into (n, H, left + W + …, C or more), inside the border."""
    n, c, h, w = images.shape
    lines = lines_of(images)
    if lines is not None:
        into[:n, :, left : left + w, :c] = lines
    elif min(c, w) < BLOCK:
        into[:n, :, left : left + w, :c] = images.transpose(0, 2, 3, 1)
    else:
        place = into.ctypes.data + left * into.strides[2]
        if into.shape[2] == w and images.strides[2] == w * images.strides[3]:
            h, w = 1, h * w
        turn(images.dtype.char, True)(
            place,
            images.ctypes.data,
            n,
            into.strides[0],
            images.strides[0],
            h,
            into.strides[1],
            images.strides[2],
            c,
            w,
            into.strides[2],
            images.strides[1],
        )


def unpack(lines: Any, into: Any) -> None:
    """Copies (n, H, W, C or more) into images (n, C, H, W)."""
    n, c, h, w = into.shape
    if lines_of(into) is not None or min(c, h * w) < BLOCK or not into.flags.c_contiguous:
        into.transpose(0, 2, 3, 1)[...] = lines[:n, ..., :c]
        return
    turn(into.dtype.char, False)(
        into.ctypes.data,
        lines.ctypes.data,
        n,
        into.strides[0],
        lines.strides[0],
        1,
        0,
        0,
        h * w,
        c,
        into.strides[1],
        lines.strides[2],
    )


def padded_taps(taps: Any, lanes: int, blocks: int) -> Any:
    """Weights (kh, kw, C, F) as vectors of F: (F / (blocks·lanes), kh, kw, C, blocks·lanes)."""
    kh, kw, c, f = taps.shape
    wide = blocks * lanes
    if f % wide:
        full = np.zeros((kh, kw, c, -(-f // wide) * wide), taps.dtype)
        full[..., :f] = taps
        taps = full
    return np.ascontiguousarray(taps.reshape(kh, kw, c, -1, wide).transpose(3, 0, 1, 2, 4))


# -- blocks turned in registers -------------------------------------------------------------------


@functools.cache
def turn(kind: str, by_rows: bool) -> Any:
    """turn(to, from, n, its strides, m, its strides, rows, columns, strides of rows).

    For each of n·m matrices, to[j, i] = from[i, j] for i < rows, j < columns, both at least 8.
    Strides are bytes; those of columns are one element. Planes lie far apart, often in places that
    share a line of the cache; so a few rows (by_rows) or columns are gone along from end to end.
    """

    def build(name: str) -> str:
        from llvmlite import ir

        return str(Turn(ir, name, kind, by_rows).module)

    return linked(f"turn {kind} {by_rows}", build, [ctypes.c_void_p] * 2 + [ctypes.c_int64] * 10)


class Turn(Emitter):
    """LLVM for `turn`; the last block of a row or column overlaps the one before it."""

    def __init__(self, ir: Any, name: str, kind: str, by_rows: bool) -> None:
        super().__init__(ir, name, kind, "bb" + "w" * 10)
        self.by_rows = by_rows
        self.block = ir.VectorType(self.real, BLOCK)
        (
            self.to,
            self.source,
            n,
            self.to0,
            self.from0,
            m,
            self.to1,
            self.from1,
            self.rows,
            self.columns,
            self.down,
            self.across,
        ) = self.function.args
        self.count(n, lambda i: self.count(m, lambda k: self.matrix(i, k)))
        self.b.ret_void()

    def matrix(self, i: Any, k: Any) -> None:
        """One of the matrices, block by block."""
        b = self.b
        to = b.gep(self.to, [b.add(b.mul(i, self.to0), b.mul(k, self.to1))])
        source = b.gep(self.source, [b.add(b.mul(i, self.from0), b.mul(k, self.from1))])
        latest = [b.sub(n, self.size(BLOCK)) for n in (self.rows, self.columns)]

        def place(base: Any, r: Any, stride: Any, c: Any) -> Any:
            return self.at(
                base, b.add(b.mul(r, stride), b.mul(c, self.size(self.bytes))), self.block
            )

        def piece(r: Any, c: Any) -> None:
            r, c = self.smaller(r, latest[0]), self.smaller(c, latest[1])
            lines = [
                b.load(place(source, b.add(r, self.size(q)), self.across, c), align=self.bytes)
                for q in range(BLOCK)
            ]
            for q, line in enumerate(transposed(self.ir, b, lines)):
                b.store(line, place(to, b.add(c, self.size(q)), self.down, r), align=self.bytes)

        if self.by_rows:
            self.count(
                self.rows, lambda r: self.count(self.columns, lambda c: piece(r, c), BLOCK), BLOCK
            )
        else:
            self.count(
                self.columns, lambda c: self.count(self.rows, lambda r: piece(r, c), BLOCK), BLOCK
            )
