"""Who has touched which element: two accesses that nothing orders, one of them a write, are a race.

Every thread has a clock. `__syncthreads()` sets the clocks of a block to its next big step, and
`__syncwarp()` those of a warp to a small step more. An access is before another one if it is one of
the same thread, of the same block at an earlier big step, or of the same warp at an earlier time.
Nothing orders threads of different blocks within one launch. Atomics do not race with each other.
A flag that one thread sets and another waits for is not understood as order, nor is `__threadfence`.

Of the accesses to an element it is enough to remember the lowest and the highest thread that nothing
has ordered yet: if any other thread than t is among them, one of these two is another than t.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from toytorch.cuda.emulator.errors import At
from toytorch.cuda.emulator.threads import Dim, Geometry, Threads
from toytorch.facts.hints import Array

SHIFT = 20
STEP = 1 << SHIFT  # one barrier of a block on its clock


@dataclass(frozen=True, slots=True)
class Access:
    """One side of a race."""

    kind: str  # "reads", "writes" or "atomically updates"
    line: int
    thread: Dim
    block: Dim

    def __str__(self) -> str:
        return f"thread {_dim(self.thread)} in block {_dim(self.block)} {self.kind}"


@dataclass(frozen=True, slots=True)
class Race:
    """Two accesses to one element that nothing orders; `count` elements or threads are like it."""

    space: str
    memory: str
    index: int
    before: Access
    after: Access
    file: str
    count: int = 1
    same_warp: bool = False

    @property
    def lines(self) -> tuple[int, int]:
        """The lines of both accesses."""
        return self.before.line, self.after.line

    def __str__(self) -> str:
        if self.before.block != self.after.block:
            why = "blocks of one launch are not ordered"
        elif self.same_warp:
            why = "no __syncwarp() or __syncthreads() between them"
        else:
            why = "no __syncthreads() between them"
        return (
            f"Race on __{self.space}__ memory: {self.before} `{self.memory}[{self.index}]` at "
            f"{self.file}:{self.before.line}, {self.after} it at {self.file}:{self.after.line}; {why}"
        )


def _dim(dim: Dim) -> str:
    return f"({dim[0]},{dim[1]},{dim[2]})"


class Marks:
    """For each element, the lowest and highest thread of one kind of access, and their lines."""

    def __init__(self, size: int) -> None:
        self.low = np.full(size, -1, np.int32)
        self.high = np.full(size, -1, np.int32)
        self.low_site = np.zeros(size, np.int32)
        self.high_site = np.zeros(size, np.int32)
        self.clock = np.full(size, -1, np.int64)

    def refine(self, factor: int) -> None:
        """Every element becomes several smaller ones."""
        for name in ("low", "high", "low_site", "high_site", "clock"):
            setattr(self, name, np.repeat(getattr(self, name), factor))


class Shadow:
    """The accesses to one memory so far.

    granule  bytes of an element; smaller accesses make it smaller
    """

    def __init__(self, size: int, granule: int, geometry: Geometry, private: bool) -> None:
        self.size, self.granule, self.geometry = size, granule, geometry
        self.private = private  # whether only one block can touch it
        self.marks: dict[str, Marks] = {}

    def refine(self, granule: int) -> None:
        """Makes the elements as small as the smallest access."""
        for marks in self.marks.values():
            marks.refine(self.granule // granule)
        self.granule = granule

    def of(self, kind: str) -> Marks:
        if kind not in self.marks:
            self.marks[kind] = Marks(-(-self.size // self.granule))
        return self.marks[kind]

    def earlier(self, kind: str, index: Array, threads: Threads) -> tuple[Any, Any, Any] | None:
        """The access of a kind that races with one at `index` now: (who of `threads`, the other
        thread's number, its site) for each; None if there is none."""
        marks = self.marks.get(kind)
        if marks is None:
            return None
        clock, now = marks.clock[index], threads.pick(threads.batch.clock)
        recent = clock >> SHIFT >= now >> SHIFT
        if self.private and not recent.any():
            return None
        numbers = threads.numbers
        for other, sites in (
            (marks.low[index], marks.low_site),
            (marks.high[index], marks.high_site),
        ):
            ordered = (other >> 5 == numbers >> 5) & (clock < now)
            if not self.private:
                same_block = other // self.geometry.lanes == numbers // self.geometry.lanes
                races = ~(same_block & (ordered | ~recent))
            else:
                races = recent & ~ordered
            races &= (other >= 0) & (other != numbers)
            if races.any():
                who = np.flatnonzero(races)
                return who, other[who], sites[index][who]
        return None

    def record(self, kind: str, index: Array, threads: Threads, site: int) -> None:
        """Notes an access. What it comes after in every case is forgotten."""
        marks, numbers = self.of(kind), threads.numbers
        now = threads.pick(threads.batch.clock)
        low, high, clock = marks.low[index], marks.high[index], marks.clock[index]
        stay = clock >> SHIFT >= now >> SHIFT
        if self.private and not stay.any():  # the first of its kind since the last barrier
            first = last = numbers
            first_site: Any = site
            last_site: Any = site
        else:
            lanes = self.geometry.lanes
            one_warp = (low >> 5 == numbers >> 5) & (high >> 5 == numbers >> 5)
            if not self.private:
                one_block = (low // lanes == numbers // lanes) & (high // lanes == numbers // lanes)
                stay |= ~one_block
            stay &= ~(one_warp & (clock < now)) & (low >= 0)
            first = np.where(stay, np.minimum(low, numbers), numbers)
            last = np.where(stay, np.maximum(high, numbers), numbers)
            first_site = np.where(first == numbers, site, marks.low_site[index])
            last_site = np.where(last == numbers, site, marks.high_site[index])
        # Of several threads at one element, NumPy keeps what is written last: numbers ascend.
        marks.high[index], marks.high_site[index], marks.clock[index] = last, last_site, now
        back = index[::-1]
        marks.low[back] = first[::-1]
        marks.low_site[back] = (
            first_site[::-1] if isinstance(first_site, np.ndarray) else first_site
        )


@dataclass(slots=True)
class RaceLog:
    """The races found, one for each pair of lines and memory, with how often."""

    geometry: Geometry
    file: str
    found: dict[tuple[object, ...], Race]

    def add(
        self,
        space: str,
        memory: str,
        index: int,
        count: int,
        before: tuple[str, int, int],
        after: tuple[str, int, int],
    ) -> None:
        """Sides are (kind, site, number of the thread)."""
        key = (memory, before[0], line_of(before[1]), after[0], line_of(after[1]))
        old = self.found.get(key)
        same_warp = before[2] >> 5 == after[2] >> 5
        sides = []
        for kind, site, number in (before, after):
            thread, block = self.geometry.name(number)
            sides.append(Access(kind, line_of(site), thread, block))
        if old is not None:
            index, sides, count = old.index, [old.before, old.after], old.count + count
            same_warp = old.same_warp
        self.found[key] = Race(
            space, memory, index, sides[0], sides[1], self.file, count, same_warp
        )


def site_of(at: At) -> int:
    """A line and column in one number."""
    return at[0] * 4096 + min(at[1], 4095)


def line_of(site: int) -> int:
    return int(site) // 4096
