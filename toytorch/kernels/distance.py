"""Distances between rows, directly: lanes of a vector are rows of the second operand, so that no
sum goes across a vector."""

from __future__ import annotations

from typing import Any

import numpy as np

from toytorch.facts.hints import Array, Value
from toytorch.loops import processor
from toytorch.loops.runtime import jit
from toytorch.loops.runtime.native import Native

TILE = 4  # vectors of sums that are under way at once
SIDE = 16  # rows of a symmetric matrix that are filled at a time
FOLD = 64  # terms that are added up one after the other before they meet the others


def fits(a: Array, p: float, pairs: int) -> bool:
    """Whether distances are worth a compiled loop, for arrays and a norm that there is one for."""
    return (
        a.__class__ is np.ndarray
        and p in (1, 2)
        and a.dtype.char in "fd"
        and a.shape[1] > 0
        and pairs * a.shape[1] >= jit.SMALLEST
        and jit.works()
    )


def between(a: Array, b: Array, p: float) -> Any:
    """‖aᵢ - bⱼ‖ₚ for the rows of two matrices of one type, or None."""
    if b.__class__ is not np.ndarray or a.dtype != b.dtype or not fits(a, p, len(a) * len(b)):
        return None
    made = np.empty((len(a), len(b)), a.dtype)
    _run(a, b, p, made, False)
    return made


def within(a: Array, p: float) -> Any:
    """‖aᵢ - aⱼ‖ₚ for i < j, row by row, or None."""
    n = len(a)
    if not fits(a, p, n * (n - 1) // 2):
        return None
    made = np.empty(n * (n - 1) // 2, a.dtype)
    _run(a, a, p, made, True)
    return made


def _run(a: Array, b: Array, p: float, made: Array, half: bool) -> None:
    lanes = processor.this().lanes(a.dtype.char)
    n, wide = b.shape
    b_transposed = np.zeros((wide, n + TILE * lanes), a.dtype)  # beyond its end vectors read, too
    b_transposed[:, :n] = b.T
    a = np.ascontiguousarray(a)
    places = map(jit.address_of, (a, b_transposed, made))
    Distance.kernel(a.dtype.char, int(p), half)(
        len(a), made.size * wide * 3, n, wide, b_transposed.shape[1], *places
    )


class Distance(Native, family="distance"):
    """LLVM for all distances, or those of the upper triangle, in the p-norm. By hand: the results of a
    triangle have no strides."""

    def __init__(self, name: str, kind: str, p: int, half: bool) -> None:
        super().__init__(name, kind, ("n", "wide", "pitch", "a", "b_transposed", "made"))
        b, self.p, self.lanes = self.b, p, processor.this().lanes(kind)
        self.vector = self.ir.VectorType(self.real, self.lanes)
        a, self.b_transposed = self.array("a"), self.array("b_transposed")
        made, n, wide = self.array("made"), self.word_of["n"], self.word_of["wide"]
        self.wide = wide
        rest = self.alloca(self.vector)
        one, step = self.word(1), self.word(self.lanes)

        def row(i: Value) -> None:
            x, first, start = b.gep(a, [b.mul(i, wide)]), self.word(0), b.mul(i, n)
            if half:  # the pair (i, j) is number i·n - i(i + 1)/2 + j - i - 1
                first = b.add(i, one)
                before = b.lshr(b.mul(i, first), one)
                start = b.sub(b.sub(start, before), first)
            out = b.gep(made, [start])

            def tile(count: int) -> Any:
                def some(j: Value) -> None:
                    for k, v in enumerate(self.distances(x, j, count)):
                        self.write(v, out, b.add(j, self.word(k * self.lanes)))

                return some

            many = self.word(TILE * self.lanes)
            whole = b.add(first, b.and_(b.sub(n, first), b.neg(many)))
            self.loop(first, whole, many, tile(TILE))
            end = b.add(first, b.and_(b.sub(n, first), b.neg(step)))
            self.loop(whole, end, step, tile(1))
            with b.if_then(b.icmp_signed("<", end, n)):
                (last,) = self.distances(x, end, 1)
                b.store(last, rest)
                kept = b.bitcast(rest, self.real.as_pointer())
                self.count(b.sub(n, end), lambda k: self.put(out, b.add(end, k), self.get(kept, k)))

        self.loop(self.lo, self.hi, 1, row)

    def distances(self, x: Value, j: Value, count: int) -> list[Any]:
        """Vectors of distances between a row and the rows from j on."""
        b, zero = self.b, self.vector([0.0] * self.lanes)

        def fold(start: Value, *totals: Value) -> list[Any]:
            end = self.smaller(b.add(start, self.word(FOLD)), self.wide)

            def term(d: Value, *sums: Value) -> list[Any]:
                one = self.spread(self.get(x, d), self.vector)
                row = b.gep(self.b_transposed, [b.add(b.mul(d, self.word_of["pitch"]), j)])
                made = []
                for k, total in enumerate(sums):
                    other = self.read(row, self.word(k * self.lanes), self.vector)
                    apart = b.fsub(one, other)
                    if self.p == 2:
                        size = b.fmul(apart, apart, flags=["contract"])
                    else:
                        size = self.intrinsic("fabs", apart)
                    made.append(b.fadd(total, size, flags=["contract"]))
                return made

            sums = self.loop(start, end, 1, term, [zero] * count)
            return [b.fadd(t, s) for t, s in zip(totals, sums)]

        totals = self.count(self.wide, fold, FOLD, [zero] * count)
        return [self.intrinsic("sqrt", t) for t in totals] if self.p == 2 else totals

    def intrinsic(self, name: str, x: Value) -> Any:
        full = f"llvm.{name}.v{self.lanes}f{8 * self.bytes}"
        made = self.module.globals.get(full)
        if made is None:
            type = self.ir.FunctionType(self.vector, [self.vector])
            made = self.ir.Function(self.module, type, full)
        return self.b.call(made, [x])


# -- from pairs to a matrix -----------------------------------------------------------------------


def square(a: Array, n: int) -> Any:
    """The symmetric matrix of numbers for all pairs i < j, row by row, with zeros on its diagonal; or
    None."""
    if a.size < jit.SMALLEST or a.__class__ is not np.ndarray or a.dtype.char not in "fd":
        return None
    if not jit.works():
        return None
    a, made = np.ascontiguousarray(a), np.zeros((n, n), a.dtype)
    places = jit.address_of(a), jit.address_of(made)
    Square.kernel(a.dtype.char)(-(-n // SIDE), a.size * 3 * jit.TRAFFIC, n, *places)
    return made


class Square(Native, family="square"):
    """LLVM for `square`: some rows at a time, so that what goes down their columns fills lines."""

    def __init__(self, name: str, kind: str) -> None:
        super().__init__(name, kind, ("n", "a", "made"))
        b, n, a, made = self.b, self.word_of["n"], self.array("a"), self.array("made")
        one, side, starts = self.word(1), self.word(SIDE), self.alloca(self.word, SIDE)

        def rows(r: Value) -> None:
            first = b.mul(r, side)

            def start(k: Value) -> None:  # the pair (i, j) is number start + j
                i = b.add(first, k)
                before = b.lshr(b.mul(b.add(i, one), b.add(i, self.word(2))), one)
                self.put(starts, k, b.sub(b.mul(i, n), before))

            def column(j: Value) -> None:
                def pair(k: Value) -> None:
                    i, value = b.add(first, k), self.get(a, b.add(self.get(starts, k), j))
                    self.put(made, b.add(b.mul(i, n), j), value)
                    self.put(made, b.add(b.mul(j, n), i), value)

                self.count(self.smaller(side, b.sub(j, first)), pair)

            self.count(side, start)
            self.loop(b.add(first, one), n, 1, column)

        self.loop(self.lo, self.hi, 1, rows)
