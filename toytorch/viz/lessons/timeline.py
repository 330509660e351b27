"""A picture of a profile: what ran when, and inside of what.

Time runs to the right. Each thread has its own band; in it, what was called hangs below what called
it. What is too short to be seen is drawn together, as a grey bar. Below, where memory was recorded,
is the curve of the bytes in use.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from toytorch.viz.draw import palette
from toytorch.viz.draw.picture import Picture
from toytorch.viz.draw.scene import Command, Path, Rect, Scene, Text, segment
from toytorch.viz.draw.text import shorten, width

MARGIN, LANE, BAR = 16.0, 20.0, 17.0
TOP = 64.0  # title, legend and time axis
MEMORY = 60.0  # the height of the curve
SHORTEST = 1.5  # narrower bars are drawn together

KINDS = {
    "op": palette.BLUE,
    "backward": palette.PURPLE,
    "module": palette.GREEN,
    "named part": palette.AMBER,
    "optimizer, data": palette.SKY,
}
SCOPES = {1: "backward", 7: "named part", 10: "module"}


def timeline(
    profile: Any,
    *,
    width: float = 960.0,
    title: str = "",
    start_us: float | None = None,
    end_us: float | None = None,
) -> Picture:
    """What a profiler recorded, as a picture: bars over time, in the order of calls.

    `profile` is a profiler or its `events()`; `start_us` and `end_us` choose a part of the time.
    Every bar says its name and times when the mouse rests on it. Raises ValueError if nothing was
    recorded in that time.

    >>> import toytorch as torch
    >>> with torch.profiler.profile() as prof:
    ...     y = torch.ones(3).exp().sum()
    >>> timeline(prof)
    timeline: 3 events in 1 thread
    """
    events = profile if isinstance(profile, list) else profile.events()
    shown = [
        e
        for e in events
        if e.name != "[memory]"
        and (start_us is None or e.time_range.end >= start_us)
        and (end_us is None or e.time_range.start <= end_us)
    ]
    if not shown:
        raise ValueError("there is nothing to draw: the profiler recorded no events in this time")
    first = min(e.time_range.start for e in shown) if start_us is None else start_us
    last = max(e.time_range.end for e in shown) if end_us is None else end_us
    return _Drawing(
        shown, getattr(events, "recorder", None), first, max(last, first + 1e-3), width
    ).picture(title)


class _Drawing:
    """The parts of one picture, over one scale of time."""

    def __init__(
        self, events: Sequence[Any], recorder: Any, first: float, last: float, width: float
    ) -> None:
        self.events, self.first, self.last, self.width = events, first, last, width
        self.scale = (width - 2 * MARGIN) / (last - first)
        ledger = None if recorder is None else recorder.ledger
        self.memory = (
            []
            if ledger is None
            else [
                ((change.time - recorder.began) / 1e3, total) for change, total in ledger.history()
            ]
        )

    def x(self, us: float) -> float:
        """Where a time is."""
        return MARGIN + (min(max(us, self.first), self.last) - self.first) * self.scale

    def picture(self, title: str) -> Picture:
        """All parts."""
        threads: dict[int, list[Any]] = {}
        for event in self.events:
            threads.setdefault(event.thread, []).append(event)
        scene = Scene(
            self.width,
            0.0,
            title or f"{time(self.last - self.first)} of work",
            "Bars over time; what was called hangs below what called it.",
        )
        y = TOP
        for number, events in sorted(threads.items()):
            if len(threads) > 1:
                scene.add(
                    Text(MARGIN, y + 11, f"thread {number}", palette.SMALL_SIZE, palette.MUTED)
                )
                y += LANE
            y = self.band(scene, events, y) + 8
        if self.memory:
            y = self.curve(scene, y + 4)
        scene.height = y + MARGIN
        self.axis(scene, y)
        self.heading(scene)
        scene.ground()
        count, bands = len(self.events), len(threads)
        return Picture(
            scene,
            f"timeline: {count} event{'s' * (count != 1)} in {bands} thread{'s' * (bands != 1)}",
        )

    def heading(self, scene: Scene) -> None:
        """The title, and what the colours say."""
        scene.add(Text(MARGIN, 24, scene.title, palette.TITLE_SIZE, bold=True))
        right = self.width - MARGIN
        used = {kind_of(e) for e in self.events}
        for name in reversed([k for k in KINDS if k in used]):
            wide = width(name, palette.SMALL_SIZE)
            scene.add(
                Text(right - wide, 24, name, palette.SMALL_SIZE, palette.MUTED),
                Rect(right - wide - 15, 15, 10, 10, 2, KINDS[name].tint, KINDS[name].line),
            )
            right -= wide + 30

    def axis(self, scene: Scene, bottom: float) -> None:
        """Round times, and faint lines down from them, behind everything."""
        step = round_step((self.last - self.first) / 8)
        lines: list[Any] = []
        at = 0.0
        while at <= self.last - self.first:
            x = self.x(self.first + at)
            lines += [
                Path(segment((x, TOP - 12), (x, bottom)), stroke=palette.FRAME),
                Text(
                    x,
                    TOP - 16,
                    time(at, step),
                    palette.SMALL_SIZE,
                    palette.MUTED,
                    "middle"
                    if MARGIN + 20 < x < self.width - MARGIN - 20
                    else "start"
                    if at == 0
                    else "end",
                ),
            ]
            at += step
        scene.shapes[:0] = lines

    def band(self, scene: Scene, events: Iterable[Any], top: float) -> float:
        """The bars of a thread; returns where they end."""
        depths: dict[int, int] = {}
        tiny: dict[int, list[float]] = {}  # by depth: start, end and number of those not yet drawn
        deepest = 0
        for event in sorted(events, key=lambda e: e.time_range.start):
            parent = event.cpu_parent
            depth = 0 if parent is None else depths.get(id(parent), -1) + 1
            depths[id(event)] = depth
            deepest = max(deepest, depth)
            left, right = self.x(event.time_range.start), self.x(event.time_range.end)
            waiting = tiny.get(depth)
            if right - left < SHORTEST:
                if waiting is not None and left - waiting[1] < SHORTEST:
                    waiting[1], waiting[2] = right, waiting[2] + 1
                    continue
                if waiting is not None:
                    together(scene, waiting, top + depth * LANE)
                tiny[depth] = [left, right, 1]
                continue
            if waiting is not None:
                together(scene, tiny.pop(depth), top + depth * LANE)
            bar(scene, event, left, right, top + depth * LANE)
        for depth, waiting in tiny.items():
            together(scene, waiting, top + depth * LANE)
        return top + (deepest + 1) * LANE

    def curve(self, scene: Scene, top: float) -> float:
        """Bytes in use over time, as steps."""
        peak = max(1, *(total for _, total in self.memory))
        low = min(0, *(total for _, total in self.memory))
        base = top + 16 + MEMORY

        def y(total: int) -> float:
            return float(base - (total - low) / (peak - low) * MEMORY)

        points = [(self.x(self.first), y(0))]
        for us, total in self.memory:
            points += [(self.x(us), points[-1][1]), (self.x(us), y(total))]
        points.append((self.x(self.last), points[-1][1]))
        line: list[Command] = [("M", (points[0],)), *(("L", (p,)) for p in points[1:])]
        area = [*line, ("L", ((points[-1][0], base),)), ("L", ((points[0][0], base),)), ("Z", ())]
        scene.add(
            Text(
                MARGIN,
                top + 10,
                f"memory of results: at most {size(peak)}",
                palette.SMALL_SIZE,
                palette.MUTED,
            ),
            Path(tuple(area), fill=palette.GREEN.tint),
            Path(tuple(line), stroke=palette.GREEN.line, line=1.3),
        )
        return base


def kind_of(event: Any) -> str:
    """What gives an event its colour."""
    if "#" in event.name and not event.name.startswith("ProfilerStep"):
        return "optimizer, data"
    return SCOPES.get(event.scope, "op")


def label(event: Any) -> str:
    """The name without what the colour says already."""
    name = event.trace_name.removeprefix("autograd::engine::evaluate_function: ")
    return str(
        name.removeprefix("aten::")
        .removeprefix("nn.Module: ")
        .removeprefix("torch::autograd::")
        .removeprefix("enumerate(DataLoader)#")
    )


def bar(scene: Scene, event: Any, left: float, right: float, y: float) -> None:
    """One event, with as much of its name as fits."""
    hue = KINDS[kind_of(event)]
    wide = right - left
    tip = (
        f"{event.trace_name}: {event.cpu_time_total_str}, of which "
        f"{event.self_cpu_time_total_str} itself"
    )
    scene.add(Rect(left, y, wide, BAR, min(3.0, wide / 3), hue.tint, hue.line, 0.8, tip=tip))
    text = shorten(label(event), palette.SMALL_SIZE, wide - 8)
    if wide > 40 or (wide > 20 and text == label(event)):
        scene.add(Text(left + 4, y + 12.5, text, palette.SMALL_SIZE, tip=tip))


def together(scene: Scene, span: list[float], y: float) -> None:
    """Events that are too short to be seen one by one."""
    left, right, count = span
    scene.add(
        Rect(
            left,
            y,
            max(right - left, 0.8),
            BAR,
            fill=palette.FAINT,
            tip=f"{count:.0f} short event{'s' * (count != 1)}",
        )
    )


def round_step(us: float) -> float:
    """The next of 1, 2, 5, 10, 20, 50, …"""
    size = 1e-3
    while True:
        for factor in (1, 2, 5):
            if factor * size >= us:
                return factor * size
        size *= 10


def time(us: float, step: float = 0.0) -> str:
    """A time, with as few digits as tell neighbours on an axis apart.

    >>> time(1500.0), time(20.0, 10.0), time(2000.0, 500.0)
    ('1.5 ms', '20 µs', '2 ms')
    """
    for unit, factor in (("s", 1e6), ("ms", 1e3), ("µs", 1.0)):
        if max(us, step) >= factor or unit == "µs":
            return f"{us / factor:.4g} {unit}"
    raise AssertionError("every time has a unit")


def size(count: int) -> str:
    """Bytes in a unit that suits them.

    >>> size(100), size(3 << 20)
    ('100 B', '3 MB')
    """
    for unit, factor in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if count >= factor:
            return f"{count / factor:.3g} {unit}"
    return f"{count} B"
