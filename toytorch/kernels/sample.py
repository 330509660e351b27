"""Images and volumes read at the points of a grid, forward and backward.

Lanes of a vector are points that lie one after the other; the channels are gone over with places and
weights in registers (`sample_points`).
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from toytorch.facts.hints import Sizes
from toytorch.kernels.sample_points import BICUBIC, BILINEAR, NEAREST, WORDS, Points
from toytorch.loops import processor
from toytorch.loops.runtime import jit
from toytorch.loops.runtime.array_call import ArrayCall
from toytorch.loops.runtime.native import Call

if TYPE_CHECKING:
    from llvmlite.ir import Value


class Sampler(Points):
    """LLVM for a range of images' blocks of points (forward), or of images (backward).

    rule   "forward", or which gradients: "input", "grid" or "both"
    """

    def __init__(
        self, name: str, kind: str, rule: str, n: int, mode: int, padding: int, corners: bool,
        lanes: int,
    ) -> None:  # fmt: skip
        super().__init__(name, kind, n, mode, padding, corners, lanes, rule == "forward")
        self.rule, self.input = rule, self.array("input")
        if rule == "forward":
            self.loop(self.lo, self.hi, 1, self.block_of_results)
            return
        self.taps = {BILINEAR: 2, NEAREST: 1, BICUBIC: 4}[mode] ** n
        self.places = self.alloca(self.half, lanes * self.taps)
        self.shares = self.alloca(self.real, lanes * self.taps)

        def image(i: Value) -> None:
            self.count(self.word_of["blocks"], lambda k: self.block_of_gradients(i, k))

        self.loop(self.lo, self.hi, 1, image)

    def start(self, i: Value, k: Value) -> tuple[Any, Any]:
        """The first point of block k of image i, and how many of its points the block before has."""
        b, first = self.b, self.b.mul(k, self.word(self.lanes))
        held = self.smaller(first, b.sub(self.word_of["points"], self.word(self.lanes)))
        return held, b.sub(first, held)

    def addresses(self, base: Value, places: Value) -> Any:
        """The addresses of elements at places behind a pointer, in a vector."""
        b, bytes = self.b, self.ir.Constant(self.long, [self.bytes] * self.lanes)
        start = self.spread(b.ptrtoint(base, self.word), self.long)
        return b.add(start, b.mul(b.sext(places, self.long), bytes))

    def seen(self, base: Value, places: Value, inside: Value) -> Any:
        """The elements at places behind a pointer, and 0 where they are not inside."""
        pointers = self.b.inttoptr(
            self.addresses(base, places), self.ir.VectorType(self.real.as_pointer(), self.lanes)
        )
        all = self.ir.Constant(self.ir.VectorType(self.type("bit"), self.lanes), [1] * self.lanes)
        name = f"llvm.masked.gather.v{self.lanes}f{8 * self.bytes}.v{self.lanes}p0"
        values = self.known(name, self.vector, pointers, self.half(self.bytes), all, self.of(0))
        return self.b.select(inside, values, self.of(0))

    def block_of_results(self, k: Value) -> None:
        """What the channels of an image are at some points."""
        b, word = self.b, self.word_of
        i, k = b.udiv(k, word["blocks"]), b.urem(k, word["blocks"])
        first, _ = self.start(i, k)
        taps = self.neighbours(self.coordinates(i, first))
        if self.mode != BICUBIC:
            taps = [(place, inside, self.mul(*w.values())) for place, inside, w, _ in taps]
        image = b.gep(self.input, [b.mul(i, word["image"])])
        out = b.mul(b.mul(i, word["channels"]), word["points"])
        made = b.gep(self.array("made"), [b.add(out, first)])

        def channel(c: Value) -> None:
            plane = b.gep(image, [b.mul(c, word["channel"])])
            values = [self.seen(plane, place, inside) for place, inside, *_ in taps]
            if self.mode == BICUBIC:
                total = self.cubic_sum(values, [w for _, _, w, _ in taps])
            elif self.mode == NEAREST:
                (total,) = values
            else:
                total = self.products((v, w) for v, (_, _, w) in zip(values, taps))
            self.write(total, made, b.mul(c, word["points"]))

        self.count(word["channels"], channel)

    def cubic_sum(self, values: list[Any], weights: list[Any]) -> Any:
        """Lines first, then across them."""
        lines = []
        for k in range(0, 16, 4):
            terms = [self.mul(weights[k + j]["x"], values[k + j]) for j in (1, 2, 3)]
            terms[0] = self.fused(weights[k]["x"], values[k], terms[0])
            lines.append(functools.reduce(self.add, terms))
        return self.products((weights[4 * k]["y"], line) for k, line in enumerate(lines))

    def block_of_gradients(self, i: Value, k: Value) -> None:
        """Adds what some points of an image give to the gradients of both."""
        b, word = self.b, self.word_of
        first, skipped = self.start(i, k)
        taps = self.neighbours(self.coordinates(i, first))
        if self.mode == BICUBIC:  # down the columns, as PyTorch adds
            taps = [taps[4 * y + x] for x in range(4) for y in range(4)]
        if self.rule != "grid":
            for t, (place, *_) in enumerate(taps):
                self.store(place, self.places, t * self.lanes, 4)
        image = b.mul(i, word["image"])
        g = b.gep(self.array("made"), [b.mul(b.mul(i, word["channels"]), word["points"])])
        outside = b.mul(b.mul(i, word["channels"]), word["area"])

        def channel(c: Value, *sums: Value) -> list[Any]:
            share = self.read(g, b.add(b.mul(c, word["points"]), first), self.vector)
            if self.rule != "grid":
                for t, (_, inside, weights, _) in enumerate(taps):
                    value = self.mul(share, *weights.values())
                    if self.n == 3 or self.mode == BILINEAR:
                        value = self.mul(self.mul(*weights.values()), share)
                    value = b.select(inside, value, self.of(0))
                    self.store(value, self.shares, t * self.lanes, self.bytes)
                plane = b.add(outside, b.mul(c, word["area"]))
                self.scatter(b.gep(self.array("of input"), [plane]), skipped)
            if self.rule == "input" or self.mode == NEAREST:
                return list(sums)
            plane = b.gep(self.input, [b.add(image, b.mul(c, word["channel"]))])
            values = [self.seen(plane, place, inside) for place, inside, *_ in taps]
            if self.n == 2 and self.mode == BILINEAR:
                return self.flat_slopes(sums, values, taps, share)
            return self.slopes(sums, values, taps, share)

        zeros = [self.of(0)] * self.n
        sums = self.count(word["channels"], channel, 1, zeros)
        if self.rule == "input":
            return
        mixed = [self.mul(s, self.units[a]) for s, a in zip(sums, self.axes)]
        at = b.mul(b.add(b.mul(i, word["points"]), first), self.word(self.n))
        self.write(self.interleaved(mixed), self.array("of grid"), at)

    def flat_slopes(
        self, sums: tuple[Value, ...], values: list[Any], taps: list[Any], share: Value
    ) -> list[Any]:
        """The sums of both coordinates' gradients with one channel's, between four neighbours."""
        nw, ne, sw, se = values
        low, high = taps[0][2], taps[3][2]
        x = self.products([(self.sub(ne, nw), low["y"]), (self.sub(se, sw), high["y"])])
        y = self.products([(self.sub(sw, nw), low["x"]), (self.sub(se, ne), high["x"])])
        return [self.fused(v, share, s) for s, v in zip(sums, (x, y))]

    def slopes(
        self, sums: tuple[Value, ...], values: list[Any], taps: list[Any], share: Value
    ) -> list[Any]:
        """The same, one neighbour after the other."""
        made = list(sums)
        for value, (_, _, weights, slopes) in zip(values, taps):
            for d, axis in enumerate(self.axes):
                others = [weights[a] for a in self.axes if a != axis]
                if self.mode == BICUBIC:
                    term = self.mul(value, share, slopes[axis])
                    made[d] = self.fused(self.b.fneg(term), others[0], made[d])
                else:
                    term = self.mul(value, *others)
                    if slopes[axis] < 0:
                        term = self.b.fneg(term)
                    made[d] = self.fused(term, share, made[d])
        return made

    def scatter(self, plane: Value, skipped: Value) -> None:
        """Adds the shares of all neighbours at their places, point after point, however many lanes
        there are."""
        b = self.b

        def put(at: Value) -> None:
            place = b.sext(self.get(self.places, at), self.word)
            self.put(plane, place, b.fadd(self.get(plane, place), self.get(self.shares, at)))

        lanes, all = self.word(self.lanes), self.word(self.taps * self.lanes)
        self.loop(skipped, lanes, 1, lambda k: self.loop(k, all, lanes, put))

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


@functools.cache
def kernel(*how: Any) -> Call:
    """The compiled kernel: the arguments of Sampler after its name."""
    return Call("sample " + " ".join(map(str, how)), lambda name: Sampler(name, *how))


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
    total = shape[0] * (blocks if rule == "forward" else 1)
    work = shape[0] * count * (shape[1] + 4) * 8 * jit.TRAFFIC
    found = kernel(kind, rule, n, *how, lanes)
    return ArrayCall(found, words, [WORDS.index(a) for a in arrays], total, work)


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
    rule = "both" if all(wanted) else "input" if wanted[0] else "grid"
    g, a, grid = map(np.ascontiguousarray, (g, a, grid))
    how = mode, padding, corners
    run = call(rule, a.dtype.char, a.shape, a.strides, grid.shape, how)
    if run is None:
        return None
    of_input, of_grid = np.zeros(a.shape, a.dtype), np.zeros(grid.shape, grid.dtype)
    if rule == "both":
        run(a, grid, g, of_input, of_grid)
    elif rule == "input":
        run(grid, g, of_input)
    else:
        run(a, grid, g, of_grid)
    return of_input, of_grid
