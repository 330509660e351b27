"""Elements and places where a mask is True, brought together without branches.

Each chunk of the mask is counted first, so that every chunk knows where its own begin; then every
element is written to the next free place, which moves on only where the mask holds. What stands
behind a chunk's last True is not looked at, so nothing is written beyond its own places.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from toytorch.facts.hints import Array, Value
from toytorch.kernels.by_index import element_type, movable
from toytorch.loops.runtime import jit
from toytorch.loops.runtime.native import Native

CHUNK = 1 << 14  # elements
COST = 6  # of an element, in additions


def fits(mask: Array) -> bool:
    """Whether a mask is one that a kernel reads, and large enough."""
    return (
        mask.__class__ is np.ndarray
        and mask.size >= jit.SMALLEST
        and mask.dtype == np.bool_
        and jit.works()
    )


def picked(a: Array, mask: Array) -> Any:
    """a[mask] for a mask of the array's shape, or None."""
    if not fits(mask) or a.shape != mask.shape or not movable(a):
        return None
    mask, a = np.ascontiguousarray(mask), np.ascontiguousarray(a)
    starts, ends, count = counted(mask)
    made = np.empty(count, a.dtype)
    places = map(jit.address_of, (mask, starts, ends, made, a))
    Picked.kernel(str(a.itemsize * 8))(len(starts), mask.size * COST, 1, *places)
    return made


def nonzero(mask: Array) -> Any:
    """np.argwhere of a mask of one or two dimensions, in columns, or None."""
    if not fits(mask) or mask.ndim > 2:
        return None
    mask = np.ascontiguousarray(mask)
    starts, ends, count = counted(mask)
    made = np.empty((mask.ndim, count), np.int64)
    places = map(jit.address_of, (mask, starts, ends, made, made[1:]))
    Picked.kernel(f"place{mask.ndim}")(len(starts), mask.size * COST, mask.shape[-1], *places)
    return made.T


def counted(mask: Array) -> tuple[Any, Any, int]:
    """Where the results of each chunk start, where each chunk's last True is, and how many there
    are in all."""
    chunks = -(-mask.size // CHUNK)
    counts, ends = np.empty(chunks, np.int64), np.empty(chunks, np.int64)
    places = map(jit.address_of, (mask, counts, ends))
    Counted.kernel()(chunks, mask.size, mask.size, *places)
    totals = counts.cumsum()
    return totals - counts, ends, int(totals[-1])


class Counted(Native, family="counted"):
    """LLVM for `counted`."""

    def __init__(self, name: str) -> None:
        super().__init__(name, "f", ("size", "mask", "counts", "ends"))
        b, mask = self.b, self.array("mask", "byte")
        counts, ends = self.array("counts", "word"), self.array("ends", "word")

        def chunk(c: Value) -> None:
            first = b.mul(c, self.word(CHUNK))
            end = self.smaller(b.add(first, self.word(CHUNK)), self.word_of["size"])

            def element(k: Value, count: Value, last: Value) -> list[Any]:
                holds = b.icmp_signed("!=", self.get(mask, k), self.type("byte")(0))
                after = b.select(holds, b.add(k, self.word(1)), self.word(0))
                larger = b.icmp_signed(">", after, last)
                return [b.add(count, b.zext(holds, self.word)), b.select(larger, after, last)]

            count, last = self.loop(first, end, 1, element, [self.word(0), self.word(0)])
            self.put(counts, c, count)
            self.put(ends, c, last)

        self.loop(self.lo, self.hi, 1, chunk)


class Picked(Native, family="picked"):
    """LLVM that brings elements of so many bits together, or places in one or two dimensions. By hand:
    where a program writes does not depend on elements."""

    def __init__(self, name: str, kind: str) -> None:
        super().__init__(name, "f", ("wide", "mask", "starts", "ends", "made", "a"))
        b, mask, wide = self.b, self.array("mask", "byte"), self.word_of["wide"]
        starts, ends = self.array("starts", "word"), self.array("ends", "word")
        rank = int(kind[5:]) if kind.startswith("place") else 0
        type = self.word if rank else element_type(self, kind)
        made, a = self.array("made", type), self.array("a", type)
        zero, one = self.word(0), self.word(1)

        def chunk(c: Value) -> None:
            first = b.mul(c, self.word(CHUNK))
            row = b.udiv(first, wide)

            def element(k: Value, to: Value, row: Value, column: Value) -> list[Any]:
                if rank == 2:
                    self.put(made, to, row)
                    self.put(a, to, column)
                else:
                    self.put(made, to, k if rank else self.get(a, k))
                holds = b.icmp_signed("!=", self.get(mask, k), self.type("byte")(0))
                column = b.add(column, one)
                last = b.icmp_signed("==", column, wide)
                row = b.add(row, b.zext(last, self.word))
                return [b.add(to, b.zext(holds, self.word)), row, b.select(last, zero, column)]

            column = b.sub(first, b.mul(row, wide))
            self.loop(first, self.get(ends, c), 1, element, [self.get(starts, c), row, column])

        self.loop(self.lo, self.hi, 1, chunk)
