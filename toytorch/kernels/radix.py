"""Sorting by digits: rows of numbers in order, equal ones as they stood, and where each was.

The numbers are read as whole numbers of the same order and are put in order by one digit of eight
bits after the other, the last first (Knuth, The Art of Computer Programming 3, 5.2.5). One pass
counts the digits of all; each pass after it moves every number once, and a digit that all numbers
share takes none. Of 32 bits, a number and its place are one word; of 64, they are moved side by
side.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from toytorch.facts.hints import Array, Value
from toytorch.kernels.by_index import element_type
from toytorch.kernels.copy import in_rows
from toytorch.kernels.top import in_order
from toytorch.loops.runtime import jit
from toytorch.loops.runtime.native import Native

TYPES = {"f": "f", "d": "d", "i": "32", "l": "64", "q": "64"}
FEWEST = 48  # numbers of a row: of fewer, counting 256 digits takes longer than comparing
NEAR = 1 << 12  # numbers of a row whose second place is the thread's own stack
BINS = 256
COST = 400  # of a number, in additions


def ordered(a: Array, d: int, descending: bool) -> Any:
    """(values, places) in order along a dimension; NaN counts as the largest. None where NumPy
    should sort."""
    kind = TYPES.get(a.dtype.char)
    if kind is None or a.__class__ is not np.ndarray or not a.ndim or not jit.works():
        return None
    n = a.shape[d]
    if a.size < jit.SMALLEST or not FEWEST <= n < 1 << 31:
        return None
    rows = in_rows(np.moveaxis(a, d, -1))
    values, index = np.empty(rows.shape, a.dtype), np.empty(rows.shape, np.int64)
    arrays = 1 if a.itemsize == 4 else 2
    other = np.empty(0 if n <= NEAR else a.size * arrays, np.int64)
    places = map(jit.address_of, (rows, values, index, other))
    Radix.kernel(kind, bool(descending))(a.size // n, a.size * COST, n, *places)
    return in_rows(np.moveaxis(values, -1, d)), in_rows(np.moveaxis(index, -1, d))


class Radix(Native, family="radix"):
    """LLVM for `ordered`. By hand: a program does not write where a number says."""

    def __init__(self, name: str, kind: str, descending: bool) -> None:
        words = ("n", "from", "to", "at", "other")
        super().__init__(name, "d" if kind in ("d", "64") else "f", words)
        b, n = self.b, self.word_of["n"]
        self.element, self.key = element_type(self, kind), self.ir.IntType(8 * self.bytes)
        self.floats, self.descending = kind in ("f", "d"), descending
        self.arrays = 1 if self.bytes == 4 else 2  # that are moved
        self.shift = 64 - 8 * self.bytes  # of the last digit in a word
        self.counts = self.alloca(self.half, self.word(BINS * self.bytes))
        near = self.alloca(self.word, self.word(NEAR * self.arrays))
        source, values = (self.array(w, self.element) for w in ("from", "to"))
        index = self.array("at", "word")
        self.now = [self.alloca("word*") for _ in range(self.arrays)]
        self.then = [self.alloca("word*") for _ in range(self.arrays)]

        def row(r: Value) -> None:
            first = b.mul(r, n)
            x, to, at = (b.gep(v, [first]) for v in (source, values, index))
            far = b.gep(self.array("other", "word"), [b.mul(first, self.word(self.arrays))])
            other = b.select(b.icmp_signed("<=", n, self.word(NEAR)), near, far)
            mine = [at] if self.arrays == 1 else [b.bitcast(to, self.type("word*")), at]
            for k in range(self.arrays):
                b.store(mine[k], self.now[k])
                b.store(b.gep(other, [b.mul(n, self.word(k))]), self.then[k])
            self.count(
                self.word(BINS * self.bytes), lambda k: self.put(self.counts, k, self.half(0))
            )
            self.read_row(x, mine)
            self.count(self.word(self.bytes), self.by_digit)
            found = b.load(self.now[-1])

            def finish(j: Value) -> None:
                place = self.get(found, j)
                if self.arrays == 1:
                    place = b.and_(place, self.word((1 << 32) - 1))
                self.put(at, j, place)
                self.put(to, j, self.get(x, place))

            self.count(n, finish)

        self.loop(self.lo, self.hi, 1, row)

    def read_row(self, x: Value, mine: list[Any]) -> None:
        """Writes the keys of a row with their places, and counts their digits."""
        b = self.b

        def one(j: Value) -> None:
            key = self.order(self.get(x, j))
            if self.arrays == 1:
                key = b.shl(b.zext(key, self.word), self.word(self.shift))
                self.put(mine[0], j, b.or_(key, j))
            else:
                self.put(mine[0], j, key)
                self.put(mine[1], j, j)
            for d in range(self.bytes):
                place = b.add(self.digit(key, self.word(d)), self.word(d * BINS))
                self.put(self.counts, place, b.add(self.get(self.counts, place), self.half(1)))

        self.count(self.word_of["n"], one)

    def order(self, x: Value) -> Any:
        """A number as one without a sign whose order is its own, or the reverse."""
        ordered = in_order(self, x, self.key, self.floats, self.descending)
        return self.b.xor(ordered, self.key(1 << (8 * self.bytes - 1)))

    def digit(self, word: Value, d: Value) -> Any:
        far = self.b.add(self.b.mul(d, self.word(8)), self.word(self.shift))
        return self.b.and_(self.b.lshr(word, far), self.word(BINS - 1))

    def by_digit(self, d: Value) -> None:
        """One pass: each number goes behind those with a smaller digit, and the same that came
        before."""
        b, n = self.b, self.word_of["n"]
        counts = b.gep(self.counts, [b.mul(d, self.word(BINS))])
        now, then = [b.load(v) for v in self.now], [b.load(v) for v in self.then]
        alike = b.zext(self.get(counts, self.digit(self.get(now[0], 0), d)), self.word)
        with b.if_then(b.icmp_signed("<", alike, n)):

            def start(k: Value, total: Value) -> list[Any]:
                more = self.get(counts, k)
                self.put(counts, k, total)
                return [b.add(total, more)]

            self.count(self.word(BINS), start, loop_carried=[self.half(0)])

            def move(j: Value) -> None:
                moved = [self.get(v, j) for v in now]
                which = self.digit(moved[0], d)
                place = self.get(counts, which)
                self.put(counts, which, b.add(place, self.half(1)))
                for word, v in zip(moved, then):
                    self.put(v, b.zext(place, self.word), word)

            self.count(n, move)
            for one, other, v, w in zip(self.now, self.then, then, now):
                b.store(v, one)
                b.store(w, other)
