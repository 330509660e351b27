"""The caching allocator's memory as a page with buttons: its blocks step by step, and over time."""

from __future__ import annotations

from toytorch.viz.backward.steps_page import BackwardSteps
from toytorch.viz.backward.steps_picture import Animation
from toytorch.viz.draw.measures import size
from toytorch.viz.memory.snapshot_picture import animation
from toytorch.viz.memory.snapshot_read import History, read


class MemorySteps(BackwardSteps):
    """What an allocator did, to step through."""

    def __init__(self, made: Animation, summary: str) -> None:
        super().__init__(made, summary)
        self._least_width = made.scene.width * 0.96  # letters stay 11 pixels high


def memory_map(
    snapshot: object, *, device: int | None = None, limit: int = 300, width: float = 960.0
) -> MemorySteps:
    """The allocator's segments and blocks through its history, as a page to step through.

    `snapshot` is the dict of `torch.cuda.memory._snapshot()`, or one that PyTorch has pickled and
    you have loaded; its history is there if `torch.cuda.memory._record_memory_history()` was called
    before. Above, each segment is a row with its blocks at their addresses: taken ones in the colour
    of the line that asked for them, free ones hatched. Below is the memory in use over time, a band
    for each allocation. Everything says its size, its line and its life when the mouse rests on it.

    `device` chooses one of several, by default the first that has anything. Where there are more
    than `limit` events, a step is several of them, and shows the fullest moment among these.
    `width` is that of the picture.

    Fragmentation is the share of free memory that is outside the largest free block. Raises
    TypeError for what is no snapshot, and ValueError for one of nothing, or a `limit` below 1 or a
    `width` below 320.

    >>> block = {"address": 0, "size": 512, "state": "active_allocated", "requested_size": 400}
    >>> segment = {"device": 0, "address": 0, "total_size": 2 << 20, "stream": 0,
    ...            "segment_type": "small", "blocks": [block]}
    >>> events = [{"action": "alloc", "addr": 0, "size": 400, "stream": 0}]
    >>> steps = memory_map({"segments": [segment], "device_traces": [events]})
    >>> steps
    <memory map: 1 event, at most 512 B in use of 2 MB reserved, 2 steps to show>
    """
    if limit < 1:
        raise ValueError(f"limit must be at least 1, not {limit}")
    if width < 320:
        raise ValueError(f"a memory map is at least 320 wide, not {width:g}")
    history = read(snapshot, device)
    steps = steps_of(history, limit)
    made = animation(history, steps, width)
    states = history.states(steps)
    count, shown = len(history.events), len(steps)
    return MemorySteps(
        made,
        f"<memory map: {count} event{'s' * (count != 1)}, at most"
        f" {size(max(state.active for state in states))} in use of"
        f" {size(max(state.reserved for state in states))} reserved,"
        f" {shown} step{'s' * (shown != 1)} to show>",
    )


def steps_of(history: History, limit: int) -> list[int]:
    """The events after which there is a step: all, or of each of `limit` groups the fullest."""
    count = len(history.events)
    if count <= limit:
        return list(range(-1, count))
    totals, steps = history.totals(), [-1]
    for group in range(limit):
        first, end = group * count // limit, (group + 1) * count // limit
        steps.append(max(range(first, end), key=totals.__getitem__))
    return [*steps, count - 1] if steps[-1] != count - 1 else steps
