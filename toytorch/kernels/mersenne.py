"""mt19937's words in blocks, what becomes of them, and the C library's functions on arrays.

Matsumoto and Nishimura, Mersenne Twister (1998). The state is 624 words; a step makes 624 new ones of
them, and each number drawn is one of these, tempered. Everything here is there twice, as LLVM's code
and in NumPy's words, with the same results to the last bit: what is compiled is used for many numbers,
or from the time on when it has been loaded.
"""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from toytorch.facts.hints import Array, Value
from toytorch.kernels import box_muller
from toytorch.loops.llvm.builder import Builder
from toytorch.loops.runtime import jit
from toytorch.loops.runtime.array_call import ArrayCall
from toytorch.loops.runtime.native import Call, Native

WORDS = 624  # in the state
NEXT = 397  # how far ahead the word lies that is mixed in
UPPER, LOWER, TWIST = 0x80000000, 0x7FFFFFFF, 0x9908B0DF
SEEDING = 1812433253
TEMPER = ((11, 0xFFFFFFFF), (-7, 0x9D2C5680), (-15, 0xEFC60000), (18, 0xFFFFFFFF))


# -- seeds and words ------------------------------------------------------------------------------


@functools.lru_cache(8)
def seeded(seed: int) -> Any:
    """The state that belongs to the lower 32 bits of a seed; a copy is for use."""
    word = seed & 0xFFFFFFFF
    if jit.pays(1):
        made = np.full(WORDS, word, np.uint32)
        Seed.kernel()(WORDS, 0, jit.address_of(made))
        return made
    words = [word]
    for k in range(1, WORDS):
        word = (SEEDING * (word ^ word >> 30) + k) & 0xFFFFFFFF
        words.append(word)
    return np.array(words, np.uint32)


class Seed(Native, family="mersenne seed"):
    """LLVM for `seeded`, where the first word stands already."""

    def __init__(self, name: str) -> None:
        super().__init__(name, "f", ("made",))
        made, b, half = self.array("made", "half"), self.b, self.half

        def word(k: Value, before: Value) -> list[Any]:
            mixed = b.mul(b.xor(before, b.lshr(before, half(30))), half(SEEDING))
            value = b.add(mixed, b.trunc(k, half))
            self.put(made, k, value)
            return [value]

        self.loop(1, self.hi, 1, word, [self.get(made, 0)])


def blocks(state: Array, made: Array) -> None:
    """Steps the state on, and fills `made` (n, 624) with the tempered words of each step."""
    if jit.pays(made.size):
        words_call(len(made))(state, made)
        return
    for row in made:
        step(state)
        row[:] = tempered(state)


def step(state: Array) -> None:
    """The next 624 words, in the place of the old ones."""
    first = state[:1].copy()
    reach = WORDS - NEXT
    for start in range(0, WORDS, reach):  # each part needs words of the part before
        end = min(start + reach, WORDS)
        follow = state[start + 1 : end + 1]
        if end == WORDS:
            follow = np.concatenate([follow, state[:1] if start else first])
        mixed = (state[start:end] & UPPER) | (follow & LOWER)
        far = np.arange(start + NEXT, end + NEXT) % WORDS
        state[start:end] = state[far] ^ (mixed >> 1) ^ ((follow & 1) * np.uint32(TWIST))


def tempered(state: Array) -> Any:
    """The words of a state as they are given out."""
    y = state.copy()
    for shift, mask in TEMPER:
        y ^= (y >> shift if shift > 0 else y << -shift) & np.uint32(mask)
    return y


@functools.lru_cache(256)
def words_call(count: int) -> ArrayCall:
    return ArrayCall(Words.kernel(), (0, 0), (0, 1), count, 0)


class Words(Native, family="mersenne words"):
    """LLVM for `blocks`."""

    def __init__(self, name: str) -> None:
        super().__init__(name, "f", ("state", "made"))
        state, made = self.array("state", "half"), self.array("made", "half")
        b, half = self.b, self.half

        def mix(j: Value, follow: Value, far: Value) -> None:
            v = self.get(state, follow)
            y = b.or_(b.and_(self.get(state, j), half(UPPER)), b.and_(v, half(LOWER)))
            odd = b.and_(b.neg(b.and_(v, half(1))), half(TWIST))
            y = b.xor(b.xor(self.get(state, far), b.lshr(y, half(1))), odd)
            self.put(state, j, y)

        def ahead(j: Value) -> None:
            mix(j, b.add(j, self.word(1)), b.add(j, self.word(NEXT)))

        def behind(j: Value) -> None:
            mix(j, b.add(j, self.word(1)), b.sub(j, self.word(WORDS - NEXT)))

        def block(k: Value) -> None:
            self.loop(0, self.word(WORDS - NEXT), 1, ahead)
            self.loop(WORDS - NEXT, self.word(WORDS - 1), 1, behind)
            mix(self.word(WORDS - 1), self.word(0), self.word(NEXT - 1))
            row = b.gep(made, [b.mul(k, self.word(WORDS))])

            def temper(j: Value) -> None:
                y = self.get(state, j)
                for shift, mask in TEMPER:
                    moved = b.lshr(y, half(shift)) if shift > 0 else b.shl(y, half(-shift))
                    y = b.xor(y, b.and_(moved, half(mask)))
                self.put(row, j, y)

            self.count(self.word(WORDS), temper)

        self.loop(self.lo, self.hi, 1, block)


# -- comparisons with a chance ---------------------------------------------------------------------


def below(words: Array, limit: int, yes: float, type: npt.DTypeLike) -> Any:
    """`yes` where the lower 53 of the 64 bits of two words, the first in front, are below a limit,
    and 0 elsewhere: float32, float64 or bool."""
    made = np.empty(words.size // 2, type)
    if jit.pays(words.size):
        call, value = below_call(made.dtype.char, made.size, limit, yes)
        call(words, value, made)
        return made
    bits = words[::2].astype(np.uint64) << np.uint64(32) | words[1::2]
    np.multiply(bits & np.uint64((1 << 53) - 1) < np.uint64(limit), yes, out=made, casting="unsafe")
    return made


@functools.lru_cache(256)
def below_call(kind: str, count: int, limit: int, yes: float) -> tuple[ArrayCall, Array]:
    """The call for so many numbers, and the value as it takes it."""
    value = np.array([yes], "f" if kind == "f" else "d")
    return ArrayCall(below_kernel(kind), (limit, 0, 0, 0), (1, 2, 3), count, 0), value


@functools.cache
def below_kernel(kind: str) -> Call:
    name = {"?": "bool"}.get(kind, kind)
    return Call(f"mersenne below {name}", lambda name: Below(name, kind))


class Below(Native):
    """LLVM for `below`."""

    def __init__(self, name: str, kind: str) -> None:
        super().__init__(name, "f" if kind == "f" else "d", ("limit", "words", "yes", "made"))
        b, byte = self.b, self.type("byte")
        words, yes = self.array("words", "half"), self.get(self.array("yes"), 0)
        made = self.array("made", byte if kind == "?" else self.real)

        def element(k: Value) -> None:
            at = b.mul(k, self.word(2))
            first, second = self.get(words, at), self.get(words, b.add(at, self.word(1)))
            upper = b.shl(b.zext(b.and_(first, self.half((1 << 21) - 1)), self.word), self.word(32))
            less = b.icmp_unsigned(
                "<", b.or_(upper, b.zext(second, self.word)), self.word_of["limit"]
            )
            none = self.real(0)
            self.put(made, k, b.zext(less, byte) if kind == "?" else b.select(less, yes, none))

        self.loop(self.lo, self.hi, 1, element)


# -- orders ---------------------------------------------------------------------------------------


def swapped(words: Array, n: int) -> Any:
    """0 … n-1, of which element i changes places with element i + words[i] % (n - i), in turn."""
    order = np.arange(n)
    if n > 1 and jit.pays(n):
        swap_call(n)(np.ascontiguousarray(words), order)
        return order
    listed = order.tolist()
    for i, word in enumerate(words.tolist()):
        j = i + word % (n - i)
        listed[i], listed[j] = listed[j], listed[i]
    return np.array(listed, np.int64)


@functools.lru_cache(256)
def swap_call(n: int) -> ArrayCall:
    """The call for an order of n numbers."""
    return ArrayCall(Swaps.kernel(), (n, 0, 0), (1, 2), n - 1, 0)


class Swaps(Native, family="mersenne swaps"):
    """LLVM for `swapped`."""

    def __init__(self, name: str) -> None:
        super().__init__(name, "f", ("n", "words", "order"))
        b, n = self.b, self.word_of["n"]
        words, order = self.array("words", "half"), self.array("order", "word")

        def swap(i: Value) -> None:
            word = b.zext(self.get(words, i), self.word)
            j = b.add(i, b.urem(word, b.sub(n, i)))
            one, other = self.get(order, i), self.get(order, j)
            self.put(order, i, other)
            self.put(order, j, one)

        self.loop(self.lo, self.hi, 1, swap)


# -- normal numbers of float32 --------------------------------------------------------------------


def normal32(words: Array, mean: float, std: float) -> Any:
    """Normal numbers from words, as many of the one as of the other: multiples of 16."""
    made = np.empty(words.size, np.float32)
    if jit.pays(words.size):
        call, scale = normal_call(words.size // 16, mean, std)
        call(words if words.flags.c_contiguous else words.copy(), scale, made)
        return made
    uniform = (words & 0xFFFFFF).astype(np.float32) * np.float32(2.0**-24)
    rows = uniform.reshape(-1, 2, 8)
    pair = box_muller.pair(box_muller.Arrays(), rows[:, 0], rows[:, 1], mean, std)
    for k in (0, 1):
        made.reshape(-1, 2, 8)[:, k] = pair[k]
    return made


@functools.lru_cache(256)
def normal_call(rows: int, mean: float, std: float) -> tuple[Any, Array]:
    """The call for so many rows, by one thread, and the two numbers as it takes them."""
    call = ArrayCall(Normal.kernel(), (0, 0, 0), (0, 1, 2), rows, 0).here
    return call, np.array([mean, std], np.float32)


class Normal(Native, family="mersenne normal"):
    """LLVM for `normal32`."""

    def __init__(self, name: str) -> None:
        super().__init__(name, "f", ("words", "scale", "made"))
        words, made = self.array("words", "half"), self.array("made")
        scale, b = self.array("scale"), self.b
        ops = Vectors(self)
        mean, std = (self.spread(self.get(scale, k), ops.reals) for k in (0, 1))

        def uniform(at: Value) -> Any:
            bits = b.and_(self.load(words, at, ops.integers, 4), ops.whole(0xFFFFFF))
            return b.fmul(b.uitofp(bits, ops.reals), ops.real(2.0**-24))

        def block(k: Value) -> None:
            first = b.mul(k, self.word(16))
            second = b.add(first, self.word(8))
            made_pair = box_muller.pair(ops, uniform(first), uniform(second), mean, std)
            for at, value in zip((first, second), made_pair):
                self.write(value, made, at)

        self.loop(self.lo, self.hi, 1, block)


class Vectors:
    """The words of `box_muller` for vectors of eight float32."""

    def __init__(self, builder: Builder) -> None:
        self.builder, self.b = builder, builder.b
        ir = builder.ir
        self.reals = ir.VectorType(ir.FloatType(), 8)
        self.integers = ir.VectorType(builder.half, 8)
        three = ir.FunctionType(self.reals, [self.reals] * 3)
        one = ir.FunctionType(self.reals, [self.reals])
        self.fused = ir.Function(builder.module, three, "llvm.fma.v8f32")
        self.root = ir.Function(builder.module, one, "llvm.sqrt.v8f32")

    def real(self, x: Value | float) -> Any:
        return self.reals([float(np.float32(x))] * 8) if isinstance(x, float) else x

    def whole(self, n: int) -> Any:
        return self.integers([n] * 8)

    def fma(self, x: Value | float, y: Value | float, z: Value | float) -> Any:
        return self.b.call(self.fused, [self.real(v) for v in (x, y, z)])

    def sqrt(self, x: Value) -> Any:
        return self.b.call(self.root, [x])

    def add(self, x: Value | float, y: Value | float) -> Any:
        return self.b.fadd(self.real(x), self.real(y))

    def sub(self, x: Value | float, y: Value | float) -> Any:
        return self.b.fsub(self.real(x), self.real(y))

    def mul(self, x: Value | float, y: Value | float) -> Any:
        return self.b.fmul(self.real(x), self.real(y))

    def less(self, x: Value, y: float) -> Any:
        return self.b.fcmp_ordered("<", x, self.real(y))

    def choose(self, where: Value, x: Value | float, y: Value | float) -> Any:
        return self.b.select(where, self.real(x), self.real(y))

    def parts(self, x: Value) -> tuple[Any, Any]:
        """x = m·2ᵉ with m in [1/2, 1)."""
        b = self.b
        bits = b.bitcast(x, self.integers)
        exponent = b.sub(b.lshr(bits, self.whole(23)), self.whole(126))
        bits = b.or_(b.and_(bits, self.whole(0x807FFFFF)), self.whole(0x3F000000))
        return b.bitcast(bits, self.reals), b.sitofp(exponent, self.reals)

    def even(self, x: Value) -> tuple[Any, Any]:
        """The even number next to x ≥ 0, as an integer and as a real number."""
        b = self.b
        n = b.and_(b.add(b.fptosi(x, self.integers), self.whole(1)), self.whole(0xFFFFFFFE))
        return n, b.sitofp(n, self.reals)

    def has(self, n: Value, bit: int) -> Any:
        b = self.b
        return b.icmp_signed("!=", b.and_(n, self.whole(bit)), self.whole(0))

    def plus(self, n: Value, k: int) -> Any:
        return self.b.add(n, self.whole(k))

    def negated(self, where: Value, x: Value) -> Any:
        return self.b.select(where, self.b.fneg(x), x)


# -- functions of the C library -------------------------------------------------------------------


@functools.cache
def in_c(name: str) -> int | None:
    """Where the C library's function of a real number is; None where it is not to be found."""
    try:
        return ctypes.cast(getattr(ctypes.CDLL(None), name), ctypes.c_void_p).value
    except (OSError, AttributeError, TypeError):
        return None


def each(name: str, x: Array) -> Any:
    """The C library's function of every element (float64): NumPy's own differ in the last bit."""
    function: Callable[..., float] = getattr(math, name)
    if x.size < 64 or not jit.pays(x.size):
        if x.size >= jit.SMALLEST:
            return getattr(np, name)(x)
        with_zero = function is math.log
        listed = [
            -math.inf if with_zero and v == 0 else function(v) for v in x.reshape(-1).tolist()
        ]
        return np.array(listed, np.float64).reshape(x.shape)
    place = in_c(name)
    if place is None:
        return getattr(np, name)(x)
    x = np.ascontiguousarray(x)
    made = np.empty_like(x)
    Map.kernel()(x.size, 0, place, jit.address_of(x), jit.address_of(made))
    return made


def sin_cos(x: Array) -> tuple[Any, Any]:
    """Sines and cosines of a row of angles, by one call for both where the C library has one."""
    place = in_c("sincos") if jit.pays(x.size) else None
    if place is None:
        return each("sin", x), each("cos", x)
    x = np.ascontiguousarray(x)
    sines, cosines = np.empty_like(x), np.empty_like(x)
    Pair.kernel()(x.size, 0, place, *(jit.address_of(a) for a in (x, sines, cosines)))
    return sines, cosines


class Pair(Native, family="mersenne pair"):
    """LLVM for `sin_cos`."""

    def __init__(self, name: str) -> None:
        super().__init__(name, "d", ("function", "from", "sines", "cosines"))
        source, *made = (self.array(n) for n in ("from", "sines", "cosines"))

        def element(k: Value) -> None:
            places = [self.b.gep(m, [k]) for m in made]
            self.call(self.word_of["function"], "void", self.get(source, k), *places)

        self.loop(self.lo, self.hi, 1, element)


class Map(Native, family="mersenne map"):
    """LLVM for `each`."""

    def __init__(self, name: str) -> None:
        super().__init__(name, "d", ("function", "from", "to"))
        source, made = self.array("from"), self.array("to")

        def element(k: Value) -> None:
            self.put(made, k, self.call(self.word_of["function"], "double", self.get(source, k)))

        self.loop(self.lo, self.hi, 1, element)


def scaled(x: Array, factor: float, shift: float) -> Any:
    """x·factor + shift with one rounding, as a processor's fused multiply-add has it, in the type
    of x."""
    if shift == 0:
        return x * x.dtype.type(factor) + x.dtype.type(0)  # which is never -0
    if x.dtype == np.float32:
        exact = x.astype(np.float64) * np.float64(np.float32(factor))
        return (exact + np.float64(np.float32(shift))).astype(np.float32)
    if not abs(factor) + abs(shift) < 1e290:  # whose parts below would not be finite
        return x * factor + shift
    product, lost = times(x, factor)
    total, more = plus(product, shift)
    return total + (lost + more)


def between(first: Any, last: Any, step: Any, count: int) -> Any:
    """So many numbers at steps from the first one on and, the second half, backwards from the last, each
    rounded once, by the processor's own instruction; or None."""
    kind = step.dtype.char
    if kind not in "fd" or not jit.pays(count) or count >= 1 << 31:
        return None
    made = np.empty(count, step.dtype)
    line_call(kind, count)(np.array([first, last, step, -step], step.dtype), made)
    return made


@functools.lru_cache(256)
def line_call(kind: str, count: int) -> ArrayCall:
    """The call for so many numbers."""
    return ArrayCall(Line.kernel(kind), (count, 0, 0), (1, 2), count, jit.TRAFFIC * count)


class Line(Native, family="mersenne line"):
    """LLVM for `between`."""

    def __init__(self, name: str, kind: str) -> None:
        super().__init__(name, kind, ("count", "ends", "to"))
        b, made, ends = self.b, self.array("to"), self.array("ends")
        first, last, step, back = (self.get(ends, k) for k in range(4))
        count = self.word_of["count"]
        half = b.lshr(count, self.word(1))
        # Two loops: what is between the range and the half is of the first one.
        middle = self.smaller(self.hi, b.select(b.icmp_signed("<", half, self.lo), self.lo, half))

        def number(k: Value) -> Any:  # 32 bits are made a float in vectors on any processor
            return b.sitofp(b.trunc(k, self.half), self.real)

        def up(k: Value) -> None:
            self.put(made, k, b.fma(number(k), step, first))

        def down(k: Value) -> None:
            left = b.sub(b.sub(count, self.word(1)), k)
            self.put(made, k, b.fma(number(left), back, last))

        self.loop(self.lo, middle, 1, up)
        self.loop(middle, self.hi, 1, down)


def times(x: Array, y: float) -> tuple[Any, Any]:
    """The product of doubles, and what rounding took from it (Dekker 1971)."""
    split = 134217729.0
    x1 = split * x - (split * x - x)
    y1 = split * y - (split * y - y)
    x2, y2, product = x - x1, y - y1, x * y
    return product, ((x1 * y1 - product) + x1 * y2 + x2 * y1) + x2 * y2


def plus(x: Array, y: float) -> tuple[Any, Any]:
    """The sum of doubles, and what rounding took from it (Knuth 1969)."""
    total = x + y
    back = total - x
    return total, (x - (total - back)) + (y - back)
