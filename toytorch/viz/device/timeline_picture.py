"""A chart as a still picture: rows of bars over one axis of time, arrows, curves of memory.

What is too short to be seen is drawn together, in the colour of what took most of the time, so that
a picture of many spans has no more shapes than it has room for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from toytorch.viz.device.chart import (
    LINKS,
    MANY_LAUNCHES,
    MANY_LINKS,
    MERGED,
    Bar,
    Chart,
    Curve,
    Link,
    level,
    merged_colour,
)
from toytorch.viz.draw import palette
from toytorch.viz.draw.boxes import legend, moved
from toytorch.viz.draw.measures import ticks
from toytorch.viz.draw.scene import Command, Path, Point, Rect, Scene, Shape, Text, remark, segment
from toytorch.viz.draw.text import shorten, width

MARGIN, LANE, BAR, GAP = 16.0, 20.0, 17.0, 6.0
MEMORY = 60.0  # the height of a curve
SHORTEST = 1.5  # narrower bars are drawn together
NARROW = 560.0  # below it, a row's name stands above the row rather than before it
WIDEST_NAME = 150.0


def picture(chart: Chart, wide: float) -> Scene:
    """The scene of a chart, `wide` units across; raises ValueError where that is under 240."""
    if wide < 240:
        raise ValueError(f"a timeline is at least 240 wide, not {wide:g}")
    return _Drawing(chart, wide).scene()


class _Drawing:
    """The parts of one picture, over one scale of time."""

    def __init__(self, chart: Chart, wide: float) -> None:
        self.chart, self.wide = chart, wide
        names = [width(row.name, palette.SMALL_SIZE) for row in chart.rows]
        self.above = wide < NARROW  # where the names stand
        self.left = MARGIN
        if not self.above and max(names) > 0:
            self.left += min(max(names), WIDEST_NAME) + 10
        self.right = wide - MARGIN
        self.scale = (self.right - self.left) / (chart.last - chart.first)
        self.middles: dict[int, float] = {}  # of the lane of each bar, by identity
        self.shapes: list[Shape] = []
        self.words: list[Shape] = []  # names, over arrows and lines

    def x(self, us: float) -> float:
        """Where a time is."""
        shown = min(max(us, self.chart.first), self.chart.last)
        return self.left + (shown - self.chart.first) * self.scale

    def scene(self) -> Scene:
        """All parts."""
        scene = Scene(
            self.wide,
            0.0,
            self.chart.title,
            "Bars over time, a row for each thread, stream or copy engine.",
        )
        head, top = self.heading()
        y = top + 26
        group = None
        for row in self.chart.rows:
            if group not in (None, row.group):
                self.shapes.append(
                    Path(segment((MARGIN, y), (self.right, y)), stroke=palette.FAINT)
                )
                y += GAP
            group = row.group
            y = self.row_name(row.name, y)
            for lane in row.lanes:
                self.lane(lane, y)
                y += LANE
            y += GAP
        self.links()
        for curve in self.chart.curves:
            y = self.curve(curve, y + 4) + GAP
        scene.height = y + MARGIN - GAP
        scene.add(*self.axis(top, y - GAP), *self.shapes, *self.words, *head)
        scene.ground()
        return scene

    def heading(self) -> tuple[list[Shape], float]:
        """The title, and what the colours say: beside the title where there is room, or below."""
        room = self.wide - 2 * MARGIN
        title = shorten(self.chart.title, palette.TITLE_SIZE, room, bold=True)
        samples = [(kind, self.chart.looks[kind], False) for kind in self.chart.kinds]
        shapes, across, tall = legend(samples, room)
        tip = self.chart.title if title != self.chart.title else ""
        words = Text(MARGIN, 25, title, palette.TITLE_SIZE, bold=True, tip=tip)
        if tall < 20 and width(title, palette.TITLE_SIZE, bold=True) + 30 + across < room:
            return [words, *moved(shapes, self.right - across, 15)], 34.0
        return [words, *moved(shapes, MARGIN, 37)], 40.0 + tall

    def axis(self, top: float, bottom: float) -> list[Shape]:
        """Round times, and faint lines down from them, behind everything."""
        chart, shapes = self.chart, list[Shape]()
        count = int((self.right - self.left) / 85)
        for at, label in ticks(chart.first - chart.origin, chart.last - chart.origin, count):
            x, wide = self.x(at + chart.origin), width(label, palette.SMALL_SIZE)
            start = min(max(x - wide / 2, MARGIN), self.right - wide)
            shapes += [
                Path(segment((x, top + 18), (x, bottom)), stroke=palette.FRAME),
                remark(start, top + 14, label),
            ]
        return shapes

    def row_name(self, name: str, y: float) -> float:
        """A row's name before its first lane or above it; returns where that lane begins."""
        if not name:
            return y
        self.say(name, y + (11 if self.above else 13), WIDEST_NAME)
        return y + 16 if self.above else y

    def say(self, name: str, y: float, room: float) -> None:
        """A name at the left edge, on paper of its own where arrows and lines pass below it."""
        short = shorten(name, palette.SMALL_SIZE, self.wide - 2 * MARGIN if self.above else room)
        tip, wide = name if short != name else "", width(short, palette.SMALL_SIZE)
        if self.above or wide > self.left - MARGIN:
            self.words.append(Rect(MARGIN - 2, y - 10, wide + 4, 13, 2, palette.PAPER))
        self.words.append(Text(MARGIN, y, short, palette.SMALL_SIZE, palette.MUTED, tip=tip))

    # bars ----------------------------------------------------------------------------------------

    def lane(self, bars: Sequence[Bar], y: float) -> None:
        """Bars that follow each other."""
        tiny: list[Bar] = []
        for bar in bars:
            self.middles[id(bar)] = y + BAR / 2
            left, right = self.x(bar.start), self.x(bar.end)
            if right - left < SHORTEST:
                apart = tiny and left - self.x(tiny[-1].end) >= SHORTEST
                if apart or (tiny and right - self.x(tiny[0].start) > MERGED):
                    self.together(tiny, y)
                    tiny = []
                tiny.append(bar)
                continue
            self.together(tiny, y)
            tiny = []
            self.bar(bar, left, right, y)
        self.together(tiny, y)

    def bar(self, bar: Bar, left: float, right: float, y: float) -> None:
        """One bar, with as much of its name as fits."""
        look, wide = self.chart.looks[bar.kind], right - left
        tip = bar.tip(self.chart.origin)
        self.shapes.append(
            Rect(
                left, y, wide, BAR, min(3.0, wide / 3), look.fill, look.stroke, look.line,
                tip=tip, hatch=look.hatch,
            )
        )  # fmt: skip
        if look.hatch:
            return  # letters on lines are hard to read; the tip has them
        text = shorten(bar.label, palette.SMALL_SIZE, wide - 8)
        if wide > 40 or (wide > 16 and text == bar.label):
            self.shapes.append(Text(left + 4, y + 12.5, text, palette.SMALL_SIZE, tip=tip))

    def together(self, bars: Sequence[Bar], y: float) -> None:
        """Bars that are too short to be seen one by one; a single one keeps its tip."""
        if not bars:
            return
        left, right = self.x(bars[0].start), self.x(bars[-1].end)
        tip = bars[0].tip(self.chart.origin)
        most: dict[str, float] = {}
        for bar in bars:
            most[bar.kind] = most.get(bar.kind, 0.0) + bar.end - bar.start
        kind = max(most, key=most.__getitem__)
        if len(bars) > 1:
            tip = f"{len(bars)} short bars, most of the time {kind}"
        fill = merged_colour(self.chart.looks[kind])
        self.shapes.append(Rect(left, y, max(right - left, 0.8), BAR, fill=fill, tip=tip))

    # arrows --------------------------------------------------------------------------------------

    def links(self) -> None:
        """The arrows over the bars, launches and others each where they are few enough."""
        found = [link for link in self.chart.links if id(link.before) in self.middles]
        for key, most in ((False, MANY_LAUNCHES), (True, MANY_LINKS)):
            drawn: dict[tuple[int, ...], list[Shape]] = {}
            for link in (link for link in found if link.key == key):
                start = (self.x(link.start), self.middles[id(link.before)])
                end = (self.x(link.end), self.middles[id(link.after)])
                # several that lie on one pixel are one arrow
                place = tuple(round(value / 2) for value in (*start, *end))
                if place not in drawn and start != end:
                    drawn[place] = _arrow(link, start, end) if len(drawn) <= most else []
            if len(drawn) <= most:
                self.shapes += [shape for shapes in drawn.values() for shape in shapes]

    # memory --------------------------------------------------------------------------------------

    def curve(self, curve: Curve, top: float) -> float:
        """Bytes in use over time, as steps; returns where the curve ends."""
        shown = [value for _, value in (*curve.points, *curve.limit)]
        peak, low, base = max(1, *shown, 1), min(0, *shown, 0), top + 18 + MEMORY
        self.say(curve.label, top + 10, self.wide - 2 * MARGIN)

        def y(value: int) -> float:
            return float(base - (value - low) / (peak - low) * MEMORY)

        line = self.steps(curve.points, y)
        ends = line[-1][1][0][0], line[0][1][0][0]
        area = [*line, *(("L", ((x, base),)) for x in ends), ("Z", ())]
        self.shapes += [
            Path(tuple(area), fill=palette.GREEN.tint),
            Path(tuple(line), stroke=palette.GREEN.line, line=1.3),
        ]
        if curve.limit:
            edge = tuple(self.steps(curve.limit, y, highest=True))
            self.shapes.append(Path(edge, stroke=palette.EDGE, line=1.1, dash=(4.0, 3.0)))
        return base

    def steps(
        self, points: Sequence[tuple[float, int]], y: Callable[[int], float], highest: bool = False
    ) -> list[Command]:
        """A line of steps; where many fall on one place, their least, greatest and last.

        With `highest` it is their greatest alone, for a dashed line that goes up and down in one
        place could not be read.
        """
        chart = self.chart
        at: list[Point] = [(self.left, y(level(points, chart.first)))]
        inside = [point for point in points if chart.first <= point[0] <= chart.last]
        number, apart = 0, 3.0 if highest else 0.5
        while number < len(inside):
            x, values = self.x(inside[number][0]), [inside[number][1]]
            number += 1
            while number < len(inside) and self.x(inside[number][0]) - x < apart:
                values.append(inside[number][1])
                number += 1
            at.append((x, at[-1][1]))
            if values[2:]:
                values = [max(values)] if highest else [min(values), max(values), values[-1]]
            for value in values:
                at.append((x, y(value)))
        at.append((self.right, at[-1][1]))
        return [("M", (at[0],)), *(("L", (point,)) for point in at[1:])]


def _arrow(link: Link, start: Point, end: Point) -> list[Shape]:
    """A line that leaves a row upright and comes in upright, with a small head."""
    color, down = LINKS[link.kind], 1 if end[1] > start[1] else -1
    out = (start[0], start[1] + down * BAR / 2)
    into = (end[0], end[1] - down * BAR / 2)
    if start[1] == end[1]:
        out, into, down = start, end, 0
    bend = (into[1] - out[1]) / 2
    stop = (into[0], into[1] - down * 4)
    route: tuple[Command, ...] = (
        ("M", (out,)),
        ("C", ((out[0], out[1] + bend), (stop[0], stop[1] - bend), stop)),
    )
    head = ((into[0] - 3, into[1] - down * 5.5), (into[0] + 3, into[1] - down * 5.5))
    if not down:
        head = ((into[0] - 5.5, into[1] - 3), (into[0] - 5.5, into[1] + 3))
    point: tuple[Command, ...] = (("M", (into,)), *(("L", (p,)) for p in head), ("Z", ()))
    return [Path(route, stroke=color, line=1.0), Path(point, fill=color)]
