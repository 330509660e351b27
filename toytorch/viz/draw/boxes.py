"""Cards, legends and arrows: the few compound figures the pictures are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from toytorch.viz.draw import palette
from toytorch.viz.draw.palette import Hue
from toytorch.viz.draw.scene import Command, Path, Point, Rect, Shape, Text, arrow_head, remark
from toytorch.viz.draw.text import clean, shorten, width

PAD = 12.0
_WIDEST = 230.0
_TITLE_HEIGHT, _LINE_HEIGHT, _ROW_HEIGHT = 19.0, 16.0, 17.0


@dataclass(frozen=True, slots=True)
class Row:
    """One line in the lower part of a box: a name on the left, what it holds on the right."""

    name: str
    value: str
    swatch: bool = False  # a small square before the name, for what occupies memory
    alarm: bool = False  # whether the value says that something is wrong


@dataclass(frozen=True, slots=True)
class Look:
    """The colours of a box."""

    fill: str
    stroke: str
    title: str = palette.INK
    text: str = palette.MUTED
    line: float = 1.2
    dash: tuple[float, ...] = ()
    hatch: str = ""


def tinted(hue: Hue, line: float = 1.2) -> Look:
    """Return the look of a box in one hue."""
    return Look(hue.tint, hue.line, line=line)


PLAIN = Look(palette.BOX, palette.BOX_LINE)
GHOST = Look(palette.PAPER, palette.EDGE, palette.MUTED, palette.MUTED, dash=(4.0, 3.0))
RESTING = Look(palette.REST, palette.FRAME, palette.MUTED, palette.MUTED)


@dataclass(slots=True)
class Box:
    """A box with a title, lines under it, and rows in a part of its own below those.

    `round` makes both ends semicircles where there are no rows: that is how leaves and results,
    which are tensors, differ in shape as well as colour from nodes, which are functions.
    """

    title: str
    lines: Sequence[str] = ()
    rows: Sequence[Row] = ()
    round: bool = False
    w: float = field(default=0.0)
    h: float = field(default=0.0)

    def __post_init__(self) -> None:
        self.title = clean(self.title)
        # a title in capitals may be wider than it looks: the box follows the measured width
        wide = [width(self._short(self.title, True), palette.TITLE_SIZE, bold=True)]
        wide += [width(self._short(line), palette.TEXT_SIZE) for line in self.lines]
        for row in self.rows:
            value = width(self._short(row.value), palette.SMALL_SIZE, bold=row.alarm)
            wide.append(width(self._short(row.name), palette.SMALL_SIZE) + value + 30.0)
        self.w = max(self.w, round(max(wide) + 2 * PAD + (8.0 if self.round else 0.0), 1), 84.0)
        self.h = self.head_height + (len(self.rows) * _ROW_HEIGHT + 8.0 if self.rows else 0.0)

    @property
    def head_height(self) -> float:
        """The height of the part above the rows."""
        return _TITLE_HEIGHT + len(self.lines) * _LINE_HEIGHT + 14.0

    @property
    def size(self) -> tuple[float, float]:
        """Width and height."""
        return self.w, self.h

    @staticmethod
    def _short(text: str, title: bool = False) -> str:
        size = palette.TITLE_SIZE if title else palette.TEXT_SIZE
        return shorten(clean(text), size, _WIDEST, bold=title)

    def draw(self, x: float, y: float, look: Look, row_hue: Hue = palette.SAVED) -> list[Shape]:
        """Return the box's shapes with its upper left corner at (x, y)."""
        radius = self.h / 2 if self.round and self.h < 60 else 16.0 if self.round else 7.0
        shapes: list[Shape] = [
            Rect(x, y, self.w, self.h, radius, look.fill, look.stroke, look.line, look.dash)
        ]
        middle = x + self.w / 2
        at = y + 7.0 + _TITLE_HEIGHT - 5.0
        short = self._short(self.title, True)
        tip = self.title if short != self.title else ""
        shapes.append(
            Text(middle, at, short, palette.TITLE_SIZE, look.title, "middle", True, tip=tip)
        )
        for line in self.lines:
            at += _LINE_HEIGHT
            text = self._short(line)
            shapes.append(Text(middle, at, text, palette.TEXT_SIZE, look.text, "middle"))
        if self.rows:
            shapes += self._draw_rows(x, y + self.head_height, row_hue)
        return shapes

    def _draw_rows(self, x: float, y: float, hue: Hue) -> list[Shape]:
        inside = Rect(x + 5, y, self.w - 10, len(self.rows) * _ROW_HEIGHT + 3, 4.0, hue.tint)
        shapes: list[Shape] = [inside]
        for number, row in enumerate(self.rows):
            base = y + number * _ROW_HEIGHT + 13.5
            left = x + PAD
            if row.swatch:
                shapes.append(Rect(left, base - 7.5, 7.0, 7.0, 1.5, hue.line))
            name, value = self._short(row.name), self._short(row.value)
            right = x + self.w - PAD
            small, ink = palette.SMALL_SIZE, palette.INK
            shapes.append(Text(left + 12, base, name, small, ink))
            tone = palette.ALARM if row.alarm else palette.MUTED
            shapes.append(Text(right, base, value, small, tone, "end", row.alarm))
        return shapes


def arrow(
    route: tuple[Command, ...],
    color: str = palette.EDGE,
    line: float = 1.4,
    dash: tuple[float, ...] = (),
    *,
    head: bool = True,
) -> list[Shape]:
    """Return a line along `route`, with a head at its end in the direction it comes in."""
    if not head:
        return [Path(route, stroke=color, line=line, dash=dash)]
    letter, last = route[-1]
    tip = last[-1]
    came = last[-2] if len(last) > 1 else route[-2][1][-1]
    way = (tip[0] - came[0], tip[1] - came[1])
    length = (way[0] ** 2 + way[1] ** 2) ** 0.5 or 1.0
    size = 6.0 + line
    # the line ends inside its head, not at the point
    back = (size - 1) / length
    stop: Point = (tip[0] - way[0] * back, tip[1] - way[1] * back)
    shaft = (*route[:-1], (letter, (*last[:-1], stop)))
    return [Path(shaft, stroke=color, line=line, dash=dash), arrow_head(tip, way, color, size)]


def legend(
    items: Sequence[tuple[str, Look, bool]], limit: float = 900.0
) -> tuple[list[Shape], float, float]:
    """Return labelled samples drawn at the origin, in lines no wider than `limit` if they can be,
    with their width and height.

    Each item is (label, look, whether the sample is round).
    """
    shapes: list[Shape] = []
    x = y = longest = 0.0
    for label, look, is_round in items:
        wide = 24 + width(label, palette.SMALL_SIZE)
        if x and x + wide > limit:
            x, y = 0.0, y + 21.0
        radius = 6.0 if is_round else 2.5
        sample = Rect(
            x, y, 18, 12, radius, look.fill, look.stroke, look.line, look.dash, hatch=look.hatch
        )
        shapes.append(sample)
        shapes.append(remark(x + 24, y + 10, label))
        longest = max(longest, x + wide)
        x += wide + 20
    return shapes, longest, y + 12.0


def moved(shapes: Sequence[Shape], dx: float, dy: float) -> list[Shape]:
    """Return the shapes shifted by (dx, dy)."""
    return [_moved(shape, dx, dy) for shape in shapes]


def _moved(shape: Shape, dx: float, dy: float) -> Shape:
    if isinstance(shape, Path):
        commands = tuple((c, tuple((x + dx, y + dy) for x, y in at)) for c, at in shape.commands)
        return replace(shape, commands=commands)
    return replace(shape, x=shape.x + dx, y=shape.y + dy)
