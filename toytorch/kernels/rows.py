"""Rows of a table by number, and one number of each row: loops that NumPy has no fast form of."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from toytorch.facts.hints import Array, Value
from toytorch.loops.llvm.builder import Builder
from toytorch.loops.runtime import jit
from toytorch.loops.runtime.entry_point import CONTEXT
from toytorch.loops.runtime.native import Native
from toytorch.loops.runtime.trampoline import DATA, SHAPE

# -- rows -----------------------------------------------------------------------------------------


def fits(table: Array, numbers: Array, count: int) -> bool:
    """Whether so many rows are worth a compiled loop, and the arrays are what it reads."""
    return (
        table.__class__ is np.ndarray
        and table.ndim == 2
        and count * table.shape[1] >= jit.SMALLEST
        and table.dtype.char in "fd"
        and numbers.dtype.char in INT64
        and table.flags.c_contiguous
        and jit.works()
    )


def take_rows(table: Array, numbers: Array) -> Any:
    """table[numbers], whose numbers are known to be inside; None where NumPy should do it."""
    if not fits(table, numbers, numbers.size):
        return None
    made = np.empty((*numbers.shape, table.shape[1]), table.dtype)
    numbers = np.ascontiguousarray(numbers)
    places = map(jit.address_of, (numbers, table, made))
    RowsByNumber.kernel(table.dtype.char, False)(
        numbers.size, made.size * 2 * jit.TRAFFIC, table.shape[1], *places
    )
    return made


def add_rows(rows: Array, numbers: Array, count: int) -> Any:
    """The sums (count, D) of rows (M, D) with the same number, or None."""
    rows = np.ascontiguousarray(rows)
    if not fits(rows, numbers, len(rows)):
        return None
    numbers = np.ascontiguousarray(numbers)
    made = np.zeros((count, rows.shape[1]), rows.dtype)
    places = map(jit.address_of, (numbers, rows, made))
    alone = 0  # two threads might add to one row
    RowsByNumber.kernel(rows.dtype.char, True)(numbers.size, alone, rows.shape[1], *places)
    return made


def add_runs(values: Array, starts: Array, axis: int) -> Any:
    """The sums of runs along a dimension, each from one start to the next."""
    return np.add.reduceat(values, starts, axis, values.dtype)


def max_runs(values: Array, starts: Array, axis: int) -> Any:
    """The maxima of runs along a dimension."""
    return np.maximum.reduceat(values, starts, axis)


def add_slices(target: Array, dim: int, numbers: Array, values: Array) -> bool | None:
    """Adds slices of values to the slices of target along a dimension that numbers name; None where
    there is little to do. Those for the same place are brought together and added in one go: four
    times as fast as `np.add.at`."""
    if target.ndim < 2 or values.size <= 4096 or values.shape[dim] != numbers.size:
        return None
    order = np.argsort(numbers, kind="stable")
    places = numbers[order]
    starts = np.flatnonzero(np.r_[True, places[1:] != places[:-1]])
    if len(starts) < len(places):
        moved = np.moveaxis(values, dim, 0)[order]
        values, numbers = np.moveaxis(add_runs(moved, starts, 0), 0, dim), places[starts]
    target[(slice(None),) * dim + (numbers,)] += values
    return True


class RowsByNumber(Native, family="rows"):
    """LLVM for to[m] = from[numbers[m]], or to[numbers[m]] += from[m], for m of the range. By hand: where
    a program reads or writes follows from indices alone, not from what an array of numbers holds."""

    def __init__(self, name: str, kind: str, adds: bool) -> None:
        super().__init__(name, kind, ("wide", "numbers", "from", "to"))
        b, wide = self.b, self.word_of["wide"]
        numbers, source, made = self.array("numbers", "word"), self.array("from"), self.array("to")

        def row(m: Value) -> None:
            mine, other = b.mul(m, wide), b.mul(self.get(numbers, m), wide)
            first = b.gep(source, [mine if adds else other])
            into = b.gep(made, [other if adds else mine])

            def element(j: Value) -> None:
                value = b.load(b.gep(first, [j]))
                place = b.gep(into, [j])
                b.store(b.fadd(b.load(place), value) if adds else value, place)

            self.count(wide, element)

        self.loop(self.lo, self.hi, 1, row)


# -- one number of each row -----------------------------------------------------------------------


INT64 = np.dtype(np.int64).char + "q"  # letters of NumPy's types of 64 bits


def can_pick(table: Array, numbers: Array) -> bool:
    """Whether there is something to pick, from arrays that a compiled loop reads."""
    return bool(
        table.__class__ is numbers.__class__ is np.ndarray
        and table.size
        and table.dtype.char in "fd"
        and numbers.dtype.char in INT64
        and numbers.ndim == 1
        and table.flags.c_contiguous
        and numbers.flags.c_contiguous
        and numbers.size
        and jit.works()
    )


def picked_loss(table: Array, numbers: Array) -> Any:
    """The mean of 0 - table[i, numbers[i]]; None where NumPy should do it, or a number is outside."""
    if not can_pick(table, numbers):
        return None
    made = np.empty((), table.dtype)
    return made if pick_kernel(table.dtype.char, False)(numbers, table, made) else None


def put_picked(table: Array, numbers: Array, value: Array) -> bool:
    """table[i, numbers[i]] = -value / len(numbers), and says so; False where NumPy should do it, or
    a number is outside (others may have been set)."""
    return (
        can_pick(table, numbers)
        and value.dtype is table.dtype
        and bool(pick_kernel(table.dtype.char, True)(numbers, table, value))
    )


@functools.cache
def pick_kernel(kind: str, puts: bool) -> Any:
    """A builtin function pick(numbers, table, value) of arrays: it sets the value to the loss, or
    spreads it, and says whether all numbers were inside. (Calling it by ctypes would take as long
    as a batch of 64.)"""

    what = f"pick {kind} {puts}"
    place = jit.addresses(what, lambda name: str(Pick(name, kind, puts).module), ("call",))["call"]
    return jit.builtin(place, "pick", jit.context())


class Pick(Builder):
    """LLVM for `object call_NAME(context, objects, count)`. By hand, like RowsByNumber."""

    def __init__(self, name: str, kind: str, puts: bool) -> None:
        super().__init__(f"call_{name}", "word", ["word", "word*", "word"])
        b, bit = self.b, self.type("bit")
        context, objects, _ = self.function.args
        double = self.type("double")
        real = self.type("float") if kind == "f" else double
        numbers, table, value = (self.get(objects, k) for k in range(3))
        count, wide = self.at(self.at(numbers, SHAPE), 0), self.at(self.at(table, SHAPE), 1)
        numbers = self.pointer(self.at(numbers, DATA))
        table, value = (self.pointer(self.at(v, DATA), real) for v in (table, value))

        def widened(x: Value) -> Any:
            return x if real == double else b.fpext(x, double)

        def narrowed(x: Value) -> Any:
            return x if real == double else b.fptrunc(x, real)

        whole = b.sitofp(count, double)
        given = narrowed(b.fneg(b.fdiv(widened(b.load(value)), whole))) if puts else None

        def row(m: Any, total: Any, inside: Any) -> list[Any]:
            n = self.get(numbers, m)
            fits = b.icmp_unsigned("<", n, wide)
            place = b.gep(table, [b.add(b.mul(m, wide), b.select(fits, n, self.word(0)))])
            old = b.load(place)
            if puts:
                b.store(b.select(fits, given, old), place)
            return [b.fsub(total, widened(old)), b.and_(inside, fits)]

        total, inside = self.count(count, row, loop_carried=[double(0.0), bit(1)])
        if not puts:
            b.store(narrowed(b.fdiv(total, whole)), value)
        words = self.at(context, DATA)
        yes, no = (self.at(words, CONTEXT.index(n)) for n in ("True", "False"))
        made = b.select(inside, yes, no)
        self.call(self.at(words, CONTEXT.index("Py_IncRef")), "void", made)
        b.ret(made)
