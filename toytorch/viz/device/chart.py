"""What a timeline shows, whoever recorded it: rows of bars, arrows between them, curves below.

Times are microseconds. Readers make a chart (`timeline_read`, `profile_read`), and two printers
draw it: `timeline_picture` as a scene, `timeline_page` as a page with zoom.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from toytorch.viz.draw import palette
from toytorch.viz.draw.boxes import Look
from toytorch.viz.draw.measures import clock, time
from toytorch.viz.draw.palette import Hue


@dataclass(slots=True)
class Bar:
    """Something that took its time; `label` is its name as far as it says more than its colour."""

    start: float
    end: float
    kind: str
    name: str
    label: str
    facts: tuple[str, ...] = ()  # what is known of it besides its times

    def tip(self, origin: float) -> str:
        """What a bar says when the mouse rests on it."""
        return f"{self.name}: " + "; ".join((self.times(origin), *self.facts))

    def times(self, origin: float) -> str:
        """How long it took and when it began."""
        return f"{time(self.end - self.start)} from {clock(self.start - origin)}"


@dataclass(slots=True)
class Row:
    """A thread, a stream or a copy engine. The bars of a lane are in order and do not overlap."""

    name: str
    lanes: list[list[Bar]]
    group: str = ""  # rows of one device belong together


@dataclass(slots=True)
class Link:
    """An arrow. Launches are no key ones: they are drawn only where they are few."""

    before: Bar
    after: Bar
    start: float
    end: float
    kind: str
    key: bool


@dataclass(slots=True)
class Curve:
    """Bytes over time, as steps; `limit` is a second, higher line."""

    label: str
    points: list[tuple[float, int]]
    limit: list[tuple[float, int]] = field(default_factory=list)


@dataclass(slots=True)
class Chart:
    """All of it, with the time that is shown. Times are told from `origin` on."""

    title: str
    summary: str
    first: float
    last: float
    origin: float
    rows: list[Row]
    looks: dict[str, Look]  # by kind, in the order of the legend
    links: list[Link] = field(default_factory=list)
    curves: list[Curve] = field(default_factory=list)

    @property
    def kinds(self) -> list[str]:
        """The kinds of bars that occur, in the order of the legend."""
        used = {bar.kind for row in self.rows for lane in row.lanes for bar in lane}
        return [kind for kind in self.looks if kind in used]


LINKS = {"event": palette.RED.line, "sync": palette.PURPLE.line, "launch": palette.FAINT}
MANY_LAUNCHES = 40  # where more are in view, those of the bar under the mouse are drawn
MANY_LINKS = 300  # the same for all others: more would hide the bars
MERGED = 3.0  # the width of what is drawn together, in pixels


def merged_colour(look: Look) -> str:
    """The colour of short bars drawn together: a bar's, without a line around it."""
    return palette.between(look.fill, look.stroke)


def bar_look(hue: Hue) -> Look:
    """The look of bars in one hue."""
    return Look(hue.tint, hue.line, line=0.8)


def within(
    items: Iterable[Any],
    start_us: float | None,
    end_us: float | None,
    nothing: str,
    times: Callable[[Any], Any] = lambda item: item,
) -> tuple[list[Any], float, float]:
    """What lies in a part of the time, and where it starts and ends; ValueError if nothing does."""
    shown = [
        item
        for item in items
        if (start_us is None or times(item).end >= start_us)
        and (end_us is None or times(item).start <= end_us)
    ]
    if not shown:
        raise ValueError(f"there is nothing to draw: {nothing}")
    first = min(times(item).start for item in shown) if start_us is None else start_us
    last = max(times(item).end for item in shown) if end_us is None else end_us
    return shown, first, last


def in_lanes(bars: Sequence[Bar]) -> list[list[Bar]]:
    """Bars in as few lanes as keep them apart; what lies inside another is below it.

    >>> a, b = Bar(0, 9, "", "a", "a"), Bar(2, 3, "", "b", "b")
    >>> [[bar.name for bar in lane] for lane in in_lanes([b, a])]
    [['a'], ['b']]
    """
    lanes: list[list[Bar]] = []
    for bar in sorted(bars, key=lambda bar: (bar.start, -bar.end)):
        for lane in lanes:
            if lane[-1].end <= bar.start:
                lane.append(bar)
                break
        else:
            lanes.append([bar])
    return lanes or [[]]


def level(points: Sequence[tuple[float, int]], at: float) -> int:
    """The value of a curve of steps at a time; 0 before its first point."""
    number = bisect_right(points, at, key=lambda point: point[0])
    return points[number - 1][1] if number else 0
