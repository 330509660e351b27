"""A profile as a chart: a row for each thread, in which what was called hangs below its caller."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from toytorch.viz.device.chart import Bar, Chart, Curve, Row, bar_look, within
from toytorch.viz.draw import palette
from toytorch.viz.draw.measures import size, time
from toytorch.viz.draw.text import clean

LOOKS = {
    "op": bar_look(palette.BLUE),
    "backward": bar_look(palette.PURPLE),
    "module": bar_look(palette.GREEN),
    "named part": bar_look(palette.AMBER),
    "optimizer, data": bar_look(palette.SKY),
}
SCOPES = {1: "backward", 7: "named part", 10: "module"}
SAID_BY_COLOUR = (
    "autograd::engine::evaluate_function: ",
    "aten::",
    "nn.Module: ",
    "torch::autograd::",
    "enumerate(DataLoader)#",
)


def chart_of(events: Any, title: str, start_us: float | None, end_us: float | None) -> Chart:
    """The chart of a part of the time; refuses a part in which there is nothing."""
    calls = [e for e in events if e.name != "[memory]"]
    nothing = "the profiler recorded no events in this time"
    shown, first, last = within(calls, start_us, end_us, nothing, attrgetter("time_range"))
    last = max(last, first + 1e-3)
    threads: dict[int, list[Any]] = {}
    for event in shown:
        threads.setdefault(event.thread, []).append(event)
    rows = [Row(f"thread {number}", _lanes(found)) for number, found in sorted(threads.items())]
    if len(rows) == 1:
        rows[0].name = ""
    count = len(shown)
    summary = (
        f"timeline: {count} event{'s' * (count != 1)} in {len(rows)} thread{'s' * (len(rows) != 1)}"
    )
    title = title or f"{time(last - first)} of work"
    curves = _curves(getattr(events, "recorder", None))
    return Chart(title, summary, first, last, first, rows, LOOKS, curves=curves)


def _lanes(events: Sequence[Any]) -> list[list[Bar]]:
    depths: dict[int, int] = {}
    lanes: list[list[Bar]] = []
    for event in sorted(events, key=lambda e: e.time_range.start):
        parent = event.cpu_parent
        depth = 0 if parent is None else depths.get(id(parent), -1) + 1
        depths[id(event)] = depth
        lanes.extend([] for _ in range(depth + 1 - len(lanes)))
        lanes[depth].append(_bar(event))
    return lanes


def _bar(event: Any) -> Bar:
    span, name = event.time_range, clean(event.trace_name)
    itself = f"{event.self_cpu_time_total_str} of it itself"
    return Bar(span.start, span.end, _kind(event), name, _label(event), (itself,))


def _kind(event: Any) -> str:
    if "#" in event.name and not event.name.startswith("ProfilerStep"):
        return "optimizer, data"
    return SCOPES.get(event.scope, "op")


def _label(event: Any) -> str:
    """The name without what the colour says already."""
    name = clean(event.trace_name)
    for part in SAID_BY_COLOUR:
        name = name.removeprefix(part)
    return name


def _curves(recorder: Any) -> list[Curve]:
    ledger = None if recorder is None else recorder.ledger
    if ledger is None:
        return []
    points = [((change.time - recorder.began) / 1e3, total) for change, total in ledger.history()]
    if not points:
        return []
    most = max(1, *(total for _, total in points))
    return [Curve(f"memory of results: at most {size(most)}", points)]
