"""The race detector against every pair of accesses: random programs of accesses and barriers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toytorch.cuda.emulator.access import RACING, MemorySystem
from toytorch.cuda.emulator.counts import Counts
from toytorch.cuda.emulator.errors import Source
from toytorch.cuda.emulator.memory import Memory
from toytorch.cuda.emulator.threads import Batch, Geometry, Threads
from toytorch.cuda.emulator.types import INT
from toytorch.cuda.emulator.warps import block_barrier, warp_barrier

BLOCKS, SIZE, CELLS = 2, 64, 3  # blocks of two warps each
ALL = np.uint32(0xFFFFFFFF)


@dataclass(frozen=True)
class Step:
    """One instruction: what it does, which of the 128 threads take part, and at which cells."""

    kind: str
    who: tuple[int, ...]
    cells: tuple[int, ...] = ()


THREADS = st.lists(
    st.sampled_from([0, 1, 5, 31, 32, 40, 63, 64, 70, 96, 127]), min_size=1, max_size=4, unique=True
)


@st.composite
def accesses(draw: st.DrawFn) -> Step:
    kind = draw(st.sampled_from(["reads", "writes", "atomically updates"]))
    who = sorted(draw(THREADS))
    if kind == "writes":  # one instruction writes a cell once
        cells = draw(st.permutations(range(CELLS)))
        who = who[:CELLS]
        return Step(kind, tuple(who), tuple(cells[: len(who)]))
    return Step(kind, tuple(who), tuple(draw(st.integers(0, CELLS - 1)) for _ in who))


STEP = st.one_of(
    accesses(),
    accesses(),
    accesses(),
    st.builds(lambda b: Step("block", (b,)), st.integers(0, BLOCKS - 1)),
    st.builds(lambda w: Step("warp", (w,)), st.integers(0, 2 * BLOCKS - 1)),
)


def ordered(a: tuple[int, int, int], b: tuple[int, int, int]) -> bool:
    """Whether one access is before another: (thread, barriers of its block, syncs of its warp)."""
    if a[0] == b[0]:
        return True
    same_block, same_warp = a[0] // SIZE == b[0] // SIZE, a[0] // 32 == b[0] // 32
    return (same_block and a[1] < b[1]) or (same_warp and a[2] < b[2])


@pytest.mark.parametrize("space", ["global", "shared"])
@given(steps=st.lists(STEP, min_size=2, max_size=25))
@settings(max_examples=400)
def test_it_reports_the_first_race_and_no_other(space: str, steps: list[Step]) -> None:
    geometry = Geometry((BLOCKS, 1, 1), (SIZE, 1, 1))
    batch = Batch(geometry, 0, BLOCKS)
    system = MemorySystem(geometry, Source(""), Counts())
    memory = Memory("m", space, CELLS * 4, 4, BLOCKS if space == "shared" else 1)
    address = system.add(memory)
    system.track(memory)
    barriers, syncs = [0] * BLOCKS, [0] * (2 * BLOCKS)
    history: list[tuple[str, Any, tuple[int, int, int]]] = []
    for line, step in enumerate(steps, 1):
        if step.kind == "block":
            (block,) = step.who
            barriers[block] += 1
            block_barrier(
                members(batch, range(block * SIZE, block * SIZE + SIZE)), system, (line, 1)
            )
            continue
        if step.kind == "warp":
            (warp,) = step.who
            syncs[warp] += 1
            warp_barrier(ALL, members(batch, range(warp * 32, warp * 32 + 32)), system, (line, 1))
            continue
        wanted, now = False, []
        for thread, cell in zip(step.who, step.cells):
            place = (cell, thread // SIZE) if space == "shared" else cell
            clock = (thread, barriers[thread // SIZE], syncs[thread // 32])
            now.append((step.kind, place, clock))
            wanted |= any(
                place == there and before in RACING[step.kind] and not ordered(then, clock)
                for before, there, then in history
            )
        history += now
        if step.kind == "writes" and len(step.who) > 1:
            assert len(set(step.cells)) == len(step.cells)
        threads = members(batch, step.who)
        where = address + np.array(step.cells, np.int64) * 4
        values = np.array(step.who, np.int32) + 1000 * line  # never what is there already
        if step.kind == "reads":
            system.load(where, INT, threads, (line, 1))
        elif step.kind == "writes":
            system.store(where, values, INT, threads, (line, 1))
        else:
            system.update(where, "add", [values], INT, threads, (line, 1), False)
        assert bool(system.races.found) == wanted, f"step {line}: {step}"
        if wanted:
            return


def members(batch: Batch, positions: Any) -> Threads:
    return Threads(batch, np.array(list(positions)))
