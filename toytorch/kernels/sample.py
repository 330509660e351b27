"""Images and volumes read at the points of a grid, forward and backward.

Lanes of a vector are points that lie one after the other; the channels are gone over with places and
weights at hand (`sample_points`).
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from toytorch.facts.hints import Sizes, Value
from toytorch.kernels.sample_points import BICUBIC, BILINEAR, NEAREST, WORDS, Points
from toytorch.loops import processor
from toytorch.loops.runtime import jit
from toytorch.loops.runtime.array_call import ArrayCall

# Blocks of points that are gone over together, enough of them that a plane of the image stays in the
# first-level cache meanwhile, and vectors that are kept of each.
PART = {NEAREST: 128, BILINEAR: 32, BICUBIC: 16}
KEPT = {NEAREST: 2, BILINEAR: 28, BICUBIC: 52}


class Sampler(Points, family="sample"):
    """LLVM for a range of images' parts of points (forward), or of images (backward).

    What is known of a part's points is kept in memory, and each channel goes over all of them: the
    channels' planes often lie a power of two apart, where they share few places of the cache.

    rule   "forward", or which gradients: "input", "grid" or "both"
    """

    def __init__(
        self, name: str, kind: str, rule: str, n: int, mode: int, padding: int, corners: bool,
        lanes: int,
    ) -> None:  # fmt: skip
        super().__init__(name, kind, n, mode, padding, corners, lanes, rule == "forward")
        b, self.rule, self.input = self.b, rule, self.array("input")
        self.kept = self.alloca(self.real, lanes * KEPT[mode] * PART[mode])
        self.whole = b.bitcast(self.kept, self.type("half*"))
        self.shares = self.alloca(self.real, lanes * (4 if mode == BICUBIC else 2) ** n)
        self.slots = dict[Any, int]()  # where among a block's vectors one is kept
        size, blocks = self.word(PART[mode]), self.word_of["blocks"]
        parts = b.udiv(b.add(blocks, self.word(PART[mode] - 1)), size)

        def part(i: Value, k: Value) -> None:
            first = b.mul(k, size)
            self.part(i, first, self.smaller(size, b.sub(blocks, first)))

        if rule == "forward":
            self.loop(self.lo, self.hi, 1, lambda k: part(b.udiv(k, parts), b.urem(k, parts)))
        else:
            self.loop(self.lo, self.hi, 1, lambda i: self.count(parts, lambda k: part(i, k)))

    def part(self, i: Value, first: Value, count: Value) -> None:
        """So many blocks of an image's points, from one on."""
        b, word, lanes = self.b, self.word_of, self.word(self.lanes)
        forward, slopes = self.rule == "forward", self.rule in ("grid", "both")

        def start(j: Value) -> tuple[Any, Any]:
            """The first point of a block, and how many of its points the block before has."""
            at = b.mul(b.add(first, j), lanes)
            held = self.smaller(at, b.sub(word["points"], lanes))
            return held, b.sub(at, held)

        def begin(j: Value) -> None:
            self.taps = self.neighbours(self.coordinates(i, start(j)[0]))
            if self.mode == BICUBIC and not forward:  # down the columns, as PyTorch adds
                self.taps = [self.taps[4 * y + x] for x in range(4) for y in range(4)]
            for place, inside, *rest in self.taps:
                for value in (place, inside, *rest[0].values(), *rest[slopes].values()):
                    self.keep(j, value, value)
            for axis in self.axes if slopes else "":
                self.keep(j, self.units[axis], self.units[axis])
                self.keep(j, axis, self.of(0))

        def channel(c: Value) -> None:
            nth = b.add(b.mul(i, word["channels"]), c)
            made = b.gep(self.array("made"), [b.mul(nth, word["points"])])
            image = b.add(b.mul(i, word["image"]), b.mul(c, word["channel"]))
            self.plane = b.gep(self.input, [image])

            def results(j: Value) -> None:
                self.write(self.result(j), made, start(j)[0])

            def adds(j: Value) -> None:
                at, skipped = start(j)
                plane = b.gep(self.array("of input"), [b.mul(nth, word["area"])])
                self.scatter(j, plane, self.read(made, at, self.vector), skipped)

            def sums(j: Value) -> None:
                share = self.read(made, start(j)[0], self.vector)
                before = [self.again(j, axis, self.vector) for axis in self.axes]
                for axis, total in zip(self.axes, self.slopes(j, before, share)):
                    self.keep(j, axis, total)

            # One after the other: to read a plane after each write to another, which may lie a power
            # of two apart, takes twice as long.
            for work in [results] if forward else [adds] * (self.rule != "grid") + [sums] * slopes:
                self.count(count, work)

        def end(j: Value) -> None:
            mixed = [
                self.mul(self.again(j, axis, self.vector), self.again(j, self.units[axis]))
                for axis in self.axes
            ]
            at = b.mul(b.add(b.mul(i, word["points"]), start(j)[0]), self.word(self.n))
            self.write(self.interleaved(mixed), self.array("of grid"), at)

        self.count(count, begin)
        self.count(word["channels"], channel)
        if slopes:
            self.count(count, end)

    # -- what is kept of a block ----------------------------------------------------------------------

    def slot(self, j: Value, k: int) -> Any:
        """Where the k-th vector of block j begins."""
        b = self.b
        k = b.add(b.mul(j, self.word(KEPT[self.mode])), self.word(k))
        return b.mul(k, self.word(self.lanes))

    def keep(self, j: Value, name: Any, value: Value) -> None:
        """Writes a vector, for whoever knows its name, which may be itself; a mask as numbers below 0."""
        if isinstance(value, int) or (name is value and isinstance(value, self.ir.Constant)):
            return
        at = self.slot(j, self.slots.setdefault(name, len(self.slots)))
        mask = value.type.element == self.type("bit")
        self.store(self.b.sext(value, self.short) if mask else value, self.kept, at, 4)

    def again(self, j: Value, name: Any, type: Any = None) -> Any:
        """The vector again; what was not kept is the same for all."""
        if name not in self.slots:
            return name
        type, at = type or name.type, self.slot(j, self.slots[name])
        if type.element != self.type("bit"):
            return self.load(self.kept, at, type, 4)
        none = self.ir.Constant(self.short, [0] * self.lanes)
        return self.b.icmp_signed("<", self.load(self.kept, at, self.short, 4), none)

    def weights(self, j: Value, tap: Any, k: int = 2) -> dict[str, Any]:
        return {axis: self.again(j, value) for axis, value in tap[k].items()}

    def where(self, j: Value, tap: Any, lane: int | Value) -> Any:
        """Where one point's neighbour lies in a plane."""
        at = self.b.mul(self.slot(j, self.slots[tap[0]]), self.word(self.bytes // 4))
        return self.b.sext(self.get(self.whole, self.b.add(at, self.index(lane))), self.word)

    def seen(self, j: Value) -> list[Any]:
        """The neighbours' elements of the plane, 0 outside. One after the other: an instruction that
        gathers 16 takes twice as long, on processors of AMD's."""
        made = []
        for tap in self.taps:
            values = self.of(0)
            for k in range(self.lanes):
                value = self.get(self.plane, self.where(j, tap, k))
                values = self.b.insert_element(values, value, self.half(k))
            made.append(self.b.select(self.again(j, tap[1]), values, self.of(0)))
        return made

    # -- one block and one channel --------------------------------------------------------------------

    def result(self, j: Value) -> Any:
        """What the channel is at a block's points."""
        values, weights = self.seen(j), [self.weights(j, tap) for tap in self.taps]
        if self.mode == BICUBIC:
            return self.cubic_sum(values, weights)
        if self.mode == NEAREST:
            return values[0]
        return self.products((v, self.mul(*w.values())) for v, w in zip(values, weights))

    def cubic_sum(self, values: list[Any], weights: list[Any]) -> Any:
        """Lines first, then across them."""
        lines = []
        for k in range(0, 16, 4):
            terms = [self.mul(weights[k + j]["x"], values[k + j]) for j in (1, 2, 3)]
            terms[0] = self.fused(weights[k]["x"], values[k], terms[0])
            lines.append(functools.reduce(self.add, terms))
        return self.products((weights[4 * k]["y"], line) for k, line in enumerate(lines))

    def slopes(self, j: Value, sums: list[Any], share: Value) -> list[Any]:
        """The sums of the coordinates' gradients with the channel's."""
        values, weights = self.seen(j), [self.weights(j, tap) for tap in self.taps]
        if self.n == 2 and self.mode == BILINEAR:
            nw, ne, sw, se = values
            low, high = weights[0], weights[3]
            x = self.products([(self.sub(ne, nw), low["y"]), (self.sub(se, sw), high["y"])])
            y = self.products([(self.sub(sw, nw), low["x"]), (self.sub(se, ne), high["x"])])
            return [self.fused(v, share, s) for s, v in zip(sums, (x, y))]
        made = list(sums)
        for value, weight, tap in zip(values, weights, self.taps):
            slopes = self.weights(j, tap, 3)
            for d, axis in enumerate(self.axes):
                others = [weight[a] for a in self.axes if a != axis]
                if self.mode == BICUBIC:
                    term = self.mul(value, share, slopes[axis])
                    made[d] = self.fused(self.b.fneg(term), others[0], made[d])
                else:
                    term = self.mul(value, *others)
                    if slopes[axis] < 0:
                        term = self.b.fneg(term)
                    made[d] = self.fused(term, share, made[d])
        return made

    def scatter(self, j: Value, plane: Value, share: Value, skipped: Value) -> None:
        """Adds the neighbours' shares at their places, point after point, however many lanes there
        are."""
        b = self.b
        for t, tap in enumerate(self.taps):
            weights = self.weights(j, tap).values()
            if self.mode == BILINEAR:
                value = self.mul(self.mul(*weights), share)
            else:
                value = self.mul(share, *weights)
            value = b.select(self.again(j, tap[1]), value, self.of(0))
            self.store(value, self.shares, t * self.lanes, self.bytes)

        def point(k: Value) -> None:
            for t, tap in enumerate(self.taps):
                place = self.where(j, tap, k)
                value = self.get(self.shares, b.add(k, self.word(t * self.lanes)))
                self.put(plane, place, b.fadd(self.get(plane, place), value))

        self.loop(skipped, self.word(self.lanes), 1, point)

    def interleaved(self, vectors: list[Any]) -> Any:
        """The numbers of n vectors by turns."""
        b, n, lanes = self.b, self.n, self.lanes
        mask = self.ir.VectorType(self.half, 2 * lanes)
        if n == 2:
            turns = [k + d * lanes for k in range(lanes) for d in (0, 1)]
            return b.shuffle_vector(*vectors, mask(turns))
        both = b.shuffle_vector(vectors[0], vectors[1], mask(list(range(2 * lanes))))
        third = b.shuffle_vector(
            vectors[2], vectors[2], mask([k % lanes for k in range(2 * lanes)])
        )
        turns = [k + d * lanes for k in range(lanes) for d in range(3)]
        return b.shuffle_vector(both, third, self.ir.VectorType(self.half, 3 * lanes)(turns))


# -- from arrays to the kernel --------------------------------------------------------------------


@functools.lru_cache(256)
def call(
    rule: str, kind: str, shape: Sizes, strides: Sizes, grid: Sizes, how: tuple[int, int, bool]
) -> Any:
    """The kernel over images of a shape and a grid of another; None where there is none, or they do
    not fit."""
    n, bytes, points = len(shape) - 2, 4 if kind == "f" else 8, grid[1:-1]
    if n not in (2, 3) or grid[:1] != shape[:1] or len(points) != n or grid[-1] != n:
        return None
    if how[0] not in range(3 if n == 2 else 2) or how[1] not in range(3):
        return None
    count, area = math.prod(points), math.prod(shape[2:])
    away = sum((size - 1) * step for size, step in zip(shape[2:], strides[2:]))
    if not (jit.works() and count and 0 not in shape) or min(strides) < 0 or away // bytes >> 31:
        return None
    lanes = next(k for k in (max(processor.this().lanes(kind), 4), 8, 4, 1) if k <= count)
    blocks, steps = -(-count // lanes), [s // bytes for s in strides]
    pad = (0,) * (3 - n)
    words = (
        blocks, count, shape[1], *steps[:2], *steps[:1:-1], *pad, *shape[:1:-1], *pad, area,
        *(0,) * 5,
    )  # fmt: skip
    assert len(words) == len(WORDS)
    arrays = {
        "forward": ("input", "grid", "made"),
        "input": ("grid", "made", "of input"),
        "grid": ("input", "grid", "made", "of grid"),
        "both": ("input", "grid", "made", "of input", "of grid"),
    }[rule]
    total = shape[0] * (-(-blocks // PART[how[0]]) if rule == "forward" else 1)
    work = shape[0] * count * (shape[1] + 4) * 8 * jit.TRAFFIC
    found = Sampler.kernel(kind, rule, n, *how, lanes)
    return ArrayCall(found, words, [WORDS.index(a) for a in arrays], total, work).quick


def fits(a: Any, grid: Any) -> bool:
    return (
        a.__class__ is np.ndarray
        and grid.__class__ is np.ndarray
        and a.dtype is grid.dtype
        and a.dtype.char in "fd"
    )


def forward(a: Any, grid: Any, mode: int, padding: int, corners: bool, n: int | None) -> Any:
    """Images (N, C, *sizes) at the points of a grid (N, *out, n), or None. Where n is known, the
    images must have so many dimensions."""
    if not fits(a, grid) or n not in (None, a.ndim - 2):
        return None
    kind, shape = a.dtype, grid.shape
    run = call("forward", kind.char, a.shape, a.strides, shape, (mode, padding, corners))
    if run is None:
        return None
    made = np.empty(a.shape[:2] + shape[1:-1], kind)
    run(a, grid if grid.flags.c_contiguous else np.ascontiguousarray(grid), made)
    return made


def backward(
    g: Any, a: Any, grid: Any, mode: int, padding: int, corners: bool, wanted: tuple[bool, bool]
) -> Any:
    """The gradients of both, zeros for one that is not wanted; or None."""
    if not fits(a, grid) or g.dtype is not a.dtype or not any(wanted):
        return None
    of_input, of_grid = np.zeros(a.shape, a.dtype), np.zeros(grid.shape, grid.dtype)
    if mode == NEAREST and not wanted[0]:
        return of_input, of_grid
    rule = "input" if mode == NEAREST or not wanted[1] else "both" if wanted[0] else "grid"
    g, a, grid = map(np.ascontiguousarray, (g, a, grid))
    how = mode, padding, corners
    run = call(rule, a.dtype.char, a.shape, a.strides, grid.shape, how)
    if run is None:
        return None
    if rule == "both":
        run(a, grid, g, of_input, of_grid)
    elif rule == "input":
        run(grid, g, of_input)
    else:
        run(a, grid, g, of_grid)
    return of_input, of_grid
