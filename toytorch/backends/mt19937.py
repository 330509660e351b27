"""Random numbers of the CPU: mt19937, drawn as PyTorch draws them, so that seeds mean the same.

A word is 32 bits; two words, the first in front, are 64. Uniform numbers are the lower 24 bits of a
word (float32) or the lower 53 of 64 bits (float64). Each kind of number below says how many it takes.
What rests on the logarithm or the cosine of float64 calls the C library's functions, as PyTorch does,
and is equal as far as these are.

    >>> g = MersenneGenerator(5489)
    >>> g.words(3)
    array([3499211612,  581869302, 3890346734], dtype=uint32)
"""

from __future__ import annotations

import math
import struct
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from toytorch.backends import counts
from toytorch.facts.hints import Array
from toytorch.kernels import mersenne, sequential
from toytorch.kernels.mersenne import WORDS
from toytorch.loops.runtime import jit

HEAD = "<QiiQ"  # seed, words left (and one), whether seeded, place of the next word
TAIL = "<dddiifi"  # two of no use around the normal number kept, whether it is; the same of float32
STATE_BYTES = struct.calcsize(HEAD) + 8 * WORDS + struct.calcsize(TAIL)
WIDE = 1 << 28  # a range from which integers take 64 bits
CHUNK = 64 * WORDS  # numbers computed at a time, that stay in the cache
AHEAD = 512  # numbers drawn before it is known how many are needed
FEW = 32  # numbers that Python computes sooner than NumPy
FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
INT32, INT64 = np.dtype(np.int32), np.dtype(np.int64)
# As arrays, which NumPy need not look at to find their type.
LOW24, LOW53 = np.array(0xFFFFFF, np.uint32), np.array(0x1FFFFFFFFFFFFF, np.uint64)
UNIT24, UNIT53 = np.array(2.0**-24, FLOAT32), np.array(2.0**-53)
ROW = 16  # normal numbers made together


def unit24(words: Array) -> Any:
    """Words as uniform numbers of float32 in [0, 1)."""
    made: Any = (words & LOW24).view(INT32).astype(FLOAT32)
    made *= UNIT24
    return made


class MersenneGenerator:
    """A stream of random numbers; `toytorch.backends.base.RandomSource` says what its methods are."""

    def __init__(self, seed: int) -> None:
        self.seed = int(seed) % (1 << 64)
        self.state = mersenne.seeded(self.seed).copy()
        self.block = np.empty((1, WORDS), np.uint32)
        self.units: tuple[Any, Any] = None, None  # a block, and its words as numbers in [0, 1)
        self.at = WORDS  # how much of the block is used up
        self.started = False  # whether it has ever been filled
        self.kept: float | None = None  # the second normal number of a pair
        self.kept32: float | None = None  # PyTorch's states have room for one of float32
        self.lock = threading.Lock()

    # -- the place in the stream -------------------------------------------------------------------

    def get_state(self) -> bytes:
        """The 5,056 bytes that `torch.get_rng_state` gives."""
        left, place = (WORDS + 1 - self.at, self.at) if self.started else (1, 0)
        tail = struct.pack(
            TAIL,
            0.0,
            self.kept or 0.0,
            0.0,
            self.kept is not None,
            0,
            self.kept32 or 0.0,
            self.kept32 is not None,
        )
        head = struct.pack(HEAD, self.seed, left, 1, place)
        return head + self.state.astype("<u8").tobytes() + tail

    def set_state(self, state: bytes) -> None:
        """Goes to a place that `get_state` gave, or PyTorch's."""
        if len(state) != STATE_BYTES:
            raise RuntimeError(
                f"Expected a CPUGeneratorImplState of size {STATE_BYTES} but found the input RNG "
                f"state size to be {len(state)}"
            )
        start = struct.calcsize(HEAD)
        seed, left, seeded, place = struct.unpack_from(HEAD, state)
        if not seeded or not 0 < left <= WORDS or place > WORDS:
            raise RuntimeError("Invalid mt19937 state")
        self.seed, self.started = seed, place > 0
        self.state = np.frombuffer(state, "<u8", WORDS, start).astype(np.uint32)
        self.block = mersenne.tempered(self.state)[None]
        self.at = WORDS + 1 - left if self.started else WORDS
        _, kept, _, valid, _, kept32, valid32 = struct.unpack_from(TAIL, state, start + 8 * WORDS)
        self.kept = kept if valid else None
        self.kept32 = kept32 if valid32 else None

    @property
    def place(self) -> Any:
        """The place in the stream, for the `place` of the same generator later on."""
        return self.state.copy(), self.block.copy(), self.at, self.started, self.kept

    @place.setter
    def place(self, place: Any) -> None:
        state, block, self.at, self.started, self.kept = place
        self.state, self.block = state.copy(), block.copy()

    # -- words -------------------------------------------------------------------------------------

    def words(self, count: int) -> Any:
        """The next words of the stream. They are only to be read."""
        with self.lock:
            start, end = self.at, self.at + count
            if end <= WORDS:
                self.at = end
                return self.block[0, start:end]
            whole, rest = divmod(end - WORDS, WORDS)
            made = np.empty(count, np.uint32)
            done = WORDS - start
            made[:done] = self.block[0, start:]
            self.started = True
            if whole:
                middle = made[done : done + whole * WORDS]
                mersenne.blocks(self.state, middle.reshape(whole, WORDS))
                done += whole * WORDS
            if rest:
                self.block = np.empty((1, WORDS), np.uint32)  # slices of the old one are in use
                mersenne.blocks(self.state, self.block)
                made[done:] = self.block[0, :rest]
                self.at = rest
            else:
                self.block = made[None, -WORDS:].copy()
                self.at = WORDS
            return made

    def doubles(self, count: int) -> Any:
        """`count` numbers of 64 bits."""
        pairs = self.words(2 * count)
        if pairs.__array_interface__["data"][0] % 8:
            pairs = pairs.copy()
        made: Any = pairs.view("<u8")  # the second word in front
        return (made << np.uint64(32)) | (made >> np.uint64(32))

    def bits24(self, count: int) -> Any:
        """`count` uniform numbers of float32 in [0, 1)."""
        if count > FEW:
            return unit24(self.words(count))
        with self.lock:
            start, end = self.at, self.at + count
            if end <= WORDS:  # which are a part of the block's, computed once for many calls
                block, numbers = self.units
                if block is not self.block:
                    numbers = unit24(self.block[0])
                    self.units = self.block, numbers
                self.at = end
                return numbers[start:end].copy()
        return unit24(self.words(count))

    def bits53(self, count: int) -> Any:
        """`count` uniform numbers of float64 in [0, 1)."""
        made: Any = (self.doubles(count) & LOW53).view(INT64).astype(FLOAT64)
        made *= UNIT53
        return made

    def few53(self, count: int) -> list[float]:
        """`bits53`, so few of them that NumPy would take longer."""
        words = iter(self.words(2 * count).tolist())
        return [((w << 32 | next(words)) & 0x1FFFFFFFFFFFFF) * 2.0**-53 for w in words]

    def one(self) -> float:
        """One uniform number of float64."""
        return self.few53(1)[0]

    def chunks(self, count: int, type: npt.DTypeLike, draw: Callable[[int], Any]) -> Any:
        """`count` numbers from draws of at most CHUNK, which do not leave the cache."""
        if count <= CHUNK:
            return draw(count)
        made = np.empty(count, type)
        for start in range(0, count, CHUNK):
            made[start : start + CHUNK] = draw(min(CHUNK, count - start))
        return made

    # -- kinds of numbers --------------------------------------------------------------------------

    def uniform(self, count: int, type: npt.DTypeLike, low: float = 0.0, high: float = 1.0) -> Any:
        """Numbers in [low, high): a word each, or two (float64)."""
        if type is not FLOAT32 and np.dtype(type) == np.float64:
            span = high - low
            return self.chunks(count, type, lambda n: mersenne.scaled(self.bits53(n), span, low))
        if low == 0 and high == 1:
            return self.bits24(count) if count <= CHUNK else self.chunks(count, type, self.bits24)
        span = float(np.float32(high) - np.float32(low))
        return self.chunks(count, type, lambda n: mersenne.scaled(self.bits24(n), span, low))

    def normal(
        self,
        count: int,
        type: npt.DTypeLike,
        mean: float = 0.0,
        std: float = 1.0,
        rows: bool = True,
    ) -> Any:
        """Normal numbers: rows of 16 where there are so many, or pairs in float64, of which the
        second may be left for the next call."""
        if not rows or count < ROW:
            made = self.pairs(count)
            return (made if std == 1 and not mean else mersenne.scaled(made, std, mean)).astype(
                type
            )
        kind = FLOAT32 if type is FLOAT32 else np.dtype(type)
        if kind == FLOAT32:
            if count % ROW == 0 and count <= CHUNK // ROW * ROW:  # a few rows, at once
                return mersenne.normal32(self.words(count), mean, std)
            return self.in_rows(count, self.words, lambda w: mersenne.normal32(w, mean, std))
        if kind == FLOAT64:
            return self.in_rows(count, self.bits53, lambda u: normal64(u, mean, std))
        # the last row is drawn right after the others
        whole = count // ROW * ROW
        drawn = mersenne.normal32(self.words(-(-count // ROW) * ROW), mean, std)
        made = np.empty(count, np.float32)
        made[:whole] = drawn[:whole]
        made[-ROW:] = drawn[-ROW:]
        return made.astype(type, copy=False)

    def in_rows(self, count: int, draw: Callable[[int], Any], transform: Any) -> Any:
        """Rows of 16 from as many numbers, the last 16 drawn once more where a row is not full."""
        whole = count // ROW * ROW
        if whole == count:
            part = CHUNK // ROW * ROW
            if count <= part:
                return transform(draw(count))
            made = None
            for start in range(0, count, part):
                some = transform(draw(min(part, count - start)))
                made = np.empty(count, some.dtype) if made is None else made
                made[start : start + part] = some
            return made
        first = self.in_rows(whole, draw, transform)
        draw(count - whole)
        return np.concatenate([first[: count - ROW], transform(draw(ROW))])

    def pairs(self, count: int) -> Any:
        """Standard normal numbers of float64, one after the other."""
        if count < 16:
            drawn = [] if self.kept is None or not count else [self.kept]
            numbers = iter(self.few53((count - len(drawn) + 1) // 2 * 2))
            for u1 in numbers:
                drawn += normal_pair(u1, next(numbers))
            if count:
                self.kept = drawn.pop() if len(drawn) > count else None
            return np.array(drawn)
        made = np.empty(count)
        done = 0
        if self.kept is not None:
            made[0], self.kept, done = self.kept, None, 1
        half = -(-(count - done) // 2)
        uniform = self.bits53(2 * half).reshape(half, 2)
        radius = np.sqrt(-2 * mersenne.each("log1p", -uniform[:, 1]))
        angle = 2 * math.pi * uniform[:, 0]
        both = np.empty((half, 2))
        sines, cosines = mersenne.sin_cos(angle)
        both[:, 0] = radius * cosines
        both[:, 1] = radius * sines
        flat = both.reshape(-1)
        if flat.size > count - done:
            self.kept = float(flat[-1])
        made[done:] = flat[: count - done]
        return made

    def integers(self, count: int, low: int, high: int) -> Any:
        """Integers (int64) in [low, high): a word each, or two where the range is wide."""
        span = high - low
        if count <= FEW and span < WIDE:  # while NumPy begins
            return np.array([w % span + low for w in self.words(count).tolist()], np.int64)

        def draw(n: int) -> Any:
            if span >= WIDE:
                bits = self.doubles(n)
                rest = bits % np.uint64(span) if span < 1 << 64 else bits
                return (rest + np.uint64(low % (1 << 64))).view(np.int64)
            words = self.words(n)  # NumPy has a fast way to divide by a number, not of the rest
            rest = words - words // np.uint32(span) * np.uint32(span)
            made: Any = rest.astype(np.int64)
            made += low
            return made

        return self.chunks(count, np.int64, draw)

    def whole(self, count: int, limit: int, wide: bool) -> Any:
        """Integers in [0, limit) of a word each, or of two whatever the limit is."""
        bits = self.doubles(count) if wide else self.words(count).astype(np.uint64)
        return (bits % np.uint64(limit)).view(np.int64)

    def below(self, count: int, chance: Array | float) -> Any:
        """Whether uniform numbers are below a chance (two words each), or each below its own: one
        word where the chances are float32."""
        if not isinstance(chance, np.ndarray):
            if count <= FEW:
                return np.array([u < chance for u in self.few53(count)], bool)
            return self.chosen(count, bool, chance, True)
        if chance.dtype == np.float64:
            return self.bits53(count) < chance
        return self.bits24(count) < chance.astype(np.float32)

    def chosen(self, count: int, type: npt.DTypeLike, chance: float, value: float) -> Any:
        """A value with a chance, else 0 (bool, float32 or float64): two words each."""
        limit = math.ceil(chance * (1 << 53))
        return self.chunks(
            count, type, lambda n: mersenne.below(self.words(2 * n), limit, value, type)
        )

    def factors(self, count: int, type: npt.DTypeLike, p: float) -> Any:
        """0 with probability p, else 1/(1 - p), in float32 or float64."""
        work: Any = work_type(type)
        return self.chosen(count, type, 1 - p, work(1) / work(1 - p))

    def exponential(self, count: int, rate: float = 1.0) -> Any:
        """Times between events (float64): two words each."""
        if count <= FEW:
            scale = -1.0 / rate
            return np.array([scale * math.log1p(-u) for u in self.few53(count)])
        return self.chunks(
            count, np.float64, lambda n: -1.0 / rate * mersenne.each("log1p", -self.bits53(n))
        )

    def cauchy(self, count: int, median: float, sigma: float) -> Any:
        """Numbers of Cauchy's distribution (float64): two words each."""

        def draw(n: int) -> Any:
            angle = math.pi * (self.bits53(n) - 0.5)
            return mersenne.scaled(mersenne.each("tan", angle), sigma, median)

        return self.chunks(count, np.float64, draw)

    def log_normal(self, count: int, mean: float, std: float) -> Any:
        """Numbers (float64) whose logarithms are normal, drawn in pairs."""
        return mersenne.each("exp", mersenne.scaled(self.pairs(count), std, mean))

    def geometric(self, count: int, p: float) -> Any:
        """Numbers of trials up to the first success (float64): two words each."""
        base = math.log1p(-p)
        return self.chunks(
            count, np.float64, lambda n: np.ceil(mersenne.each("log", self.bits53(n)) / base)
        )

    def permutation(self, n: int) -> Any:
        """The numbers 0 … n - 1 in random order: a word each but the last."""
        return mersenne.swapped(self.words(max(n - 1, 0)), n)

    def poisson(self, rate: Array) -> Any:
        """Counts of events (float64) with the rates given, an array of any shape."""
        return self.counted("poisson", rate)

    def binomial(self, count: Array, chance: Array) -> Any:
        """How many of so many trials succeed, with chances of the same shape."""
        return self.counted("binomial", count, chance)

    def gamma(self, shape: Array) -> Any:
        """Numbers of the gamma distribution (float64) with the shapes given."""
        return self.counted("gamma", shape)

    def counted(self, name: str, *arrays: Array) -> Any:
        """A function of `backends/counts.py` for the elements, one after the other: how many numbers
        each takes is known only when it is drawn."""
        exact, shape = arrays[0].dtype == np.float64, arrays[0].shape
        flat = [a.reshape(-1).astype(np.float64) for a in arrays]
        if jit.pays(flat[0].size) and sequential.works():
            return sequential.drawn(counts, name, self, not exact, *flat).reshape(shape)
        ahead, draw = Ahead(self), getattr(counts, name)
        rounded = float if exact else single
        found = [draw(ahead, *v, rounded) for v in zip(*(a.tolist() for a in flat))]
        ahead.finish()
        return np.array(found, np.float64).reshape(shape)


class Ahead:
    """Uniform and normal numbers one by one, from many drawn ahead; `finish` leaves the stream where
    it would be had they been drawn one by one."""

    def __init__(self, source: MersenneGenerator) -> None:
        self.source, self.place, self.used = source, source.place, 0
        self.kept = source.kept
        self.drawn: list[float] = []

    def one(self) -> float:
        """The next uniform number of float64."""
        if not self.drawn:
            self.place, self.used = self.source.place, 0
            self.drawn = self.source.bits53(AHEAD).tolist()[::-1]
        self.used += 1
        return self.drawn.pop()

    def one_normal(self) -> float:
        """The next normal number of float64."""
        made, self.kept = (
            normal_pair(self.one(), self.one()) if self.kept is None else (self.kept, None)
        )
        return made

    def finish(self) -> None:
        """Goes back to behind the last number that was used."""
        self.source.place = self.place
        self.source.words(2 * self.used)
        self.source.kept = self.kept


def normal_pair(u1: float, u2: float) -> tuple[float, float]:
    """Two normal numbers (Box and Muller 1958)."""
    radius, angle = math.sqrt(-2 * math.log1p(-u2)), 2 * math.pi * u1
    return radius * math.cos(angle), radius * math.sin(angle)


def work_type(type: npt.DTypeLike) -> Any:
    """The type that numbers are computed in."""
    return np.float64 if np.dtype(type) == np.float64 else np.float32


def single(x: float) -> float:
    """A number as float32 has it."""
    return float(np.float32(x))


def normal64(uniform: Array, mean: float, std: float) -> Any:
    """Rows of 16 normal numbers of float64 from uniform ones."""
    rows = uniform.reshape(-1, 2, 8)
    radius = np.sqrt(-2 * mersenne.each("log", np.ascontiguousarray(1 - rows[:, 0])))
    angle = np.ascontiguousarray(2 * math.pi * rows[:, 1])
    made = np.empty(rows.shape)
    sines, cosines = mersenne.sin_cos(angle)
    np.multiply(radius, cosines, out=made[:, 0])
    np.multiply(radius, sines, out=made[:, 1])
    flat = made.reshape(-1)
    return flat if std == 1 and not mean else mersenne.scaled(flat, std, mean)
