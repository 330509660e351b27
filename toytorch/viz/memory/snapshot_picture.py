"""A history of the allocator as frames: segments with their blocks, and memory in use over time.

Above, each segment is a row and its blocks stand at their addresses, as they are at one step. Below,
each allocation is a band from its beginning to its end, stacked; a line marks the step. Both give an
allocation the colour of the line of the program that asked for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from toytorch.viz.backward.steps_picture import MARGIN, Animation
from toytorch.viz.draw import palette
from toytorch.viz.draw.boxes import Look, legend, moved
from toytorch.viz.draw.frames import Frames
from toytorch.viz.draw.measures import size, size_ticks
from toytorch.viz.draw.palette import Hue
from toytorch.viz.draw.scene import Command, Path, Rect, Scene, Shape, Text, remark, segment, tile
from toytorch.viz.draw.text import clean, shorten, width
from toytorch.viz.memory.snapshot_read import History
from toytorch.viz.memory.snapshot_state import ALLOCATED, Segment, State
from toytorch.viz.memory.snapshot_words import caption

ROW, GAP, PLOT = 24.0, 7.0, 150.0
NARROW = 560.0  # below it, a segment's name stands above its row
LABELS = 134.0  # the room for names before the rows
MOST_SEGMENTS, MOST_BANDS = 24, 240
HUES = (palette.BLUE, palette.GREEN, palette.PURPLE, palette.AMBER, palette.SKY, palette.RED)
OTHERS = Hue(palette.EDGE, palette.REST)  # of the lines that have no colour of their own
FREE = Look(palette.PAPER, palette.FAINT, line=0.9, hatch=palette.FAINT)
WAITING = (3.0, 2.0)  # the dashes around a block that waits until it is free


def animation(history: History, steps: list[int], wide: float) -> Animation:
    """One frame for each step: the states after the events of these numbers; -1 is before all."""
    return _Drawing(history, steps, wide).animation()


class _Drawing:
    """The rows, the bands, and what is said of each step."""

    def __init__(self, history: History, steps: list[int], wide: float) -> None:
        self.history, self.steps, self.wide = history, steps, wide
        self.states = history.states(steps)
        self.above = wide < NARROW
        self.left = 0.0 if self.above else LABELS
        self.room = wide - 2 * MARGIN - self.left
        lines: dict[str, int] = {}
        for one in history.allocations:
            lines[one.where] = lines.get(one.where, 0) + one.size
        largest = sorted(lines, key=lambda line: -lines[line])[: len(HUES)]
        named = [line for line in lines if line in largest]  # in the order they come
        self.hues = {line: HUES[n] for n, line in enumerate(named)}
        self.others = len(lines) - len(named)
        self.scene = Scene(wide, 0.0, f"memory of device {history.device}", steps=len(steps))

    def animation(self) -> Animation:
        """All parts, and the captions."""
        y = self.segments(16.0)
        y = self.bands(y + 26) if len(self.steps) > 1 else y
        y = self.legend(y + 16)
        captions = [
            caption(self.history, a, b, state)
            for a, b, state in zip((-2, *self.steps), self.steps, self.states)
        ]
        self.scene.description = captions[-1]
        self.scene.shapes[:] = moved(self.scene.shapes, MARGIN, 12)
        self.scene.height = y + 24
        return Animation(self.scene, captions, len(self.steps))

    # segments ------------------------------------------------------------------------------------

    def segments(self, y: float) -> float:
        """A row for each segment of any step, the largest and busiest where there are many."""
        rows, left_out = self.rows()
        self.scene.add(Text(0, y - 4, "segments, with blocks at their addresses", bold=True))
        tall = ROW + (15.0 if self.above else 0.0) + GAP
        places = {one: y + 8 + n * tall for n, one in enumerate(rows)}
        longest = max((one.size for one in rows), default=1)
        frames = Frames()
        for number, state in enumerate(self.states):
            shown: dict[object, list[Shape]] = {}
            for one in rows:
                if state.segments.get(one.address) == one:
                    shown.update(self.row(one, state, places[one], longest))
            frames.frame(number, shown)
        self.scene.add(*frames.end(len(self.steps) - 1))
        y += 8 + len(rows) * tall
        if left_out:
            words = f"and {len(left_out)} more with {size(sum(one.size for one in left_out))}"
            self.scene.add(remark(self.left, y + 8, words))
            y += 18
        return y

    def rows(self) -> tuple[list[Segment], list[Segment]]:
        """The segments to show in order of pool and address, and those left out."""
        found: dict[Segment, int] = {}
        for state in self.states:
            for one in state.segments.values():
                found.setdefault(one, 0)
        starts = [event.address for event in self.history.events]
        for one in found:
            found[one] = sum(one.address <= at < one.end for at in starts)
        ranked = sorted(found, key=lambda one: (-found[one], -one.size, one.address))
        kept = sorted(ranked[:MOST_SEGMENTS], key=lambda one: (one.small, one.stream, one.address))
        return kept, ranked[MOST_SEGMENTS:]

    def row(self, one: Segment, state: State, y: float, longest: int) -> dict[object, list[Shape]]:
        """A segment's name, its blocks and its free parts."""
        # lengths grow with the root of the size, so that 2 MB are seen beside 2 GB
        long = max(0.16, (one.size / longest) ** 0.5) * self.room
        top = y + (15.0 if self.above else 0.0)
        said = f"{size(one.size)} {'small' if one.small else 'large'}, stream {one.stream}"
        at = (0.0, y + 10) if self.above else (0.0, top + 16)
        tip = f"segment of {size(one.size)} at address {one.address:#x}, pool of {said.split(' ', 2)[2]}"
        shown: dict[object, list[Shape]] = {
            (one,): [
                Text(*at, shorten(said, palette.SMALL_SIZE, LABELS - 10), palette.SMALL_SIZE,
                     palette.MUTED, tip=tip),
                Rect(self.left - 1.5, top - 1.5, long + 3, ROW + 3, 3, palette.BOX, palette.EDGE, 1.1),
            ]
        }  # fmt: skip
        scale = long / one.size

        def place(address: int, count: int) -> tuple[float, float, float, float]:
            return self.left + (address - one.address) * scale, top, max(count * scale, 0.7), ROW

        for address, count in state.free(one):
            tip = f"free: {size(count)} at address {address:#x}"
            box = Rect(*place(address, count), 0, FREE.fill, FREE.stroke, FREE.line,
                       tip=tip, hatch=FREE.hatch)  # fmt: skip
            shown[one, address, count, "free"] = [box]
        for block in state.inside(one):
            hue, tip = self.about(block.allocation)
            waiting = block.state != ALLOCATED
            if waiting:
                tip = f"waits until a stream has done with it: {tip}"
            x, top, w, h = place(block.address, block.size)
            shapes: list[Shape] = [
                tile(x, top, w, h, 0, hue, 0.9, WAITING if waiting else (), tip=tip)
            ]
            words = size(block.size)
            if width(words, palette.SMALL_SIZE) < w - 6:
                shapes.append(
                    Text(x + w / 2, top + 16, words, palette.SMALL_SIZE, anchor="middle", tip=tip)
                )
            shown[one, block] = shapes
        return shown

    def about(self, number: int) -> tuple[Hue, str]:
        """The colour of an allocation, and what it says under the mouse."""
        one = self.history.allocations[number]
        asked = f" (asked for {size(one.requested)})" if one.requested != one.size else ""
        born = "before the record" if one.born < 0 else f"event {one.born + 1}"
        died = "its end" if one.died is None else f"event {one.died + 1}"
        life = "" if not self.history.events else f"; lives from {born} to {died}"
        place = f"; {clean(one.where)}" if one.where else ""
        return self.hues.get(
            one.where, OTHERS
        ), f"{size(one.size)}{asked} at address {one.address:#x}{place}{life}"

    # memory over time ----------------------------------------------------------------------------

    def bands(self, y: float) -> float:
        """Each allocation as a band over the steps that it lives in; returns where the plot ends."""
        count = len(self.states)
        peak = max([1, *(s.active for s in self.states), *(s.reserved for s in self.states)])
        base, across = y + 10 + PLOT, self.room / count
        self.scene.add(Text(0, y, "memory in use, by allocation", bold=True))

        def up(value: int) -> float:
            return base - value / peak * PLOT

        left = self.left
        for value in size_ticks(peak, 4):
            self.scene.add(
                Path(
                    segment((left, up(value)), (left + self.room, up(value))), stroke=palette.FRAME
                )
            )
            label = size(value)
            if self.above:
                continue
            self.scene.add(remark(left - 8, up(value) + 4, label, "end"))
        self.scene.add(*self.stack(left, across, up))
        line = [(left, up(self.states[0].reserved))]
        for number, state in enumerate(self.states):
            line += [(left + number * across, up(state.reserved))]
            line += [(left + (number + 1) * across, up(state.reserved))]
        route: list[Command] = [("M", (line[0],)), *(("L", (p,)) for p in line[1:])]
        self.scene.add(Path(tuple(route), stroke=palette.EDGE, line=1.1, dash=(4.0, 3.0)))
        if self.above:  # over the bands, for there is no room before them
            for value in size_ticks(peak, 4)[1:]:
                words = size(value)
                wide = width(words, palette.SMALL_SIZE)
                self.scene.add(
                    Rect(1, up(value) - 7, wide + 4, 14, 3, palette.PAPER),
                    remark(3, up(value) + 4, words),
                )
        for number in range(count):
            x = left + (number + 0.5) * across
            self.scene.add(
                Path(segment((x, base - PLOT - 4), (x, base + 4)), stroke=palette.HOT.line,
                     line=1.6, when=(number, number))
            )  # fmt: skip
        words = f"steps 0 to {count - 1}"
        self.scene.add(remark(left, base + 16, words))
        return base + 18

    def stack(self, left: float, across: float, up: Callable[[int], float]) -> Iterable[Shape]:
        """The bands, older ones below; the smallest are one band where there are many."""
        sizes: dict[int, int] = {}
        for state in self.states:
            for block in state.blocks.values():
                sizes[block.allocation] = block.size
        own = set(sorted(sizes, key=lambda n: (-sizes[n], n))[:MOST_BANDS])
        edges: dict[int, list[tuple[int, int, int]]] = {}  # by band: (step, bottom, top)
        for number, state in enumerate(self.states):
            at = sum(b.size for b in state.blocks.values() if b.allocation not in own)
            if at:
                edges.setdefault(-1, []).append((number, 0, at))
            mine = (b for b in state.blocks.values() if b.allocation in own)
            for block in sorted(mine, key=lambda b: b.allocation):
                edges.setdefault(block.allocation, []).append((number, at, at + block.size))
                at += block.size
        shapes: list[Shape] = []
        line = 0.7 if len(edges) < 60 else 0.3  # of many bands the lines would be all there is
        for band, places in edges.items():
            hue, tip = OTHERS, f"{len(sizes) - len(own)} small allocations"
            if band >= 0:
                hue, tip = self.about(band)
            for run in _runs(places):
                shapes.append(replace(_band(run, left, across, up, hue, tip), line=line))
        return shapes

    def legend(self, y: float) -> float:
        """Which colour is which line of the program, as far as there are few."""
        items = [
            (shorten(clean(line) or "not in the record", palette.SMALL_SIZE, 230.0),
             Look(hue.tint, hue.line), False)
            for line, hue in self.hues.items()
        ]  # fmt: skip
        if self.others:
            more = f"{self.others} more line{'s' * (self.others != 1)}"
            items.append((more, Look(OTHERS.tint, OTHERS.line), False))
        items.append(("free", FREE, False))
        if any(b.state != ALLOCATED for s in self.states for b in s.blocks.values()):
            items.append(
                ("waits to be free", Look(palette.BOX, palette.MUTED, dash=WAITING), False)
            )
        if len(self.steps) > 1:
            items.append(("reserved", Look("none", palette.EDGE, dash=(4.0, 3.0)), False))
        shapes, _, tall = legend(items, self.wide - 2 * MARGIN)
        self.scene.add(*moved(shapes, 0, y))
        return y + tall


def _runs(places: list[tuple[int, int, int]]) -> Iterable[list[tuple[int, int, int]]]:
    """Parts of a band without a gap between their steps."""
    run: list[tuple[int, int, int]] = []
    for place in places:
        if run and place[0] != run[-1][0] + 1:
            yield run
            run = []
        run.append(place)
    if run:
        yield run


def _band(
    run: list[tuple[int, int, int]],
    left: float,
    across: float,
    up: Callable[[int], float],
    hue: Hue,
    tip: str,
) -> Path:
    """One band: along its upper edge and back along the lower one."""
    upper: list[tuple[float, float]] = []
    lower: list[tuple[float, float]] = []
    for at, (number, low, high) in enumerate(run):
        x = left + number * across
        if at == 0 or run[at - 1][1:] != (low, high):
            if at:
                upper.append((x, upper[-1][1]))
                lower.append((x, lower[-1][1]))
            upper.append((x, up(high)))
            lower.append((x, up(low)))
    end = left + (run[-1][0] + 1) * across
    points = [*upper, (end, upper[-1][1]), (end, lower[-1][1]), *reversed(lower)]
    route: list[Command] = [("M", (points[0],)), *(("L", (p,)) for p in points[1:]), ("Z", ())]
    return Path(tuple(route), hue.tint, hue.line, tip=tip)
