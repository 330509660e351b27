"""Rows of a table by number, and random masks: loops that NumPy has no fast form of."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np

from toytorch.backends import native
from toytorch.backends.conv_code import Emitter, linked
from toytorch.backends.loops import machine

# -- rows -----------------------------------------------------------------------------------------


def fits(table: Any, numbers: Any, count: int) -> bool:
    """Whether so many rows are worth a compiled loop, and the arrays are what it reads."""
    return (table.__class__ is np.ndarray and table.dtype.char in "fd" and numbers.dtype == np.int64
            and table.ndim == 2 and count * table.shape[1] >= native.SMALLEST
            and table.flags.c_contiguous and machine.works())


def take_rows(table: Any, numbers: Any) -> Any:
    """table[numbers], whose numbers are known to be inside; None where NumPy should do it."""
    if not fits(table, numbers, numbers.size):
        return None
    made = np.empty((*numbers.shape, table.shape[1]), table.dtype)
    numbers = np.ascontiguousarray(numbers)
    kernel(table.dtype.char, False)(numbers.size, table.shape[1], numbers.ctypes.data,
                                    table.ctypes.data, made.ctypes.data)
    return made


def add_rows(rows: Any, numbers: Any, count: int) -> Any:
    """The sums (count, D) of rows (M, D) with the same number, or None."""
    rows = np.ascontiguousarray(rows)
    if not fits(rows, numbers, len(rows)):
        return None
    numbers = np.ascontiguousarray(numbers)
    made = np.zeros((count, rows.shape[1]), rows.dtype)
    kernel(rows.dtype.char, True)(numbers.size, rows.shape[1], numbers.ctypes.data,
                                  rows.ctypes.data, made.ctypes.data)
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


# -- random masks ---------------------------------------------------------------------------------

MIX = ((16, 0x7feb352d), (15, 0x846ca68b), (16, 1))  # shifts and factors; Wellons 2018, lowbias32


def mask(shape: Any, dtype: Any, p: float, key: int) -> Any:
    """An array that is 0 with probability p, and 1/(1 - p) elsewhere.

    Element i is decided by a hash of i and the 64 bits of the key alone (Salmon et al. 2011,
    "Parallel random numbers: as easy as 1, 2, 3"), so it is the same with and without a compiler.

    >>> mask(8, np.float32, 0.5, key=5)
    array([2., 0., 0., 0., 2., 0., 0., 2.], dtype=float32)
    """
    made = np.empty(shape, dtype)
    limit = min(round(p * (1 << 32)), (1 << 32) - 1)
    if made.size >= native.SMALLEST and made.dtype.char in "fd" and machine.works():
        scale = np.array([1 / (1 - p)], made.dtype)
        mask_kernel(made.dtype.char)(made.size, key & 0xffffffff, key >> 32, limit,
                                     scale.ctypes.data, made.ctypes.data)
        return made
    i = np.arange(made.size, dtype=np.uint64)
    low, high = (i & 0xffffffff).astype(np.uint32), (i >> 32).astype(np.uint32)
    h = _mixed(_mixed(low + np.uint32(key & 0xffffffff)) ^ (np.uint32(key >> 32) + high))
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
