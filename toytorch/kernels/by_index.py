"""Elements by index along a dimension: gather, scatter and index_select, and sums, products and
extremes in such places.

An array is seen as (blocks, n, inner), of which the middle dimension is the one that is indexed.
Where inner is 1 a kernel goes along the indexed dimension, else along the inner one.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from toytorch.facts.hints import Array, Sizes, Value
from toytorch.loops.runtime import jit, threads
from toytorch.loops.runtime.array_call import ArrayCall
from toytorch.loops.runtime.native import Native

ADDED = "fdqil"  # the types whose elements a kernel adds up, multiplies or compares
FLOATS = "fd"
MOVES = ("get", "set")  # what looks at no element
# Indices that are looked at before what they point to is moved: of a row, and of many.
FEW, MANY = 64, 512
COST = 6  # of an element that is read or written at a place, in additions


def movable(*arrays: Array) -> bool:
    """Whether these are NumPy's arrays of one type whose elements are one, two, four or eight
    bytes."""
    first = arrays[0].dtype
    return first.itemsize in (1, 2, 4, 8) and all(
        a.__class__ is np.ndarray and a.dtype == first for a in arrays
    )


def around(shape: Sizes, d: int) -> tuple[int, int]:
    """The number of blocks before a dimension, and of elements behind each of its places."""
    return math.prod(shape[:d]), math.prod(shape[d + 1 :])


def matched(shape: Sizes, wanted: Sizes, d: int) -> bool:
    """Whether indices of a shape lie beside the slices of an array along d: of the first dimension they
    may leave out the end."""
    return (
        len(shape) == len(wanted)
        and shape[d + 1 :] == wanted[d + 1 :]
        and (not d or (wanted[0] <= shape[0] and shape[1:d] == wanted[1:d]))
    )


def indexed(a: Array, d: int, i: Array) -> bool:
    """Whether an index with an element for each result is worth a compiled loop."""
    return (
        i.size >= jit.SMALLEST
        and i.__class__ is np.ndarray
        and i.dtype.char in "lqi"
        and i.ndim > 0
        and matched(a.shape, i.shape, d)
        and a.shape[d] > 0
        and movable(a)
        and jit.works()
    )


def gather(a: Array, d: int, i: Array) -> Any:
    """out[b, m, k] = a[b, i[b, m, k], k]; None where NumPy should do it, or has to say what is
    wrong: an index is outside."""
    if i.size < jit.SMALLEST:
        made = np.empty(i.shape, a.dtype)
        return made if few("get", a, d, i, made) else None
    if not indexed(a, d, i):
        return None
    made = np.empty(i.shape, a.dtype)
    blocks, inner = around(i.shape, d)
    return made if _run("get", a.dtype, a, i, made, blocks, a.shape[d], i.shape[d], inner) else None


def scatter(target: Array, d: int, i: Array, values: Array, adds: bool) -> bool | None:
    """target[b, i[b, m, k], k] = values[b, m, k], or +=, where the target is a whole array of its
    own; None where NumPy should do it, or has to say what is wrong: an index is outside, and the
    target is spoilt."""
    return combine("plus" if adds else "set", target, d, i, values)


def combine(how: str, target: Array, d: int, i: Array, values: Array) -> bool | None:
    """`scatter` where values are set, added ("plus") or multiplied ("times"), or the larger or the
    smaller stays ("most", "least"), which is NaN if one is."""
    if i.size < jit.SMALLEST:
        return few(how, target, d, i, values) or None
    if (
        not indexed(target, d, i)
        or not target.flags.c_contiguous
        or values.shape != i.shape
        or not movable(target, values)
        or (how not in MOVES and target.dtype.char not in ADDED)
    ):
        return None
    blocks, inner = around(i.shape, d)
    n = target.shape[d]
    return _run(how, target.dtype, target, i, values, blocks, n, i.shape[d], inner) or None


def few(how: str, a: Array, d: int, i: Array, other: Array) -> bool:
    """`_run` for few indices; False also where the arrays are not what it takes."""
    if not (
        a.__class__ is i.__class__ is other.__class__ is np.ndarray
        and a.flags.c_contiguous
        and i.flags.c_contiguous
        and other.flags.c_contiguous
        and i.shape == other.shape
        and jit.pays(i.size)
    ):
        return False
    if i.dtype.char not in "lq" or a.dtype != other.dtype:
        return False
    call = ready(how, a.dtype.char, a.itemsize, a.shape, i.shape, d)
    if call is None:
        return False
    bad = np.zeros(1, np.int64)
    call(a, i, other, bad)
    return not bad.item()


@functools.lru_cache(512)
def ready(how: str, kind: str, item: int, shape: Sizes, wanted: Sizes, d: int) -> Any:
    """The kernel for few indices as a builtin function of (array, indices, other, bad); None where
    there is none."""
    if (
        not matched(shape, wanted, d)
        or not (math.prod(wanted) and math.prod(shape))
        or item not in (1, 2, 4, 8)
        or (how not in MOVES and kind not in ADDED)
    ):
        return None
    blocks, inner = around(wanted, d)
    total = blocks * wanted[d] if how == "get" and inner > 1 else blocks
    name = kind if how not in MOVES and kind in FLOATS else str(8 * item)
    words = (blocks, shape[d], wanted[d], inner, 0, 0, 0, 0, 0)
    return ArrayCall(Indexed.kernel(how, name, inner == 1), words, (5, 6, 7, 8), total, 1).here


def _run(
    how: str, kind: np.dtype[Any], a: Array, i: Array, other: Array,
    blocks: int, n: int, count: int, inner: int,
) -> bool:  # fmt: skip
    """Runs a kernel on whole arrays, and says whether all indices were inside."""
    a, other = np.ascontiguousarray(a), np.ascontiguousarray(other)
    i = np.ascontiguousarray(i, np.int64)
    bad = np.zeros(1, np.int64)
    columns = inner > 1 and blocks < 4  # what threads divide: blocks, or columns of all blocks
    if how == "get":
        columns, total = False, blocks if inner == 1 else blocks * count
    else:
        total = inner if columns else blocks
    places = map(jit.address_of, (a, i, other, bad))
    name = str(kind.itemsize * 8) if how in MOVES else type_name(kind)
    Indexed.kernel(how, name, inner == 1)(
        total, i.size * COST, blocks, n, count, inner, int(columns), *places
    )
    return not bad[0]


def type_name(kind: np.dtype[Any]) -> str:
    """How kernels call a type of elements."""
    return kind.char if kind.char in FLOATS else str(kind.itemsize * 8)


class Indexed(Native, family="indexed"):
    """LLVM for get, or one of `combine`, for elements of a type, along the indexed dimension (`last`) or
    the inner one. By hand: a program's indices are dimensions, these are read."""

    def __init__(self, name: str, how: str, kind: str, last: bool) -> None:
        words = ("blocks", "n", "count", "inner", "columns", "a", "places", "other", "bad")
        super().__init__(name, "f", words)
        b, self.how, self.kind = self.b, how, kind
        type = element_type(self, kind)
        self.a, self.other = self.array("a", type), self.array("other", type)
        self.places, bad = self.array("places", "word"), self.array("bad", "word")
        n, count, inner, columns = (self.word_of[w] for w in ("n", "count", "inner", "columns"))
        self.wrong = self.var(0)

        def behind(first: Value) -> Callable[[Value, Value], Any]:
            return lambda k, i: b.add(b.add(first, k), b.mul(i, inner))

        if last:

            def block(k: Value) -> None:
                first, row = b.mul(k, n), b.mul(k, count)
                self.along(row, self.word(0), count, FEW, lambda m, i: b.add(first, i))

            self.loop(self.lo, self.hi, 1, block)
        elif how == "get":  # rows of all blocks

            def row(r: Value) -> None:
                first = b.mul(b.mul(b.udiv(r, count), n), inner)
                self.along(b.mul(r, inner), self.word(0), inner, MANY, behind(first))

            self.loop(self.lo, self.hi, 1, row)
        else:  # some blocks, or some columns of all of them: no two threads meet at a place
            by_columns = b.icmp_signed("!=", columns, self.word(0))
            zero = self.word(0)
            k_lo, k_hi = b.select(by_columns, self.lo, zero), b.select(by_columns, self.hi, inner)
            b_lo = b.select(by_columns, zero, self.lo)
            b_hi = b.select(by_columns, self.word_of["blocks"], self.hi)

            def whole(k: Value) -> None:
                first = b.mul(b.mul(k, n), inner)

                def line(m: Value) -> None:
                    start = b.mul(b.add(b.mul(k, count), m), inner)
                    self.along(start, k_lo, k_hi, MANY, behind(first))

                self.count(count, line)

            self.loop(b_lo, b_hi, 1, whole)
        found = b.icmp_signed("!=", b.load(self.wrong), self.word(0))
        with b.if_then(found):
            b.store(self.word(1), bad)

    def along(
        self, row: Value, start: Value, end: Value, some: int, place: Callable[[Value, Value], Any]
    ) -> None:
        """Elements start … end behind `row`: place(k, i) is where index i of the k-th points to.

        Some are looked at together, whether they are inside, in vectors; then they are moved.
        """
        b = self.b

        def part(first: Value) -> None:
            last = self.smaller(b.add(first, self.word(some)), end)

            def look(k: Value, seen: Value) -> Any:
                i = self.get(self.places, b.add(row, k))
                outside = b.icmp_unsigned(">=", i, self.word_of["n"])
                return [b.or_(seen, b.zext(outside, self.word))]

            (seen,) = self.loop(first, last, 1, look, [self.word(0)])
            wrong = b.icmp_signed("!=", seen, self.word(0))
            with b.if_else(wrong) as (then, otherwise):
                with then:
                    b.store(self.word(1), self.wrong)
                with otherwise:
                    self.loop(first, last, 1, lambda k: self.move(b.add(row, k), k, place))

        self.loop(start, end, some, part)

    def move(self, at: Value, k: Value, place: Callable[[Value, Value], Any]) -> None:
        """One element."""
        b = self.b
        where = place(k, self.get(self.places, at))
        if self.how == "get":
            self.put(self.other, at, self.get(self.a, where))
            return
        target = b.gep(self.a, [where])
        value = self.get(self.other, at)
        if self.how not in MOVES:
            value = self.combined(b.load(target), value)
        b.store(value, target)

    def combined(self, old: Value, new: Value) -> Any:
        """What stays of two numbers that meet."""
        b, floats = self.b, self.kind in FLOATS
        if self.how == "plus":
            return b.fadd(old, new) if floats else b.add(old, new)
        if self.how == "times":
            return b.fmul(old, new) if floats else b.mul(old, new)
        less = b.fcmp_ordered if floats else b.icmp_signed
        takes = less("<" if self.how == "most" else ">", old, new)
        if floats:
            takes = b.or_(takes, b.fcmp_unordered("uno", new, new))
        return b.select(takes, new, old)


def element_type(builder: Native, kind: str) -> Any:
    """LLVM's type of a name that `type_name` gives, or of a number of bits."""
    return builder.type({"f": "float", "d": "double"}.get(kind) or builder.ir.IntType(int(kind)))


# -- an index vector ------------------------------------------------------------------------------


def select(a: Array, d: int, i: Array) -> Any:
    """out[b, m, k] = a[b, i[m], k] for indices that are known to be inside, or None."""
    blocks, inner = around(a.shape, d)
    size = blocks * i.size * inner
    if size < jit.SMALLEST or i.__class__ is not np.ndarray or not movable(a) or not jit.works():
        return None
    if inner * a.itemsize > 64 and not blocks > 64 and threads.thread_count() < 2:
        return None  # long runs, which NumPy copies
    made = np.empty((*a.shape[:d], i.size, *a.shape[d + 1 :]), a.dtype)
    a, i = np.ascontiguousarray(a), np.ascontiguousarray(i, np.int64)
    total = blocks if inner == 1 else blocks * i.size
    places = map(jit.address_of, (a, i, made))
    Selected.kernel(a.itemsize * 8, inner == 1)(
        total, size * COST, a.shape[d], i.size, inner, *places
    )
    return made


class Selected(Native, family="selected"):
    """LLVM for `select`."""

    def __init__(self, name: str, bits: int, last: bool) -> None:
        super().__init__(name, "f", ("n", "count", "inner", "a", "places", "made"))
        b, type = self.b, element_type(self, str(bits))
        a, made, places = (
            self.array("a", type),
            self.array("made", type),
            self.array("places", "word"),
        )
        n, count, inner = (self.word_of[w] for w in ("n", "count", "inner"))

        def block(k: Value) -> None:
            source, to = b.gep(a, [b.mul(k, n)]), b.gep(made, [b.mul(k, count)])
            self.count(count, lambda m: self.put(to, m, self.get(source, self.get(places, m))))

        def row(r: Value) -> None:
            k = b.udiv(r, count)
            i = self.get(places, b.sub(r, b.mul(k, count)))
            source = b.gep(a, [b.mul(b.add(b.mul(k, n), i), inner)])
            to = b.gep(made, [b.mul(r, inner)])
            self.count(inner, lambda m: self.put(to, m, self.get(source, m)))

        self.loop(self.lo, self.hi, 1, block if last else row)


FEW_ADDED = 1024  # numbers, below which NumPy adds them as fast


def add_slices(target: Array, d: int, i: Array, values: Array) -> bool | None:
    """target[b, i[m], k] += values[b, m, k], or None, and nothing is done. The indices are known
    to be inside; those below zero count from the end."""
    if (
        values.size < FEW_ADDED
        or target.ndim != values.ndim
        or target.dtype.char not in ADDED
        or not target.flags.c_contiguous
        or not movable(target, values)
        or i.ndim != 1
        or values.shape != (*target.shape[:d], i.size, *target.shape[d + 1 :])
        or not jit.pays(values.size)
    ):
        return None
    values = np.ascontiguousarray(values)
    i = np.ascontiguousarray(i, np.int64)
    if int(i.min()) < 0:
        i = np.where(i < 0, i + target.shape[d], i)
    blocks, inner = around(target.shape, d)
    columns = blocks < 4
    places = map(jit.address_of, (target, i, values))
    AddedSlices.kernel(type_name(target.dtype))(
        inner if columns else blocks, values.size * 2 * jit.TRAFFIC,
        blocks, target.shape[d], i.size, inner, int(columns), *places,
    )  # fmt: skip
    return True


class AddedSlices(Native, family="slices"):
    """LLVM for `add_slices`: threads share blocks or columns, so none meets another at a place."""

    def __init__(self, name: str, kind: str) -> None:
        words = ("blocks", "n", "count", "inner", "columns", "to", "places", "from")
        super().__init__(name, "f", words)
        b, type = self.b, element_type(self, kind)
        to, source = self.array("to", type), self.array("from", type)
        places = self.array("places", "word")
        n, count, inner = (self.word_of[w] for w in ("n", "count", "inner"))
        by_columns, zero = b.icmp_signed("!=", self.word_of["columns"], self.word(0)), self.word(0)
        k_lo, k_hi = b.select(by_columns, self.lo, zero), b.select(by_columns, self.hi, inner)
        b_lo = b.select(by_columns, zero, self.lo)
        b_hi = b.select(by_columns, self.word_of["blocks"], self.hi)
        add = b.fadd if kind in FLOATS else b.add

        def block(k: Value) -> None:
            def line(m: Value) -> None:
                i = self.get(places, m)
                mine = b.gep(to, [b.mul(b.add(b.mul(k, n), i), inner)])
                other = b.gep(source, [b.mul(b.add(b.mul(k, count), m), inner)])

                def element(c: Value) -> None:
                    self.put(mine, c, add(self.get(mine, c), self.get(other, c)))

                self.loop(k_lo, k_hi, 1, element)

            self.count(count, line)

        self.loop(b_lo, b_hi, 1, block)


# -- counts ---------------------------------------------------------------------------------------

COUNTERS = 4  # tables that are counted in by turns: equal numbers often follow each other
LONGEST = 4096  # of such tables


def counted(a: Array, least: int) -> Any:
    """How often each number occurs, in a table of so many places at least; None where NumPy should do
    it, or has to say what is wrong: a number below 0."""
    if (
        a.size < jit.SMALLEST
        or a.__class__ is not np.ndarray
        or a.dtype.char not in "lq"
        or not jit.works()
    ):
        return None
    a = np.ascontiguousarray(a)
    largest = int(a.view(np.uint64).max())  # a number below 0 is a large one
    if largest >> 32:
        return None
    n = max(largest + 1, least)
    made = np.zeros((COUNTERS if n <= LONGEST else 1, n), np.int64)
    pitch = n if len(made) > 1 else 0
    Counted.kernel()(1, 0, a.size, pitch, jit.address_of(a), jit.address_of(made))
    return made.sum(0) if pitch else made[0]


class Counted(Native, family="occurrences"):
    """LLVM for `counted`."""

    def __init__(self, name: str) -> None:
        super().__init__(name, "f", ("count", "pitch", "places", "made"))
        b, count, pitch = self.b, self.word_of["count"], self.word_of["pitch"]
        places, made = self.array("places", "word"), self.array("made", "word")
        tables = [b.gep(made, [b.mul(pitch, self.word(k))]) for k in range(COUNTERS)]
        one, whole = self.word(1), b.and_(count, self.word(-COUNTERS))

        def some(i: Value, tables: list[Any]) -> None:
            for k, table in enumerate(tables):
                place = self.get(places, b.add(i, self.word(k)))
                self.put(table, place, b.add(self.get(table, place), one))

        self.loop(0, whole, COUNTERS, lambda i: some(i, tables))
        self.loop(whole, count, 1, lambda i: some(i, tables[:1]))
