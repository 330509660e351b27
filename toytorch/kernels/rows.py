"""Rows of a table by number, one number of each row, and random masks: loops that NumPy has no fast
form of."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np

from toytorch.kernels.llvm_builder import Emitter, address, linked
from toytorch.loops.runtime import jit
from toytorch.loops.runtime.entry_point import CONTEXT
from toytorch.loops.runtime.trampoline import DATA, SHAPE

PICKED = 256  # numbers in a table, from which one of each row is picked by a compiled loop

# -- rows -----------------------------------------------------------------------------------------


def fits(table: Any, numbers: Any, count: int) -> bool:
    """Whether so many rows are worth a compiled loop, and the arrays are what it reads."""
    return (
        table.__class__ is np.ndarray
        and table.dtype.char in "fd"
        and numbers.dtype == np.int64
        and table.ndim == 2
        and count * table.shape[1] >= jit.SMALLEST
        and table.flags.c_contiguous
        and jit.works()
    )


def take_rows(table: Any, numbers: Any) -> Any:
    """table[numbers], whose numbers are known to be inside; None where NumPy should do it."""
    if not fits(table, numbers, numbers.size):
        return None
    made = np.empty((*numbers.shape, table.shape[1]), table.dtype)
    numbers = np.ascontiguousarray(numbers)
    kernel(table.dtype.char, False)(
        numbers.size, table.shape[1], numbers.ctypes.data, table.ctypes.data, made.ctypes.data
    )
    return made


def add_rows(rows: Any, numbers: Any, count: int) -> Any:
    """The sums (count, D) of rows (M, D) with the same number, or None."""
    rows = np.ascontiguousarray(rows)
    if not fits(rows, numbers, len(rows)):
        return None
    numbers = np.ascontiguousarray(numbers)
    made = np.zeros((count, rows.shape[1]), rows.dtype)
    kernel(rows.dtype.char, True)(
        numbers.size, rows.shape[1], numbers.ctypes.data, rows.ctypes.data, made.ctypes.data
    )
    return made


@functools.cache
def kernel(kind: str, adds: bool) -> Any:
    """rows(M, D, numbers, from, to): to[m] = from[numbers[m]], or to[numbers[m]] += from[m]."""

    def build(name: str) -> str:
        from llvmlite import ir

        e = Emitter(ir, name, kind, "wwipp")
        count, wide, numbers, source, made = e.function.args
        b = e.b

        def row(m: Any) -> None:
            mine, other = b.mul(m, wide), b.mul(b.load(b.gep(numbers, [m])), wide)
            first = b.gep(source, [mine if adds else other])
            into = b.gep(made, [other if adds else mine])

            def element(j: Any) -> None:
                value = b.load(b.gep(first, [j]))
                place = b.gep(into, [j])
                b.store(b.fadd(b.load(place), value) if adds else value, place)

            e.count(wide, element)

        e.count(count, row)
        b.ret_void()
        return str(e.module)

    words = [ctypes.c_int64] * 2 + [ctypes.c_void_p] * 3
    return linked(f"rows {kind} {adds}", build, words)


# -- one number of each row -----------------------------------------------------------------------


def can_pick(table: Any, numbers: Any) -> bool:
    """Whether there is enough to pick, from arrays that a compiled loop reads."""
    return (
        table.__class__ is numbers.__class__ is np.ndarray
        and table.size >= PICKED
        and table.dtype.char in "fd"
        and numbers.dtype == np.int64
        and numbers.ndim == 1
        and table.flags.c_contiguous
        and numbers.flags.c_contiguous
        and jit.works()
    )


def picked_mean(table: Any, numbers: Any) -> Any:
    """The mean of table[i, numbers[i]]; None where NumPy should do it, or a number is outside."""
    if not can_pick(table, numbers):
        return None
    made = np.empty((), table.dtype)
    return made if pick_kernel(table.dtype.char, False)(numbers, table, made) else None


def put_picked(table: Any, numbers: Any, value: Any) -> bool:
    """table[i, numbers[i]] = -value / len(numbers), and says so; False where NumPy should do it, or
    a number is outside (others may have been set)."""
    return (
        can_pick(table, numbers)
        and value.dtype is table.dtype
        and bool(pick_kernel(table.dtype.char, True)(numbers, table, value))
    )


@functools.cache
def pick_kernel(kind: str, puts: bool) -> Any:
    """A builtin function pick(numbers, table, value) of arrays: it sets the value to the mean, or
    spreads it, and says whether all numbers were inside. (Calling it by ctypes would take as long
    as a batch of 64.)"""

    def build(name: str) -> str:
        from llvmlite import ir

        module = ir.Module(name)
        word, double = ir.IntType(64), ir.DoubleType()
        real = ir.FloatType() if kind == "f" else double
        call = ir.Function(
            module, ir.FunctionType(word, [word, word.as_pointer(), word]), f"call_{name}"
        )
        b = ir.IRBuilder(call.append_basic_block("entry"))

        def field(place: Any, k: int, type: Any = word) -> Any:
            return b.load(b.gep(b.inttoptr(place, type.as_pointer()), [word(k)]))

        numbers, table, value = (b.load(b.gep(call.args[1], [word(k)])) for k in range(3))
        count, wide = field(field(numbers, SHAPE), 0), field(field(table, SHAPE), 1)
        numbers = b.inttoptr(field(numbers, DATA), word.as_pointer())
        table, value = (b.inttoptr(field(v, DATA), real.as_pointer()) for v in (table, value))

        def widened(x: Any) -> Any:
            return x if real == double else b.fpext(x, double)

        def narrowed(x: Any) -> Any:
            return x if real == double else b.fptrunc(x, real)

        whole = b.sitofp(count, double)
        given = narrowed(b.fneg(b.fdiv(widened(b.load(value)), whole))) if puts else None
        head, turn, after = (call.append_basic_block(n) for n in ("head", "turn", "after"))
        before = b.block
        b.branch(head)
        b.position_at_end(head)
        m, total, inside = b.phi(word), b.phi(double), b.phi(ir.IntType(1))
        b.cbranch(b.icmp_signed("<", m, count), turn, after)
        b.position_at_end(turn)
        n = b.load(b.gep(numbers, [m]))
        fits = b.icmp_unsigned("<", n, wide)
        place = b.gep(table, [b.add(b.mul(m, wide), b.select(fits, n, word(0)))])
        old = b.load(place)
        if puts:
            b.store(b.select(fits, given, old), place)
        for phi, start, following in (
            (m, word(0), b.add(m, word(1))),
            (total, double(0.0), b.fadd(total, widened(old))),
            (inside, ir.IntType(1)(1), b.and_(inside, fits)),
        ):
            phi.add_incoming(start, before)
            phi.add_incoming(following, turn)
        b.branch(head)
        b.position_at_end(after)
        if not puts:
            b.store(narrowed(b.fdiv(total, whole)), value)
        context = field(call.args[0], DATA)
        yes, no = (field(context, CONTEXT.index(n)) for n in ("True", "False"))
        made = b.select(inside, yes, no)
        more = ir.FunctionType(ir.VoidType(), [word]).as_pointer()
        b.call(b.inttoptr(field(context, CONTEXT.index("Py_IncRef")), more), [made])
        b.ret(made)
        return str(module)

    return jit.builtin(address(f"pick {kind} {puts}", build, "call"), "pick", jit.context())


# -- random masks ---------------------------------------------------------------------------------

MIX = ((16, 0x7FEB352D), (15, 0x846CA68B), (16, 1))  # shifts and factors; Wellons 2018, lowbias32


def mask(shape: Any, dtype: Any, p: float, key: int) -> Any:
    """An array that is 0 with probability p, and 1/(1 - p) elsewhere.

    Element i is decided by a hash of i and the 64 bits of the key alone (Salmon et al. 2011,
    "Parallel random numbers: as easy as 1, 2, 3"), so it is the same with and without a compiler.

    >>> mask(8, np.float32, 0.5, key=5)
    array([2., 0., 0., 0., 2., 0., 0., 2.], dtype=float32)
    """
    made = np.empty(shape, dtype)
    limit = min(round(p * (1 << 32)), (1 << 32) - 1)
    if made.size >= jit.SMALLEST and made.dtype.char in "fd" and jit.works():
        scale = np.array([1 / (1 - p)], made.dtype)
        mask_kernel(made.dtype.char)(
            made.size, key & 0xFFFFFFFF, key >> 32, limit, scale.ctypes.data, made.ctypes.data
        )
        return made
    i = np.arange(made.size, dtype=np.uint64)
    low, high = (i & 0xFFFFFFFF).astype(np.uint32), (i >> 32).astype(np.uint32)
    h = _mixed(_mixed(low + np.uint32(key & 0xFFFFFFFF)) ^ (np.uint32(key >> 32) + high))
    np.multiply(h >= limit, made.dtype.type(1 / (1 - p)), out=made.reshape(-1), casting="unsafe")
    return made


def _mixed(h: Any) -> Any:
    """A permutation of 32-bit numbers in which every bit depends on every bit."""
    for shift, factor in MIX:
        h = (h ^ (h >> np.uint32(shift))) * np.uint32(factor)
    return h


@functools.cache
def mask_kernel(kind: str) -> Any:
    """mask(n, low key, high key, limit, scale, to)."""

    def build(name: str) -> str:
        from llvmlite import ir

        e = Emitter(ir, name, kind, "wwwwpp")
        n, low, high, limit, scale, made = e.function.args
        b, word = e.b, ir.IntType(32)
        low, limit = (b.trunc(v, word) for v in (low, limit))
        one, zero = b.load(scale), e.real(0.0)

        def mixed(h: Any) -> Any:
            for shift, factor in MIX:
                h = b.mul(b.xor(h, b.lshr(h, word(shift))), word(factor))
            return h

        def element(i: Any) -> None:
            upper = b.trunc(b.add(high, b.lshr(i, e.size(32))), word)
            h = mixed(b.xor(mixed(b.add(b.trunc(i, word), low)), upper))
            b.store(b.select(b.icmp_unsigned(">=", h, limit), one, zero), b.gep(made, [i]))

        e.count(n, element)
        b.ret_void()
        return str(e.module)

    return linked(f"mask {kind}", build, [ctypes.c_int64] * 4 + [ctypes.c_void_p] * 2)
