"""The k largest or smallest of each row, by one pass that keeps the best k so far in order.

Most elements lie below the least of these, which vectors find out for many at once; the others are
inserted. Numbers are compared as integers of the same order, in which NaN is the largest.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from toytorch.facts.hints import Array, Value
from toytorch.kernels.by_index import element_type
from toytorch.loops.runtime import jit
from toytorch.loops.runtime.array_call import ArrayCall
from toytorch.loops.runtime.native import Native

MOST = 128  # places; inserting into more of them takes longer than sorting
TYPES = {"f": "f", "d": "d", "i": "32", "l": "64", "q": "64"}
LANES = 16
TOLD = 256  # numbers of a row of which it is told whether some are equal, where there are many rows
FEW = 1 << 13  # comparisons at most, where there are few numbers and half of them are wanted


def top(a: Array, k: int, d: int, largest: bool, tell: bool = False) -> Any:
    """Values and places along a dimension, equal elements in the order in which they stand; None where
    they should be sorted. Asked to `tell`, also whether each of them is equal to no other number of its
    row; False where there are many."""
    kind = TYPES.get(a.dtype.char)
    if kind is None or a.__class__ is not np.ndarray or not 0 < k <= MOST or not a.ndim:
        return None
    n = a.shape[d]
    if a.size < jit.SMALLEST:
        if (a.size * k > FEW and n < 2 * k) or not jit.pays(a.size):
            return None
        rows = a if d == a.ndim - 1 else a.swapaxes(d, -1)
        rows = rows if rows.flags.c_contiguous else rows.copy()
        shape = (*rows.shape[:-1], k)
        values, index = np.empty(shape, a.dtype), np.empty(shape, np.int64)
        told = [np.empty(a.size // n, np.bool_)] if tell else []
        ready(kind, bool(largest), a.size // n, n, k, 3 + tell)(rows, values, index, *told)
        if d != a.ndim - 1:
            values, index = values.swapaxes(d, -1).copy(), index.swapaxes(d, -1).copy()
        return (values, index, b"\1" not in told[0].tobytes()) if tell else (values, index)
    if n < 2 * k or not jit.works():
        return None
    rows = np.ascontiguousarray(np.moveaxis(a, d, -1))
    shape = (*rows.shape[:-1], k)
    values, index = np.empty(shape, a.dtype), np.empty(shape, np.int64)
    equal = np.empty(a.size // n if tell and n <= TOLD else 0, np.bool_)
    places = map(jit.address_of, (rows, values, index))
    Top.kernel(kind, bool(largest))(
        a.size // n, a.size * 2, n, k, *places, jit.address_of(equal) if equal.size else 0
    )
    if d not in (-1, a.ndim - 1):
        values, index = (np.ascontiguousarray(np.moveaxis(v, -1, d)) for v in (values, index))
    if tell:
        return (values, index, equal.size > 0 and b"\1" not in equal.tobytes())
    return (values, index)


@functools.lru_cache(256)
def ready(kind: str, largest: bool, rows: int, n: int, k: int, arrays: int) -> Any:
    """The kernel for few numbers of one shape: a builtin function of three or four arrays."""
    places = range(2, 2 + arrays)
    return ArrayCall(Top.kernel(kind, largest), (n, k, 0, 0, 0, 0), places, rows, 1).here


def in_order(made: Native, x: Value, key: Any, floats: bool, falling: bool) -> Any:
    """Numbers, or vectors of them, as integers of a type whose order is theirs, or the reverse."""
    b, bits = made.b, key.width
    count = x.type.count if isinstance(x.type, made.ir.VectorType) else 0

    def whole(n: int) -> Any:
        return made.ir.VectorType(key, count)([n] * count) if count else key(n)

    if floats:
        most, zero = whole((1 << (bits - 1)) - 1), x.type([0.0] * count if count else 0.0)
        raw = b.bitcast(b.fadd(x, zero), most.type)  # -0 becomes 0
        ordered = b.xor(raw, b.and_(b.ashr(raw, whole(bits - 1)), most))
        x = b.select(b.fcmp_unordered("uno", x, x), most, ordered)
    return b.xor(x, whole(-1)) if falling else x


class Top(Native, family="top"):
    """LLVM for `top`. By hand: a program has no state that elements change."""

    def __init__(self, name: str, kind: str, largest: bool) -> None:
        words = ("n", "k", "a", "best", "at", "equal")
        super().__init__(name, "d" if kind in ("d", "64") else "f", words)
        b, self.largest, self.floats = self.b, largest, kind in ("f", "d")
        self.element, self.key = element_type(self, kind), self.ir.IntType(8 * self.bytes)
        self.k, n = self.word_of["k"], self.word_of["n"]
        a = self.array("a", self.element)
        values, at = self.array("best", self.element), self.array("at", "word")
        equal = self.array("equal", "byte")
        self.keys = self.alloca(self.key, self.word(MOST))
        vector = self.ir.VectorType(self.element, LANES)
        last = b.sub(self.k, self.word(1))

        def row(r: Value) -> None:
            x, found = b.gep(a, [b.mul(r, n)]), b.gep(at, [b.mul(r, self.k)])
            self.count(self.k, lambda j: self.insert(found, self.order(self.get(x, j)), j, j))

            def consider(j: Value) -> None:
                key = self.order(self.get(x, j))
                with b.if_then(b.icmp_signed(">", key, self.get(self.keys, last))):
                    self.insert(found, key, j, last)

            def many(j: Value) -> None:
                keys = self.order(self.read(x, j, vector))
                least = self.spread(self.get(self.keys, last), keys.type)
                above = b.bitcast(b.icmp_signed(">", keys, least), self.ir.IntType(LANES))
                with b.if_then(b.icmp_signed("!=", above, above.type(0)), likely=False):
                    self.loop(j, b.add(j, self.word(LANES)), 1, consider)

            whole = b.and_(b.sub(n, self.k), self.word(-LANES))
            end = b.add(self.k, whole)
            self.loop(self.k, end, LANES, many)
            self.loop(end, n, 1, consider)
            to = b.gep(values, [b.mul(r, self.k)])
            self.count(self.k, lambda j: self.put(to, j, self.get(x, self.get(found, j))))
            with b.if_then(b.icmp_signed("!=", self.word_of["equal"], self.word(0))):
                self.put(equal, r, b.zext(self.any_equal(x, n, last), self.type("byte")))

        self.loop(self.lo, self.hi, 1, row)

    def any_equal(self, x: Value, n: Value, last: Value) -> Any:
        """Whether one of the k is equal to the next one, or the last to any other of the row."""
        b, least, zero = self.b, self.get(self.keys, last), self.word(0)

        def beside(j: Value, found: Value) -> Any:
            next = self.get(self.keys, b.add(j, self.word(1)))
            alike = b.icmp_signed("==", self.get(self.keys, j), next)
            return [b.add(found, b.zext(alike, self.word))]

        def another(j: Value, found: Value) -> Any:
            alike = b.icmp_signed("==", self.order(self.get(x, j)), least)
            return [b.add(found, b.zext(alike, self.word))]

        pairs, ends = self.count(last, beside, 1, [zero])[0], self.count(n, another, 1, [zero])[0]
        return b.icmp_signed(">", b.add(pairs, ends), self.word(1))  # the last one is itself

    def order(self, x: Value) -> Any:
        """Elements as integers whose order is theirs, or the reverse."""
        return in_order(self, x, self.key, self.floats, not self.largest)

    def insert(self, found: Value, key: Value, j: Value, place: Value) -> None:
        """Moves what is smaller than a key one place on, from `place` down, and puts it there."""
        b = self.b
        before = b.block
        head, look, move, done = (self.block() for _ in range(4))
        b.branch(head)
        b.position_at_end(head)
        p = b.phi(self.word)
        p.add_incoming(place, before)
        b.cbranch(b.icmp_signed(">", p, self.word(0)), look, done)
        b.position_at_end(look)
        under = b.sub(p, self.word(1))
        other = self.get(self.keys, under)
        b.cbranch(b.icmp_signed("<", other, key), move, done)
        b.position_at_end(move)
        self.put(self.keys, p, other)
        self.put(found, p, self.get(found, under))
        p.add_incoming(under, move)
        b.branch(head)
        b.position_at_end(done)
        self.put(self.keys, p, key)
        self.put(found, p, j)
