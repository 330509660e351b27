"""A trace in the Trace Event Format, from whomever, as a chart: what is called below its caller."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from toytorch.viz.device.chart import Bar, Chart, Row, bar_look, within
from toytorch.viz.draw import palette
from toytorch.viz.draw.measures import time
from toytorch.viz.draw.text import clean

LOOKS = {"forward": bar_look(palette.BLUE), "backward": bar_look(palette.PURPLE)}


@dataclass(slots=True)
class Event:
    """A call: its name, its times in microseconds, and inside of how many others it lies."""

    name: str
    start: float
    end: float
    depth: int
    row: tuple[Any, Any]


def events_of(trace: Mapping[str, Any]) -> list[Event]:
    """The complete events of a trace, by their start; ValueError if there are none."""
    found: list[Event] = []
    inside: dict[tuple[Any, Any], list[Event]] = {}
    entries = [e for e in trace.get("traceEvents", []) if e.get("ph") == "X"]
    for entry in sorted(entries, key=lambda e: (e["ts"], -e["dur"])):
        row = entry.get("pid", 0), entry.get("tid", 0)
        start, stack = float(entry["ts"]), inside.setdefault(row, [])
        end = start + float(entry["dur"])
        # a child may seem to end after its caller by what a sum of two floats loses
        while stack and stack[-1].end + 1e-6 < end:
            stack.pop()
        event = Event(clean(str(entry["name"])), start, end, len(stack), row)
        stack.append(event)
        found.append(event)
    if not found:
        raise ValueError('there is nothing to draw: the trace has no events with "ph": "X"')
    return found


def chart_of(
    trace: Mapping[str, Any], title: str, start_us: float | None, end_us: float | None
) -> Chart:
    """The chart of a part of the time."""
    nothing = "no event of the trace lies in this time"
    shown, first, last = within(events_of(trace), start_us, end_us, nothing)
    rows: dict[tuple[Any, Any], list[list[Bar]]] = {}
    for event in shown:
        lanes = rows.setdefault(event.row, [])
        lanes.extend([] for _ in range(event.depth + 1 - len(lanes)))
        kind = "backward" if event.name.endswith("backward") else "forward"
        lanes[event.depth].append(Bar(event.start, event.end, kind, event.name, event.name))
    drawn = [
        Row(f"thread {tid}" if len(rows) > 1 else "", lanes) for (_, tid), lanes in rows.items()
    ]
    count = len(shown)
    summary = f"timeline: {count} event{'s' * (count != 1)}"
    title = title or f"{time(last - first)} of work"
    return Chart(title, summary, first, max(last, first + 1e-3), first, drawn, LOOKS)
