"""What takes NumPy several calls, in one pass over few numbers.

Of so few, NumPy's calls take longer than the work. A kernel is made once for the sizes of its arrays
(`ready`), and is then a builtin function of these. Where there are more numbers, or nothing is
compiled, the answer is None, and ops say it in NumPy's words.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from toytorch.facts.hints import Array, Fn, Value
from toytorch.kernels.by_index import element_type
from toytorch.loops.runtime import jit
from toytorch.loops.runtime.array_call import ArrayCall
from toytorch.loops.runtime.native import Call, Native

TYPES = {"f": "f", "d": "d", "i": "32", "l": "64", "q": "64"}
FEW = 256  # numbers that are read once
PAIRS = 1 << 12  # comparisons, where each is compared with each


def extreme(what: str, a: Array) -> Any:
    """The "least" or the "most" of all numbers, NaN if one is; or None."""
    kind = kind_of(a, FEW)
    if kind is None:
        return None
    made = np.empty((), a.dtype)
    ready(Ends, what, kind, 1, a.size)(a, made)
    return made


def ends(a: Array) -> Any:
    """Both ends of all numbers, or None."""
    kind = kind_of(a, FEW)
    if kind is None:
        return None
    low, high = np.empty((), a.dtype), np.empty((), a.dtype)
    ready(BothEnds, "both", kind, 1, a.size)(a, low, high)
    return low, high


def spread(a: Array, degrees: int, root: bool) -> Any:
    """Σ(x - mean)² / degrees of all numbers, or its root, in float64 until it is written; or None."""
    kind = kind_of(a, FEW)
    if kind is None or kind not in "fd":
        return None
    made = np.empty((), a.dtype)
    ready(Spread, "root" if root else "square", kind, 1, a.size, degrees)(a, made)
    return made


def middle(a: Array) -> Any:
    """The middle one of all numbers in order (the lower of two), NaN if one is; or None."""
    kind = kind_of(a, PAIRS) if a.size * a.size <= PAIRS else None
    if kind is None:
        return None
    made = np.empty((), a.dtype)
    ready(Middle, "", kind, 1, a.size)(a, made)
    return made


def mode(a: Array, d: int) -> Any:
    """The most frequent number of each row, the smallest of several, and its last place; or None."""
    n = a.shape[d]
    if a.size * n > PAIRS:
        return None
    if d != a.ndim - 1:
        a = np.ascontiguousarray(np.moveaxis(a, d, -1))
    kind = kind_of(a, PAIRS)
    if kind is None:
        return None
    values, index = np.empty(a.shape[:-1], a.dtype), np.empty(a.shape[:-1], np.int64)
    ready(Mode, "", kind, index.size, n)(a, values, index)
    return values, index


def among(a: Array, b: Array) -> Any:
    """Whether each number of `a` is one of `b`, of the same type; or None."""
    kind = kind_of(a, FEW)
    if kind is None or kind_of(b, PAIRS // a.size) is None:
        return None
    made = np.empty(a.shape, np.bool_)
    ready(Among, "", kind, a.size, b.size)(a, b, made)
    return made


def places(row: Array, values: Array, right: bool) -> Any:
    """Where numbers go in a row of the same type, by halving, as PyTorch does it: in a row that is
    not sorted, and with NaN, too; or None."""
    kind = kind_of(row, FEW)
    if kind is None or not (0 < values.size <= FEW and values.flags.c_contiguous):
        return None
    made = np.empty(values.shape, np.int64)
    side = "right" if right else "left"
    ready(Places, side, kind, values.size, row.size, values.size)(row, values, made)
    return made


def row_places(rows: Array, values: Array, right: bool) -> Any:
    """`places` of the values (R, K) of each of several rows (R, N), of any number; or None."""
    kind = kind_of(rows, rows.size)
    if kind is None or rows.dtype is not values.dtype or not values.size:
        return None
    made = np.empty(values.shape, np.int64)
    call = row_call("right" if right else "left", kind, rows.shape, values.shape[1])
    call(rows, np.ascontiguousarray(values), made)
    return made


@functools.lru_cache(256)
def row_call(what: str, kind: str, shape: tuple[int, int], each: int) -> ArrayCall:
    """The kernel of `row_places` for rows of a shape."""
    total, steps = shape[0] * each, 4 * shape[1].bit_length()
    words = (shape[1], each, 0, 0, 0)
    return ArrayCall(kernel(Places, what, kind), words, (2, 3, 4), total, total * steps)


def kind_of(a: Array, most: int) -> str | None:
    """How kernels call the type of few numbers that lie in rows; None for other arrays."""
    if (
        a.__class__ is np.ndarray
        and 0 < a.size <= most
        and a.flags.c_contiguous
        and jit.pays(a.size)
    ):
        return TYPES.get(a.dtype.char)
    return None


@functools.lru_cache(512)
def ready(of: Any, what: str, kind: str, total: int, *sizes: int) -> Any:
    """The kernel for arrays of these sizes, as a builtin function of them."""
    count, arrays = len(sizes), len(of.arrays)
    words = (*sizes, *(0,) * arrays)
    return ArrayCall(kernel(of, what, kind), words, range(count, count + arrays), total, 1).here


@functools.cache
def kernel(of: Any, what: str, kind: str) -> Call:
    return Call(f"few {of.__name__} {what} {kind}", lambda name: of(name, what, kind))


class OfFew(Native):
    """LLVM for one of these kernels, over elements of the range."""

    sizes: tuple[str, ...] = ("n",)
    arrays: tuple[str, ...] = ("a", "made")

    def __init__(self, name: str, what: str, kind: str) -> None:
        super().__init__(name, "d" if kind in ("d", "64") else "f", (*self.sizes, *self.arrays))
        self.what, self.floats = what, kind in ("f", "d")
        self.element = element_type(self, kind)
        self.n, self.a = self.word_of["n"], self.array("a", self.element)
        self.double = self.type("double")
        self.write_body()

    def write_body(self) -> None:
        """The code of the kernel."""
        raise NotImplementedError  # what a kernel does is its subclass's part

    def each(self, body: Fn) -> None:
        """A loop over the range."""
        self.loop(self.lo, self.hi, 1, body)

    def compare(self, how: str, x: Value, y: Value) -> Any:
        """A comparison, which does not hold for NaN."""
        return (self.b.fcmp_ordered if self.floats else self.b.icmp_signed)(how, x, y)

    def bare(self, x: Value) -> Any:
        """Whether a number is NaN."""
        return self.b.fcmp_unordered("uno", x, x) if self.floats else self.type("bit")(0)


class Ends(OfFew):
    """LLVM for `extreme`."""

    def write_body(self) -> None:
        b, first = self.b, self.get(self.a, 0)
        signs = "<>" if self.what == "both" else "<" if self.what == "least" else ">"

        def element(j: Value, *found: Value) -> list[Any]:
            x = self.get(self.a, j)
            return [
                b.select(b.or_(self.compare(s, x, y), self.bare(x)), x, y)
                for s, y in zip(signs, found)
            ]

        found = self.loop(1, self.n, 1, element, [first] * len(signs))
        for value, name in zip(found, self.arrays[1:]):
            self.put(self.array(name, self.element), 0, value)


class BothEnds(Ends):
    """LLVM for `ends`."""

    arrays = ("a", "low", "high")


class Spread(OfFew):
    """LLVM for `spread`."""

    sizes = ("n", "degrees")

    def write_body(self) -> None:
        b, none, narrow = self.b, self.double(0.0), self.real != self.double

        def get(j: Value) -> Any:
            x = self.get(self.a, j)
            return b.fpext(x, self.double) if narrow else x

        def whole(n: Value) -> Any:
            return b.sitofp(n, self.double)

        def square(j: Value, total: Value) -> list[Any]:
            d = b.fsub(get(j), mean)
            return [b.fadd(total, b.fmul(d, d))]

        (total,) = self.count(self.n, lambda j, t: [b.fadd(t, get(j))], loop_carried=[none])
        mean = b.fdiv(total, whole(self.n))
        (total,) = self.count(self.n, square, loop_carried=[none])
        made = b.fdiv(total, whole(self.word_of["degrees"]))
        if self.what == "root":
            made = b.call(self.module.declare_intrinsic("llvm.sqrt", [self.double]), [made])
        made = b.fptrunc(made, self.real) if narrow else made
        self.put(self.array("made", self.element), 0, made)


class Middle(OfFew):
    """LLVM for `middle`: the number with as many before it as there are behind it."""

    def write_body(self) -> None:
        b = self.b
        half = b.lshr(b.sub(self.n, self.word(1)), self.word(1))

        def element(j: Value, found: Value, none: Value) -> list[Any]:
            x = self.get(self.a, j)

            def before(k: Value, count: Value) -> list[Any]:
                y = self.get(self.a, k)
                earlier = b.and_(self.compare("==", y, x), b.icmp_signed("<", k, j))
                less = b.or_(self.compare("<", y, x), earlier)
                return [b.add(count, b.zext(less, self.word))]

            (count,) = self.count(self.n, before, loop_carried=[self.word(0)])
            bare = self.bare(x)
            here = b.and_(b.icmp_signed("==", count, half), b.not_(none))
            return [b.select(b.or_(here, bare), x, found), b.or_(none, bare)]

        begin = [self.get(self.a, 0), self.type("bit")(0)]
        found, _ = self.count(self.n, element, loop_carried=begin)
        self.put(self.array("made", self.element), 0, found)


class Mode(OfFew):
    """LLVM for `mode`."""

    arrays = ("a", "numbers", "at")

    def write_body(self) -> None:
        b, n, a = self.b, self.n, self.a
        numbers, at = self.array("numbers", self.element), self.array("at", "word")

        def row(r: Value) -> None:
            start = b.gep(a, [b.mul(r, n)])

            def element(j: Value, place: Value, value: Value, often: Value) -> list[Any]:
                x = self.get(start, j)

                def same(k: Value, count: Value) -> list[Any]:
                    equal = self.compare("==", self.get(start, k), x)
                    return [b.add(count, b.zext(equal, self.word))]

                (count,) = self.count(n, same, loop_carried=[self.word(0)])
                alike = b.and_(b.icmp_signed("==", count, often), self.compare("<=", x, value))
                better = b.or_(b.icmp_signed(">", count, often), alike)
                pairs = ((j, place), (x, value), (count, often))
                return [b.select(better, new, old) for new, old in pairs]

            begin = [self.word(0), self.get(start, 0), self.word(0)]
            place, value, _ = self.count(n, element, loop_carried=begin)
            self.put(at, r, place)
            self.put(numbers, r, value)

        self.each(row)


class Among(OfFew):
    """LLVM for `among`."""

    arrays = ("a", "b", "made")

    def write_body(self) -> None:
        b, bit, byte = self.b, self.type("bit"), self.type("byte")
        others, made = self.array("b", self.element), self.array("made", byte)

        def element(j: Value) -> None:
            x = self.get(self.a, j)
            (found,) = self.count(
                self.n,
                lambda k, found: [b.or_(found, self.compare("==", self.get(others, k), x))],
                loop_carried=[bit(0)],
            )
            self.put(made, j, b.zext(found, byte))

        self.each(element)


class Places(OfFew):
    """LLVM for `places`: the first `each` numbers go to the first row, and so on."""

    sizes, arrays = ("n", "each"), ("a", "wanted", "made")

    def write_body(self) -> None:
        b, one = self.b, self.word(1)
        wanted, made = self.array("wanted", self.element), self.array("made", "word")
        before = ">" if self.what == "right" else ">="

        def element(j: Value) -> None:
            x = self.get(wanted, j)
            row = b.gep(self.a, [b.mul(b.udiv(j, self.word_of["each"]), self.n)])
            low, high = self.alloca(self.word), self.alloca(self.word)
            b.store(self.word(0), low)
            b.store(self.n, high)
            look, halve, done = (self.block() for _ in range(3))
            b.branch(look)
            b.position_at_end(look)
            i, k = b.load(low), b.load(high)
            b.cbranch(b.icmp_signed("<", i, k), halve, done)
            b.position_at_end(halve)
            middle = b.add(i, b.lshr(b.sub(k, i), one))
            here = self.compare(before, self.get(row, middle), x)
            b.store(b.select(here, i, b.add(middle, one)), low)
            b.store(b.select(here, middle, k), high)
            b.branch(look)
            b.position_at_end(done)
            self.put(made, j, b.load(low))

        self.each(element)
