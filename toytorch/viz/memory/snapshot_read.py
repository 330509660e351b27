"""A snapshot of the caching allocator as a history: its segments and blocks after each event.

The format is that of `torch.cuda.memory._snapshot()`. A snapshot holds the state at its end and the
events before it; so the events are first undone, last one first, and then done again.
"""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

SMALLEST = 512  # bytes; sizes of blocks are multiples of it
SMALL = 1 << 20  # a large segment's block is split only where more than this is left
ALLOCATED, AWAITING = "active_allocated", "active_awaiting_free"


@dataclass(frozen=True, slots=True)
class Segment:
    """Memory that the allocator has from the driver."""

    address: int
    size: int
    stream: int
    small: bool

    @property
    def end(self) -> int:
        """The address behind it."""
        return self.address + self.size


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a segment that is in use, or will be free when a stream has done with it."""

    address: int
    size: int
    requested: int
    state: str
    allocation: int = -1  # the number of the allocation it was made for

    @property
    def end(self) -> int:
        """The address behind it."""
        return self.address + self.size


@dataclass(frozen=True, slots=True)
class Event:
    """Something the allocator did. `size` is as it was asked for."""

    action: str
    address: int
    size: int
    stream: int
    where: str


@dataclass(slots=True)
class Allocation:
    """A block's life: after which events it began and ended; -1 and None for outside the trace."""

    number: int
    address: int
    size: int
    requested: int
    where: str
    born: int = -1
    died: int | None = None


class State:
    """Segments and blocks in use, by address; their addresses are kept in order too."""

    def __init__(self) -> None:
        self.segments: dict[int, Segment] = {}
        self.blocks: dict[int, Block] = {}
        self._starts: list[int] = []  # of segments
        self._order: list[int] = []  # of blocks

    def copy(self) -> State:
        """The state as it is now."""
        made = State()
        made.segments, made.blocks = dict(self.segments), dict(self.blocks)
        made._starts, made._order = list(self._starts), list(self._order)
        return made

    def put(self, one: Segment | Block) -> None:
        """Adds a segment or block, or takes it for the one at its address."""
        if isinstance(one, Segment):
            if one.address not in self.segments:
                insort(self._starts, one.address)
            self.segments[one.address] = one
        else:
            if one.address not in self.blocks:
                insort(self._order, one.address)
            self.blocks[one.address] = one

    def drop_block(self, address: int) -> None:
        """Takes a block away, if there is one."""
        if self.blocks.pop(address, None):
            del self._order[bisect_left(self._order, address)]

    def drop_segment(self, address: int) -> None:
        """Takes a segment away, if there is one."""
        if self.segments.pop(address, None):
            del self._starts[bisect_left(self._starts, address)]

    @property
    def active(self) -> int:
        """Bytes of blocks in use."""
        return sum(block.size for block in self.blocks.values())

    @property
    def reserved(self) -> int:
        """Bytes of segments."""
        return sum(segment.size for segment in self.segments.values())

    def taken(self, address: int, asked: int) -> int:
        """The bytes a new block takes: rounded up, or all of its gap if the rest is not worth it."""
        rounded = -(-max(asked, 1) // SMALLEST) * SMALLEST
        number = bisect_right(self._starts, address) - 1
        segment = self.segments[self._starts[number]] if number >= 0 else None
        if segment is None or address >= segment.end:
            return rounded
        behind = bisect_right(self._order, address)
        end = min([segment.end, *self._order[behind : behind + 1]])
        left = end - address - rounded
        worth = left >= SMALLEST if segment.small else left > SMALL
        return rounded if worth else rounded + max(left, 0)

    def inside(self, segment: Segment) -> list[Block]:
        """The blocks of a segment in order of address."""
        first = bisect_left(self._order, segment.address)
        end = bisect_left(self._order, segment.end)
        return [self.blocks[address] for address in self._order[first:end]]

    def free(self, segment: Segment) -> list[tuple[int, int]]:
        """The parts of a segment that are free, as address and size; neighbours are one."""
        gaps, at = [], segment.address
        for block in self.inside(segment):
            if block.address > at:
                gaps.append((at, block.address - at))
            at = max(at, block.end)
        if segment.end > at:
            gaps.append((at, segment.end - at))
        return gaps

    def fragmentation(self) -> tuple[int, int, float]:
        """Free bytes, the largest free block, and the share of free bytes outside of it."""
        gaps = [size for s in self.segments.values() for _, size in self.free(s)]
        free, largest = sum(gaps), max(gaps, default=0)
        return free, largest, 1 - largest / free if free else 0.0


@dataclass(slots=True)
class History:
    """The state before the first event, the events, and all allocations."""

    device: int
    first: State
    events: list[Event]
    allocations: list[Allocation] = field(default_factory=list)
    made: dict[int, Allocation] = field(default_factory=dict)  # by the event that made it

    def states(self, after: Iterable[int]) -> list[State]:
        """The states after the events of these numbers, in order; -1 is before all."""
        wanted, state, found = sorted(after), self.first.copy(), []
        at = -1
        for number in wanted:
            while at < number:
                at += 1
                do(state, self.events[at], self.made.get(at))
            found.append(state.copy())
        return found

    def totals(self) -> list[int]:
        """Bytes in use after each event."""
        state, active, found = self.first.copy(), self.first.active, []
        for number, event in enumerate(self.events):
            before = state.blocks.get(event.address)
            do(state, event, self.made.get(number))
            after = state.blocks.get(event.address)
            active += (after.size if after else 0) - (before.size if before else 0)
            found.append(active)
        return found


def do(state: State, event: Event, one: Allocation | None = None) -> None:
    """An event happens to a state; `one` is the allocation it makes, where that is known."""
    match event.action:
        case "alloc":
            size = state.taken(event.address, event.size) if one is None else one.size
            number = -1 if one is None else one.number
            state.put(Block(event.address, size, event.size, ALLOCATED, number))
        case "free_requested":
            if block := state.blocks.get(event.address):
                state.put(replace(block, state=AWAITING))
        case "free" | "free_completed":
            state.drop_block(event.address)
        case "segment_alloc" | "segment_map":
            state.put(_segment(event))
        case "segment_free" | "segment_unmap":
            state.drop_segment(event.address)


def undo(state: State, event: Event) -> None:
    """The state before an event."""
    match event.action:
        case "alloc":
            state.drop_block(event.address)
        case "free_requested":
            if block := state.blocks.get(event.address):
                state.put(replace(block, state=ALLOCATED))
        case "free" | "free_completed":
            size = state.taken(event.address, event.size)
            now = ALLOCATED if event.action == "free" else AWAITING
            state.put(Block(event.address, size, event.size, now))
        case "segment_alloc" | "segment_map":
            state.drop_segment(event.address)
        case "segment_free" | "segment_unmap":
            state.put(_segment(event))


def _segment(event: Event) -> Segment:
    # segments of the pool for small blocks are 2 MiB, all others are larger
    return Segment(event.address, event.size, event.stream, event.size <= 2 * SMALL)


# reading ---------------------------------------------------------------------------------------


def read(snapshot: Any, device: int | None = None) -> History:
    """The history of one device, by default the first that has one.

    Raises TypeError for what is no snapshot, ValueError for one in which there is nothing.
    """
    if not isinstance(snapshot, Mapping) or "segments" not in snapshot:
        raise TypeError(
            "a memory map is drawn of the dict that torch.cuda.memory._snapshot() gives, with"
            f" 'segments' and 'device_traces', not of {type(snapshot).__name__}"
        )
    segments: Sequence[Any] = snapshot["segments"]
    traces: Sequence[Any] = snapshot.get("device_traces") or []
    with_data = sorted(
        {int(s.get("device", 0)) for s in segments} | {n for n, t in enumerate(traces) if t}
    )
    if device is None:
        device = with_data[0] if with_data else 0
    if device not in with_data:
        known = f"; it has some of device {', '.join(map(str, with_data))}" if with_data else ""
        raise ValueError(
            f"there is nothing to draw: the snapshot has no segments and no trace of device"
            f" {device}{known}"
        )
    last, wheres = _state(s for s in segments if int(s.get("device", 0)) == device)
    trace = traces[device] if device < len(traces) else []
    events = _joined([_event(entry) for entry in trace])
    first = last.copy()
    for event in reversed(events):
        undo(first, event)
    return _with_lives(History(device, first, events), last, wheres)


def _state(segments: Iterable[Any]) -> tuple[State, dict[int, str]]:
    """The state that the snapshot was taken in, and where its blocks were asked for."""
    state, wheres = State(), dict[int, str]()
    for entry in segments:
        address = int(entry["address"])
        small = entry.get("segment_type", "large") == "small"
        total = int(entry["total_size"])
        state.put(Segment(address, total, int(entry.get("stream", 0)), small))
        for block in entry.get("blocks", ()):
            at, size = int(block.get("address", address)), int(block["size"])
            address = at + size  # PyTorch 2.0 wrote no addresses: blocks follow each other
            if block["state"] in (ALLOCATED, AWAITING, "active_pending_free"):
                asked = int(block.get("requested_size", size))
                now = ALLOCATED if block["state"] == ALLOCATED else AWAITING
                state.put(Block(at, size, asked, now))
                wheres[at] = where(block.get("frames") or ())
    return state, wheres


def _event(entry: Any) -> Event:
    address = int(entry.get("addr") or entry.get("device_free") or 0)
    return Event(
        str(entry["action"]),
        address,
        int(entry.get("size", 0)),
        int(entry.get("stream") or 0),
        where(entry.get("frames") or ()),
    )


def _joined(events: list[Event]) -> list[Event]:
    """The events with a free that is asked for and done at once as one event."""
    found: list[Event] = []
    for event in events:
        asked = found[-1] if found else None
        if (
            asked is not None
            and (asked.action, event.action) == ("free_requested", "free_completed")
            and asked.address == event.address
        ):
            found[-1] = replace(asked, action="free")
        else:
            found.append(event)
    return found


def where(frames: Sequence[Any]) -> str:
    """The line of the user's program: the innermost frame that is not a framework's.

    >>> frames = [{"filename": "/x/toytorch/ops/a.py", "line": 3, "name": "mm"},
    ...           {"filename": "/home/me/train.py", "line": 12, "name": "step"}]
    >>> where(frames)
    'train.py line 12 in step'
    """
    for frame in (*(f for f in frames if not _inner(str(f["filename"]))), *frames[:1]):
        return f"{os.path.basename(str(frame['filename']))} line {frame['line']} in {frame['name']}"
    return ""


def _inner(filename: str) -> bool:
    parts = filename.replace("\\", "/").split("/")
    return not filename.endswith(".py") or "torch" in parts or "toytorch" in parts


def _with_lives(history: History, last: State, wheres: dict[int, str]) -> History:
    """The history with all allocations: from which event to which, and where they were asked for."""
    alive: dict[int, Allocation] = {}

    def begin(block: Block, place: str, born: int) -> Allocation:
        number = len(history.allocations)
        one = Allocation(number, block.address, block.size, block.requested, place, born)
        history.allocations.append(one)
        if born >= 0:
            history.made[born] = one
        alive[block.address] = one
        return one

    state = history.first
    for _, block in sorted(state.blocks.items()):
        state.put(replace(block, allocation=begin(block, "", -1).number))
    running = state.copy()
    for number, event in enumerate(history.events):
        do(running, event)
        if event.action == "alloc":
            begin(running.blocks[event.address], event.where, number)
        elif event.action in ("free", "free_completed") and event.address in alive:
            alive.pop(event.address).died = number
    for address, one in alive.items():
        if address in last.blocks:
            one.where = one.where or wheres.get(address, "")
            one.size, one.requested = last.blocks[address].size, last.blocks[address].requested
    return history
