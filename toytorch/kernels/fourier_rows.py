"""Fourier transforms of many rows at once, a row in each lane of the vectors.

Stockham's algorithm: a stage of radix r makes r transforms of length m = L/r out of one of length L,
and leaves them in order. With s = n/L and w = e^{-2πi/L}, for p < m, q < s and j < r it is

    y[q + s·(r·p + j)] = w^{jp} · Σ_k e^{-2πi·jk/r} · x[q + s·(p + m·k)].

The inverse is the same with real and imaginary parts in each other's places. An even number n of
real values is a row of m = n/2 complex ones. From their transform Z that of the values is

    X[k] = (Z[k] + conj Z[m-k])/2 - i/2 · e^{-2πik/n} · (Z[k] - conj Z[m-k]),

and the way back is Z[k] = (X[k] + conj X[m-k]) + i · e^{2πik/n} · (X[k] - conj X[m-k]).

Van Loan, Computational Frameworks for the Fast Fourier Transform, 1992, sections 1.7 and 4.3.
"""

from __future__ import annotations

import cmath
import functools
import math
import struct
from typing import Any

import numpy as np

from toytorch.facts.hints import Array, Sizes, Value
from toytorch.kernels.chain import Chain, Lies, Step
from toytorch.loops import processor
from toytorch.loops.runtime import jit
from toytorch.loops.runtime.jit import address_of
from toytorch.loops.runtime.native import Native

RADICES = (4, 5, 3, 7, 11, 13, 2)
LONGEST = 4096  # complex numbers of a row; longer ones leave the second-level cache
WORDS = (
    "start",  # where a unit's rows begin in both arrays, in real numbers
    "input",
    "output",
    "planes",  # twice the rows that are worked on: for each number two vectors, its real and imaginary part
    "stages",  # m, s, and where its roots begin, for each
    "roots",  # w^{jp} for j = 1 … r-1, for each p
    "turns",  # e^{-2πik/n}, where the values are real
    "n",  # complex numbers of a row
    "step",  # from one to the next in the input, in real numbers
    "lane",  # from a row to the next in the input
    "step out",
    "lane out",
    "factor",
    "inverse",
)


def transform(way: str, a: Array, n: int, d: int, factor: float) -> Any:
    """fft, ifft, rfft or irfft of n places along a dimension, times a factor; or None."""
    if not a.flags.c_contiguous or not jit.pays(4 * a.size):
        return None
    chain = plan(way, a.shape, a.dtype.char.lower(), n, d, factor)
    if chain is None:
        return None
    count = n // 2 + 1 if way == "rfft" else n
    shape = (*a.shape[:d], count, *a.shape[d + 1 :])
    made = np.empty(shape, a.dtype.char.lower() if way == "irfft" else a.dtype.char.upper())
    chain[0](start=chain[1], input=a, output=made)
    return made


@functools.lru_cache(256)
def plan(way: str, shape: Sizes, kind: str, n: int, d: int, factor: float) -> Any:
    """(the call for arrays of a shape, where its units begin), or None."""
    real = way in ("rfft", "irfft")
    length = n // 2 if real else n
    radices = factored(length)
    inner, size = math.prod(shape[d + 1 :]), math.prod(shape)
    rows, across = size // shape[d], inner > 1
    side_by_side = inner if across else rows  # rows of which vectors can be made
    widest = lanes = processor.this().lanes(kind)
    while lanes > side_by_side:
        lanes //= 2
    if (
        not radices
        or length > LONGEST
        or lanes < min(4, widest)
        or n % 2 > (not real)
        or shape[d] != (n // 2 + 1 if way == "irfft" else n)
    ):
        return None
    parts = {"rfft": (1, 2), "irfft": (2, 1)}.get(way, (2, 2))  # real numbers of an element
    counts = shape[d], n // 2 + 1 if way == "rfft" else n
    firsts = [*range(0, side_by_side - lanes, lanes), side_by_side - lanes]
    starts = np.array(
        [
            [p * (o * c * inner + r * (1 if across else c)) for p, c in zip(parts, counts)]
            for o in range(rows // side_by_side)
            for r in firsts
        ],
        np.int64,
    )
    stages, roots = tables(length, radices, kind)
    turns = np.exp(-2j * np.pi * np.arange(length + 1) / n).astype(kind.upper())
    words = [0, 0, 0, 0, *map(address_of, (stages, roots, turns)), length]
    for p, c in zip(parts, counts):
        words += [2 * inner, p if across else p * c]
    words += [struct.unpack("q", struct.pack("d", factor))[0], way in ("ifft", "irfft")]
    values = {"rfft": "to half", "irfft": "from half"}.get(way, "all")
    made = Transform.kernel(kind, values, across, lanes, radices)
    work = 8 * length * (len(radices) + 3)
    names = ("start", "input", "output", "planes")
    step = Step(made, tuple(words), tuple((k, name, 0) for k, name in enumerate(names)), 1, work)
    itemsize = np.dtype(kind).itemsize
    lies = {"start": Lies(unit=16), "input": Lies(), "output": Lies()}
    chain = Chain([step], lies, {"planes": 4 * (length + 1) * lanes * itemsize}, len(starts))
    return chain, starts, (stages, roots, turns)  # the last are kept: words hold where they are


def factored(n: int) -> tuple[int, ...]:
    """n as a product of radices, or none."""
    found = []
    for r in RADICES:
        while n > 1 and n % r == 0:  # half of one place is none
            found.append(r)
            n //= r
    return tuple(found) if n == 1 else ()


def tables(n: int, radices: Sizes, kind: str) -> tuple[Array, Array]:
    """What the stages are, and their roots."""
    stages, roots = [], [np.zeros(0, complex)]
    length, s, first = n, 1, 0
    for r in radices:
        m = length // r
        stages.append((m, s, first))
        powers = np.outer(np.arange(m), np.arange(1, r))
        roots.append(np.exp(-2j * np.pi * powers / length).reshape(-1))
        first += 2 * powers.size
        length, s = m, s * r
    return np.array(stages, np.int64), np.concatenate(roots).astype(kind.upper())


Pair = tuple[Any, Any]  # the real and imaginary parts of a number, in vectors of rows


class Transform(Native, family="fourier"):
    """LLVM for a unit of rows. By hand: what a stage reads and writes is no dimension of an array.

    values  "all" for complex values; "to half" from real ones to half a spectrum, "from half" back
    across  whether rows lie side by side, a number of each after the other
    """

    def __init__(
        self, name: str, kind: str, values: str, across: bool, lanes: int, radices: Sizes
    ) -> None:
        super().__init__(name, kind, WORDS)
        b, word = self.b, self.word_of
        self.across, self.lanes = across, lanes
        self.vector = self.ir.VectorType(self.real, lanes)
        n, none, inverse = word["n"], self.word(0), word["inverse"]
        more = b.add(n, self.word(1))
        start = self.array("start", "word")
        source = b.gep(self.array("input"), [self.get(start, 0)])
        target = b.gep(self.array("output"), [self.get(start, 1)])
        now = self.array("planes")
        then = b.gep(now, [b.mul(more, self.word(2 * lanes))])
        if values == "from half":
            self.read_rows(source, now, more, none, real=False)
            self.joined(now, then, n, inverse)
            now, then = then, now
        else:
            self.read_rows(source, now, n, inverse, real=values == "to half")
        for k, r in enumerate(radices):
            self.stage(now, then, k, r)
            now, then = then, now
        if values == "to half":
            self.parted(now, then, n)
            now, n = then, more
        self.write_rows(now, target, n, inverse, real=values == "from half")

    # -- numbers of the rows that are worked on -------------------------------------------------------

    def number(self, plane: Value, k: Value, swap: Value | None = None) -> Pair:
        """The k-th numbers of all rows; their parts may lie in each other's places."""
        first, second = self.places(k, swap)
        return self.read(plane, first, self.vector), self.read(plane, second, self.vector)

    def put_number(self, x: Pair, plane: Value, k: Value, swap: Value | None = None) -> None:
        for part, place in zip(x, self.places(k, swap)):
            self.write(part, plane, place)

    def places(self, k: Value, swap: Value | None) -> Pair:
        b, lanes = self.b, self.word(self.lanes)
        first = b.mul(k, self.word(2 * self.lanes))
        if swap is None:
            return first, b.add(first, lanes)
        far = b.mul(swap, lanes)
        return b.add(first, far), b.sub(b.add(first, lanes), far)

    def root(self, base: Value, k: Value) -> Pair:
        """A complex number of a table, in all lanes."""
        first = self.b.mul(k, self.word(2))
        real, imaginary = self.read(base, first), self.read(base, self.b.add(first, self.word(1)))
        return self.spread(real, self.vector), self.spread(imaginary, self.vector)

    def of(self, x: float) -> Any:
        return self.ir.Constant(self.vector, [x] * self.lanes)

    def add(self, x: Pair, y: Pair) -> Pair:
        return self.b.fadd(x[0], y[0]), self.b.fadd(x[1], y[1])

    def sub(self, x: Pair, y: Pair) -> Pair:
        return self.b.fsub(x[0], y[0]), self.b.fsub(x[1], y[1])

    def fused(self, x: Value, y: Value, z: Value) -> Any:
        """x·y + z"""
        name = f"llvm.fmuladd.v{self.lanes}f{8 * self.bytes}"
        type = self.ir.FunctionType(self.vector, [self.vector] * 3)
        function = self.module.globals.get(name) or self.ir.Function(self.module, type, name)
        return self.b.call(function, (x, y, z))

    def product(self, x: Pair, y: Pair) -> Pair:
        b = self.b
        real = self.fused(x[0], y[0], b.fneg(b.fmul(x[1], y[1])))
        return real, self.fused(x[0], y[1], b.fmul(x[1], y[0]))

    # -- stages ---------------------------------------------------------------------------------------

    def stage(self, source: Value, target: Value, k: int, r: int) -> None:
        b, roots = self.b, self.array("roots")
        m, s, first = (self.get(self.array("stages", "word"), 3 * k + i) for i in range(3))
        roots = b.gep(roots, [first])

        def column(p: Value) -> None:
            at = b.mul(p, self.word(r - 1))
            turns = [self.root(roots, b.add(at, self.word(j))) for j in range(r - 1)]

            def one(q: Value) -> None:
                read = [b.add(p, b.mul(m, self.word(i))) for i in range(r)]
                x = [self.number(source, b.add(q, b.mul(s, i))) for i in read]
                first, *rest = butterfly(self, x)
                write = b.mul(p, self.word(r))
                for j, y in enumerate([first, *map(self.product, rest, turns)]):
                    at = b.add(q, b.mul(s, b.add(write, self.word(j))))
                    self.put_number(y, target, at)

            self.count(s, one)

        self.count(m, column)

    def mirrored(self, plane: Value, k: Value, other: Value) -> tuple[Pair, Pair]:
        """The sum and the difference of a number and the conjugate of another."""
        x, (real, imaginary) = self.number(plane, k), self.number(plane, other)
        y = real, self.b.fneg(imaginary)
        return self.add(x, y), self.sub(x, y)

    def parted(self, source: Value, target: Value, n: Value) -> None:
        """Half the spectrum of 2n real values, from that of n pairs."""
        b, half = self.b, self.of(0.5)

        def one(k: Value) -> None:
            first = b.select(b.icmp_signed("==", k, n), self.word(0), k)
            back = b.select(b.icmp_signed("==", k, self.word(0)), k, b.sub(n, k))
            total, rest = self.mirrored(source, first, back)
            real, imaginary = self.product(rest, self.root(self.array("turns"), k))
            made = b.fadd(total[0], imaginary), b.fsub(total[1], real)
            self.put_number((b.fmul(made[0], half), b.fmul(made[1], half)), target, k)

        self.count(b.add(n, self.word(1)), one)

    def joined(self, source: Value, target: Value, n: Value, swap: Value) -> None:
        """The spectrum of n pairs from half of that of 2n real values. Its ends have no imaginary part,
        whatever is there."""
        b = self.b
        for end in (self.word(0), n):
            self.put_number((self.number(source, end)[0], self.of(0)), source, end)

        def one(k: Value) -> None:
            total, rest = self.mirrored(source, k, b.sub(n, k))
            real, imaginary = self.root(self.array("turns"), k)
            x, y = self.product(rest, (real, b.fneg(imaginary)))
            self.put_number((b.fsub(total[0], y), b.fadd(total[1], x)), target, k, swap)

        self.count(n, one)

    # -- rows of the arrays -----------------------------------------------------------------------------

    def read_rows(self, source: Value, plane: Value, n: Value, swap: Value, real: bool) -> None:
        b, step, lane = self.b, self.word_of["step"], self.word_of["lane"]

        def alone(k: Value) -> None:
            at = b.mul(k, step)
            if not self.across:
                parts = [self.gathered(source, b.add(at, self.word(i)), lane) for i in (0, 1)]
            elif real:
                second = b.add(at, b.sdiv(step, self.word(2)))
                parts = [self.read(source, i, self.vector) for i in (at, second)]
            else:
                pairs = self.read(source, at, self.ir.VectorType(self.real, 2 * self.lanes))
                parts = [self.chosen(pairs, pairs, range(i, 2 * self.lanes, 2)) for i in (0, 1)]
            self.put_number((parts[0], parts[1]), plane, k, swap)

        def block(k: Value) -> None:
            at, size = b.mul(k, self.word(2)), self.lanes
            rows = [
                self.read(source, b.add(at, b.mul(lane, self.word(v))), self.vector)
                for v in range(size)
            ]
            columns = self.transposed(rows)
            for i in range(size // 2):
                number = columns[2 * i], columns[2 * i + 1]
                self.put_number(number, plane, b.add(k, self.word(i)), swap)

        self.blocks(n, block, alone)

    def write_rows(self, plane: Value, target: Value, n: Value, swap: Value, real: bool) -> None:
        b, step, lane = self.b, self.word_of["step out"], self.word_of["lane out"]
        factor = b.bitcast(self.word_of["factor"], self.type("double"))
        if self.bytes == 4:
            factor = b.fptrunc(factor, self.real)
        factor = self.spread(factor, self.vector)

        def scaled(k: Value) -> Pair:
            x, y = self.number(plane, k, swap)
            return b.fmul(x, factor), b.fmul(y, factor)

        def alone(k: Value) -> None:
            at, (x, y) = b.mul(k, step), scaled(k)
            if not self.across:
                for i, part in enumerate((x, y)):
                    self.scattered(part, target, b.add(at, self.word(i)), lane)
            elif real:
                self.write(x, target, at)
                self.write(y, target, b.add(at, b.sdiv(step, self.word(2))))
            else:
                order = [i // 2 + i % 2 * self.lanes for i in range(2 * self.lanes)]
                self.write(self.chosen(x, y, order), target, at)

        def block(k: Value) -> None:
            numbers = [scaled(b.add(k, self.word(i))) for i in range(self.lanes // 2)]
            for v, row in enumerate(self.transposed([part for x in numbers for part in x])):
                at = b.add(b.mul(k, self.word(2)), b.mul(lane, self.word(v)))
                self.write(row, target, at)

        self.blocks(n, block, alone)

    def blocks(self, n: Value, block: Any, alone: Any) -> None:
        """Numbers of rows that lie one after the other: as many as a vector holds, then one by one."""
        b, size, first = self.b, self.word(self.lanes // 2), self.word(0)
        if not self.across:
            first = b.mul(b.sdiv(n, size), size)
            self.loop(0, first, self.lanes // 2, block)
        self.loop(first, n, 1, alone)

    def chosen(self, x: Value, y: Value, places: Any) -> Any:
        """The places of two vectors."""
        places = list(places)
        mask = self.ir.Constant(self.ir.VectorType(self.half, len(places)), places)
        return self.b.shuffle_vector(x, y, mask)

    def gathered(self, base: Value, at: Value, lane: Value) -> Any:
        """One real number of each row."""
        made = self.ir.Constant(self.vector, self.ir.Undefined)
        for v in range(self.lanes):
            value = self.read(base, self.b.add(at, self.b.mul(lane, self.word(v))))
            made = self.b.insert_element(made, value, self.half(v))
        return made

    def scattered(self, x: Value, base: Value, at: Value, lane: Value) -> None:
        for v in range(self.lanes):
            value = self.b.extract_element(x, self.half(v))
            self.write(value, base, self.b.add(at, self.b.mul(lane, self.word(v))))


def butterfly(f: Transform, x: list[Pair]) -> list[Pair]:
    """The transform of r numbers, Σ_k e^{-2πi·jk/r} · x[k] for j < r."""
    r, b = len(x), f.b
    if r == 2:
        return [f.add(*x), f.sub(*x)]
    if r == 4:
        even, odd = f.add(x[0], x[2]), f.add(x[1], x[3])
        rest, (real, imaginary) = f.sub(x[0], x[2]), f.sub(x[1], x[3])
        third = b.fadd(rest[0], imaginary), b.fsub(rest[1], real)
        fourth = b.fsub(rest[0], imaginary), b.fadd(rest[1], real)
        return [f.add(even, odd), third, f.sub(even, odd), fourth]
    # An odd number: with the sums and differences of x[k] and x[r-k], y[j] and y[r-j] have their parts in common.
    pairs = range(1, r // 2 + 1)
    sums = [f.add(x[k], x[r - k]) for k in pairs]
    rests = [f.sub(x[k], x[r - k]) for k in pairs]
    made = [functools.reduce(f.add, [x[0], *sums])] * r
    for j in pairs:
        same, turned = x[0], (f.of(0), f.of(0))
        for k in pairs:
            root = cmath.exp(2j * cmath.pi * (j * k % r) / r)
            cos, sin = f.of(root.real), f.of(root.imag)
            same = f.fused(cos, sums[k - 1][0], same[0]), f.fused(cos, sums[k - 1][1], same[1])
            turned = (
                f.fused(sin, rests[k - 1][1], turned[0]),
                f.fused(sin, rests[k - 1][0], turned[1]),
            )
        made[j] = b.fadd(same[0], turned[0]), b.fsub(same[1], turned[1])
        made[r - j] = b.fsub(same[0], turned[0]), b.fadd(same[1], turned[1])
    return made
