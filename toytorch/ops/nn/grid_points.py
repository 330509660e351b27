"""What grid samplers compute, in records: for devices without a kernel of it, and for derivatives of
derivatives.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from toytorch.core.tensor import Tensor
from toytorch.facts.hints import Shape
from toytorch.ops.shaping.rearrange import stack

if TYPE_CHECKING:
    How = tuple[int, int, bool]  # interpolation, padding, align_corners


class Neighbour(NamedTuple):
    """One of the elements that points are computed from.

    place    of each point (N, P), in a flat image
    inside   whether it is there
    parts    for each dimension of the image: its weight, its derivative by the coordinate, and the second
    """

    place: Tensor
    inside: Tensor
    parts: tuple[tuple[Any, Any, Any], ...]

    def weight(self, *by: int) -> Any:
        """The weight of points (N, P), differentiated by the coordinates of some dimensions."""
        return math.prod(part[by.count(d)] for d, part in enumerate(self.parts))


def _held(x: Tensor, size: int, padding: int, align_corners: bool, n: int) -> tuple[Any, Any]:
    """Coordinates outside the image, moved to its border or mirrored; and how fast they then move.

    Of n = 3 dimensions what is no number is outside, or at the end; of two it stays, or is at the start.
    """
    if padding == 0:
        return (x if n == 2 else x.nan_to_num(-100, -100, -100)), 1
    speed: Any = 1
    if padding == 2:
        low = 0.0 if align_corners else -0.5
        span = (size - 1) if align_corners else size
        if span <= 0:
            x, speed = x * 0, 0
        else:
            away = (x - low).abs()
            turns = (away / span).detach().floor()
            extra = away - turns * span
            even = (turns.remainder(2) == 0).to(x.dtype)
            speed = (x.detach() - low).sign() * (2 * even - 1)
            x = even * (extra + low) + (1 - even) * (span - extra + low)
    moves = ((x > 0) & (x < size - 1)).to(x.dtype)
    return x.clamp(0, size - 1).nan_to_num(0 if n == 2 else size - 1), moves * speed


def _cubic(a: float, d: Any) -> tuple[Any, Any, Any]:
    """Keys's polynomial for distances between 1 and 2, and its derivatives."""
    value = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return value, (3 * a * d - 10 * a) * d + 8 * a, 6 * a * d - 10 * a


def _cubic_near(a: float, d: Any) -> tuple[Any, Any, Any]:
    """For distances up to 1."""
    value = ((a + 2) * d - (a + 3)) * d * d + 1
    return value, (3 * (a + 2) * d - 2 * (a + 3)) * d, 6 * (a + 2) * d - 2 * (a + 3)


def _along(
    x: Tensor, size: int, n: int, mode: int, padding: int, align_corners: bool
) -> tuple[list[Any], Any]:
    """(place, weight, its derivatives) of the neighbours along a dimension, for coordinates (N, P);
    and how many elements a unit of the grid is."""
    unit: Any = (size - 1) / 2 if align_corners else size / 2
    x = (x + 1) / 2 * (size - 1) if align_corners else ((x + 1) * size - 1) / 2  # in elements
    if mode != 2:
        x, speed = _held(x, size, padding, align_corners, n)
        unit = unit * speed
    if mode == 1:
        return [(x.round(), (1, 0, 0))], unit
    low = x.detach().floor()
    part = x - low
    if mode == 0:
        return [(low, (1 - part, -1, 0)), (low + 1, (part, 1, 0))], unit
    a, found = -0.75, []
    for t, (rule, far, sign) in enumerate(
        ((_cubic, part + 1, 1), (_cubic_near, part, 1), (_cubic_near, 1 - part, -1), (_cubic, 2 - part, -1))
    ):  # fmt: skip
        value, slope, bend = rule(a, far)
        place, _ = _held(low + (t - 1), size, padding, align_corners, n)
        found.append((place, (value, sign * slope, bend)))
    return found, unit


class Points:
    """The neighbours of a grid's points (N, *out, n) in images of some sizes."""

    def __init__(self, grid: Tensor, sizes: Shape, how: How) -> None:
        n = len(sizes)
        self.sizes, self.shape = tuple(sizes), tuple(grid.shape)
        along = [
            _along(grid[..., n - 1 - d].flatten(1), size, n, *how) for d, size in enumerate(sizes)
        ]
        self.found, self.units = [found for found, _ in along], [unit for _, unit in along]

    def __iter__(self) -> Iterator[Neighbour]:
        for choice in itertools.product(*self.found):
            inside: Any = None
            flat: Any = None
            for (x, _), size in zip(choice, self.sizes):
                good = (x >= 0) & (x <= size - 1)
                inside = good if inside is None else inside & good
                step = x.clamp(0, size - 1).nan_to_num(0.0)
                flat = step if flat is None else flat * size + step
            yield Neighbour(flat.long(), inside, tuple(parts for _, parts in choice))

    def read(self, images: Tensor, neighbour: Neighbour) -> Any:
        """One neighbour of each point (N, C, P), and 0 where it is outside."""
        n, c = images.shape[:2]
        index = neighbour.place.unsqueeze(1).expand([n, c, -1])
        values = images.flatten(2).gather(2, index)
        return values * neighbour.inside.unsqueeze(1).to(values.dtype)

    def put(self, g: Tensor, weight: Any, neighbour: Neighbour, into: Any) -> Any:
        """`into` (N, C, elements) with the gradients g (N, C, P) times a weight added to a neighbour."""
        g = g * _wide(weight)
        g = g.masked_fill(~neighbour.inside.unsqueeze(1), 0)
        return into.scatter_add(2, neighbour.place.unsqueeze(1).expand(g.shape), g)

    def total(self, terms: Sequence[Any], like: Tensor) -> Any:
        """Sums over points (N, C, P) as images (N, C, *out)."""
        shape = [*like.shape[:2], *self.shape[1:-1]]
        return functools.reduce(lambda x, y: x + y, terms).reshape(shape)

    def of_grid(self, by_dimension: Sequence[Any]) -> Any:
        """Gradients by the coordinates (N, P), the first dimension's first, as one of the grid."""
        parts = [g * unit for g, unit in zip(by_dimension, self.units)]
        return stack.function(parts[::-1], -1).reshape(self.shape)


def _wide(weight: Any) -> Any:
    """A weight of points (N, P) for all channels; numbers as they are."""
    return weight.unsqueeze(1) if isinstance(weight, Tensor) else weight


def sampled(input: Tensor, grid: Tensor, how: How) -> Any:
    """Images read at points."""
    points = Points(grid, input.shape[2:], how)
    terms = [points.read(input, n) * _wide(n.weight()) for n in points]
    return points.total(terms, input)


def gradients(g: Tensor, input: Tensor, grid: Tensor, how: How) -> tuple[Any, Any]:
    """The gradients of both."""
    points = Points(grid, input.shape[2:], how)
    g = g.flatten(2)
    into = g.new_zeros((*input.shape[:2], math.prod(points.sizes)))
    sums: list[Any] = [g.new_zeros(g.shape[::2])] * len(points.sizes)
    for n in points:
        into = points.put(g, n.weight(), n, into)
        seen = (points.read(input, n) * g).sum(1)
        sums = [s + seen * n.weight(d) for d, s in enumerate(sums)]
    return into.reshape(input.shape), points.of_grid(sums)


def second(
    u: Tensor, v: Tensor, g: Tensor, input: Tensor, grid: Tensor, how: How
) -> tuple[Any, Any, Any]:
    """The gradients of ⟨u, d input⟩ + ⟨v, d grid⟩ by g, input and grid, where d are the first ones."""
    points = Points(grid, input.shape[2:], how)
    dims = range(len(points.sizes))
    flat = g.flatten(2)
    moved = [v[..., len(dims) - 1 - d].flatten(1) * points.units[d] for d in dims]
    into = flat.new_zeros((*input.shape[:2], math.prod(points.sizes)))
    terms: list[Any] = []
    sums: list[Any] = [flat.new_zeros(flat.shape[::2])] * len(dims)
    for n in points:
        others, own = points.read(u, n), points.read(input, n)
        change = sum(m * n.weight(d) for d, m in enumerate(moved))
        terms.append(others * _wide(n.weight()) + own * _wide(change))
        into = points.put(flat, change, n, into)
        first, second = (others * flat).sum(1), (own * flat).sum(1)
        for e in dims:
            bend = sum(m * n.weight(d, e) for d, m in enumerate(moved))
            sums[e] = sums[e] + first * n.weight(e) + second * bend
    return points.total(terms, input), into.reshape(input.shape), points.of_grid(sums)
