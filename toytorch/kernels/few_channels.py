"""Convolution of images in groups of few channels, by vectors of columns.

The gradient of the input is the same kernel on g between zeros, with the taps turned round; that of
the weight has a vector of sums for each tap. Images lie in rows between zeros; where windows are three
columns apart or more, the columns that one tap sees lie together. Each function returns None where the caller
should do it otherwise.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from toytorch.facts.hints import Array, Sizes, Value
from toytorch.loops import processor
from toytorch.loops.runtime import jit
from toytorch.loops.runtime.native import Call, Native

MOST = 81  # taps of an output, in all inputs of its group; the kernels have a line for each
ROWS = 4  # lines of outputs that are made together, where the next sees what the last has seen
SIZES = ("each", "channels", "images", "lines", "columns", "step", "plane")
FORWARD = ("source", "offsets", "weight", "bias", "made")
WEIGHT = ("source", "offsets", "g", "made")


class Shape(NamedTuple):
    """What a kernel is made for: the element type, the inputs of a group, the taps in each, the lines of
    outputs at a time, the lanes of a vector, and how many columns a window is from the next (1 or 2)."""

    kind: str
    inputs: int
    down: int
    along: int
    rows: int
    lanes: int
    stride: int


class Windows(Native):
    """What the two kernels share: where a block of outputs looks. The elements that it sees lie in as
    many lines as its windows together, `down` + `rows` - 1."""

    def __init__(self, name: str, shape: Shape, arrays: Sequence[str]) -> None:
        super().__init__(name, shape.kind, (*SIZES, *arrays))
        self.shape = shape
        self.vector = self.ir.VectorType(self.real, shape.lanes)
        self.source, self.made = self.array("source"), self.array("made")
        table = self.array("offsets", "word")
        lines = range(shape.down + shape.rows - 1)
        seen = itertools.product(range(shape.inputs), lines, range(shape.along))
        self.offsets = {at: self.get(table, k) for k, at in enumerate(seen)}
        self.loop(self.lo, self.hi, 1, self.output)

    def output(self, o: Value) -> None:
        """The work of one part of the range."""
        raise NotImplementedError  # each kernel has its own

    def begin(self, o: Value, i: Value, j: Value) -> Any:
        """Where the first window of outputs (i, j) of a plane begins."""
        b, word = self.b, self.word_of
        plane = b.mul(b.udiv(o, word["each"]), word["plane"])
        j = b.mul(j, self.word(self.shape.stride))
        return b.add(b.add(plane, b.mul(i, word["step"])), j)

    def taps(self, begin: Value, rows: int) -> Iterator[tuple[Any, list[tuple[int, int]]]]:
        """What so many rows of outputs see, each with the (row, tap) that it counts for."""
        down, along = self.shape.down, self.shape.along
        for (c, r, q), offset in self.offsets.items():
            uses = [(a, (c * down + r - a) * along + q) for a in range(rows) if 0 <= r - a < down]
            if uses:
                yield self.seen(self.b.add(begin, offset)), uses

    def seen(self, place: Value) -> Any:
        """A vector of what one tap sees."""
        first = self.read(self.source, place, self.vector)
        if self.shape.stride == 1:
            return first
        next_ = self.b.add(place, self.word(self.shape.lanes))
        every = range(0, 2 * self.shape.lanes, 2)
        second = self.read(self.source, next_, self.vector)
        mask = self.ir.Constant(self.ir.VectorType(self.half, self.shape.lanes), list(every))
        return self.b.shuffle_vector(first, second, mask)

    def more(self, total: Value, x: Value, y: Value) -> Any:
        """total + x·y, rounded once where the processor does."""
        product = self.b.fmul(x, y, flags=["contract"])
        return self.b.fadd(total, product, flags=["contract"])


class Forward(Windows):
    """LLVM for the convolution; the range is all planes of the result."""

    def __init__(self, name: str, shape: Shape) -> None:
        super().__init__(name, shape, FORWARD)

    def output(self, o: Value) -> None:
        b, word, shape = self.b, self.word_of, self.shape
        channel, count = b.urem(o, word["channels"]), shape.inputs * shape.down * shape.along
        first = b.mul(channel, self.word(count))
        weight, bias = self.array("weight"), self.array("bias")
        taps = [self.get(weight, b.add(first, self.word(t))) for t in range(count)]
        taps = [self.spread(w, self.vector) for w in taps]
        start = self.spread(self.get(bias, channel), self.vector)
        lines = b.sub(word["lines"], self.word(shape.rows))
        latest = b.sub(word["columns"], self.word(shape.lanes))

        def line(i: Value) -> None:
            i = self.smaller(i, lines)
            own = b.add(b.mul(o, word["lines"]), i)

            def columns(j: Value) -> None:
                j = self.smaller(j, latest)
                totals = [start] * shape.rows
                for x, uses in self.taps(self.begin(o, i, j), shape.rows):
                    for a, t in uses:
                        totals[a] = self.more(totals[a], x, taps[t])
                for a, total in enumerate(totals):
                    row = b.mul(b.add(own, self.word(a)), word["columns"])
                    self.write(total, self.made, b.add(row, j))

            self.count(word["columns"], columns, shape.lanes)

        self.count(word["lines"], line, shape.rows)


class Weight(Windows):
    """LLVM for the gradient of the weight: the range is the outputs, and there is a vector of sums for
    each tap. Lines of g are whole vectors, of which the last has zeros at its end."""

    def __init__(self, name: str, shape: Shape) -> None:
        super().__init__(name, shape, WEIGHT)

    def output(self, o: Value) -> None:
        b, word, lanes = self.b, self.word_of, self.word(self.shape.lanes)
        count, none = self.shape.inputs * self.shape.down * self.shape.along, self.word(0)
        rest = b.urem(word["lines"], self.word(self.shape.rows))
        whole = b.sub(word["lines"], rest)
        inside = self.lanes_below(b.urem(word["columns"], lanes))
        fitting = b.sub(word["columns"], b.urem(word["columns"], lanes))

        def image(n: Value, *sums: Value) -> list[Any]:
            own = b.add(b.mul(n, word["channels"]), o)

            def line(rows: int) -> Any:
                def block(i: Value, *sums: Value) -> list[Any]:
                    def all_(j: Value, *sums: Value) -> list[Any]:
                        return self.added(own, i, j, rows, sums)

                    def some(j: Value, *sums: Value) -> list[Any]:
                        return self.added(own, i, j, rows, sums, inside)

                    found = self.loop(none, fitting, self.shape.lanes, all_, sums)
                    return self.loop(fitting, word["columns"], self.shape.lanes, some, found)

                return block

            found = self.loop(none, whole, self.shape.rows, line(self.shape.rows), sums)
            return self.loop(whole, word["lines"], 1, line(1), found)

        zeros = [self.ir.Constant(self.vector, [0.0] * self.shape.lanes)] * count
        totals = self.loop(none, word["images"], 1, image, zeros)
        first = b.mul(o, self.word(count * self.shape.lanes))
        for t, total in enumerate(totals):
            self.write(total, self.made, b.add(first, self.word(t * self.shape.lanes)))

    def lanes_below(self, n: Value) -> Any:
        """Which lanes have a number below n."""
        long = self.ir.VectorType(self.word, self.shape.lanes)
        every = self.ir.Constant(long, list(range(self.shape.lanes)))
        return self.b.icmp_signed("<", every, self.spread(n, long))

    def added(
        self,
        own: Value,
        i: Value,
        j: Value,
        rows: int,
        sums: Sequence[Value],
        inside: Value | None = None,
    ) -> list[Any]:
        """The sums with what so many rows of a vector of columns add; of the lanes that are not `inside`
        nothing is seen, not even what is not finite."""
        b, word, lanes = self.b, self.word_of, self.word(self.shape.lanes)
        wide = b.mul(b.udiv(b.add(word["columns"], b.sub(lanes, self.word(1))), lanes), lanes)
        there = b.add(b.mul(own, word["lines"]), i)
        places = [b.mul(b.add(there, self.word(a)), wide) for a in range(rows)]
        g, totals = self.array("g"), list(sums)
        factors = [self.read(g, b.add(at, j), self.vector) for at in places]
        nothing = self.ir.Constant(self.vector, [0.0] * self.shape.lanes)
        for x, uses in self.taps(self.begin(own, i, j), rows):
            seen = x if inside is None else b.select(inside, x, nothing)
            for a, t in uses:
                totals[t] = self.more(totals[t], seen, factors[a])
        return totals


@functools.cache
def kernel(rule: str, shape: Shape) -> Call:
    """The compiled kernel, "forward" or "weight"."""
    made = Forward if rule == "forward" else Weight
    words = " ".join(map(str, shape))
    return Call(f"few_channels {rule} {words}", lambda name: made(name, shape))


# -- from images to the kernels -------------------------------------------------------------------


def fits(x: Array, y: Array, inputs: int, taps: Sequence[int]) -> bool:
    """Whether windows over so many inputs of a group are for these kernels."""
    return bool(
        x.dtype.char in "fd"
        and x.dtype == y.dtype
        and x.ndim == 4
        and x.size
        and y.size
        and inputs * math.prod(taps) <= MOST
        and jit.works()
    )


class Plan(NamedTuple):
    """How images lie for a kernel: the sizes (lines, phases, columns of each) of one between zeros, the
    offsets of what a block of outputs sees, and the words of the kernel's table."""

    shape: Shape
    sizes: Sizes
    offsets: Array
    words: Sizes


@functools.lru_cache(1024)
def plan(
    kind: str,
    taps: Sizes,
    stride: Sizes,
    dilation: Sizes,
    images: int,
    outputs: int,
    group: tuple[int, int],
    out: Sizes,
) -> Plan:
    """The plan for so many images and outputs, (inputs, outputs) of a group, and results of these
    sizes."""
    reach = [(n - 1) * s + d * (k - 1) + 1 for n, s, d, k in zip(out, stride, dilation, taps)]
    phases = 1 if stride[1] < 3 else stride[1]
    columns = -(-reach[1] // phases)
    line = phases * columns
    most = processor.this().lanes(kind)
    lanes = next(n for n in (most, most // 2, most // 4, 1) if 0 < n <= out[1])
    rows = next(n for n in (ROWS, 2, 1) if n <= out[0]) if stride[0] == dilation[0] else 1
    inputs, each = group
    shape = Shape(kind, inputs, taps[0], taps[1], rows, lanes, stride[1] if phases == 1 else 1)
    plane = reach[0] * line
    offsets = [
        c * plane
        + p * dilation[0] * line
        + q * dilation[1] % phases * columns
        + q * dilation[1] // phases
        for c in range(inputs)
        for p, q in itertools.product(range(taps[0] + rows - 1), range(taps[1]))
    ]
    sizes = (reach[0], phases, columns)
    words = each, outputs, images, *out, stride[0] * line, inputs * plane
    return Plan(shape, sizes, np.array(offsets, np.int64), words)


def between_zeros(x: Array, how: Plan, first: Sequence[int], apart: Sequence[int]) -> Any:
    """Images as a kernel reads them: line i of x comes to first + i·apart, as far as it is inside, and so
    do columns; after the last there is room for a vector."""
    lines, phases, columns = how.sizes
    planes = x.shape[0] * x.shape[1]
    count = planes * lines * phases * columns
    flat = np.zeros(count + 2 * how.shape.lanes, x.dtype)
    wide = flat[:count].reshape(*x.shape[:2], lines, phases * columns)
    there, here = [], []
    for n, size, begin, step in zip(x.shape[2:], wide.shape[2:], first, apart):
        skipped = max(0, -(begin // step))
        taken = max(0, min(n, -(-(size - begin) // step)) - skipped)
        begin += skipped * step
        there.append(slice(begin, begin + taken * step, step))
        here.append(slice(skipped, skipped + taken))
    into = wide if phases == 1 else np.zeros(wide.shape, x.dtype)
    into[:, :, there[0], there[1]] = x[:, :, here[0], here[1]]
    if phases > 1:
        split = into.reshape(planes * lines, columns, phases).swapaxes(1, 2)
        flat[:count].reshape(planes * lines, phases, columns)[...] = split
    return flat


def in_vectors(g: Array, lanes: int) -> Any:
    """g whose lines are whole vectors, with zeros at their ends."""
    columns = -(-g.shape[3] // lanes) * lanes
    if columns == g.shape[3]:
        return np.ascontiguousarray(g)
    made = np.zeros((*g.shape[:3], columns), g.dtype)
    made[..., : g.shape[3]] = g
    return made


def forward(
    x: Array,
    w: Array,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    groups: int,
    bias: Array | None = None,
) -> Any:
    """The convolution (N, O, H', W') of x (N, C, H, W) with w (O, C/groups, kh, kw), or None."""
    inputs, taps = w.shape[1], w.shape[2:]
    out = tuple(
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, p, d, k, s in zip(x.shape[2:], padding, dilation, taps, stride)
    )
    if not fits(x, w, inputs, taps) or min(out) < 1:
        return None
    return correlated(x, w, groups, out, (stride, dilation), (padding, (1, 1)), bias)


def correlated(
    x: Array,
    w: Array,
    groups: int,
    out: Sizes,
    steps: tuple[Sizes, Sizes],
    lies: tuple[Sequence[int], Sequence[int]],
    bias: Array | None,
) -> Any:
    """The sums over windows of x, which `between_zeros` puts where `lies` says."""
    group = w.shape[1], len(w) // groups
    how = plan(x.dtype.char, w.shape[2:], *steps, len(x), len(w), group, out)
    source = between_zeros(x, how, *lies)
    made = np.empty((len(x), len(w), *out), x.dtype)
    weight = np.ascontiguousarray(w)
    row = np.zeros(len(w), x.dtype) if bias is None else np.ascontiguousarray(bias)
    places = map(jit.address_of, (source, how.offsets, weight, row, made))
    work = made.size * math.prod(w.shape[1:])
    kernel("forward", how.shape)(len(x) * len(w), work, *how.words, *places)
    return made


def input_gradient(
    g: Array, w: Array, sizes: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int
) -> Any:
    """The gradient (N, C, *sizes) of the input, or None."""
    taps, each = w.shape[2:], len(w) // groups
    if not fits(g, w, each, taps) or min(sizes) < 1:
        return None
    first = [d * (k - 1) - p for d, k, p in zip(dilation, taps, padding)]
    turned = w.reshape(groups, each, *w.shape[1:])[..., ::-1, ::-1].swapaxes(1, 2)
    turned = turned.reshape(groups * w.shape[1], each, *taps)
    return correlated(g, turned, groups, sizes, ((1, 1), dilation), (first, stride), None)


def weight_gradient(
    x: Array, g: Array, taps: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int
) -> Any:
    """The gradient (O, C/groups, kh, kw) of the weight, from x (N, C, H, W) and g (N, O, H', W'), or
    None."""
    inputs, outputs = x.shape[1] // groups, g.shape[1]
    if not fits(x, g, inputs, taps):
        return None
    out, count = g.shape[2:], inputs * math.prod(taps)
    group = inputs, outputs // groups
    how = plan(x.dtype.char, taps, stride, dilation, len(x), outputs, group, out)
    lanes = how.shape.lanes
    source, vectors = between_zeros(x, how, padding, (1, 1)), in_vectors(g, lanes)
    made = np.empty((outputs, count, lanes), g.dtype)
    places = map(jit.address_of, (source, how.offsets, vectors, made))
    kernel("weight", how.shape)(outputs, g.size * count, *how.words, *places)
    return np.add.reduce(made, 2).reshape(outputs, inputs, *taps)


__all__ = ["forward", "input_gradient", "weight_gradient"]
