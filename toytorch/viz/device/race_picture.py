"""A race of a kernel: the two lines of the source, and who did what there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toytorch.viz.draw import palette
from toytorch.viz.draw.picture import Picture
from toytorch.viz.draw.scene import Path, Rect, Scene, Text, remark, segment, tile
from toytorch.viz.draw.text import width

if TYPE_CHECKING:
    from toytorch.cuda.emulator.races import Access, Race
    from toytorch.cuda.emulator.report import Launch

MARGIN, ROW, INDENT, GAP = 22.0, 19.0, 4.6, 40.0


def race(launch: Launch, number: int = 0) -> Picture:
    """Draws a race that a launch in emulation has found.

    The source of the kernel stands on the left, with the two lines marked. On the right is who
    reads or writes which element there, and what is missing between the two. Raises ValueError if
    the launch has no race of that number.

    >>> from toytorch.cuda import kernel
    >>> k = kernel('''
    ... extern "C" __global__ void reverse(float* x) {
    ...     __shared__ float s[8];
    ...     s[threadIdx.x] = x[threadIdx.x];
    ...     x[threadIdx.x] = s[7 - threadIdx.x];
    ... }''', races="list")
    >>> race(k[1, 8](np.zeros(8, np.float32)))
    <race of reverse: s[7], lines 4 and 5>
    """
    if not 0 <= number < len(launch.races):
        raise ValueError(
            f"{launch.name} has {len(launch.races)} races: there is no number {number}"
        )
    found = launch.races[number]
    lines = {n: launch.source.line(n).expandtabs(4) for n in launch.shown_lines()}
    wide = max(_indent(text) + width(text.strip(), palette.SMALL_SIZE) for text in lines.values())
    right = MARGIN + 34 + wide + GAP
    said = [_told(found, found.before), _told(found, found.after)]
    missing = _missing(found)
    room = max(width(text, palette.TEXT_SIZE) for text in [*said, missing]) + 24
    first, second = sorted(found.lines)
    apart = max(0.0, 3 * ROW - (second - first) * ROW)  # room for what stands between
    height = 2 * MARGIN + len(lines) * ROW + apart
    summary = f"<race of {launch.name}: {found.memory}[{found.index}], lines {first} and {second}>"
    scene = Scene(right + room + MARGIN, height, f"a race in {launch.name}", "; ".join(said))
    places = {}
    for row, (line, text) in enumerate(lines.items()):
        y = MARGIN + row * ROW
        if line in found.lines:
            places[line] = y + ROW / 2
            box = tile(MARGIN, y, right - GAP - MARGIN + 10, ROW, 3, palette.RED)
            scene.add(box)
        scene.add(
            remark(MARGIN + 22, y + 13, str(line), "end"),
            Text(MARGIN + 32 + _indent(text), y + 13, text.strip(), palette.SMALL_SIZE),
        )
    _sides(scene, found, said, missing, places, (right, room, apart))
    scene.ground()
    return Picture(scene, summary)


def _sides(
    scene: Scene,
    found: Race,
    said: list[str],
    missing: str,
    places: dict[int, float],
    box: tuple[float, float, float],
) -> None:
    """Who did it, in two boxes, and what is missing between them."""
    right, room, apart = box
    ends = []
    for side, (text, line) in enumerate(zip(said, found.lines, strict=True)):
        from_y = places[line]
        up = line < found.lines[1 - side] or (line == found.lines[1 - side] and side == 0)
        y = from_y if up else from_y + apart
        ends.append(y)
        scene.add(
            Path(
                segment((right - GAP + 12, from_y), (right, y)), stroke=palette.RED.line, line=1.4
            ),
            Rect(right, y - 13, room, 26, 5, palette.BOX, palette.RED.line, 1.4),
            Text(right + 12, y + 4, text, palette.TEXT_SIZE),
        )
    middle = sum(ends) / 2
    scene.add(Text(right + 12, middle + 4, missing, palette.TEXT_SIZE, palette.ALARM))


def _told(found: Race, access: Access) -> str:
    of_block = f" of block {access.block[0]}" if found.before.block != found.after.block else ""
    parts = [str(part) for part in access.thread]
    while len(parts) > 1 and parts[-1] == "0":
        parts.pop()
    thread = parts[0] if len(parts) == 1 else f"({', '.join(parts)})"
    return f"thread {thread}{of_block} {access.kind} {found.memory}[{found.index}]"


def _missing(found: Race) -> str:
    if found.before.block != found.after.block:
        return "nothing orders blocks of one launch"
    return "no __syncthreads() between them"


def _indent(text: str) -> float:
    return INDENT * (len(text) - len(text.lstrip()))
