"""A caching allocator with the rules of PyTorch's (`c10/cuda/CUDACachingAllocator.cpp`).

Asking a driver for memory waits for the whole device, so freed blocks are kept for the next request.

    rounding   sizes are multiples of 512 bytes
    pools      up to 1 MiB: "small", taken from segments of 2 MiB; above: "large", from segments of
               20 MiB, or of their own size (in steps of 2 MiB) from 10 MiB on
    choice     the smallest free block that is large enough, of the same stream and pool; among
               equals the one at the lowest address
    splitting  what is left becomes a free block: in the small pool from 512 bytes on, in the large
               one if it is more than 1 MiB
    merging    a freed block joins the free blocks beside it in its segment
    shortage   where the driver has no more memory, all segments that are free are given back, and
               the driver is asked once more

Addresses and times are simulated; nothing here holds real memory.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from struct import Struct
from typing import Any, TypeAlias

import numpy as np

from toytorch.backends.simulator.records import records

MIB = 1 << 20
SMALLEST = 512  # bytes that every size is a multiple of
SMALL = 1 * MIB  # the largest request that the small pool serves
SMALL_SEGMENT = 2 * MIB
LARGE_SEGMENT = 20 * MIB
LARGE = 10 * MIB  # from here on, a segment has the size of the request
STEP = 2 * MIB  # what segments' sizes are multiples of
FIRST_ADDRESS = 0x7F0000000000  # where PyTorch's addresses usually lie
POOLS = ("small", "large")
TRACED = 50_000  # events that are kept
FREED = "free_requested free_completed"  # both at once, as most are
FIELDS = 6  # of each: action, address, size, stream, time, source
Source: TypeAlias = tuple[str, int] | None  # a file and a line of the user's program


def rounded(size: int) -> int:
    """The size of a block for a request, in bytes.

    >>> rounded(1), rounded(512), rounded(513)
    (512, 512, 1024)
    """
    return max(SMALLEST, -(-size // SMALLEST) * SMALLEST)


def frames(source: Source) -> list[dict[str, Any]]:
    """A line of a program in the form of a snapshot."""
    if source is None:
        return []
    return [{"filename": source[0], "line": source[1], "name": "<program>"}]


def segment_size(size: int) -> int:
    """How much the driver is asked for, for a block of that size.

    >>> segment_size(512) // MIB, segment_size(3 * MIB) // MIB, segment_size(11 * MIB) // MIB
    (2, 20, 12)
    """
    if size <= SMALL:
        return SMALL_SEGMENT
    if size < LARGE:
        return LARGE_SEGMENT
    return -(-size // STEP) * STEP


class Block:
    """Part of a segment: in use, waiting for streams that still use it, or free."""

    __slots__ = (
        "address", "after", "before", "events", "requested", "segment", "size", "source", "used",
        "users",
    )  # fmt: skip
    before: Block | None  # its neighbours in the segment
    after: Block | None
    source: Source  # where it was asked for
    users: tuple[Any, ...]  # further streams that use it (`record_stream`)
    events: Sequence[Any]  # what has to happen before it is free

    def __init__(self, segment: Segment, address: int, size: int) -> None:
        self.segment, self.address, self.size = segment, address, size
        self.before = self.after = None
        self.used, self.requested, self.source = False, 0, None
        self.users = self.events = ()

    def __repr__(self) -> str:
        return f"<block of {self.size} bytes at {self.address:#x}>"


Free: TypeAlias = tuple[int, int, Block]  # a free block with its size and address, to be ordered by


@dataclass(eq=False, slots=True)
class Segment:
    """What one request to the driver gave."""

    address: int
    size: int
    stream: int
    pool: str
    free: list[Free]  # where its free blocks stand, with others' of the kind
    private: int = 0  # the number of a graph's pool; 0 for everybody's
    first: Block | None = None

    def blocks(self) -> Iterator[Block]:
        """Its blocks, by address."""
        block = self.first
        while block is not None:
            yield block
            block = block.after


@dataclass(slots=True)
class Figure:
    """One figure of the statistics: what it is now, its peak, and all that came and went."""

    current: int = 0
    peak: int = 0
    allocated: int = 0
    freed: int = 0

    def add(self, amount: int) -> None:
        """Counts what came (or, if negative, went)."""
        self.current += amount
        self.peak = max(self.peak, self.current)
        if amount >= 0:
            self.allocated += amount
        else:
            self.freed -= amount


COUNTS = ("allocation", "active", "inactive_split", "segment")
BYTES = ("allocated_bytes", "requested_bytes", "active_bytes", "inactive_split_bytes",
         "reserved_bytes")  # fmt: skip
# What one entry of the log tells of: it has an amount, negative for what went, of each.
LOGGED = ("allocation", "allocated_bytes", "requested_bytes", "active", "active_bytes",
          "inactive_split", "inactive_split_bytes")  # fmt: skip
# What an entry begins with is the number of its pool, and one of these where a block is given back
# before the streams that use it are done (it stays active), or those are done.
STILL_ACTIVE, NO_LONGER_ACTIVE = 2, 4
# Five numbers: of the pool; bytes of the block and of the request for it, negative if it goes; free parts
# of segments that came or went with it, and their bytes.
ENTRY = Struct("5q").pack
LONGEST = 1 << 18  # bytes of the log


@dataclass
class Statistics:
    """The figures of `memory_stats`, for both pools and all together.

    Blocks come and go at every launch and figures are seldom asked for, so each change is an entry
    of a log, and the figures are counted from many entries at once.
    """

    retries: int = 0
    shortages: int = 0  # times that memory ran out
    driver_calls: int = 0
    driver_frees: int = 0
    in_use: int = 0  # bytes in blocks that are given out: the current "allocated_bytes"
    log: bytearray = field(default_factory=bytearray)  # an ENTRY after the other
    _figures: dict[tuple[str, str], Figure] = field(
        default_factory=lambda: {
            (name, pool): Figure()
            for name in (*COUNTS, *BYTES)
            for pool in ("all", "small_pool", "large_pool")
        }
    )

    @property
    def figures(self) -> dict[tuple[str, str], Figure]:
        """The figures by name and pool, up to date."""
        if self.log:
            self.settle()
        return self._figures

    def __getitem__(self, name: str) -> Figure:
        return self.figures[name, "all"]

    def add(self, name: str, pool: str, amount: int) -> None:
        """Counts something of a pool, and of all: for what seldom happens."""
        self._figures[name, f"{pool}_pool"].add(amount)
        self._figures[name, "all"].add(amount)

    def settle(self) -> None:
        """Brings the figures up to date."""
        entries = np.frombuffer(bytes(self.log), np.int64).reshape(-1, 5)
        what, size, requested, parts, part_bytes = entries.T
        del self.log[:]
        given, active = what < NO_LONGER_ACTIVE, what & STILL_ACTIVE == 0
        block = np.sign(size)
        entries = np.stack(
            [
                block * given,
                size * given,
                requested,
                block * active,
                size * active,
                parts,
                part_bytes,
            ]
        ).T
        groups = [(f"{name}_pool", entries[what & 1 == k]) for k, name in enumerate(POOLS)]
        for pool, changes in [("all", entries), *groups]:
            if not len(changes):
                continue
            sums = changes.cumsum(axis=0)
            came, peaks = changes.clip(min=0).sum(axis=0), sums.max(axis=0)
            columns = (a.tolist() for a in (sums[-1], peaks, came))
            for name, last, peak, more in zip(LOGGED, *columns, strict=True):
                figure = self._figures[name, pool]
                figure.peak = max(figure.peak, figure.current + peak)
                figure.current += last
                figure.allocated += more
                figure.freed += more - last


def new_trace() -> deque[Any]:
    """What happens to memory, from now on: the fields of events, one after the other (see `records`)."""
    return deque(maxlen=FIELDS * TRACED)


class Shortage(Exception):
    """The driver has no more memory. `size` is what was asked for."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.size = size


class CachingAllocator:
    """The memory of one device.

    `capacity` is what the driver has, in bytes; `now()` gives the time in microseconds for the
    trace; `finished(event)` whether a stream has come that far.

    >>> memory = CachingAllocator(80 * MIB)
    >>> block = memory.allocate(3 * MIB)
    >>> memory.statistics["allocated_bytes"].current // MIB
    3
    >>> memory.reserved // MIB
    20
    """

    def __init__(
        self,
        capacity: int,
        now: Callable[[], float] = lambda: 0.0,
        finished: Callable[[Any], bool] = lambda event: True,
        first_address: int = FIRST_ADDRESS,
    ) -> None:
        self.capacity, self.now, self.finished = capacity, now, finished
        self.limit = capacity  # less where `set_per_process_memory_fraction` says so
        self.segments: list[Segment] = []
        self.free: dict[tuple[int, str, int], list[Free]] = {}
        self.waiting: list[Block] = []
        self.statistics = Statistics()
        self._trace: deque[Any] | None = new_trace()
        self.reserved = 0
        self._parts = self._part_bytes = 0  # free parts that came (or, if negative, went) just now
        self._next = first_address
        self._gaps: list[tuple[int, int]] = []  # addresses given back: (size, address)

    # -- requests -----------------------------------------------------------------------------

    def allocate(
        self,
        size: int,
        stream: int = 0,
        source: Source = None,
        pool: int = 0,
    ) -> Block:
        """A block of at least `size` bytes; else a Shortage."""
        if self.waiting:
            self.look_at_waiting()
        wanted = -(-size // SMALLEST) * SMALLEST or SMALLEST
        kind = "small" if wanted <= SMALL else "large"
        blocks = self.free.get((stream, kind, pool))
        at = 0 if blocks is None else bisect_left(blocks, (wanted, 0))
        if blocks is None or at == len(blocks):
            asked = wanted, stream, kind, pool, size
            blocks, at = self._from_driver(*asked)
        block = blocks[at][2]
        taken = block.size
        if block.before or block.after:
            self._parts -= 1
            self._part_bytes -= taken
        left = taken - wanted
        if left >= SMALLEST if kind == "small" else left > SMALL:
            self._cut(block, wanted, blocks, at)  # the rest stays free
            taken = wanted
        else:
            del blocks[at]
        block.used, block.requested, block.source = True, size, source
        self.statistics.in_use += taken
        parts = self._parts, self._part_bytes
        self.statistics.log += ENTRY(kind == "large", taken, size, *parts)
        self._parts = self._part_bytes = 0
        if self._trace is not None:
            where = block.address, size, stream
            self._trace += ("alloc", *where, self.now(), source)
        return block

    def release(self, block: Block, record: Callable[[Any], Any] | None = None) -> None:
        """Takes a block back; `record(stream)` makes the events that its other users have to reach
        before it is given out again."""
        segment, size, requested = block.segment, block.size, block.requested
        kind = segment.pool
        if not block.users:
            record = None
        trace = self._trace
        if trace is not None:
            what = "free_requested" if record is not None else FREED
            trace += (what, block.address, requested, segment.stream, self.now(), block.source)
        if record is None:
            self._make_free(block)
            statistics = self.statistics
            statistics.in_use -= size
            statistics.log += ENTRY(
                kind == "large", -size, -requested, self._parts, self._part_bytes
            )
            self._parts = self._part_bytes = 0
            if len(statistics.log) >= LONGEST:
                statistics.settle()
        else:
            self.statistics.in_use -= size
            self.statistics.log += ENTRY(STILL_ACTIVE + (kind == "large"), -size, -requested, 0, 0)
            block.events = [record(user) for user in block.users]
            block.users = ()
            self.waiting.append(block)

    def look_at_waiting(self) -> None:
        """Frees the blocks whose other users are done."""
        still = []
        for block in self.waiting:
            block.events = [event for event in block.events if not self.finished(event)]
            if block.events:
                still.append(block)
            else:
                size, stream = block.size, block.segment.stream
                self.note("free_completed", block.address, block.requested, stream, block.source)
                self._make_free(block)
                what = NO_LONGER_ACTIVE + (block.segment.pool == "large")
                self.statistics.log += ENTRY(what, -size, 0, self._parts, self._part_bytes)
                self._parts = self._part_bytes = 0
        self.waiting = still

    def give_back(self) -> int:
        """Gives segments that are free as a whole back to the driver; how many bytes that was."""
        self.look_at_waiting()
        freed = 0
        for segment in list(self.segments):
            block = segment.first
            if block is None or block.used or block.after or block.events:
                continue
            del segment.free[bisect_left(segment.free, (block.size, block.address))]
            self.segments.remove(segment)
            self._gaps.append((segment.size, segment.address))
            self.reserved -= segment.size
            freed += segment.size
            self.statistics.add("segment", segment.pool, -1)
            self.statistics.add("reserved_bytes", segment.pool, -segment.size)
            self.statistics.driver_frees += 1
            self.note("segment_free", segment.address, segment.size, segment.stream)
        return freed

    # -- the parts ----------------------------------------------------------------------------

    def _cut(self, block: Block, size: int, blocks: list[Free], at: int) -> None:
        """Cuts a block; the rest takes its place among the free ones, or one before that."""
        left = block.size - size
        rest = Block(block.segment, block.address + size, left)
        rest.before, rest.after = block, block.after
        if rest.after is not None:
            rest.after.before = rest
        block.after, block.size = rest, size
        entry = left, rest.address, rest
        if at and blocks[at - 1] > entry:
            del blocks[at]
            insort(blocks, entry, 0, at)
        else:
            blocks[at] = entry
        self._parts += 1
        self._part_bytes += left

    def _from_driver(
        self, wanted: int, stream: int, kind: str, pool: int, size: int
    ) -> tuple[list[Free], int]:
        """A segment for a block of that size, after all caches were given back if need be: where it
        stands among the free blocks."""
        total = segment_size(wanted)
        if self.reserved + total > self.limit:
            self.statistics.retries += 1
            self.give_back()
            if self.reserved + total > self.limit:
                self.statistics.shortages += 1
                self.note("oom", 0, size, stream)
                raise Shortage(size)
        blocks = self.free.setdefault((stream, kind, pool), [])
        segment = Segment(self._address(total), total, stream, kind, blocks, pool)
        segment.first = Block(segment, segment.address, total)
        self.segments.append(segment)
        self.reserved += total
        self.statistics.driver_calls += 1
        self.statistics.add("segment", kind, 1)
        self.statistics.add("reserved_bytes", kind, total)
        self.note("segment_alloc", segment.address, total, stream)
        entry = total, segment.address, segment.first
        insort(blocks, entry)
        return blocks, bisect_left(blocks, entry)

    def _address(self, size: int) -> int:
        """An address range: one given back that is large enough, or a new one."""
        fitting = [gap for gap in self._gaps if gap[0] >= size]
        if fitting:
            gap = min(fitting)
            self._gaps.remove(gap)
            if gap[0] > size:
                self._gaps.append((gap[0] - size, gap[1] + size))
            return gap[1]
        address = self._next
        self._next += size
        return address

    def _make_free(self, block: Block) -> None:
        """Joins a block to the free ones beside it, and puts it where requests look."""
        block.used, block.requested, block.source = False, 0, None
        before, after, blocks = block.before, block.after, block.segment.free
        old = -1  # the place of a free block that goes
        if before is not None and not before.used:
            old = self._place_of(before)
            block.address, block.size = before.address, block.size + before.size
            block.before = before.before
            if block.before is not None:
                block.before.after = block
            else:
                block.segment.first = block
        if after is not None and not after.used:
            if old >= 0:
                del blocks[old]
            old = self._place_of(after)
            block.size += after.size
            block.after = after.after
            if block.after is not None:
                block.after.before = block
        entry = block.size, block.address, block
        if old < 0:
            insort(blocks, entry)
        elif old + 1 < len(blocks) and blocks[old + 1] < entry:
            del blocks[old]
            insort(blocks, entry, old)
        else:  # it is larger than the one that goes, and smaller than the next
            blocks[old] = entry
        if block.before or block.after:
            self._parts += 1
            self._part_bytes += block.size

    def _place_of(self, block: Block) -> int:
        """Where a free part of a segment, which goes, stands among the free blocks."""
        self._parts -= 1
        self._part_bytes -= block.size
        return bisect_left(block.segment.free, (block.size, block.address))

    # -- what others look at ------------------------------------------------------------------

    def note(
        self, action: str, address: int, size: int, stream: int, source: Source = None
    ) -> None:
        """One line of the trace, while one is kept."""
        if self._trace is not None:
            self._trace += (action, address, size, stream, self.now(), source)

    def record(self, enabled: bool) -> None:
        """Begins a new trace, or ends it."""
        self._trace = new_trace() if enabled else None

    @property
    def trace(self) -> list[dict[str, Any]]:
        """What happened, in the form of `torch.cuda.memory._snapshot()`."""
        return [
            {
                "action": action,
                "addr": address,
                "size": size,
                "stream": stream,
                "time_us": time,
                "frames": frames(source),
            }
            for what, address, size, stream, time, source in records(self._trace or (), FIELDS)
            for action in what.split()
        ]

    def snapshot(self) -> list[dict[str, Any]]:
        """The segments with their blocks, in the form of `torch.cuda.memory_snapshot()`."""
        made = []
        for segment in sorted(self.segments, key=lambda s: s.address):
            blocks = list(segment.blocks())
            used = [b for b in blocks if b.used]
            made.append(
                {
                    "address": segment.address,
                    "total_size": segment.size,
                    "allocated_size": sum(b.size for b in used if not b.events),
                    "active_size": sum(b.size for b in used),
                    "requested_size": sum(b.requested for b in used),
                    "stream": segment.stream,
                    "segment_type": segment.pool,
                    "segment_pool_id": (0, segment.private),
                    "is_expandable": False,
                    "frames": [],
                    "blocks": [
                        {
                            "address": b.address,
                            "size": b.size,
                            "requested_size": b.requested,
                            "state": "inactive"
                            if not b.used
                            else "active_awaiting_free"
                            if b.events
                            else "active_allocated",
                            "frames": frames(b.source),
                        }
                        for b in blocks
                    ],
                }
            )
        return made
