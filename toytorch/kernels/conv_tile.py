"""The inner kernel of convolutions: a tile of results that stays in registers.

A tile is P rows of B vectors. Forward, a row is an output pixel and the vectors are output
channels; for the gradient of the weight, a row is an input channel. Either way

    C[r, v] = start[v] + Σ_i Σ_j Σ_k A[i·a0 + j·a1 + k·a2 + r·step] · B[i·b0 + j·b1 + k·b2 + v]

where the numbers of A are spread over a vector one by one, and B is read in vectors. Around it run
four loops over tiles, each of which moves the places in A, B and C. No matrix of windows is made:
the strides walk over the images themselves (Georganas et al. 2018, "Anatomy of high-performance
deep learning convolutions").

    >>> import numpy as np
    >>> rows(6, "f") <= most_rows("f")
    True
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

from toytorch.kernels.llvm_builder import Emitter, linked
from toytorch.loops import processor

TILES, SUMS = 4, 3  # the loops over tiles, the last of them along the rows; and those of the sum
# What a call is told, in a table of words: sizes of the loops, and strides in elements.
WORDS = (
    *(f"n{k}" for k in range(TILES)),
    *(f"{x}{k}" for k in range(TILES) for x in "abc"),
    *(f"sum{k}" for k in range(SUMS)),
    *(f"{x}{k}" for k in range(SUMS) for x in ("sa", "sb")),
    "row",
    "start",
    "step",
)


def most_rows(kind: str, blocks: int = 2) -> int:
    """The rows of a tile that leave a register for each vector of B and one for a number of A."""
    return min(14, (processor.this().registers - blocks - 1) // blocks)


def rows(length: int, kind: str, blocks: int = 2) -> int:
    """How many rows tiles should have: few are done twice, and tiles are large."""
    most = min(length, most_rows(kind, blocks))
    return min(range(1, most + 1), key=lambda p: (-(-length // p) * (p + 0.5), -p))


class Tile(Emitter):
    """LLVM for tile(table, A, B, C, start)."""

    def __init__(
        self, ir: Any, name: str, kind: str, rows: int, blocks: int, step: int, adds: bool
    ) -> None:
        """step: how far it is from a row's numbers in A to the next's; 0 where the call says it.
        adds: the sums start from what C holds, instead of from `start`."""
        super().__init__(ir, name, kind, "ipppp")
        self.rows, self.blocks, self.step, self.adds = rows, blocks, step, adds
        self.lanes = processor.this().lanes(kind)
        self.vector = ir.VectorType(self.real, self.lanes)
        self.multiply_add = ir.Function(
            self.module,
            ir.FunctionType(self.vector, [self.vector] * 3),
            f"llvm.fmuladd.v{self.lanes}f{32 if kind == 'f' else 64}",
        )
        table, *places = self.function.args
        self.word = {w: self.b.load(self.b.gep(table, [self.size(k)])) for k, w in enumerate(WORDS)}
        self.tiles(0, places)
        self.b.ret_void()

    def moved(self, place: Any, i: Any, stride: str) -> Any:
        return self.b.gep(place, [self.b.mul(i, self.word[stride])])

    def tiles(self, depth: int, places: list[Any]) -> None:
        """The loops over tiles; the last tile of the last loop overlaps the one before it."""
        b, last = self.b, depth == TILES - 1
        count = self.word[f"n{depth}"]

        def body(i: Any) -> None:
            i = self.smaller(i, b.sub(count, self.size(self.rows))) if last else i
            moved = [self.moved(p, i, f"{x}{depth}") for p, x in zip(places, "abcc")]
            if depth != 1:  # `start` has a number for each column, and only this loop goes along
                moved[3] = places[3]
            if last:
                self.tile(*moved)
            else:
                self.tiles(depth + 1, moved)

        self.count(count, body, step=self.rows if last else 1)

    def part(self, place: Any, block: int) -> Any:
        return self.at(place, self.size(block * self.lanes), self.vector)

    def tile(self, a: Any, bm: Any, c: Any, start: Any) -> None:
        """One tile: its sums in registers, then written to C."""
        b, each = self.b, range(self.blocks)
        lines = [self.moved(c, self.size(r), "row") for r in range(self.rows)]
        begin = [
            b.load(self.part(line if self.adds else start, v), align=self.bytes)
            for line in lines
            for v in each
        ]

        step = self.size(self.step) if self.step else self.word["step"]
        apart = [b.mul(self.size(r), step) for r in range(self.rows)]

        def turn(a: Any, bm: Any, sums: Any) -> list[Any]:
            vectors = [b.load(self.part(bm, v), align=self.bytes) for v in each]
            out = []
            for r in range(self.rows):
                x = self.spread(b.load(b.gep(a, [apart[r]])), self.vector)
                out += [
                    b.call(self.multiply_add, [x, y, sums[r * self.blocks + v]])
                    for v, y in enumerate(vectors)
                ]
            return out

        def nested(depth: int, a: Any, bm: Any, sums: Any) -> list[Any]:
            def body(i: Any, *sums: Any) -> list[Any]:
                here = self.moved(a, i, f"sa{depth}"), self.moved(bm, i, f"sb{depth}")
                return turn(*here, sums) if depth == SUMS - 1 else nested(depth + 1, *here, sums)

            return self.count(self.word[f"sum{depth}"], body, carried=sums)

        sums = nested(0, a, bm, begin)
        for r, line in enumerate(lines):
            for v in each:
                b.store(sums[r * self.blocks + v], self.part(line, v), align=self.bytes)


@functools.cache
def tile(kind: str, rows: int, blocks: int, step: int, adds: bool) -> Any:
    """The compiled kernel, kept on disk: tile(words, A, B, C, start), with addresses."""
    what = f"tile {kind} {rows} {blocks} {step} {adds} {processor.this().lanes(kind)}"

    def build(name: str) -> str:
        from llvmlite import ir

        return str(Tile(ir, name, kind, rows, blocks, step, adds).module)

    return linked(what, build, [ctypes.c_void_p] * 5)
