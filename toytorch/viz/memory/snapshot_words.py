"""What is said about a step through an allocator's history."""

from __future__ import annotations

from toytorch.viz.draw.measures import size
from toytorch.viz.draw.text import clean
from toytorch.viz.memory.snapshot_read import Event, History
from toytorch.viz.memory.snapshot_state import State


def caption(history: History, before: int, step: int, state: State) -> str:
    """What happened after the event `before` up to `step`, and how the memory is used then.

    Events are counted from 1 in words, as the steps beside the buttons are.
    """
    events, first = history.events, before + 1
    if step < 0:
        said = "Before the first event" if events else "No events were recorded"
    elif first == step:
        said = f"Event {step + 1}: {_told(events[step])}"
    else:
        kinds = [event.action for event in events[first : step + 1]]
        said = f"Events {first + 1} to {step + 1}: {kinds.count('alloc')} blocks come, "
        said += f"{sum(kind in ('free', 'free_completed') for kind in kinds)} go"
    free, largest, share = state.fragmentation()
    used = f"{size(state.active)} of {size(state.reserved)} reserved are in use"
    if not free:
        return f"{said}. {used}."
    return (
        f"{said}. {used}; of {size(free)} free the largest block is {size(largest)}:"
        f" fragmentation {share:.0%}."
    )


def _told(event: Event) -> str:
    """An event in words."""
    place, stream = f" at address {event.address:#x}", f"on stream {event.stream}"
    where = f", {clean(event.where)}" if event.where else ""
    words = {
        "alloc": f"a block for {size(event.size)} is taken{place} {stream}",
        "free": f"the block of {size(event.size)}{place} is freed",
        "free_requested": f"the block of {size(event.size)}{place} is freed by the program, and waits"
        " for the streams that use it",
        "free_completed": f"the block of {size(event.size)}{place} is free, the streams are done",
        "segment_alloc": f"a segment of {size(event.size)} comes from the driver{place}",
        "segment_map": f"{size(event.size)} of memory are mapped{place}",
        "segment_free": f"the segment of {size(event.size)}{place} goes back to the driver",
        "segment_unmap": f"{size(event.size)} of memory are unmapped{place}",
        "oom": f"out of memory: {size(event.size)} were asked for and could not be had",
        "snapshot": "a snapshot is taken",
    }
    return words.get(event.action, clean(event.action)) + where
