"""Copies between arrays of any strides, in loops that threads share.

NumPy copies on one thread, and an element at a time where a dimension runs backwards. Dimensions
that lie side by side in both arrays are seen as one; of what is left, the last is the inner loop:

    >>> steps((8, 4, 5), (160, 40, 8), (160, 40, 8))
    [(160, 8, 8)]
    >>> steps((8, 4, 5), (160, 40, 8), (160, 40, -8))
    [(32, 40, 40), (5, 8, -8)]
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from toytorch.facts.hints import Array, Shape, Sizes, Value
from toytorch.kernels.memory_format import WORDS as TURNING
from toytorch.kernels.memory_format import transposition
from toytorch.loops.llvm.builder import BLOCK
from toytorch.loops.runtime import jit, threads
from toytorch.loops.runtime.array_call import ArrayCall
from toytorch.loops.runtime.native import Native

SHARED = 1 << 17  # bytes, from which several threads copy
BACKWARDS = 1 << 12  # bytes, from which one thread copies what runs backwards, or is transposed
SHORT = 128  # elements of a run, up to which NumPy takes longer to begin runs
RUN = 1 << 12  # elements of one long run that are copied at a time
PART = 1 << 14  # elements that a thread copies at a time, at least
WORDS = (
    *("to", "from", "lines", "parts", "part", "rows", "length", "whole"),
    *(f"{array} {k}" for array in ("to", "from") for k in range(4)),
)


def assign(to: Array, source: Array) -> None:
    """to[...] = source, for arrays of one type and shape that share no memory."""
    call = None
    if to.__class__ is np.ndarray and source.__class__ is np.ndarray:
        several = threads.thread_count() > 1
        call = worth(source.dtype, to.shape, to.strides, source.strides, several)
    if call is None:
        to[...] = source
    else:
        call(to, source)


def copied(source: Array) -> Any:
    """A copy in rows; None where NumPy makes it as fast."""
    if source.__class__ is not np.ndarray:
        return None
    several = threads.thread_count() > 1
    call = worth(source.dtype, source.shape, None, source.strides, several)
    if call is None:
        return None
    made = np.empty(source.shape, source.dtype)
    call(made, source)
    return made


def in_rows(a: Array) -> Any:
    """An array in rows: itself, or a copy."""
    if a.flags.c_contiguous:
        return a
    made = copied(a)
    return np.ascontiguousarray(a) if made is None else made


def joined(arrays: Sequence[Array], d: int) -> Any:
    """Arrays of one type along a dimension; None where NumPy joins them as fast."""
    first, size = arrays[0], 0
    for a in arrays:
        if a.__class__ is not np.ndarray or not a.flags.c_contiguous:
            return None
        size += a.nbytes
    d %= first.ndim
    few = size < SHARED or threads.thread_count() < 2
    if (few and not any(n > 1 for n in first.shape[:d])) or not known(first.dtype):
        return None  # what lies behind one another NumPy copies as fast
    if not jit.works():
        return None
    shape, calls = joining(first.itemsize, d, tuple([a.shape for a in arrays]))
    made = np.empty(shape, first.dtype)
    for a, call in zip(arrays, calls):
        if call is not None:
            call(made, a)
    return made


@functools.lru_cache(1024)
def joining(
    item: int, d: int, shapes: tuple[tuple[int, ...], ...]
) -> tuple[list[int], list[ArrayCall | None]]:
    """The shape of arrays in rows that are joined along a dimension, and the call for each of them that
    copies it; None for what is empty."""
    runs = [math.prod(s[d:]) for s in shapes]
    lines, whole, begin = math.prod(shapes[0][:d]), sum(runs), 0
    calls = list[ArrayCall | None]()
    for n in runs:
        strides = (whole * item, item), (n * item, item)
        full = lines and n
        calls.append(plan(item, (lines, n), *strides, (begin * item, 0)) if full else None)
        begin += n
    shape = list(shapes[0])
    shape[d] = sum(s[d] for s in shapes)
    return shape, calls


def interleaved(a: Array, times: Array | int, d: int) -> Any:
    """Every element along a dimension as often; None where NumPy repeats them as fast."""
    if threads.thread_count() < 2 or not a.size * times >= jit.SMALLEST:
        return None
    before, after = a.shape[: d + 1], a.shape[d + 1 :]
    made = np.empty((*before, int(times), *after), a.dtype)
    assign(made, np.broadcast_to(a.reshape(*before, 1, *after), made.shape))
    return made.reshape(*a.shape[:d], -1, *after)


@functools.lru_cache(4096)
def worth(
    kind: np.dtype[Any],
    shape: tuple[int, ...],
    to: tuple[int, ...] | None,
    source: tuple[int, ...],
    several: bool,
) -> ArrayCall | None:
    """The call that copies between arrays of these strides, the first one in rows if nothing is said;
    None where NumPy, on one thread or beside `several`, is as fast."""
    step = kind.itemsize
    rows = contiguous(shape, step)
    to, size = to or rows, math.prod(shape) * step
    if size < BACKWARDS or not known(kind) or not jit.works():
        return None
    if size < SHARED or not several:
        backwards = source[-1] == -step
        across = step in (4, 8) and len(shape) > 1 and step in source[:-1]
        short = len(shape) > 1 and shape[-1] <= SHORT and not to == source == rows
        one = source[-1] == 0 and shape[-1] > 1 and size >= SHARED // 2
        if not (backwards or one or (short if source[-1] == step else across)):
            return None
    return plan(step, shape, to, source)


def contiguous(shape: Shape, step: int) -> Sizes:
    """The strides in bytes of an array in rows."""
    made = list[int]()
    for n in reversed(shape):
        made.insert(0, step)
        step *= n
    return tuple(made)


def known(kind: np.dtype[Any]) -> bool:
    """Whether elements of a type are one, two, four or eight bytes, or two times eight."""
    return kind.itemsize in (1, 2, 4, 8, 16) and not kind.hasobject


def steps(shape: Shape, to: Sequence[int], source: Sequence[int]) -> list[tuple[int, int, int]]:
    """(size, step in `to`, step in `source`) of the dimensions, in the order in which the first
    array lies; those that lie side by side in both are one."""
    found = sorted(((n, t, s) for n, t, s in zip(shape, to, source) if n > 1), key=lambda d: -d[1])
    made: list[tuple[int, int, int]] = []
    for n, t, s in found:
        if made and made[-1][1:] == (n * t, n * s):
            n *= made.pop()[0]
        made.append((n, t, s))
    return made


@functools.lru_cache(1024)
def plan(
    item: int,
    shape: Sizes,
    to: tuple[int, ...],
    source: tuple[int, ...],
    places: tuple[int, int] = (0, 0),
) -> ArrayCall | None:
    """The call that copies arrays of these strides in bytes, which begin so many bytes after what
    is given; None where there is none."""
    if item == 16:  # of complex numbers, the parts
        item, shape, to, source = 8, (*shape, 2), (*to, 8), (*source, 8)
    dims = steps(shape, to, source)
    if not dims or dims[-1][1] <= 0:
        return None
    size = 1
    for n, _, _ in dims:
        size *= n
    work = size * item * 4  # some 128 KiB are worth sharing
    transposed = transposing(item, dims, work, places)
    if transposed is not None:
        return transposed
    if len(dims) > 4:
        return None
    (n, t, s), whole = dims[-1], 1 << 62
    if len(dims) == 1 and n > RUN and t == item:
        whole, dims = n, [(-(-n // RUN), RUN * t, RUN * s), (RUN, t, s)]
    dims = [(1, 0, 0)] * (4 - len(dims)) + dims
    (n0, n1, rows, length), (t0, t1, t2, t3), (s0, s1, s2, s3) = zip(*dims)
    part = min(rows, max(1, PART // length))
    parts = -(-rows // part)
    words = (*places, n1, parts, part, rows, length, whole, t0, t1, t2, t3, s0, s1, s2, s3)
    assert len(words) == len(WORDS)
    inner = inner_of(item, t3, s3)
    if inner == "run" and whole > n:
        inner = f"run {min(64, 1 << (length * item).bit_length() - 1)}"
    call = Copy.kernel(item * 8, inner)
    return ArrayCall(call, words, (0, 1), n0 * n1 * parts, work)


def inner_of(item: int, to: int, source: int) -> str:
    """What the inner loop is, by its steps in both arrays: a kernel's second name."""
    return {item: "run", -item: "backwards", 0: "one"}.get(source, "") if to == item else ""


def transposing(
    item: int, dims: list[tuple[int, int, int]], work: int, places: tuple[int, int]
) -> ArrayCall | None:
    """The call for matrices whose columns lie side by side in the source, by blocks of registers."""
    across = [d for d in dims[:-1] if d[2] == item]
    rows, step, line = dims[-1]
    if item not in (4, 8) or len(across) != 1 or step != item or line <= 0 or len(dims) > 4:
        return None
    columns, row, _ = across[0]
    if min(rows, columns) < BLOCK:
        return None
    rest = [d for d in dims[:-1] if d is not across[0]]
    rest = [(1, 0, 0)] * (2 - len(rest)) + rest
    words = (*places, *rest[0], *rest[1], rows, columns, row, line)
    assert len(words) == len(TURNING)
    call, turns = transposition("f" if item == 4 else "d", *words[2:])
    return ArrayCall(call, words, (0, 1), turns, work)


class Copy(Native, family="copy"):
    """LLVM for `assign`, of elements of so many bits, of which a run lies in both arrays as `inner` says;
    a number behind it says how many bytes are moved at a time. By hand: in programs, what an array's
    strides are is known only when it is called, and a dimension that runs backwards is not a run."""

    def __init__(self, name: str, bits: int, inner: str) -> None:
        super().__init__(name, "f", WORDS)
        b, word = self.b, self.word_of
        type, size = self.type(self.ir.IntType(bits)), bits // 8
        to, source = self.array("to", "byte"), self.array("from", "byte")
        inner, _, together = inner.partition(" ")
        if inner:
            steps = self.word(size), self.word({"run": size, "backwards": -size, "one": 0}[inner])
        else:
            steps = word["to 3"], word["from 3"]

        def at(base: Value, index: Value, step: Any) -> Any:
            return b.gep(base, [b.mul(index, step)])

        def element(base: Value, index: Value, step: Any) -> Any:
            return b.bitcast(at(base, index, step), type.as_pointer())

        def part(r: Value) -> None:
            line, which = b.udiv(r, word["parts"]), b.urem(r, word["parts"])
            outer, middle = b.udiv(line, word["lines"]), b.urem(line, word["lines"])
            first = b.mul(which, word["part"])
            end = self.smaller(b.add(first, word["part"]), word["rows"])
            there = at(at(to, outer, word["to 0"]), middle, word["to 1"])
            here = at(at(source, outer, word["from 0"]), middle, word["from 1"])

            def row(m: Value) -> None:
                left = b.sub(word["whole"], b.mul(m, word["length"]))
                one, other = at(there, m, word["to 2"]), at(here, m, word["from 2"])

                def move(i: Value) -> None:
                    value = b.load(element(other, i, steps[1]), align=size)
                    b.store(value, element(one, i, steps[0]), align=size)

                if not together:
                    self.count(self.smaller(left, word["length"]), move)
                    return
                bytes = self.type(self.ir.VectorType(self.type("byte"), int(together))).as_pointer()

                def move_bytes(i: Value) -> None:
                    pair = (b.bitcast(b.gep(base, [i]), bytes) for base in (other, one))
                    b.store(b.load(next(pair), align=1), next(pair), align=1)

                last = b.sub(b.mul(word["length"], self.word(size)), self.word(int(together)))
                self.loop(0, last, int(together), move_bytes)
                move_bytes(last)  # which moves some bytes again, where these are no multiple

            self.loop(first, end, 1, row)

        self.loop(self.lo, self.hi, 1, part)
