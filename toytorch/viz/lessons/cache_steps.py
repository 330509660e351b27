"""A walk over an array in memory, and which lines of it are in a small cache, step by step."""

from __future__ import annotations

from collections.abc import Sequence

from toytorch.viz.backward.steps_page import BackwardSteps
from toytorch.viz.backward.steps_picture import MARGIN, Animation
from toytorch.viz.draw import palette
from toytorch.viz.draw.frames import Frames
from toytorch.viz.draw.scene import Rect, Scene, Shape, Text, tile

CELL = 34.0


class CacheSteps(BackwardSteps):
    """A walk over an array, to step through."""


def cache_steps(
    shape: tuple[int, int], walk: Sequence[tuple[int, int]], *, line: int = 4, room: int = 3
) -> CacheSteps:
    """A page that steps through a walk over a matrix whose rows lie one after the other in memory.

    Memory is divided into lines of `line` elements. The cache has room for `room` lines, and drops
    the one that has not been used for longest. Lines that are in it are tinted; the element that is
    read is marked, in red if its line had to be fetched. `walk` gives the elements as (row, column).
    Raises ValueError for an empty walk, and for places outside of the matrix.

    >>> steps = cache_steps((2, 4), [(0, 0), (0, 1), (1, 0)])
    >>> steps
    <cache steps: 3 elements read, 2 lines fetched>
    >>> print(steps.captions[1])
    Element (0, 1): its line is in the cache. 1 line fetched for 2 elements.
    """
    rows, columns = shape
    if not walk or any(not (0 <= r < rows and 0 <= c < columns) for r, c in walk):
        raise ValueError(f"the walk needs places of a matrix of shape {shape}, at least one")
    held: list[int] = []  # the line used last stands last
    states: list[tuple[list[int], bool]] = []
    captions, fetched = [], 0
    for count, (row, column) in enumerate(walk, start=1):
        number = (row * columns + column) // line
        hit = number in held
        fetched += not hit
        if hit:
            held.remove(number)
        held = [*held, number][-room:]
        states.append((list(held), hit))
        said = "its line is in the cache" if hit else "its line is fetched from memory"
        total = f"{fetched} line{'s' * (fetched != 1)} fetched for {count} element"
        captions.append(f"Element ({row}, {column}): {said}. {total}{'s' * (count != 1)}.")
    scene = _scene(shape, walk, states, line, room)
    scene.description = captions[-1]
    summary = f"<cache steps: {len(walk)} elements read, {fetched} lines fetched>"
    return CacheSteps(Animation(scene, captions, len(walk)), summary)


def _scene(
    shape: tuple[int, int],
    walk: Sequence[tuple[int, int]],
    states: list[tuple[list[int], bool]],
    line: int,
    room: int,
) -> Scene:
    rows, columns = shape
    top = MARGIN + 22
    right = MARGIN + columns * CELL + 40
    wide = line * CELL * 0.7
    scene = Scene(
        right + wide + 46 + MARGIN,
        top + max(rows * CELL, room * (CELL * 0.7 + 8)) + MARGIN,
        "a walk over memory",
        steps=len(walk),
    )
    scene.add(
        Text(MARGIN, MARGIN + 8, "memory, in lines", palette.TEXT_SIZE, bold=True),
        Text(right, MARGIN + 8, "cache", palette.TEXT_SIZE, bold=True),
    )
    frames = Frames()
    for frame, ((held, hit), (row, column)) in enumerate(zip(states, walk, strict=True)):
        shown: dict[object, list[Shape]] = {}
        for number in range(-(-rows * columns // line)):
            inside = number in held
            shown["line", number, inside] = _line(shape, number, line, top, inside)
        for place in range(room):
            wanted = held[place] if place < len(held) else None
            y = top + place * (CELL * 0.7 + 8)
            shown["room", place, wanted] = _room(right, y, wide, wanted)
        hue = palette.GREEN if hit else palette.RED
        x, y = MARGIN + column * CELL, top + row * CELL
        shown["read", frame] = [tile(x + 2, y + 2, CELL - 4, CELL - 4, 4, hue, 2.5)]
        frames.frame(frame, shown)
    scene.add(*frames.end(len(walk) - 1))
    for number in range(rows * columns):
        row, column = divmod(number, columns)
        x, y = MARGIN + (column + 0.5) * CELL, top + (row + 0.5) * CELL + 4
        scene.add(Text(x, y, str(number), palette.SMALL_SIZE, anchor="middle"))
    return scene


def _line(shape: tuple[int, int], number: int, line: int, top: float, inside: bool) -> list[Shape]:
    """The cells of a line; one that goes on in the next row is drawn in two parts."""
    rows, columns = shape
    fill = palette.BLUE.tint if inside else palette.BOX
    edge = palette.BLUE.line if inside else palette.BOX_LINE
    shapes: list[Shape] = []
    at, end = number * line, min((number + 1) * line, rows * columns)
    while at < end:
        row, column = divmod(at, columns)
        count = min(end - at, columns - column)
        x, y = MARGIN + column * CELL, top + row * CELL
        shapes.append(Rect(x + 1, y + 1, count * CELL - 2, CELL - 2, 5, fill, edge))
        at += count
    return shapes


def _room(x: float, y: float, wide: float, number: int | None) -> list[Shape]:
    """A place of the cache, and the line that is in it."""
    tall = CELL * 0.7
    if number is None:
        return [Rect(x, y, wide, tall, 5, palette.PAPER, palette.FAINT, 1.0, (4.0, 3.0))]
    return [
        tile(x, y, wide, tall, 5, palette.BLUE),
        Text(x + wide / 2, y + tall / 2 + 4, f"line {number}", palette.SMALL_SIZE, anchor="middle"),
    ]
