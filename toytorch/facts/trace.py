"""What ran on host and devices, and when: the record that timelines are drawn from.

Times are microseconds since the record began. A simulated device writes its virtual times here; a
card the times between its events; the profiler those of the CPU's clock.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Span:
    """Something that took its time in one row of a timeline.

    kind    "host": Python's part of an op; "kernel", "copy", "memset": work on a device; "wait": a
            stream that stands still until an event; "sync": the host that waits for a device;
            "graph": the launch of a whole graph
    row     the row it is drawn in: "host", "cuda:0 stream 7", "cuda:0 host to device"
    source  file and line of the user's program that asked for it
    """

    number: int
    kind: str
    name: str
    row: str
    start: float
    end: float
    device: int | None = None
    stream: int | None = None
    source: tuple[str, int] | None = None
    bytes: int = 0
    flops: int = 0
    limit: str = ""  # what a kernel's time was set by: "launch", "memory" or "arithmetic"

    @property
    def duration(self) -> float:
        """Microseconds from start to end."""
        return self.end - self.start


@dataclass(slots=True)
class Arrow:
    """One span that another had to wait for: a launch and its kernel, an event and who waited."""

    before: int  # numbers of spans
    after: int
    kind: str  # "launch", "event" or "sync"


@dataclass(slots=True)
class MemoryPoint:
    """How much memory of a device was in use at a time."""

    time: float
    device: int
    allocated: int
    reserved: int


@dataclass(slots=True)
class Timeline:
    """All that was recorded, in the order in which the host asked for it.

    `rows` is the order in which they are drawn.
    """

    title: str = ""
    spans: list[Span] = field(default_factory=list)
    arrows: list[Arrow] = field(default_factory=list)
    memory: list[MemoryPoint] = field(default_factory=list)

    @property
    def rows(self) -> list[str]:
        """The names of the rows: the host first, then devices, in the order they were first used."""
        found = list(dict.fromkeys(span.row for span in self.spans))
        return sorted(found, key=lambda row: (row != "host", row.split(" ")[0], found.index(row)))

    @property
    def end(self) -> float:
        """When the last span ends."""
        return max((span.end for span in self.spans), default=0.0)


class RaceError(RuntimeError):
    """Two accesses of one memory that nothing puts in order, one of them a write."""


class RaceWarning(UserWarning):
    """A race, where `simulate(races="warn")` asked for warnings."""


class OutOfMemoryError(RuntimeError):
    """A device has no memory left, like `torch.OutOfMemoryError`."""


class AcceleratorError(RuntimeError):
    """A device reported an error, perhaps of an earlier call, like `torch.AcceleratorError`."""
