"""Running sums and products of real numbers, in float64 and rounded where they are written.

A sum waits for the one before it, so several rows, or several columns, are under way at once.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from toytorch.facts.hints import Array
from toytorch.kernels.by_index import around
from toytorch.loops.runtime import jit
from toytorch.loops.runtime.array_call import ArrayCall
from toytorch.loops.runtime.native import Call, Native

if TYPE_CHECKING:
    from llvmlite.ir import Value

ROWS = 8  # of a block
COLUMNS = 64


def running_sum(a: Array, d: int) -> Any:
    """np.cumsum of float32 or float64 along a dimension, or None."""
    return running("sum", a, d)


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
    kernel(what, a.dtype.char, rows)(total, a.size * 6, blocks, a.shape[d], inner, *places)
    return made


@functools.lru_cache(256)
def ready(what: str, kind: str, shape: tuple[int, ...], d: int) -> Any:
    """The kernel for few numbers of one shape: a builtin function of both arrays."""
    blocks, inner = around(shape, d)
    total = -(-blocks // ROWS) if inner == 1 else blocks * -(-inner // COLUMNS)
    words = (blocks, shape[d], inner, 0, 0)
    return ArrayCall(kernel(what, kind, inner == 1), words, (3, 4), total, 1).here


@functools.cache
def kernel(what: str, kind: str, rows: bool) -> Call:
    return Call(f"running {what} {kind} {rows}", lambda name: Running(name, what, kind, rows))


class Running(Native):
    """LLVM for `running`. By hand: a program's results do not depend on each other."""

    def __init__(self, name: str, what: str, kind: str, rows: bool) -> None:
        super().__init__(name, kind, ("blocks", "n", "inner", "a", "made"))
        b, self.a, self.made = self.b, self.array("a"), self.array("made")
        blocks, n, inner = (self.word_of[w] for w in ("blocks", "n", "inner"))
        self.double = self.type("double")
        self.product = what == "product"
        none = self.double(float(self.product))

        def some(first: Value, count: int) -> None:
            """Rows side by side, from one on."""
            starts = [b.mul(b.add(first, self.word(k)), n) for k in range(count)]
            self.count(
                n,
                lambda j, *sums: [self.step(b.add(s, j), t) for s, t in zip(starts, sums)],
                loop_carried=[none] * count,
            )

        def block(r: Value) -> None:
            first = b.mul(r, self.word(ROWS))
            end = self.smaller(b.add(first, self.word(ROWS)), blocks)
            whole = b.icmp_signed("==", b.sub(end, first), self.word(ROWS))
            with b.if_else(whole) as (many, few):
                with many:
                    some(first, ROWS)
                with few:
                    self.loop(first, end, 1, lambda k: some(k, 1))

        sums = None if rows else self.alloca(self.double, self.word(COLUMNS))

        def columns(c: Value) -> None:
            parts = b.udiv(b.add(inner, self.word(COLUMNS - 1)), self.word(COLUMNS))
            k = b.udiv(c, parts)
            first = b.mul(b.sub(c, b.mul(k, parts)), self.word(COLUMNS))
            wide = self.smaller(b.sub(inner, first), self.word(COLUMNS))
            start = b.add(b.mul(b.mul(k, n), inner), first)
            self.count(wide, lambda m: self.put(sums, m, none))

            def row(j: Value) -> None:
                at = b.add(start, b.mul(j, inner))

                def element(m: Value) -> None:
                    self.put(sums, m, self.step(b.add(at, m), self.get(sums, m)))

                self.count(wide, element)

            self.count(n, row)

        self.loop(self.lo, self.hi, 1, block if rows else columns)

    def step(self, at: Value, total: Value) -> Any:
        """Joins an element and writes the sum or product; returns it."""
        b = self.b
        value = self.get(self.a, at)
        narrow = self.real != self.double
        value = b.fpext(value, self.double) if narrow else value
        total = b.fmul(total, value) if self.product else b.fadd(total, value)
        self.put(self.made, at, b.fptrunc(total, self.real) if narrow else total)
        return total
