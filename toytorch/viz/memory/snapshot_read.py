"""A snapshot of the caching allocator as a history: its segments and blocks after each event.

The format is that of `torch.cuda.memory._snapshot()`. A snapshot holds the state at its end and the
events before it; so the events are first undone, last one first, and then done again.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from toytorch.viz.memory.snapshot_state import ALLOCATED, AWAITING, SMALL, Block, Segment, State


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


def read(snapshot: object, device: int | None = None) -> History:
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
    size, stream = int(entry.get("size", 0)), int(entry.get("stream") or 0)
    return Event(str(entry["action"]), address, size, stream, where(entry.get("frames") or ()))


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
        file, function = str(frame["filename"]), f" in {frame['name']}"
        name = "cell" if "ipykernel_" in file else os.path.basename(file)  # a cell has no name
        return f"{name} line {frame['line']}{'' if function == ' in <program>' else function}"
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
