"""The layered layout keeps its promises on random graphs."""

from __future__ import annotations

import random
from itertools import combinations, pairwise

import pytest

from toytorch.viz.draw.layout import Layout, layered
from toytorch.viz.draw.scene import Command, Point

Boxes = list[tuple[float, float]]
Edges = list[tuple[int, int]]


def random_graph(seed: int) -> tuple[Boxes, Edges]:
    """Return boxes of mixed sizes and edges from lower to higher numbers, some of them double."""
    chance = random.Random(seed)
    count = chance.randint(1, 28)
    boxes = [(chance.uniform(30, 220), chance.uniform(20, 120)) for _ in range(count)]
    edges: Edges = []
    for lower in range(1, count):
        for _ in range(chance.choice((0, 1, 1, 1, 2, 3))):
            edges.append((chance.randrange(max(0, lower - 9), lower), lower))
    return boxes, edges


def along(route: tuple[Command, ...], parts: int = 12) -> list[Point]:
    """Return points on a route, close enough together that no box fits between two."""
    at = route[0][1][0]
    points = [at]
    for letter, ends in route[1:]:
        for step in range(1, parts + 1):
            t = step / parts
            if letter == "L":
                x, y = (a + (b - a) * t for a, b in zip(at, ends[0], strict=True))
            else:
                (ax, ay), (bx, by), (cx, cy) = ends
                u = 1 - t
                x = u**3 * at[0] + 3 * u * u * t * ax + 3 * u * t * t * bx + t**3 * cx
                y = u**3 * at[1] + 3 * u * u * t * ay + 3 * u * t * t * by + t**3 * cy
            points.append((x, y))
        at = ends[-1]
    return points


@pytest.mark.parametrize("seed", range(60))
def test_boxes_are_apart_and_inside(seed: int) -> None:
    boxes, edges = random_graph(seed)
    placed = layered(boxes, edges)
    for (ax, ay), (aw, ah) in zip(placed.corners, boxes, strict=True):
        assert ax >= -0.01
        assert ax + aw <= placed.width + 0.01
        assert ay >= -0.01
        assert ay + ah <= placed.height + 0.01
    for a, b in combinations(range(len(boxes)), 2):
        (ax, ay), (bx, by) = placed.corners[a], placed.corners[b]
        beside = ax + boxes[a][0] + 10 <= bx or bx + boxes[b][0] + 10 <= ax
        above = ay + boxes[a][1] + 10 <= by or by + boxes[b][1] + 10 <= ay
        assert beside or above


@pytest.mark.parametrize("seed", range(60))
def test_edges_go_down_and_around_boxes(seed: int) -> None:
    boxes, edges = random_graph(seed)
    placed = layered(boxes, edges)
    for (upper, lower), route in zip(edges, placed.routes, strict=True):
        points = along(route)
        assert all(b[1] >= a[1] - 1e-6 for a, b in pairwise(points))
        (ux, uy), (lx, ly) = placed.corners[upper], placed.corners[lower]
        assert points[0][1] == pytest.approx(uy + boxes[upper][1])
        assert ux < points[0][0] < ux + boxes[upper][0]
        assert points[-1][1] == pytest.approx(ly)
        assert lx < points[-1][0] < lx + boxes[lower][0]
        assert not crossed(placed, boxes, points, {upper, lower})


def crossed(placed: Layout, boxes: Boxes, points: list[Point], ends: set[int]) -> list[int]:
    """Return the boxes, other than its own ends, that a route runs over."""
    hit = []
    for box, ((x, y), (w, h)) in enumerate(zip(placed.corners, boxes, strict=True)):
        if box not in ends and any(x < px < x + w and y < py < y + h for px, py in points):
            hit.append(box)
    return hit


def test_a_chain_is_a_straight_line() -> None:
    boxes = [(60.0 + 10 * n, 30.0) for n in range(6)]
    placed = layered(boxes, [(n, n + 1) for n in range(5)])
    middles = [x + w / 2 for (x, _), (w, _) in zip(placed.corners, boxes, strict=True)]
    assert max(middles) - min(middles) < 0.01


def test_a_tree_is_drawn_without_crossings() -> None:
    edges = [(0, 1), (0, 2), (1, 3), (1, 4), (2, 5), (2, 6)]
    shuffled = [edges[i] for i in (1, 5, 0, 3, 4, 2)]
    placed = layered([(50.0, 30.0)] * 7, shuffled)
    x = [corner[0] for corner in placed.corners]
    for a, b in combinations(edges, 2):
        if placed.rows[a[0]] == placed.rows[b[0]] and a[0] != b[0]:
            assert (x[a[0]] < x[b[0]]) == (x[a[1]] < x[b[1]])


def test_a_result_from_inside_stands_just_above_its_node() -> None:
    # 0 → 1 → 2 → 3, and a second result 4 of node 3
    placed = layered([(50.0, 30.0)] * 5, [(0, 1), (1, 2), (2, 3), (4, 3)])
    assert placed.rows == [0, 1, 2, 3, 2]


def test_nothing_and_one_box() -> None:
    assert layered([], []).corners == []
    assert layered([(40.0, 20.0)], []).corners == [(0.0, 0.0)]


def test_a_cycle_is_refused() -> None:
    with pytest.raises(ValueError, match="cycle"):
        layered([(10.0, 10.0)] * 3, [(0, 1), (1, 2), (2, 0)])


def test_a_long_chain_needs_no_recursion() -> None:
    count = 3000
    placed = layered([(40.0, 20.0)] * count, [(n, n + 1) for n in range(count - 1)])
    assert placed.rows == list(range(count))
