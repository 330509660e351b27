"""Which threads run a statement: the blocks that are emulated together, and sets of their threads."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from toytorch.facts.hints import Array

WARP = 32
Dim = tuple[int, int, int]


@dataclass(frozen=True)
class Geometry:
    """The shape of a launch."""

    grid: Dim
    block: Dim

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def blocks(self) -> int:
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def warps(self) -> int:
        """Warps of a block; the last one may lack threads."""
        return -(-self.threads // WARP)

    @property
    def lanes(self) -> int:
        """Numbers that a block's threads use up: each warp has 32, whether they exist or not."""
        return self.warps * WARP

    def name(self, number: int) -> tuple[Dim, Dim]:
        """threadIdx and blockIdx of the thread with a number (see `Batch.numbers`)."""
        block, thread = divmod(number, self.lanes)
        return unraveled(thread, self.block), unraveled(block, self.grid)


def unraveled(number: int, shape: Dim) -> Dim:
    """(x, y, z) of a number; x runs fastest."""
    return number % shape[0], number // shape[0] % shape[1], number // (shape[0] * shape[1])


class Batch:
    """Blocks that are emulated together, and their threads, numbered 0, 1, … by position.

    Every value of the emulation is one number for all threads or an array over a set of positions.
    """

    def __init__(self, geometry: Geometry, first: int, count: int) -> None:
        self.geometry, self.first, self.blocks = geometry, first, count
        self.size = count * geometry.threads
        self.clock = np.zeros(self.size, np.int64)  # see races.py
        self.alive = np.full(count, geometry.threads)  # threads of each block that have not ended
        self.ended = np.zeros(self.size, bool)
        self.everyone = Threads(self, np.arange(self.size))
        self.nobody = Threads(self, np.empty(0, np.int64))

    @functools.cached_property
    def block_of(self) -> Any:
        """For each position, its block's place in the batch."""
        return np.repeat(np.arange(self.blocks), self.geometry.threads)

    @functools.cached_property
    def thread_of(self) -> Any:
        """For each position, its number in the block."""
        return np.tile(np.arange(self.geometry.threads), self.blocks)

    @functools.cached_property
    def slots(self) -> Any:
        """For each position, warp · 32 + lane, warps counted through the batch."""
        return self.block_of * self.geometry.lanes + self.thread_of

    @functools.cached_property
    def numbers(self) -> Any:
        """For each position, its number in the whole launch: 32 · warp + lane, no two alike."""
        return (self.slots + self.first * self.geometry.lanes).astype(np.int32)

    def end(self, threads: Threads) -> None:
        """These threads have returned from the kernel."""
        self.ended[threads.key] = True
        self.alive -= np.bincount(threads.blocks, minlength=self.blocks)

    def living(self) -> Any:
        """For each warp of the batch, the mask of its threads that have not ended."""
        bits = np.zeros(self.blocks * self.geometry.lanes, bool)
        bits[self.slots] = ~self.ended
        return np.packbits(bits, bitorder="little").view("<u4")

    def special(self, name: str, axis: int) -> Any:
        """`threadIdx` and its kin, for all positions."""
        if name == "blockDim":
            return np.uint32(self.geometry.block[axis])
        if name == "gridDim":
            return np.uint32(self.geometry.grid[axis])
        return self._coordinates[name][axis]

    @functools.cached_property
    def _coordinates(self) -> dict[str, list[Any]]:
        found = {}
        for name, numbers, shape in (
            ("threadIdx", self.thread_of, self.geometry.block),
            ("blockIdx", self.block_of + self.first, self.geometry.grid),
        ):
            parts: list[Any] = []
            for axis, size in enumerate(shape):
                below = int(np.prod(shape[:axis], dtype=np.int64))
                if size == 1:
                    parts.append(np.uint32(0))
                else:
                    parts.append((numbers // below % size).astype(np.uint32))
            found[name] = parts
        return found


class Threads:
    """Some threads of a batch, by their positions, ascending.

    A statement runs for such a set and gives the set that goes on behind it. All that NumPy does is
    done for the members only, so a thread that is not there divides by nothing and reads nothing.
    """

    def __init__(self, batch: Batch, positions: Array) -> None:
        self.batch, self.positions = batch, positions
        self.count = len(positions)
        self.all = self.count == batch.size
        # A run of neighbours is a slice, which NumPy reads without copying.
        if self.count and positions[-1] - positions[0] + 1 == self.count:
            self.key: Any = slice(int(positions[0]), int(positions[-1]) + 1)
        else:
            self.key = positions

    def pick(self, whole: Array) -> Any:
        """The members' part of an array over all positions; a single number stays one."""
        return whole[self.key] if isinstance(whole, np.ndarray) and not self.all else whole

    def spread(self, value: Array) -> Any:
        """A value as an array with an element for each member."""
        return value if isinstance(value, np.ndarray) else np.full(self.count, value)

    def split(self, condition: Array) -> tuple[Threads, Threads]:
        """Those for which a condition holds, and the others."""
        nobody = self.batch.nobody
        if not isinstance(condition, np.ndarray):
            return (self, nobody) if condition else (nobody, self)
        count = int(np.count_nonzero(condition))
        if count == self.count:
            return self, nobody
        if count == 0:
            return nobody, self
        return self.where(condition), self.where(~condition)

    def where(self, condition: Array) -> Threads:
        """Those for which a condition holds, one value a member."""
        return Threads(self.batch, self.positions[condition])

    def joined(self, parts: Sequence[Threads]) -> Threads:
        """The members of all parts, which are parts of this set and have no member in common."""
        parts = [part for part in parts if part.count]
        if not parts:
            return self.batch.nobody
        if len(parts) == 1:
            return parts[0]
        if sum(part.count for part in parts) == self.count:
            return self
        return Threads(self.batch, np.sort(np.concatenate([part.positions for part in parts])))

    # warps

    @functools.cached_property
    def numbers(self) -> Any:
        return self.pick(self.batch.numbers)

    @functools.cached_property
    def blocks(self) -> Any:
        """For each member, its block's place in the batch."""
        return self.pick(self.batch.block_of)

    @functools.cached_property
    def slots(self) -> Any:
        return self.pick(self.batch.slots)

    @functools.cached_property
    def rows(self) -> Any:
        """For each member, which of the warps that have members is its own."""
        warps = self.slots >> 5
        return np.concatenate([[0], np.cumsum(warps[1:] != warps[:-1])])

    @functools.cached_property
    def warps(self) -> int:
        """How many warps have members."""
        return int(self.rows[-1]) + 1 if self.count else 0

    @functools.cached_property
    def full(self) -> bool:
        """Whether all lanes of these warps are members."""
        return self.count == self.warps * WARP

    @functools.cached_property
    def firsts(self) -> Any:
        """The place among the members of the first one of each warp."""
        return np.searchsorted(self.rows, np.arange(self.warps))

    def by_warp(self, values: Array) -> Any:
        """(warps, 32) of one value a member; lanes that are no members repeat their warp's first."""
        if self.full:
            return values.reshape(-1, WARP)
        found = np.repeat(values[self.firsts], WARP)
        found[self.rows * WARP + (self.slots & 31)] = values
        return found.reshape(-1, WARP)

    @functools.cached_property
    def present(self) -> Any:
        """For each warp, the mask of its lanes that are members."""
        return self.ballot(np.ones(self.count, bool))

    def ballot(self, votes: Array) -> Any:
        """For each warp, the mask of the members that say yes."""
        bits = np.zeros(self.warps * WARP, bool)
        bits[self.rows * WARP + (self.slots & 31)] = votes
        return np.packbits(bits, bitorder="little").view("<u4")
