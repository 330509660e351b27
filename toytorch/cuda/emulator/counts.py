"""What each line costs: sectors of global memory, wavefronts of shared memory, divergence, flops.

An access of a warp to global memory fetches sectors of 32 bytes: the fewer, the better coalesced. One
to shared memory takes a wavefront for every word that shares its bank with another word: there are
32 banks of 4 bytes, side by side.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from toytorch.cuda.emulator.threads import WARP, Threads
from toytorch.facts.hints import Array

REGISTERS = (
    "Registers are not known here: only NVIDIA's compiler assigns them, so occupancy is not either."
)
SECTOR, BANKS, WORD = 32, 32, 4


@dataclass(slots=True)
class LineCounts:
    """The counts of one line of the source, over all threads of the launch."""

    warps: int = 0  # times that a warp ran a statement of this line
    threads: int = 0  # threads that took part in them
    flops: int = 0
    flops_double: int = 0  # those of them in double precision
    read: int = 0  # bytes that threads read from global memory
    written: int = 0
    requests: int = 0  # accesses of a warp to global memory
    sectors: int = 0  # of 32 bytes, that they touched
    least_sectors: int = 0  # if the same bytes lay side by side
    shared_read: int = 0
    shared_written: int = 0
    shared_requests: int = 0
    wavefronts: int = 0
    least_wavefronts: int = 0
    bank_conflict: int = 0  # the worst: n threads of a warp at n words of one bank
    atomics: int = 0
    branches: int = 0  # times that a warp came to a branch
    divergent: int = 0  # and went both ways

    def add(self, other: LineCounts) -> None:
        """Adds the counts of another line; of bank conflicts, the worse one stays."""
        for field in fields(self):
            mine, theirs = getattr(self, field.name), getattr(other, field.name)
            worst = field.name == "bank_conflict"
            setattr(self, field.name, max(mine, theirs) if worst else mine + theirs)

    @property
    def efficiency(self) -> float:
        """The share of a warp's 32 lanes that took part."""
        return self.threads / (WARP * self.warps) if self.warps else 1.0


class Counts:
    """Counts by line."""

    def __init__(self) -> None:
        self.lines: defaultdict[int, LineCounts] = defaultdict(LineCounts)

    def ran(self, line: int, threads: Threads) -> None:
        counts = self.lines[line]
        counts.warps += threads.warps
        counts.threads += threads.count

    def branch(self, line: int, threads: Threads, condition: Array) -> None:
        """A condition that threads act on."""
        counts = self.lines[line]
        counts.branches += threads.warps
        if isinstance(condition, np.ndarray):
            rows = threads.by_warp(condition)
            counts.divergent += int(np.count_nonzero(rows.any(1) & ~rows.all(1)))

    def flops(self, line: int, count: int, double: bool) -> None:
        counts = self.lines[line]
        counts.flops += count
        if double:
            counts.flops_double += count

    def globally(
        self, line: int, threads: Threads, offset: Array, size: int, *, read: bool, written: bool
    ) -> None:
        """An access to global memory at these bytes."""
        counts = self.lines[line]
        counts.requests += threads.warps
        counts.read += threads.count * size * read
        counts.written += threads.count * size * written
        if not isinstance(offset, np.ndarray):
            touched = (int(offset) + size - 1) // SECTOR - int(offset) // SECTOR + 1
            counts.sectors += touched * threads.warps
            counts.least_sectors += touched * threads.warps
            return
        rows = threads.by_warp(offset >> 5)
        sectors = distinct(rows)
        if size > SECTOR:
            sectors = sectors * (size // SECTOR)
        bytes_of = np.full(threads.warps, WARP) if threads.full else np.bincount(threads.rows)
        least = np.minimum(sectors, -(-bytes_of * size // SECTOR))
        counts.sectors += int(sectors.sum())
        counts.least_sectors += int(least.sum())

    def shared(
        self, line: int, threads: Threads, offset: Array, size: int, *, read: bool, written: bool
    ) -> None:
        """An access to shared memory at these bytes of each block's."""
        counts = self.lines[line]
        counts.shared_requests += threads.warps
        counts.shared_read += threads.count * size * read
        counts.shared_written += threads.count * size * written
        parts = max(1, size // WORD)  # of 8 bytes, half a warp is served at once; of 16, a quarter
        if not isinstance(offset, np.ndarray):
            counts.wavefronts += threads.warps
            counts.least_wavefronts += threads.warps
            counts.bank_conflict = max(counts.bank_conflict, 1)
            return
        rows = threads.by_warp(offset >> 2).reshape(-1, WARP // parts)
        if parts > 1:
            rows = (rows[:, :, None] + np.arange(parts)).reshape(len(rows), WARP)
        ways = conflicts(rows)
        counts.wavefronts += int(ways.sum())
        counts.least_wavefronts += len(ways)
        counts.bank_conflict = max(counts.bank_conflict, int(ways.max()))


def distinct(rows: Array) -> Any:
    """How many different numbers each row of (n, 32) has.

    >>> distinct(np.array([[1, 1, 2, 1], [4, 4, 4, 4]])).tolist()
    [2, 1]
    """
    steps = rows[:, 1:] - rows[:, :-1]
    if (steps < 0).any():
        rows = np.sort(rows, axis=1)
        steps = rows[:, 1:] - rows[:, :-1]
    return np.count_nonzero(steps, axis=1) + 1


def conflicts(rows: Array) -> Any:
    """For each row of words, how many different ones fall into the fullest bank.

    >>> conflicts(np.array([[0, 1, 2], [0, 32, 64], [5, 5, 5]])).tolist()
    [1, 3, 1]
    """
    steps = rows[:, 1:] - rows[:, :-1]
    if (steps < 0).any():
        rows = np.sort(rows, axis=1)
        steps = rows[:, 1:] - rows[:, :-1]
    elif rows.shape[1] <= BANKS and (steps <= 1).all():
        return np.ones(len(rows), np.int64)  # neighbours, or the same word for many
    new = np.ones(rows.shape, bool)
    np.not_equal(steps, 0, out=new[:, 1:])
    places = np.arange(len(rows))[:, None] * BANKS + (rows & (BANKS - 1))
    counted = np.bincount(places[new], minlength=len(rows) * BANKS)
    return counted.reshape(-1, BANKS).max(axis=1)


def short(number: int) -> str:
    """A large number in a few characters.

    >>> short(512), short(20480), short(3_000_000)
    ('512', '20.5k', '3M')
    """
    for unit, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if number >= unit:
            scaled = number / (1e3 if letter == "k" else unit)
            return f"{scaled:.3g}{letter}"
    return str(number)
