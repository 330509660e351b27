"""Pictures on slides: cropped to what is drawn, and tall ones in two columns."""

from __future__ import annotations

import base64
import re
import struct
from html import escape
from typing import Any

from course.build.paging import Figure

# toytorch.viz writes one shape a line
_SHAPE = re.compile(r"<(rect|text|path) ([^>]*)>")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_RIM = 4.0
_PLOT_LETTERS = 12.2  # the smallest that chapters ask matplotlib for: 8 points at 110 dots an inch
_CONTROLS = 118.0  # a stepper's buttons and what it says about a step

Box = tuple[float, float, float, float]  # left, top, right, bottom


def of_svg(svg: str, words: str) -> Figure:
    """A drawing as an image, so that names inside one never meet those of another."""
    return Figure("", _shapes(svg, words, inline=False), _letters(svg))


def of_png(coded: str, words: str) -> Figure:
    """A plot; ``coded`` is base64."""
    wide, high = struct.unpack(">II", base64.b64decode(coded[:64])[16:24])
    image = _image(f"data:image/png;base64,{coded}", words)
    return Figure("", ((wide, high, f"{_OPEN}{image}</div>"),), _PLOT_LETTERS)


def of_steps(html: str) -> Figure:
    """A stepper: its drawing grows, its buttons keep their size."""
    head, svg, tail = re.split(r"(<svg .*?</svg>\n?)", html, maxsplit=1, flags=re.S)
    shapes = tuple(
        (wide, high, f'<div class="out rich steps">{head}{inner}{tail}</div>')
        for wide, high, inner in _shapes(svg, "", inline=True)
    )
    return Figure("", shapes, _letters(svg), _CONTROLS)


_OPEN = '<div class="out picture" style="height:TALLpx">'


def _image(address: str, words: str) -> str:
    return f'<img alt="{escape(words, quote=True)}" src="{address}">'


def _shapes(svg: str, words: str, *, inline: bool) -> tuple[tuple[float, float, str], ...]:
    """The drawing whole, and in two columns where it is tall and there is a place to cut."""
    whole = _bounds(svg)
    ways = [[whole]]
    cut = _cut(svg, whole)
    if cut is not None:
        ways.append([(*whole[:3], cut), (whole[0], cut, *whole[2:])])
    shapes = []
    for boxes in ways:
        wide = len(boxes) * (whole[2] - whole[0]) + 24 * (len(boxes) - 1)
        high = max(bottom - top for _, top, _, bottom in boxes)
        pieces = "".join(_seen(svg, box, words, high, inline) for box in boxes)
        shapes.append((wide, high, f"{_OPEN}{pieces}</div>"))
    return tuple(shapes)


def _seen(svg: str, box: Box, words: str, tallest: float, inline: bool) -> str:
    """The part of a drawing inside a box, at the scale of a column that is so tall."""
    left, top, right, bottom = box
    left, top, wide, high = (round(v, 2) for v in (left, top, right - left, bottom - top))
    size = f'width="{wide:g}" height="{high:g}"'
    style = f'style="height:{100 * high / tallest:.1f}%"'
    head = f'viewBox="{left:g} {top:g} {wide:g} {high:g}" {size}' + (f" {style}" if inline else "")
    piece = re.sub(r'viewBox="[^"]*" width="[^"]*" height="[^"]*"', head, svg, count=1)
    piece = piece.replace(' style="max-width:100%;height:auto"', "", 1)
    if inline:
        return piece
    coded = base64.b64encode(piece.encode()).decode()
    return _image(f"data:image/svg+xml;base64,{coded}", words).replace("<img", f"<img {style}", 1)


def _bounds(svg: str) -> Box:
    """What is drawn, with a rim; the ground of the picture does not count."""
    boxes = [box for _, box in _boxes(svg)]
    return (
        min(box[0] for box in boxes) - _RIM,
        min(box[1] for box in boxes) - _RIM,
        max(box[2] for box in boxes) + _RIM,
        max(box[3] for box in boxes) + _RIM,
    )


def _boxes(svg: str) -> list[tuple[str, Box]]:
    """The bounds of each shape; of a curve, those of its control points."""
    found: list[tuple[str, Box]] = []
    size = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg)
    ground = float(size.group(1)) - 1 if size else 0.0
    for kind, rest in _SHAPE.findall(svg):
        at: dict[str, Any] = dict(re.findall(r'([\w-]+)="([^"]*)"', rest))
        if kind == "path":
            numbers = [float(n) for n in _NUMBER.findall(at["d"])]
            xs, ys = numbers[::2], numbers[1::2]
            found.append((kind, (min(xs), min(ys), max(xs), max(ys))))
            continue
        x, y = float(at["x"]), float(at["y"])
        if kind == "rect":
            wide, high = float(at["width"]), float(at["height"])
            if abs(wide - ground) > 0.1 or x > 1:
                found.append((kind, (x, y, x + wide, y + high)))
            continue
        long, letters = float(at.get("textLength", 0)), float(at["font-size"])
        x -= {"middle": long / 2, "end": long}.get(at.get("text-anchor", ""), 0.0)
        found.append((kind, (x, y - 0.8 * letters, x + long, y + 0.25 * letters)))
    return found


def _cut(svg: str, whole: Box) -> float | None:
    """A height near the middle that no box and no word crosses, only lines do."""
    left, top, right, bottom = whole
    if bottom - top < 0.8 * (right - left):
        return None
    spans = sorted((box[1], box[3]) for kind, box in _boxes(svg) if kind != "path")
    gaps, end = [], top
    for low, high in spans:
        if low - end > 12:
            gaps.append((end + low) / 2)
        end = max(end, high)
    middle = (top + bottom) / 2
    near = [gap for gap in gaps if abs(gap - middle) < 0.2 * (bottom - top)]
    return min(near, key=lambda gap: abs(gap - middle)) if near else None


def _letters(svg: str) -> float:
    """The size of the smallest lettering."""
    return min(map(float, re.findall(r'<text [^>]*font-size="([\d.]+)"', svg)), default=14.0)
