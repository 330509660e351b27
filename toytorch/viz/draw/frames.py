"""Shapes of an animation, made frame by frame and kept as few as there is change."""

from __future__ import annotations

from dataclasses import replace

from toytorch.viz.draw.scene import Shape


class Frames:
    """Shapes by what they show: one that goes on through several frames is one shape."""

    def __init__(self) -> None:
        self.shapes: list[tuple[int, Shape]] = []  # with the order in which they came
        self.came = 0
        self._now: dict[object, tuple[int, int, list[Shape]]] = {}  # order, first frame, shapes

    def frame(self, number: int, shown: dict[object, list[Shape]]) -> None:
        """The shapes of a frame, by a key that says all there is to see."""
        for key in [key for key in self._now if key not in shown]:
            self._end(key, number - 1)
        for key, shapes in shown.items():
            if key not in self._now:
                self._now[key] = (self.came, number, shapes)
                self.came += 1

    def end(self, last: int) -> list[Shape]:
        """All shapes, each with the frames it is seen in; those that came later lie above."""
        for key in list(self._now):
            self._end(key, last)
        return [shape for _, shape in sorted(self.shapes, key=lambda pair: pair[0])]

    def _end(self, key: object, last: int) -> None:
        order, since, shapes = self._now.pop(key)
        self.shapes += [(order, replace(shape, when=(since, last))) for shape in shapes]
