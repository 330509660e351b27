"""Level lines of a function on a grid, by marching squares."""

from __future__ import annotations

from collections.abc import Sequence

from toytorch.viz.draw.scene import Point

# a cell's corners: 0 lower left, 1 lower right, 2 upper right, 3 upper left; its sides by corners
_SIDES = ((0, 1), (1, 2), (2, 3), (3, 0))


def level_lines(
    xs: Sequence[float], ys: Sequence[float], values: Sequence[Sequence[float]], level: float
) -> list[tuple[Point, Point]]:
    """Return the pieces of the line on which `values[row][column]` is `level`.

    Example:
        >>> level_lines([0, 1], [0, 1], [[0, 2], [0, 2]], 1)
        [((0.5, 0.0), (0.5, 1.0))]
    """
    pieces = []
    for row in range(len(ys) - 1):
        for column in range(len(xs) - 1):
            places = ((row, column), (row, column + 1), (row + 1, column + 1), (row + 1, column))
            corners = [(float(xs[c]), float(ys[r]), values[r][c] - level) for r, c in places]
            cut = [
                _between(corners[a], corners[b])
                for a, b in _SIDES
                if (corners[a][2] > 0) != (corners[b][2] > 0)
            ]
            pieces += list(zip(cut[::2], cut[1::2]))  # two crossings, or four at a saddle
    return pieces


def _between(a: tuple[float, float, float], b: tuple[float, float, float]) -> Point:
    share = a[2] / (a[2] - b[2])
    return a[0] + share * (b[0] - a[0]), a[1] + share * (b[1] - a[1])
