"""Graphviz: the graph as DOT text, and its layout by the `dot` program where that is installed.

Either Graphviz's own program will do or that of the graphviz-pure wheel, which lays out alike.
"""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
from collections.abc import Sequence

from toytorch.viz.draw.boxes import Box
from toytorch.viz.draw.layout import Layout
from toytorch.viz.draw.scene import Command, Point
from toytorch.viz.draw.text import clean

_INCH = 72.0  # picture units to one of dot's inches


def source(boxes: Sequence[Box], edges: Sequence[tuple[int, int]]) -> str:
    """Return the graph in the DOT language, boxes in their own size, as `dot` reads it."""
    lines = ["digraph backward {", "  ranksep=0.55; nodesep=0.35;"]
    lines.append('  node [shape=box, fixedsize=true, fontname="Helvetica", fontsize=10];')
    for number, box in enumerate(boxes):
        rows = [f"{row.name}: {row.value}".rstrip(": ") for row in box.rows]
        label = "\\n".join(
            clean(line).replace("\\", "\\\\").replace('"', '\\"')
            for line in (box.title, *box.lines, *rows)
        )
        style = ", style=rounded" if box.round else ""
        w, h = box.w / _INCH, box.h / _INCH
        lines.append(f'  n{number} [label="{label}", width={w:.3f}, height={h:.3f}{style}];')
    lines += [f"  n{upper} -> n{lower};" for upper, lower in edges]
    return "\n".join([*lines, "}"]) + "\n"


def layout(boxes: Sequence[Box], edges: Sequence[tuple[int, int]]) -> Layout:
    """Return the layout that `dot` finds.

    Raises RuntimeError with what to do if there is no such program, or if it fails or hangs.
    """
    program = shutil.which("dot") or _from_wheel()
    if program is None:
        raise RuntimeError(
            "layout='dot' needs Graphviz's program `dot`, which is not on the PATH. Install it"
            " (`pip install graphviz-pure` on any system, or `apt install graphviz`, `brew install"
            " graphviz`, `winget install graphviz`), or leave layout='auto', which needs nothing"
        )
    run = subprocess.run(
        [program, "-Kdot", "-Tplain", "-Earrowhead=none"],
        input=source(boxes, edges).encode(),
        capture_output=True,
        timeout=120,
        check=False,
    )
    if run.returncode:
        said = run.stderr.decode(errors="replace").strip()
        raise RuntimeError(f"`dot` failed: {said or run.returncode}. layout='auto' needs no `dot`")
    return parse(run.stdout.decode(), boxes, edges)


def _from_wheel() -> str | None:
    """Return the program of the graphviz-pure package, which may stand beside this Python only."""
    name = "graphviz-pure"
    return shutil.which(name) or shutil.which(name, path=sysconfig.get_path("scripts"))


def parse(plain: str, boxes: Sequence[Box], edges: Sequence[tuple[int, int]]) -> Layout:
    """Return the layout written in dot's -Tplain form, whose y axis points up."""
    corners: list[Point] = [(0.0, 0.0)] * len(boxes)
    found: dict[tuple[str, str], list[tuple[Command, ...]]] = {}
    width = height = 0.0
    for line in plain.splitlines():
        words = line.split()
        if words[:1] == ["graph"]:
            width, height = float(words[2]) * _INCH, float(words[3]) * _INCH
        elif words[:1] == ["node"]:
            box = boxes[int(words[1][1:])]
            x, y = float(words[2]) * _INCH, height - float(words[3]) * _INCH
            corners[int(words[1][1:])] = (x - box.w / 2, y - box.h / 2)
        elif words[:1] == ["edge"]:
            numbers = [float(word) * _INCH for word in words[4 : 4 + 2 * int(words[3])]]
            points = [(x, height - y) for x, y in zip(numbers[::2], numbers[1::2], strict=True)]
            curves = [("C", tuple(points[i : i + 3])) for i in range(1, len(points), 3)]
            route = (("M", (points[0],)), *curves)
            found.setdefault((words[1], words[2]), []).append(route)
    routes = [found[f"n{upper}", f"n{lower}"].pop(0) for upper, lower in edges]
    return Layout(width, height, corners, routes)
