"""Calls that begin and end inside of each other, and whose time it is, step by step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from toytorch.viz.backward.steps_page import BackwardSteps
from toytorch.viz.backward.steps_picture import MARGIN, Animation
from toytorch.viz.device.trace_read import Event, events_of
from toytorch.viz.draw import palette
from toytorch.viz.draw.frames import Frames
from toytorch.viz.draw.measures import time
from toytorch.viz.draw.scene import Rect, Scene, Shape, Text, tile
from toytorch.viz.draw.text import shorten, width

WIDE, ROW, GAP, BAR = 380.0, 26.0, 36.0, 150.0
HUES = (palette.BLUE, palette.AMBER, palette.GREEN, palette.PURPLE, palette.RED, palette.SKY)


class SpanSteps(BackwardSteps):
    """Calls inside of each other, to step through."""


@dataclass(slots=True)
class Moment:
    """What is known when a call has begun or ended."""

    now: float
    open: tuple[int, ...]  # positions of events, the innermost last
    own: dict[str, float] = field(default_factory=dict)
    caption: str = ""


def span_steps(trace: Mapping[str, Any]) -> SpanSteps:
    """A page that steps through a trace: each step is the beginning or the end of a call.

    On the left are the calls over time, what is called below its caller; on the right the own time
    of each name so far. Between two steps the time belongs to the innermost open call. `trace` is
    a dictionary in the Trace Event Format, with complete events (`"ph": "X"`) of one thread.
    Raises ValueError if there are none.

    >>> a, b = {"name": "a", "ts": 0, "dur": 10}, {"name": "b", "ts": 2, "dur": 3}
    >>> steps = span_steps({"traceEvents": [{**a, "ph": "X"}, {**b, "ph": "X"}]})
    >>> steps
    <span steps: 2 calls, 4 steps>
    >>> print(steps.captions[2])
    b ends. The last 3 µs were its own. a goes on.
    """
    events = events_of(trace)
    moments = _moments(events)
    scene = _scene(events, moments)
    captions = [moment.caption for moment in moments]
    scene.description = captions[-1]
    count = len(events)
    summary = f"<span steps: {count} call{'s' * (count != 1)}, {len(moments)} steps>"
    return SpanSteps(Animation(scene, captions, len(moments)), summary)


def _moments(events: list[Event]) -> list[Moment]:
    """Beginnings and ends in order; of those at one time, a call ends before the next begins."""
    changes = []
    for number, event in enumerate(events):
        changes.append((event.start, 1, event.depth, number))
        late = 0 if event.end > event.start else 2  # a call of no time begins before it ends
        changes.append((event.end, late, -event.depth, number))
    moments: list[Moment] = []
    own: dict[str, float] = dict.fromkeys((event.name for event in events), 0.0)
    stack: list[int] = []
    before = changes[0][0]
    for now, kind, _, number in sorted(changes):
        name, passed = events[number].name, now - before
        inner = events[stack[-1]].name if stack else ""
        if inner:
            own[inner] += passed
        whose = f" The last {time(passed)} were " if stack and passed > 0 else ""
        if kind == 1:
            inside = f" inside of {inner}" if inner else ""
            said = f"{name} begins{inside}.{whose}" + (f"{inner}'s own." if whose else "")
            stack.append(number)
        else:
            stack.remove(number)
            said = f"{name} ends.{whose}{'its own.' if whose else ''}"
            said += f" {events[stack[-1]].name} goes on." if stack else ""
        moments.append(Moment(now, tuple(stack), dict(own), said))
        before = now
    return moments


def _scene(events: list[Event], moments: list[Moment]) -> Scene:
    first, last = min(e.start for e in events), max(e.end for e in events)
    scale = WIDE / max(last - first, 1e-9)
    depth = 1 + max(event.depth for event in events)
    names = list(moments[0].own)
    hues = {name: HUES[n % len(HUES)] for n, name in enumerate(names)}
    labels = max(width(name, palette.TEXT_SIZE) for name in names)
    right = MARGIN + WIDE + GAP
    top = MARGIN + 24
    scene = Scene(
        right + min(labels, 170) + 12 + BAR + 62 + MARGIN,
        top + ROW * max(depth, len(names)) + MARGIN,
        "calls, and whose time it is",
        steps=len(moments),
    )
    scene.add(
        Text(MARGIN, MARGIN + 8, "calls over time", palette.TEXT_SIZE, bold=True),
        Text(right, MARGIN + 8, "own time so far", palette.TEXT_SIZE, bold=True),
    )
    most = max(moments[-1].own.values()) or 1.0
    frames = Frames()
    for frame, moment in enumerate(moments):
        shown: dict[object, list[Shape]] = {}
        for number, event in enumerate(events):
            x = MARGIN + (event.start - first) * scale
            if event.start > moment.now or (
                event.start == moment.now
                and not any(number in moment.open for moment in moments[: frame + 1])
            ):
                continue
            end = moment.now if number in moment.open else event.end
            inner = bool(moment.open) and number == moment.open[-1]
            wide = max((end - event.start) * scale, 2.0)
            y = top + event.depth * ROW
            shown["call", number, end, inner] = _call(
                event.name, (x, y, wide), hues[event.name], inner
            )
        x = MARGIN + (moment.now - first) * scale
        shown["now", frame] = [Rect(x - 0.6, top - 6, 1.2, ROW * depth + 8, fill=palette.INK)]
        for place, name in enumerate(names):
            y = top + place * ROW
            value = moment.own[name]
            label = shorten(name, palette.TEXT_SIZE, 170)
            left = right + min(labels, 170) + 12
            shown["own", name, value] = [
                Text(right, y + 15, label, palette.TEXT_SIZE),
                tile(left, y + 4, max(BAR * value / most, 1.0), 14, 3, hues[name]),
                Text(
                    left + max(BAR * value / most, 1.0) + 6, y + 15, time(value), palette.SMALL_SIZE
                ),
            ]
        frames.frame(frame, shown)
    scene.add(*frames.end(len(moments) - 1))
    return scene


def _call(name: str, box: tuple[float, float, float], hue: palette.Hue, inner: bool) -> list[Shape]:
    x, y, wide = box
    line = 2.2 if inner else 1.0
    shapes: list[Shape] = [tile(x, y, wide, ROW - 5, 3, hue, line, tip=name)]
    if wide > 22:
        label = shorten(name, palette.SMALL_SIZE, wide - 8)
        shapes.append(Text(x + 5, y + 15, label, palette.SMALL_SIZE))
    return shapes
