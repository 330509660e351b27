"""A small coordinate system on a picture: where a number lies, and lines through many of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from toytorch.viz.draw import palette
from toytorch.viz.draw.scene import Command, Path, Point, Rect, Shape, Text, When, remark


@dataclass(frozen=True, slots=True)
class Panel:
    """A rectangle of the picture that shows xs[0] to xs[1] across and ys[0] to ys[1] upward."""

    x: float
    y: float
    w: float
    h: float
    xs: tuple[float, float]
    ys: tuple[float, float]

    def at(self, x: float, y: float) -> Point:
        """Return where (x, y) is drawn; what lies outside is drawn on the edge.

        Example:
            >>> Panel(10, 10, 100, 50, (0, 1), (0, 1)).at(0.5, 2.0)
            (60.0, 10.0)
        """
        across = (_inside(x, self.xs) - self.xs[0]) / (self.xs[1] - self.xs[0])
        up = (_inside(y, self.ys) - self.ys[0]) / (self.ys[1] - self.ys[0])
        return self.x + across * self.w, self.y + (1 - up) * self.h

    def holds(self, x: float, y: float) -> bool:
        """Return whether (x, y) lies on the panel; what is no number does not."""
        return self.xs[0] <= x <= self.xs[1] and self.ys[0] <= y <= self.ys[1]

    def ground(self) -> Rect:
        """Return the panel's own paper."""
        return Rect(self.x, self.y, self.w, self.h, 4.0, palette.BOX, palette.BOX_LINE)

    def line(
        self,
        points: Sequence[Point],
        color: str,
        line: float = 1.6,
        when: When | None = None,
        dash: tuple[float, ...] = (),
    ) -> Path:
        """Return a line through points given as numbers."""
        first, *rest = [self.at(*p) for p in points]
        commands: tuple[Command, ...] = (("M", (first,)), *(("L", (p,)) for p in rest))
        return Path(commands, stroke=color, line=line, dash=dash, when=when)

    def dot(
        self, x: float, y: float, color: str, r: float = 4.0, when: When | None = None
    ) -> Shape:
        """Return a dot at (x, y)."""
        cx, cy = self.at(x, y)
        return Rect(cx - r, cy - r, 2 * r, 2 * r, r, color, palette.PAPER, 1.2, when=when)

    def below(self, x: float, text: str, anchor: str = "middle") -> Text:
        """Return a label under the panel at the number x."""
        return remark(self.at(x, self.ys[0])[0], self.y + self.h + 13, text, anchor)


def _inside(value: float, limits: tuple[float, float]) -> float:
    return min(max(value, limits[0]), limits[1]) if value == value else limits[1]
