"""Running sums and products of real numbers, in float64 and rounded where they are written, or at
every step; running extremes, and where they are.

A step waits for the one before it, so several rows, or several columns, are under way at once.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from toytorch.facts.hints import Array, Sizes, Value
from toytorch.kernels.by_index import around, element_type
from toytorch.loops.runtime import jit
from toytorch.loops.runtime.array_call import ArrayCall
from toytorch.loops.runtime.native import Native

EXTREME = {"f": "f", "d": "d", "l": "64", "q": "64", "i": "32"}  # types that are compared
ROWS = 8  # of a block
COLUMNS = 64


def running_sum(a: Array, d: int) -> Any:
    """np.cumsum of float32 or float64 along a dimension, or None."""
    return running("sum", a, d)


def running_sum_rounded(a: Array, d: int) -> Any:
    """The same with sums that are kept in the type of the numbers."""
    return running("rounded", a, d)


def running_product(a: Array, d: int) -> Any:
    """np.cumprod of float32 or float64 along a dimension, or None."""
    return running("product", a, d)


def running(what: str, a: Array, d: int) -> Any:
    """Running sums or products along a dimension, or None."""
    if (
        a.__class__ is not np.ndarray
        or a.dtype.char not in "fd"
        or not a.size
        or not jit.pays(a.size)
    ):
        return None
    if a.size < jit.SMALLEST:
        if not a.flags.c_contiguous:
            return None
        made = np.empty(a.shape, a.dtype)
        ready(what, a.dtype.char, a.shape, d)(a, made)
        return made
    a = np.ascontiguousarray(a)
    made = np.empty_like(a)
    blocks, inner = around(a.shape, d)
    rows = inner == 1
    total = -(-blocks // ROWS) if rows else blocks * -(-inner // COLUMNS)
    places = map(jit.address_of, (a, made))
    Running.kernel(what, a.dtype.char, rows)(total, a.size * 6, blocks, a.shape[d], inner, *places)
    return made


@functools.lru_cache(256)
def ready(what: str, kind: str, shape: Sizes, d: int) -> Any:
    """The kernel for few numbers of one shape: a builtin function of both arrays."""
    blocks, inner = around(shape, d)
    total = -(-blocks // ROWS) if inner == 1 else blocks * -(-inner // COLUMNS)
    words = (blocks, shape[d], inner, 0, 0)
    return ArrayCall(Running.kernel(what, kind, inner == 1), words, (3, 4), total, 1).here


def running_extreme(most: bool, a: Array, d: int) -> Any:
    """The running maximum ("most") or minimum along a dimension, NaN from the first one on, and the
    last place where it is; or None."""
    kind = EXTREME.get(a.dtype.char) if a.__class__ is np.ndarray and a.size else None
    if kind is None or not jit.pays(a.size):
        return None
    a = np.ascontiguousarray(a)
    made, at = np.empty_like(a), np.empty(a.shape, np.int64)
    extreme_call("most" if most else "least", kind, a.shape, d)(a, made, at)
    return made, at


@functools.lru_cache(256)
def extreme_call(what: str, kind: str, shape: Sizes, d: int) -> ArrayCall:
    """The kernel for arrays of one shape."""
    blocks, inner = around(shape, d)
    total = -(-blocks // ROWS) if inner == 1 else blocks * -(-inner // COLUMNS)
    words = (blocks, shape[d], inner, 0, 0, 0)
    return ArrayCall(
        Extreme.kernel(what, kind, inner == 1), words, (3, 4, 5), total, math.prod(shape) * 6
    )


class Along(Native):
    """LLVM for `running`, and its kin. By hand: a program's results do not depend on each other.

    State is what a step leaves for the next one: `nothing` at first.
    """

    nothing: list[Value]

    def go(self, rows: bool) -> None:
        """Steps along all rows, or columns."""
        b = self.b
        blocks, n, inner = (self.word_of[w] for w in ("blocks", "n", "inner"))
        size = len(self.nothing)

        def some(first: Value, count: int) -> None:
            """Rows side by side, from one on."""
            starts = [b.mul(b.add(first, self.word(k)), n) for k in range(count)]

            def step(j: Value, *state: Value) -> list[Value]:
                parts = [state[k * size : (k + 1) * size] for k in range(count)]
                made = [self.step(b.add(s, j), j, *p) for s, p in zip(starts, parts)]
                return [value for part in made for value in part]

            self.count(n, step, loop_carried=self.nothing * count)

        def block(r: Value) -> None:
            first = b.mul(r, self.word(ROWS))
            end = self.smaller(b.add(first, self.word(ROWS)), blocks)
            whole = b.icmp_signed("==", b.sub(end, first), self.word(ROWS))
            with b.if_else(whole) as (many, few):
                with many:
                    some(first, ROWS)
                with few:
                    self.loop(first, end, 1, lambda k: some(k, 1))

        kept = [] if rows else [self.alloca(v.type, self.word(COLUMNS)) for v in self.nothing]

        def columns(c: Value) -> None:
            parts = b.udiv(b.add(inner, self.word(COLUMNS - 1)), self.word(COLUMNS))
            k = b.udiv(c, parts)
            first = b.mul(b.sub(c, b.mul(k, parts)), self.word(COLUMNS))
            wide = self.smaller(b.sub(inner, first), self.word(COLUMNS))
            start = b.add(b.mul(b.mul(k, n), inner), first)
            for to, value in zip(kept, self.nothing):
                self.count(wide, lambda m, to=to, value=value: self.put(to, m, value))

            def row(j: Value) -> None:
                at = b.add(start, b.mul(j, inner))

                def element(m: Value) -> None:
                    state = [self.get(part, m) for part in kept]
                    for to, value in zip(kept, self.step(b.add(at, m), j, *state)):
                        self.put(to, m, value)

                self.count(wide, element)

            self.count(n, row)

        self.loop(self.lo, self.hi, 1, block if rows else columns)

    def step(self, at: Value, j: Value, *state: Value) -> list[Value]:
        """Joins the j-th element, which is at a place, and writes what is known now: the new state."""
        raise NotImplementedError  # each kernel has its own


class Running(Along, family="running"):
    """LLVM for `running`."""

    def __init__(self, name: str, what: str, kind: str, rows: bool) -> None:
        super().__init__(name, kind, ("blocks", "n", "inner", "a", "made"))
        self.a, self.made = self.array("a"), self.array("made")
        self.product = what == "product"
        self.double = self.real if what == "rounded" else self.type("double")
        self.nothing = [self.double(float(self.product))]
        self.go(rows)

    def step(self, at: Value, j: Value, *state: Value) -> list[Value]:
        b, (total,) = self.b, state
        value = self.get(self.a, at)
        narrow = self.real != self.double
        value = b.fpext(value, self.double) if narrow else value
        total = b.fmul(total, value) if self.product else b.fadd(total, value)
        self.put(self.made, at, b.fptrunc(total, self.real) if narrow else total)
        return [total]


class Extreme(Along, family="extreme"):
    """LLVM for `running_extreme`."""

    def __init__(self, name: str, what: str, kind: str, rows: bool) -> None:
        super().__init__(
            name, "d" if kind in ("d", "64") else "f", ("blocks", "n", "inner", "a", "made", "at")
        )
        self.floats, self.most = kind in ("f", "d"), what == "most"
        element = element_type(self, kind)
        self.a, self.made = self.array("a", element), self.array("made", element)
        self.places = self.array("at", "word")
        if self.floats:
            first = element(-math.inf if self.most else math.inf)
        else:
            least = -1 << int(kind) - 1
            first = element(least if self.most else -least - 1)
        self.nothing = [first, self.word(0)]
        self.go(rows)

    def step(self, at: Value, j: Value, *state: Value) -> list[Value]:
        b, (best, where) = self.b, state
        value = self.get(self.a, at)
        order = ">=" if self.most else "<="
        if self.floats:  # NaN takes the place of what is there, and is left to NaN alone
            takes = b.or_(b.fcmp_ordered(order, value, best), b.fcmp_unordered("uno", value, value))
        else:
            takes = b.icmp_signed(order, value, best)
        best, where = b.select(takes, value, best), b.select(takes, j, where)
        self.put(self.made, at, best)
        self.put(self.places, at, where)
        return [best, where]
