"""The inner kernel of convolutions: a register tile, results that stay in registers.

A tile is P rows of V vectors. Forward, a row is an output pixel and the vectors are output
channels; for the gradient of the weight, a row is an input channel. Either way

    C[r, v] = start[v] + Σ_i Σ_j Σ_k A[i·a0 + j·a1 + k·a2 + r·step] · B[i·b0 + j·b1 + k·b2 + v]

where the elements of A are spread over a vector one by one, and B is read in vectors. Around it run
four loops over tiles, each of which moves the places in A, B and C. No matrix of windows is made:
the strides walk over the images themselves (Georganas et al. 2018, "Anatomy of high-performance
deep learning convolutions").

It is written by hand, and not as a program of `toytorch.loops`, because a tile needs sums over
several dimensions that stay in registers for many rows at once; programs keep one row's.

    >>> rows(6) <= most_rows()
    True
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

from toytorch.facts.hints import Value
from toytorch.kernels.chain import Step
from toytorch.loops import processor
from toytorch.loops.runtime.native import Call, Native

TILES, SUMS = 4, 3  # the loops over tiles, the last of them along the rows; and those of the sum
# More sums than this wait for nothing: a processor starts two multiply-adds at a time, and each
# takes four or five of its cycles.
ENOUGH = 14
# What a call is told: sizes of the loops, and strides in elements; `shared` is the loop over tiles
# whose turns are the range (0, or 3 in tiles); then the addresses.
WORDS = (
    *(f"n{k}" for k in range(TILES)),
    *(f"{x}{k}" for k in range(TILES) for x in "abc"),
    *(f"sum{k}" for k in range(SUMS)),
    *(f"{x}{k}" for k in range(SUMS) for x in ("sa", "sb")),
    "row",
    "step",
    "shared",
    "A",
    "B",
    "C",
    "start",
)
SIZES = (*(f"n{k}" for k in range(TILES)), *(f"sum{k}" for k in range(SUMS)))
DEFAULTS = {word: int(word in SIZES) for word in WORDS}  # a size that is not given is 1


def table(words: dict[str, int]) -> list[int]:
    """The words of a call as the kernel reads them."""
    return list({**DEFAULTS, **words}.values())


def most_rows(vectors: int = 2) -> int:
    """The rows of a tile that leave a register for each vector of B and one for an element of A."""
    return min(ENOUGH, (processor.this().registers - vectors - 1) // vectors)


def rows(length: int, vectors: int = 2) -> int:
    """How many rows tiles should have: few are done twice, and tiles are large."""
    most = min(length, most_rows(vectors))
    costs = [-(-length // p) * (p + 0.5) for p in range(most, 0, -1)]  # the most rows of equal cost
    return most - costs.index(min(costs))


class Tile(Native):
    """LLVM for the loops over tiles.

    step   how far it is from a row's elements in A to the next's; 0 where the call says it
    adds   the sums start from what C holds, instead of from `start`
    """

    def __init__(
        self, name: str, kind: str, rows: int, vectors: int, step: int, adds: bool
    ) -> None:
        super().__init__(name, kind, WORDS)
        self.rows, self.vectors, self.step, self.adds = rows, vectors, step, adds
        self.lanes = processor.this().lanes(kind)
        self.vector = self.ir.VectorType(self.real, self.lanes)
        name = f"llvm.fmuladd.v{self.lanes}f{32 if kind == 'f' else 64}"
        signature = self.ir.FunctionType(self.vector, [self.vector] * 3)
        self.multiply_add = self.ir.Function(self.module, signature, name)
        self.tiles(0, [self.array(x) for x in ("A", "B", "C", "start")])

    def moved(self, place: Value, i: Value, stride: str) -> Any:
        return self.b.gep(place, [self.b.mul(i, self.word_of[stride])])

    def part(self, depth: int) -> tuple[Any, Any]:
        """Where a loop over tiles begins and ends; that of `shared` does the part lo..hi."""
        b, count, each = self.b, self.word_of[f"n{depth}"], self.word(1)
        if depth not in (0, TILES - 1):
            return self.word(0), count
        if depth:
            each = self.word(self.rows)
        mine = b.icmp_signed("==", self.word_of["shared"], self.word(depth))
        start = b.select(mine, b.mul(self.lo, each), self.word(0))
        return start, b.select(mine, self.smaller(b.mul(self.hi, each), count), count)

    def tiles(self, depth: int, places: list[Any]) -> None:
        """The loops over tiles; the last tile of the last loop overlaps the one before it."""
        b, last = self.b, depth == TILES - 1
        start, end = self.part(depth)

        def body(i: Value) -> None:
            count = self.word_of[f"n{depth}"]
            i = self.smaller(i, b.sub(count, self.word(self.rows))) if last else i
            moved = [self.moved(p, i, f"{x}{depth}") for p, x in zip(places, "abcc")]
            if depth != 1:  # `start` has one element a column, and only this loop goes along
                moved[3] = places[3]
            if last:
                self.tile(*moved)
            else:
                self.tiles(depth + 1, moved)

        self.loop(start, end, self.rows if last else 1, body)

    def tile(self, a: Value, bm: Value, c: Value, start: Value) -> None:
        """One tile: its sums in registers, then written to C."""
        b, each = self.b, range(self.vectors)
        lines = [self.moved(c, self.word(r), "row") for r in range(self.rows)]
        begin = [
            self.read(line if self.adds else start, v * self.lanes, self.vector)
            for line in lines
            for v in each
        ]

        step = self.word(self.step) if self.step else self.word_of["step"]
        apart = [b.mul(self.word(r), step) for r in range(self.rows)]

        def multiply(a: Value, bm: Value, sums: Sequence[Value]) -> list[Any]:
            right = [self.read(bm, v * self.lanes, self.vector) for v in each]
            out = []
            for r in range(self.rows):
                x = self.spread(b.load(b.gep(a, [apart[r]])), self.vector)
                out += [
                    b.call(self.multiply_add, [x, y, sums[r * self.vectors + v]])
                    for v, y in enumerate(right)
                ]
            return out

        def nested(depth: int, a: Value, bm: Value, sums: Sequence[Value]) -> list[Any]:
            def body(i: Value, *sums: Value) -> list[Any]:
                here = self.moved(a, i, f"sa{depth}"), self.moved(bm, i, f"sb{depth}")
                return (
                    multiply(*here, sums) if depth == SUMS - 1 else nested(depth + 1, *here, sums)
                )

            return self.count(self.word_of[f"sum{depth}"], body, loop_carried=sums)

        sums = nested(0, a, bm, begin)
        for r, line in enumerate(lines):
            for v in each:
                self.write(sums[r * self.vectors + v], line, v * self.lanes)


COUNTED = [WORDS.index(w) for w in (*SIZES, "c1")]  # whose product is the work
ADDRESSES = range(WORDS.index("A"), len(WORDS))


def tiles_of(
    kernel: Call, words: dict[str, int], rows: int, names: Sequence[str], starts: Sequence[int]
) -> Step:
    """The kernel as a step of a chain. Threads that share it divide the images; or the tiles, where
    there is one image or all add to the same sums: then each thread has one part, and reads all
    pixels once.

    names   of A, B, C and `start`; starts: the bytes from where each begins
    """
    by_images = words.get("n0", 1) > 1 and words.get("c0", 0) != 0
    told = table({**words, "shared": 0 if by_images else TILES - 1})
    work = math.prod(map(told.__getitem__, COUNTED))
    places = tuple(zip(ADDRESSES, names, starts))
    if by_images:
        return Step(kernel, tuple(told), places, words["n0"], work)
    return Step(kernel, tuple(told), places, -(-words["n3"] // rows), work, 1)


@functools.cache
def tile(kind: str, rows: int, vectors: int, step: int, adds: bool) -> Call:
    """The compiled kernel."""
    what = f"tile {kind} {rows} {vectors} {step} {adds} {processor.this().lanes(kind)}"
    return Call(what, lambda name: Tile(name, kind, rows, vectors, step, adds))
