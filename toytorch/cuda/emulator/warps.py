"""What threads of a warp and of a block do together: barriers, shuffles, votes."""

from __future__ import annotations

from typing import Any

import numpy as np

from toytorch.cuda.emulator.access import MemorySystem
from toytorch.cuda.emulator.errors import At
from toytorch.cuda.emulator.races import STEP
from toytorch.cuda.emulator.threads import WARP, Threads
from toytorch.facts.hints import Array

ALL = 0xFFFFFFFF


def block_barrier(threads: Threads, system: MemorySystem, at: At) -> Any:
    """`__syncthreads()`: every thread of a block that has not ended must be here. Gives the blocks."""
    batch = threads.batch
    here = np.bincount(threads.blocks, minlength=batch.blocks)
    wrong = (here != 0) & (here != batch.alive)
    if wrong.any():
        block = int(np.argmax(wrong))
        absent = np.flatnonzero((batch.block_of == block) & ~batch.ended)
        absent = np.setdiff1d(absent, threads.positions)[:1]
        missing = system.thread_name(Threads(batch, absent), 0)
        system.fail(
            f"Divergent __syncthreads() at {{place}}: {here[block]} of {batch.alive[block]} threads "
            f"of the block are here, {missing} is not ({{thread}} is)",
            threads,
            int(np.argmax(threads.blocks == block)),
            at,
        )
    if (batch.alive[here != 0] < batch.geometry.threads).any():
        who = int(np.argmax((batch.alive < batch.geometry.threads)[threads.blocks]))
        said = (
            "__syncthreads() behind a return that some threads of the block have taken: before "
            "Volta (sm_70) this hangs;"
        )
        system.note(("ended", at), at, said, threads, who, 1)
    later = (batch.clock // STEP + 1) * STEP
    batch.clock = (
        later if threads.all else np.where((here != 0)[batch.block_of], later, batch.clock)
    )
    return here != 0


def warp_barrier(mask: Array, threads: Threads, system: MemorySystem, at: At) -> None:
    """`__syncwarp(mask)`."""
    check_mask(mask, threads, system, at, "__syncwarp")
    batch = threads.batch
    clock = batch.clock.copy()
    now = threads.by_warp(threads.pick(clock)).max(axis=1)
    clock[threads.key] = now[threads.rows] + 1
    batch.clock = clock


def check_mask(mask: Array, threads: Threads, system: MemorySystem, at: At, name: str) -> None:
    """Every thread that a mask names must be here, unless it has ended, and so must the caller."""
    if threads.full and not isinstance(mask, np.ndarray) and mask == ALL:
        return
    masks = threads.spread(mask).astype(np.uint32)
    own = (masks >> (threads.slots & 31).astype(np.uint32)) & 1
    if not own.all():
        who = int(np.argmin(own))
        system.fail(
            f"Wrong warp mask at {{place}}: {name} with mask {int(masks[who]):#010x}, and {{thread}}, "
            f"which calls it, is lane {int(threads.slots[who]) & 31}",
            threads,
            who,
            at,
        )
    living = threads.batch.living()[threads.slots >> 5]
    absent = masks & living & ~threads.present[threads.rows]
    if absent.any():
        who = int(np.argmax(absent != 0))
        lanes = [lane for lane in range(WARP) if int(absent[who]) >> lane & 1]
        system.fail(
            f"Wrong warp mask at {{place}}: {name} with mask {int(masks[who]):#010x} names lane"
            f"{'s' * (len(lanes) > 1)} {listed(lanes)}, not there when {{thread}} calls it",
            threads,
            who,
            at,
        )


def listed(lanes: list[int]) -> str:
    """Numbers in words.

    >>> listed([16, 17, 18, 19]), listed([1, 3])
    ('16 to 19', '1, 3')
    """
    if len(lanes) > 2 and lanes[-1] - lanes[0] == len(lanes) - 1:
        return f"{lanes[0]} to {lanes[-1]}"
    return ", ".join(str(lane) for lane in lanes)


def shuffled(
    kind: str,
    mask: Array,
    value: Array,
    argument: Array,
    width: Array,
    threads: Threads,
    system: MemorySystem,
    at: At,
) -> Any:
    """The value of another lane, for each thread."""
    name = "__shfl_sync" if kind == "sync" else f"__shfl_{kind}_sync"
    check_mask(mask, threads, system, at, name)
    lane = (threads.slots & 31).astype(np.int64)
    width = np.int64(width) if not isinstance(width, np.ndarray) else width.astype(np.int64)
    argument = (
        np.int64(argument) if not isinstance(argument, np.ndarray) else argument.astype(np.int64)
    )
    base = lane & ~(width - 1)
    if kind == "sync":
        source = base + (argument & (width - 1))
    elif kind == "up":
        source = np.where(lane - argument >= base, lane - argument, lane)
    elif kind == "down":
        source = np.where(lane + argument < base + width, lane + argument, lane)
    else:
        source = np.where((lane ^ argument) < base + width, lane ^ argument, lane)
    spread = threads.spread(value)
    if threads.full:
        return spread[(threads.rows * WARP) + source]
    places = np.full(threads.warps * WARP, -1)  # of each lane among the members
    places[threads.rows * WARP + (threads.slots & 31)] = np.arange(threads.count)
    wanted = places[threads.rows * WARP + source]
    if (wanted < 0).any():
        who = int(np.argmax(wanted < 0))
        lane = int(source[who])
        said = f"{name} reads lane {lane}, which is not there: the value is undefined,"
        system.note(("shuffle", at), at, said, threads, who, int(np.count_nonzero(wanted < 0)))
    unknown = np.full(1, -1, np.dtype(f"i{spread.dtype.itemsize}")).view(spread.dtype)[0]
    return np.where(wanted >= 0, spread[wanted], unknown)


def voted(
    kind: str, mask: Array, predicate: Array, threads: Threads, system: MemorySystem, at: At
) -> Any:
    """What the threads of each warp say together."""
    check_mask(mask, threads, system, at, f"__{kind}_sync")
    masks = threads.spread(mask).astype(np.uint32)
    yes = threads.ballot(threads.spread(predicate))[threads.rows] & masks
    if kind == "ballot":
        return yes
    if kind == "any":
        return (yes != 0).astype(np.int32)
    return (yes == (masks & threads.present[threads.rows])).astype(np.int32)
