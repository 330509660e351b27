"""A small layered layout: boxes in rows, arrows from upper rows to lower ones.

Rows come from the longest path; order and positions within them from `grid`; then each edge is
routed through the free bands between rows. Everything is iterative, and nothing is left to chance.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from toytorch.viz.draw.grid import Grid
from toytorch.viz.draw.scene import Command, Point

_PORT = 16.0  # the distance between arrows that end on the same side of a box
_SNAP = 8.0
_LEAD = 9.0  # an arrow comes straight in over the length of its head


@dataclass(slots=True)
class Layout:
    """Where each box stands (x, y of its upper left corner) and how each edge runs."""

    width: float
    height: float
    corners: list[Point]
    routes: list[tuple[Command, ...]]
    rows: list[int] = field(default_factory=list)


def layered(
    sizes: Sequence[tuple[float, float]],
    edges: Sequence[tuple[int, int]],
    *,
    gap_x: float = 26.0,
    gap_y: float = 40.0,
) -> Layout:
    """Lay out boxes of the given (width, height) so that every edge (upper, lower) goes down.

    Boxes never overlap. An edge's route starts on the lower side of its upper box and ends on the
    upper side of its lower one. Raises ValueError if the edges form a cycle.
    """
    if not sizes:
        return Layout(0.0, 0.0, [], [])
    row_of = _rows(len(sizes), edges)
    grid = Grid(sizes, edges, row_of, gap_x)
    grid.order()
    grid.place()
    return _routed(grid, edges, gap_y)


def _rows(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """Return each box's row: one below the lowest box that points to it."""
    below: list[list[int]] = [[] for _ in range(count)]
    waiting = [0] * count
    for upper, lower in edges:
        below[upper].append(lower)
        waiting[lower] += 1
    row = [0] * count
    sources = [box for box in range(count) if not waiting[box]]
    ready = list(sources)
    done = 0
    while done < len(ready):
        box = ready[done]
        done += 1
        for lower in below[box]:
            row[lower] = max(row[lower], row[box] + 1)
            waiting[lower] -= 1
            if not waiting[lower]:
                ready.append(lower)
    if done < count:
        raise ValueError("cannot lay out a graph with a cycle: some edge leads back to its start")
    for box in sources:  # a result taken from deep inside stands just above what made it
        if below[box]:
            row[box] = min(row[lower] for lower in below[box]) - 1
    return row


def _routed(grid: Grid, edges: Sequence[tuple[int, int]], gap_y: float) -> Layout:
    heights = [max(grid.sizes[item][1] for item in row) for row in grid.rows]
    tops = [0.0]
    for r, row in enumerate(grid.rows[:-1]):
        # an arrow that travels far sideways needs height, or it would lie flat on the next row
        reach = max((abs(grid.x[a] - grid.x[b]) for a in row for b in grid.below[a]), default=0.0)
        tops.append(tops[-1] + heights[r] + gap_y + min(reach * 0.08, 2.0 * gap_y))
    corners = []
    for box in range(grid.boxes):
        w, h = grid.sizes[box]
        r = grid.row_of[box]
        corners.append((grid.x[box] - w / 2, tops[r] + (heights[r] - h) / 2))
    leave = _ports(grid, edges, upper=True)
    enter = _ports(grid, edges, upper=False)
    alone = Counter(lower for _, lower in edges)
    routes = []
    for edge, chain in enumerate(grid.chains):
        # a step of a few units would only look like a mistake: such an arrow enters off centre
        came = grid.x[chain[-2]] if len(chain) > 2 else leave[edge]
        if alone[chain[-1]] == 1 and abs(came - enter[edge]) < _SNAP:
            enter[edge] = came
        start = (leave[edge], corners[chain[0]][1] + grid.sizes[chain[0]][1])
        end = (enter[edge], corners[chain[-1]][1])
        routes.append(_route(grid, chain, start, end, tops, heights))
    width = max(grid.x[i] + grid.sizes[i][0] / 2 for i in range(len(grid.x)))
    return Layout(width, tops[-1] + heights[-1], corners, routes, grid.row_of[: grid.boxes])


def _ports(grid: Grid, edges: Sequence[tuple[int, int]], *, upper: bool) -> list[float]:
    """Return, per edge, the x at which it leaves its upper (or enters its lower) box."""
    at_box: dict[int, list[int]] = {}
    for edge, ends in enumerate(edges):
        at_box.setdefault(ends[0] if upper else ends[1], []).append(edge)
    ports = [0.0] * len(edges)
    for box, its_edges in at_box.items():
        # left to right by where they go, so that edges of one box do not cross each other
        its_edges.sort(key=lambda e: grid.x[grid.chains[e][1 if upper else -2]])
        step = min(_PORT, (grid.sizes[box][0] - 20) / max(len(its_edges) - 1, 1))
        for at, edge in enumerate(its_edges):
            ports[edge] = grid.x[box] + (at - (len(its_edges) - 1) / 2) * step
    return ports


def _route(
    grid: Grid, chain: list[int], start: Point, end: Point, tops: list[float], heights: list[float]
) -> tuple[Command, ...]:
    """Return the path of one edge: straight down inside rows, curved only between them.

    Curves keep to the free bands between rows, so no edge runs over a box.
    """
    commands: list[Command] = [("M", (start,))]
    x = start[0]
    for upper, lower in pairwise(chain):
        bottom = tops[grid.row_of[upper]] + heights[grid.row_of[upper]]
        top = tops[grid.row_of[lower]] - (_LEAD if lower == chain[-1] else 0.0)
        to = end[0] if lower == chain[-1] else grid.x[lower]
        commands.append(("L", ((x, bottom),)))
        if abs(to - x) < 0.5:
            commands.append(("L", ((to, top),)))
        else:
            middle = (bottom + top) / 2
            commands.append(("C", ((x, middle), (to, middle), (to, top))))
        x = to
    commands.append(("L", (end,)))
    return tuple(commands)
