"""A picture as a list of shapes, drawn to SVG and to PNG by two small renderers.

A shape may carry `when`, the first and last step at which it is seen: that is how one scene holds
a whole animation. Coordinates are in CSS pixels, y grows downward.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from toytorch.viz.draw import palette

When = tuple[int, int]
Point = tuple[float, float]
Command = tuple[str, tuple[Point, ...]]  # ("M" | "L" | "C" | "Z", its points)


@dataclass(frozen=True, slots=True)
class Rect:
    """A rectangle with corners of radius `r`."""

    x: float
    y: float
    w: float
    h: float
    r: float = 0.0
    fill: str = "none"
    stroke: str = "none"
    line: float = 1.0
    dash: tuple[float, ...] = ()
    tip: str = ""
    when: When | None = None
    hatch: str = ""  # the colour of slanted lines over the fill


@dataclass(frozen=True, slots=True)
class Path:
    """Lines and cubic curves."""

    commands: tuple[Command, ...]
    fill: str = "none"
    stroke: str = "none"
    line: float = 1.0
    dash: tuple[float, ...] = ()
    when: When | None = None
    tip: str = ""


@dataclass(frozen=True, slots=True)
class Text:
    """One line of text; `y` is the baseline, `width` what it is measured to take."""

    x: float
    y: float
    text: str
    size: float = palette.TEXT_SIZE
    color: str = palette.INK
    anchor: str = "start"  # or "middle", "end"
    bold: bool = False
    tip: str = ""
    when: When | None = None


Shape = Rect | Path | Text


@dataclass(slots=True)
class Scene:
    """Shapes in drawing order, with the picture's size, its title and a description in words."""

    width: float
    height: float
    title: str
    description: str = ""
    shapes: list[Shape] = field(default_factory=list)
    steps: int = 0

    def add(self, *shapes: Shape) -> None:
        """Append shapes, over those already there."""
        self.shapes.extend(shapes)

    def ground(self) -> None:
        """Put the picture on its own paper, so that it reads on a light or a dark page."""
        paper = Rect(
            0.5, 0.5, self.width - 1, self.height - 1, 10, palette.PAPER, palette.FRAME, 1.0
        )
        self.shapes.insert(0, paper)

    def at(self, step: int | None) -> Iterator[Shape]:
        """Yield the shapes seen at `step`; None means the last one."""
        last = max(self.steps - 1, 0) if step is None else step
        for shape in self.shapes:
            if shape.when is None or shape.when[0] <= last <= shape.when[1]:
                yield shape


def heading(x: float, y: float, text: str) -> Text:
    """Return the title of a picture or of a part of it."""
    return Text(x, y, text, palette.TITLE_SIZE, bold=True)


def remark(x: float, y: float, text: str, anchor: str = "start", when: When | None = None) -> Text:
    """Return a small grey text: a name on an axis, what a part of the picture is."""
    return Text(x, y, text, palette.SMALL_SIZE, palette.MUTED, anchor, when=when)


def tile(
    x: float,
    y: float,
    w: float,
    h: float,
    r: float,
    hue: palette.Hue,
    line: float = 1.0,
    dash: tuple[float, ...] = (),
    tip: str = "",
    when: When | None = None,
) -> Rect:
    """Return a rectangle in the two strengths of a hue."""
    return Rect(x, y, w, h, r, hue.tint, hue.line, line, dash, tip, when)


def during(shapes: list[Shape], when: When | None) -> list[Shape]:
    """Return the shapes, each seen from `when[0]` to `when[1]` only."""
    return shapes if when is None else [replace(shape, when=when) for shape in shapes]


def arrow_head(tip: Point, toward: Point, color: str, size: float = 7.0) -> Path:
    """Return a filled head whose point is `tip`, for a line that comes in along `toward`.

    `toward` is the direction of travel and need not be of unit length.
    """
    length = (toward[0] ** 2 + toward[1] ** 2) ** 0.5 or 1.0
    ux, uy = toward[0] / length, toward[1] / length
    back = (tip[0] - ux * size, tip[1] - uy * size)
    half = size * 0.42
    left = (back[0] - uy * half, back[1] + ux * half)
    right = (back[0] + uy * half, back[1] - ux * half)
    return Path((("M", (tip,)), ("L", (left,)), ("L", (right,)), ("Z", ())), fill=color)


def segment(start: Point, end: Point) -> tuple[Command, ...]:
    """Return the commands of a straight line."""
    return (("M", (start,)), ("L", (end,)))


def hatching(box: Rect, gap: float = 6.0) -> Path:
    """Return the slanted lines over a box that has a `hatch`.

    They lie on one pattern for the whole picture, so that those of neighbours go on in each other.
    """
    commands: list[Command] = []
    right, bottom = box.x + box.w, box.y + box.h
    place = math.ceil((box.x + box.y) / gap) * gap  # the sum of x and y along a line
    while place < right + bottom:
        left, to = max(box.x, place - bottom), min(right, place - box.y)
        if to - left > 0.1:
            commands += segment((left, place - left), (to, place - to))
        place += gap
    return Path(tuple(commands), stroke=box.hatch, line=0.9, when=box.when)
