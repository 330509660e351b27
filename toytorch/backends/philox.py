"""Random numbers of devices: Philox4x32-10, whose n-th number is a function of n and the seed.

Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3 (2011). Ten rounds of multiplications mix a
counter of four words with a key of two. Threads need no state in common, so a card, the simulated
device and NumPy draw the same numbers.

    >>> [f"{int(w):08x}" for w in philox(np, [np.uint32(0)] * 4, 0)]
    ['6627e8d5', 'e169c58d', 'bc57ac4c', '9b00dbd8']

Which number goes to which element follows PyTorch's CUDA kernels and cuRAND: thread i of a grid of
blocks of 256 has the counter (offset / 4, i), draws four words (two, of 8 bytes) at a time and
fills the elements i, i + threads, …; the offset then moves on by 4 for each time it drew. The grid
depends on the card's multiprocessors, and with it the numbers of large tensors do, as in PyTorch.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from toytorch.backends.philox_cuda import SOURCES
from toytorch.facts.hints import Array, ArrayModule, Ints

Size = int | Sequence[int] | None

MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
WEYL = (0x9E3779B9, 0xBB67AE85)  # what the key's words grow by from round to round
ROUNDS = 10
MASK = 0xFFFFFFFF
BLOCK = 256  # threads
TINY = 2.0**-32
TINY_DOUBLE = 2.0**-53
MODULO_LIMIT = 1 << 28  # from which integers are drawn from 64 bits, so that none is much likelier


def philox(xp: ArrayModule, counter: Sequence[Array | np.uint32], seed: int) -> list[Any]:
    """The four words of each counter, given as four words or arrays of uint32."""
    x0, x1, x2, x3 = (xp.asarray(c).astype(np.uint64) for c in counter)
    mask, half = np.uint64(MASK), np.uint64(32)
    for r in range(ROUNDS):
        k0 = np.uint64((seed + r * WEYL[0]) & MASK)
        k1 = np.uint64(((seed >> 32) + r * WEYL[1]) & MASK)
        p0, p1 = x0 * np.uint64(MULTIPLIERS[0]), x2 * np.uint64(MULTIPLIERS[1])
        x0, x1, x2, x3 = (p1 >> half) ^ x1 ^ k0, p1 & mask, (p0 >> half) ^ x3 ^ k1, p0 & mask
    return [x.astype(np.uint32) for x in (x0, x1, x2, x3)]


class PhiloxGenerator:
    """A stream of random numbers on a device, with the methods of `numpy.random.Generator`.

    xp       the array module. Arrays of NumPy are computed with NumPy, those of CuPy by a kernel
    seed     64 bits
    threads  how many threads the card can have at once: its multiprocessors times the threads of
             each. The default is an H100's
    """

    def __init__(self, xp: ArrayModule, seed: int, threads: int = 132 * 2048) -> None:
        self.xp, self.seed, self.offset = xp, int(seed) % (1 << 64), 0
        self.blocks = threads // BLOCK
        self.kernels: dict[str, Any] = {}

    # -- the place in the stream -------------------------------------------------------------------

    def get_state(self) -> bytes:
        """Seed and offset, as `torch.cuda.get_rng_state` has them: 16 bytes."""
        return struct.pack("<QQ", self.seed, self.offset)

    def set_state(self, state: bytes) -> None:
        """Goes to a place that `get_state` gave."""
        if len(state) != 16:
            raise RuntimeError("RNG state is wrong size")
        seed, offset = struct.unpack("<QQ", state)
        if offset % 4:
            raise RuntimeError("offset must be a multiple of 4")
        self.seed, self.offset = seed, offset

    # -- words -------------------------------------------------------------------------------------

    def draw(self, kind: str, count: int) -> Any:
        """`count` numbers of a kind: "bits32", "bits64", "uniform32", "uniform64", "below32", "below64",
        "normal32" or "normal64"."""
        xp, lanes = self.xp, 2 if kind.endswith("64") else 4
        type = ("uint" if kind.startswith("bits") else "float") + kind[-2:]
        if not count:
            return xp.empty(0, type)
        grid = min(self.blocks, -(-count // BLOCK))
        threads = grid * BLOCK
        rounds = -(-count // (threads * lanes))
        start, self.offset = self.offset // 4, self.offset + 4 * rounds
        if xp.__name__ != "numpy":
            return self.launched(kind, type, count, grid, start)
        first = np.arange(start, start + rounds, dtype=np.uint64)[:, None]
        thread = np.arange(threads, dtype=np.uint64)
        shape = np.broadcast_shapes(first.shape, thread.shape)
        half = np.uint64(32)
        counters = [
            np.broadcast_to(w, shape) for w in (first, first >> half, thread, thread >> half)
        ]
        words = philox(np, counters, self.seed)
        made = np.stack(KINDS[kind](words), 1)  # (rounds, lanes, threads)
        return made.reshape(-1)[:count]

    def launched(self, kind: str, type: str, count: int, grid: int, start: int) -> Any:
        """The same by a kernel on the device."""
        made = self.xp.empty(count, type)
        kernel = self.kernels.get(kind)
        if kernel is None:
            module = self.xp.RawModule(code=SOURCES[kind], options=("-std=c++17",))
            kernel = self.kernels[kind] = module.get_function("kernel")
        numbers = np.int64(count), np.uint64(self.seed), np.uint64(start)
        kernel((grid,), (BLOCK,), (made, *numbers))
        return made

    def numbers(self, kind: str, shape: Size, type: npt.DTypeLike) -> Any:
        shape = (shape,) if isinstance(shape, int) else tuple(shape or ())
        bits = "64" if np.dtype(type) == np.float64 else "32"
        return self.draw(kind + bits, math.prod(shape)).reshape(shape)

    # -- distributions -----------------------------------------------------------------------------

    def random(self, size: Size = None, dtype: npt.DTypeLike = np.float64) -> Any:
        """Uniform numbers in [0, 1): cuRAND's lie in (0, 1], so 1 becomes 0."""
        return self.numbers("below", size, dtype)

    def open_uniform(self, size: Size) -> Any:
        """Uniform numbers in (0, 1]."""
        return self.numbers("uniform", size, np.float64)

    def standard_normal(self, size: Size = None, dtype: npt.DTypeLike = np.float64) -> Any:
        """Normal numbers by the transformation of Box and Muller (1958)."""
        return self.numbers("normal", size, dtype)

    def integers(self, low: int, high: int, size: Ints) -> Any:
        """Integers from low up to, but not with, high."""
        shape = (size,) if isinstance(size, int) else tuple(size)
        span = high - low
        bits = self.draw("bits64" if span >= MODULO_LIMIT else "bits32", math.prod(shape))
        rest = bits.astype(np.uint64) % np.uint64(span) if span < 1 << 64 else bits
        return (rest.astype(np.int64) + np.int64(low)).reshape(shape)

    def permutation(self, n: int) -> Any:
        """The numbers 0 … n-1 in random order: that of random keys, of as many bits as make it
        likely that no two are equal. Runs of equal ones are shuffled, each by a thread."""
        xp = self.xp
        if not n:
            return xp.arange(0)
        bits = min(64, math.ceil(math.log2(n - (6 * n * n + 1) / (12 * math.log(0.9)))))
        top = (1 << 32 if bits <= 32 else 1 << 64) - 1  # as many keys as the type's largest number
        keys = self.draw("bits64", n) % np.uint64(top) & np.uint64((1 << bits) - 1)
        order = xp.argsort(keys, kind="stable")
        keys = keys[order]
        self.offset, start = self.offset + 4 * -(-n // 4), self.offset // 4
        same = np.flatnonzero(self.on_host(keys[1:] == keys[:-1]))
        if len(same):
            self.shuffle_runs(order, same, start)
        return order

    def shuffle_runs(self, order: Array, same: Array, start: int) -> None:
        """Shuffles the runs of places that have a successor with an equal key."""
        first = np.r_[True, np.diff(same) > 1]
        for run in np.split(same, np.flatnonzero(first)[1:]):
            begin, size = int(run[0]), len(run) + 1
            part = self.on_host(order[begin : begin + size]).copy()
            for k, i in enumerate(reversed(range(1, size))):
                turn = start + k // 4
                counter = [turn & MASK, turn >> 32, begin & MASK, begin >> 32]
                words = philox(np, [np.uint32(c) for c in counter], self.seed)
                r = int(words[k % 4]) % (i + 1)
                part[[i, r]] = part[[r, i]]
            order[begin : begin + size] = self.xp.asarray(part)

    def on_host(self, array: Array) -> Any:
        """An array of NumPy with the same elements."""
        return array if self.xp.__name__ == "numpy" else self.xp.asnumpy(array)

    def standard_exponential(self, size: Size) -> Any:
        """-log of uniform numbers."""
        return -self.xp.log(self.open_uniform(size))

    def standard_cauchy(self, size: Size) -> Any:
        """The tangents of uniform angles."""
        return self.xp.tan(math.pi * (self.open_uniform(size) - 0.5))

    def geometric(self, p: float, size: Size) -> Any:
        """The numbers of trials up to the first success."""
        trials = self.xp.ceil(self.xp.log(self.open_uniform(size)) / math.log1p(-p))
        return self.xp.maximum(trials, 1.0)  # a uniform number of 1 needs one trial, too

    def poisson(self, rate: Array) -> Any:
        """Counts of rates: by the times between events for small rates, else Hörmann's PTRS."""
        xp = self.xp
        rate = rate.astype(np.float64)
        return xp.where(rate < 10, self.by_gaps(rate), self.ptrs(xp.maximum(rate, 10.0)))

    def by_gaps(self, rate: Array) -> Any:
        """How many uniform numbers multiply to more than e^-rate (Knuth)."""
        xp = self.xp
        limit = xp.exp(-xp.minimum(rate, 10.0))
        count, product = xp.zeros(rate.shape, np.int64), self.open_uniform(rate.shape)
        while True:
            going = product > limit
            if not bool(going.any()):
                return count
            count = count + going
            product = product * self.open_uniform(rate.shape)

    def ptrs(self, rate: Array) -> Any:
        """Transformed rejection with squeeze (Hörmann 1993), for rates of 10 and more."""
        xp = self.xp
        root, log_rate = xp.sqrt(rate), xp.log(rate)
        b = 0.931 + 2.53 * root
        a = -0.059 + 0.02483 * b
        scale = 1.1239 + 1.1328 / (b - 3.4)
        found, open_ = xp.zeros(rate.shape, np.int64), xp.ones(rate.shape, bool)
        while bool(open_.any()):
            u, v = self.random(rate.shape) - 0.5, self.open_uniform(rate.shape)
            us = 0.5 - xp.abs(u)
            us = xp.maximum(us, 1e-300)
            k = xp.floor((2 * a / us + b) * u + rate + 0.43)
            sure = (us >= 0.07) & (v <= 0.9277 - 3.6224 / (b - 2))
            fits = (k >= 0) & ~((us < 0.013) & (v > us))
            weight = xp.log(v) + xp.log(scale) - xp.log(a / (us * us) + b)
            below = weight <= k * log_rate - rate - log_factorial(xp, xp.maximum(k, 0.0))
            taken = open_ & (sure | (fits & below))
            found = xp.where(taken, k.astype(np.int64), found)
            open_ = open_ & ~taken
        return found

    def standard_gamma(self, shape: Array) -> Any:
        """Numbers of the gamma distribution (Marsaglia and Tsang 2000), all elements at once."""
        xp = self.xp
        a = shape.astype(np.float64)
        d = xp.where(a < 1, a + 1, a) - 1 / 3
        found, open_ = xp.zeros(a.shape), a > 0
        while bool(open_.any()):
            x, u = self.standard_normal(a.shape), self.open_uniform(a.shape)
            v = xp.maximum(1 + x / xp.sqrt(9 * d), 0.0) ** 3
            taken = open_ & (v > 0)
            bound = 0.5 * x * x + d * (1 - v + xp.log(xp.where(v > 0, v, 1.0)))
            taken &= xp.log(u) < bound
            found = xp.where(taken, d * v, found)
            open_ = open_ & ~taken
        raised = self.open_uniform(a.shape) ** (1 / xp.where(a > 0, a, 1.0))
        return found * xp.where(a < 1, raised, 1.0)

    def binomial(self, n: Array, p: Array) -> Any:
        """How many of n trials succeed: trial after trial, all elements at once."""
        xp = self.xp
        shape = np.broadcast_shapes(n.shape, p.shape)
        n, p = xp.broadcast_to(n, shape), xp.broadcast_to(p, shape)
        found = xp.zeros(shape, np.int64)
        for trial in range(int(n.max()) if n.size else 0):
            found = found + ((self.random(shape) < p) & (n > trial))
        return found


def log_factorial(xp: ArrayModule, k: Array) -> Any:
    """log k! by Stirling's series, with the first values shifted up by the recurrence."""
    shifted, less = k + 1, xp.zeros_like(k)
    for _ in range(8):
        small = shifted < 9
        less = less + xp.where(small, xp.log(xp.where(small, shifted, 1.0)), 0.0)
        shifted = xp.where(small, shifted + 1, shifted)
    inverse = 1 / shifted
    square = inverse * inverse
    series = inverse * (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680)))
    return (shifted - 0.5) * xp.log(shifted) - shifted + math.log(2 * math.pi) / 2 + series - less


# -- words to numbers, as curand_uniform.h and curand_normal.h have them ---------------------------


def uniform32(words: list[Array]) -> list[Any]:
    """Numbers in (0, 1]: x·2⁻³² + 2⁻³³."""
    return [w.astype(np.float32) * np.float32(TINY) + np.float32(TINY / 2) for w in words]


def wide(words: list[Array]) -> list[Any]:
    """Two numbers of 53 bits from four words."""
    low, high = words[0::2], words[1::2]
    return [x.astype(np.uint64) ^ (y.astype(np.uint64) << np.uint64(21)) for x, y in zip(low, high)]


def uniform64(words: list[Array]) -> list[Any]:
    """Numbers in (0, 1]: z·2⁻⁵³ + 2⁻⁵⁴."""
    return [z.astype(np.float64) * TINY_DOUBLE + TINY_DOUBLE / 2 for z in wide(words)]


def below(numbers: list[Array]) -> list[Any]:
    """Numbers in [0, 1) from such in (0, 1]."""
    return [np.where(x == 1, x.dtype.type(0), x) for x in numbers]


def box_muller(size: Array, angle: Array) -> list[Any]:
    """Two normal numbers from a uniform one and an angle."""
    radius = np.sqrt(-2 * np.log(size))
    return [radius * np.sin(angle), radius * np.cos(angle)]


def normal32(words: list[Array]) -> list[Any]:
    made = []
    turn = np.float32(TINY * 2 * math.pi)
    for x, y in zip(words[0::2], words[1::2]):
        angle = y.astype(np.float32) * turn + turn / np.float32(2)
        made += box_muller(uniform32([x])[0], angle)
    return made


def normal64(words: list[Array]) -> list[Any]:
    z, y = wide(words)
    angle = y.astype(np.float64) * (TINY_DOUBLE * 2) + TINY_DOUBLE
    return box_muller(z.astype(np.float64) * TINY_DOUBLE + TINY_DOUBLE / 2, angle * math.pi)


def bits64(words: list[Array]) -> list[Any]:
    half = np.uint64(32)
    pairs = zip(words[0::2], words[1::2])
    return [(x.astype(np.uint64) << half) | y.astype(np.uint64) for x, y in pairs]


KINDS = {
    "bits32": lambda words: words,
    "bits64": bits64,
    "uniform32": uniform32,
    "uniform64": uniform64,
    "below32": lambda words: below(uniform32(words)),
    "below64": lambda words: below(uniform64(words)),
    "normal32": normal32,
    "normal64": normal64,
}
