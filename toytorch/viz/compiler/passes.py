"""The passes of the compiler as a page: the graph before and after each, side by side."""

from __future__ import annotations

import difflib
from typing import Any

from toytorch.viz.backward.steps_page import BackwardSteps
from toytorch.viz.backward.steps_picture import Animation
from toytorch.viz.compiler.read import Stage, lines_of, stages_of
from toytorch.viz.draw import palette
from toytorch.viz.draw.palette import Hue
from toytorch.viz.draw.scene import Rect, Scene, Text
from toytorch.viz.draw.text import shorten, width

MARGIN, GAP, LINE = 24.0, 30.0, 18.0
COLUMN = 420.0  # the widest an operation may be written
INDENT = 4.0  # for each blank in front of a line


class PassSteps(BackwardSteps):
    """The passes over a graph, to step through."""


def passes(f: object, *inputs: object) -> PassSteps:
    """A page that steps through the passes: on the left the graph before, on the right after.

    What a pass takes away is red on the left, what it puts there is green on the right. Passes that
    change nothing are left out. `f` is a function or a module, compiled or not. Constants stand
    where they are used.

    >>> steps = passes(lambda x: -(-x) * 2, torch.ones(3))
    >>> [caption.partition(":")[0] for caption in steps.captions][-1]
    'simplify_algebra (forward and backward together)'
    """
    stages = [s for s in stages_of(f, inputs) if lines_of(s.before) != lines_of(s.after)]
    if not stages:
        raise RuntimeError("no pass changes this graph")
    made = animation(stages)
    names = ", ".join(dict.fromkeys(s.name for s in stages))
    return PassSteps(made, f"<{len(stages)} passes: {names}>")


def animation(stages: list[Stage]) -> Animation:
    """One frame for each pass."""
    sides = [(lines_of(s.before), lines_of(s.after)) for s in stages]
    wide = [
        max((line_width(line) for pair in sides for line in pair[i]), default=80.0) + 16
        for i in (0, 1)
    ]
    tall = max(max(len(a), len(b)) for a, b in sides)
    width, height = 2 * MARGIN + wide[0] + GAP + wide[1], MARGIN + (tall + 2) * LINE + 10
    scene = Scene(width, height, "passes of the compiler", steps=len(stages))
    captions = []
    for frame, (stage, (before, after)) in enumerate(zip(stages, sides)):
        gone, new = changed(before, after)
        left = MARGIN
        for title, lines, marked, hue, w in (
            ("before", before, gone, palette.RED, wide[0]),
            ("after", after, new, palette.GREEN, wide[1]),
        ):
            scene.add(*column(left, w, title, lines, marked, hue, frame))
            left += w + GAP
        captions.append(
            f"{stage.name} ({stage.where}): {len(before) - 2} lines become {len(after) - 2}; "
            f"{len(gone)} go, {len(new)} come."
        )
    return Animation(scene, captions, 1)


def changed(before: list[str], after: list[str]) -> tuple[set[int], set[int]]:
    """The lines that are only in the one, and only in the other."""
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    gone, new = set(range(len(before))), set(range(len(after)))
    for block in matcher.get_matching_blocks():
        gone -= set(range(block.a, block.a + block.size))
        new -= set(range(block.b, block.b + block.size))
    return gone, new


def column(
    x: float, w: float, title: str, lines: list[str], marked: set[int], hue: Hue, frame: int
) -> list[Any]:
    """One graph as lines below a title, changed ones on a tint."""
    when = (frame, frame)
    top = MARGIN + 8
    shapes: list[Any] = [
        Text(x + 8, top, title, palette.TITLE_SIZE, palette.MUTED, bold=True, when=when)
    ]
    for i, line in enumerate(lines):
        y = top + (i + 1.3) * LINE
        blanks = len(line) - len(line.lstrip())
        said, _, kind = line.strip().partition("   ")
        text = shorten(said, palette.TEXT_SIZE, COLUMN)
        if i in marked:
            shapes.append(Rect(x, y - 13, w, LINE, 3, hue.tint, when=when))
            shapes.append(Rect(x, y - 13, 3, LINE, 0, hue.line, when=when))
        shapes.append(
            Text(
                x + 8 + blanks * INDENT,
                y,
                text,
                palette.TEXT_SIZE,
                palette.INK if i in marked else palette.MUTED,
                when=when,
                tip=said if text != said else "",
            )
        )
        if kind and not said.startswith(("in", "out")):
            shapes.append(
                Text(x + w - 8, y, kind, palette.SMALL_SIZE, palette.FAINT, "end", when=when)
            )
    return shapes


def line_width(line: str) -> float:
    """How wide a line is drawn."""
    blanks = len(line) - len(line.lstrip())
    said, _, kind = line.strip().partition("   ")
    return (
        min(COLUMN, width(said, palette.TEXT_SIZE))
        + blanks * INDENT
        + 24
        + width(kind, palette.SMALL_SIZE)
    )
