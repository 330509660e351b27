"""A `Timeline` as a chart: the host's row, then each device's streams and copy engines."""

from __future__ import annotations

import os

from toytorch.facts.trace import Arrow, Span, Timeline
from toytorch.viz.device.chart import Bar, Chart, Curve, Link, Row, bar_look, in_lanes, within
from toytorch.viz.draw import palette
from toytorch.viz.draw.boxes import Look
from toytorch.viz.draw.measures import rate, size, time
from toytorch.viz.draw.text import clean

LOOKS = {
    "host": bar_look(palette.BLUE),
    "kernel": bar_look(palette.GREEN),
    "copy": bar_look(palette.AMBER),
    "memset": bar_look(palette.SKY),
    "graph": bar_look(palette.PURPLE),
    "wait": Look(palette.PAPER, palette.FAINT, line=0.8, hatch=palette.FAINT),
    "sync": Look(palette.REST, palette.EDGE, line=0.8),
}
LONGEST = 240  # letters of a name
LIMITS = {
    "launch": "its time is that of a launch",
    "memory": "limited by memory",
    "arithmetic": "limited by arithmetic",
}


def chart_of(timeline: Timeline, title: str, start_us: float | None, end_us: float | None) -> Chart:
    """The chart of a part of the time; refuses a part in which there is nothing."""
    nothing = "the timeline has no spans in this time"
    shown, first, last = within(timeline.spans, start_us, end_us, nothing)
    if start_us is None and 0 < first < 0.1 * last:
        first = 0.0  # a record that begins at once is shown from its beginning
    last = max(last, first + 1e-3)
    bars = {span.number: _bar(span) for span in shown}
    by_row: dict[str, list[Span]] = {}
    for span in shown:
        by_row.setdefault(span.row, []).append(span)
    rows = [
        Row(clean(name), in_lanes([bars[span.number] for span in by_row[name]]), group)
        for name, group in _order(timeline, by_row)
    ]
    spans = {span.number: span for span in shown}
    links = [
        _link(spans[a.before], spans[a.after], bars, a)
        for a in timeline.arrows
        if a.before in spans and a.after in spans
    ]
    count, kinds = len(shown), len(rows)
    work = time(last - first)
    summary = (
        f"timeline: {count} span{'s' * (count != 1)} in {kinds} row{'s' * (kinds != 1)}, {work}"
    )
    title = title or timeline.title or f"{work} of work"
    return Chart(title, summary, first, last, 0.0, rows, LOOKS, links, _curves(timeline))


def _order(timeline: Timeline, by_row: dict[str, list[Span]]) -> list[tuple[str, str]]:
    """The rows with their groups: the host, then by device its streams before its copy engines."""
    ranked = []
    for place, row in enumerate(name for name in timeline.rows if name in by_row):
        device = next((s.device for s in by_row[row] if s.device is not None), None)
        host = row == "host"
        rank = (not host, -1 if device is None else device, " stream " not in row, place)
        ranked.append((rank, row, "host" if host else row.split(" ")[0]))
    return [(row, group) for _, row, group in sorted(ranked)]


def _bar(span: Span) -> Bar:
    name = clean(span.name)
    if len(name) > LONGEST:  # templates of C++ have names of thousands of letters
        name = name[: LONGEST - 1] + "…"
    kind = span.kind if span.kind in LOOKS else "host"
    return Bar(span.start, max(span.end, span.start), kind, name, name, tuple(facts_of(span)))


def facts_of(span: Span) -> list[str]:
    """What a span says besides its name and times."""
    facts = []
    if span.bytes:
        speed = f", {rate(span.bytes / span.duration * 1e6, 'B/s')}" if span.duration > 0 else ""
        facts.append(size(span.bytes) + speed)
    if span.flops:
        speed = f", {rate(span.flops / span.duration * 1e6, 'FLOP/s')}" if span.duration > 0 else ""
        facts.append(rate(span.flops, "FLOP") + speed)
    if span.limit:
        facts.append(clean(LIMITS.get(span.limit, span.limit)))
    if span.source is not None:
        facts.append(clean(f"{os.path.basename(span.source[0])} line {span.source[1]}"))
    return facts


def _link(before: Span, after: Span, bars: dict[int, Bar], arrow: Arrow) -> Link:
    """Where an arrow leaves and arrives: a wait and a synchronisation end when it arrives."""
    waits = after.kind in ("wait", "sync")
    end = after.end if waits else after.start
    kind = arrow.kind if arrow.kind in ("launch", "event", "sync") else "event"
    key = kind != "launch"
    # a launch may be on its way while the host's part of the op still runs
    start = before.end if key else min(before.end, end)
    return Link(bars[before.number], bars[after.number], start, max(start, end), kind, key)


def _curves(timeline: Timeline) -> list[Curve]:
    points = sorted(timeline.memory, key=lambda point: (point.device, point.time))
    curves = []
    for device in sorted({point.device for point in points}):
        used = [(p.time, p.allocated) for p in points if p.device == device]
        held = [(p.time, p.reserved) for p in points if p.device == device]
        most, kept = max(n for _, n in used), max(n for _, n in held)
        label = f"cuda:{device} memory: at most {size(most)} in use"
        label += f", {size(kept)} reserved" if kept else ""
        curves.append(Curve(label, used, held if kept else []))
    return curves
