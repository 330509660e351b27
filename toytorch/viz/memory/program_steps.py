"""A small program as a page with buttons: memories, versions, and what nodes keep, line by line."""

from __future__ import annotations

from toytorch.viz.backward.steps_page import BackwardSteps
from toytorch.viz.backward.steps_picture import Animation
from toytorch.viz.draw import palette
from toytorch.viz.draw.boxes import moved
from toytorch.viz.draw.scene import Rect, Scene, Shape, Text, When, during, tile
from toytorch.viz.draw.text import shorten, width
from toytorch.viz.memory.program_record import Block, Frame, Held, Kept, Record, record

MARGIN, LINE, INDENT, GAP = 24.0, 25.0, 4.8, 36.0
_CELL, _ROW = 28.0, 25.0
_CODE, _NAME, _SAID, _VALUE = 14.0, 14.5, 13.0, 13.5  # sizes of type
_WIDEST_CODE, _WIDEST_SIDE = 420.0, 540.0


class ProgramSteps(BackwardSteps):
    """A program to step through."""


def program_steps(source: str, **given: object) -> ProgramSteps:
    """Run a small program and return a page that steps through it.

    Each step is a statement. Beside the code stand the memories: the values in their cells, and
    under them every tensor that shows this memory, with the version it is at, where it comes from
    and its gradient. Below is what nodes keep for backward: the version that was seen, and red
    where it is not the version of now. The program ends at its first error, which is shown.

    `torch` is toytorch, `given` are further names that the program may use; names that begin with
    an underscore are not shown. PyTorch has no counterpart.

    Raises SyntaxError where the text is no Python, ValueError where it has no statements.

    Example:
        >>> steps = program_steps("x = torch.ones(2, requires_grad=True)\\ny = x.exp()\\ny.mul_(2)")
        >>> steps
        <program of 3 steps>
        >>> print(steps.captions[2])
        y comes from ExpBackward0.
        >>> steps.captions[3].endswith("What ExpBackward0 kept is out of date.")
        True
    """
    made = animation(record(source.strip("\n"), given))
    count = len(made.captions) - 1
    return ProgramSteps(made, f"<program of {count} {'step' if count == 1 else 'steps'}>")


def animation(made: Record) -> Animation:
    """One frame before the program and one after each statement."""
    frames = len(made.frames)
    code_wide = max(_code_width(line) for line in made.lines) + 34
    sides = [_side(frame) for frame in made.frames]
    side_wide = max(max(wide for _, wide, _ in sides), 250.0)
    tall = max(len(made.lines) * LINE + 6, *(height for _, _, height in sides))
    width, height = code_wide + GAP + side_wide + 2 * MARGIN, tall + 2 * MARGIN
    scene = Scene(width, height, "a program, step by step", steps=frames)
    for number, line in enumerate(made.lines):
        scene.add(*_code_line(made, number, line, code_wide))
    for at, (shapes, _, _) in enumerate(sides):
        scene.add(*during(moved(shapes, MARGIN + code_wide + GAP, MARGIN), (at, at)))
    captions = [_before(made)]
    captions += [_caption(a, b) for a, b in zip(made.frames, made.frames[1:], strict=False)]
    return Animation(scene, captions, 1)


# the program -----------------------------------------------------------------------------------


def _code_width(line: str) -> float:
    text = line.strip()
    return min(width(text, _CODE), _WIDEST_CODE) + (len(line) - len(line.lstrip())) * INDENT


def _code_line(made: Record, number: int, line: str, wide: float) -> list[Shape]:
    """A line of code: waiting, then current on a tint, then done."""
    last = len(made.frames) - 1
    turn = next((n for n, (a, b) in enumerate(made.spans, 1) if a <= number <= b), last + 1)
    y = MARGIN + number * LINE
    x = MARGIN + 12 + (len(line) - len(line.lstrip())) * INDENT
    text = shorten(line.strip(), _CODE, _WIDEST_CODE)
    shapes: list[Shape] = []
    phases: list[tuple[When, str]] = [
        ((0, min(turn - 1, last)), palette.EDGE),
        ((turn, turn), palette.INK),
        ((turn + 1, last), palette.MUTED),
    ]
    if turn <= last:
        failed = bool(made.frames[turn].error)
        hue = palette.RED if failed else palette.BLUE
        bar: list[Shape] = [
            Rect(MARGIN, y, wide, LINE, 3, hue.tint),
            Rect(MARGIN, y, 3.5, LINE, 0, hue.line),
        ]
        shapes += during(bar, (turn, turn))
    for when, color in phases:
        if when[0] <= when[1] and when[0] <= last:
            shapes.append(Text(x, y + 17.5, text, _CODE, color, when=when))
    return shapes


# memories --------------------------------------------------------------------------------------


def _side(frame: Frame) -> tuple[list[Shape], float, float]:
    """Everything right of the code: shapes at the origin, width, height."""
    shapes: list[Shape] = []
    y = wide = 0.0
    for block in frame.blocks:
        some, its_wide, y = _block(block, y)
        shapes += some
        wide = max(wide, its_wide)
    if frame.kept:
        shapes.append(Text(0, y + 13, "kept for backward", _SAID, bold=True))
        y += 22
        for kept in frame.kept:
            some, its_wide = _kept(kept, y)
            shapes += some
            wide = max(wide, its_wide)
            y += _ROW
    return shapes, min(wide, _WIDEST_SIDE), y


def _block(block: Block, y: float) -> tuple[list[Shape], float, float]:
    """One memory with its tensors; the height so far comes back with it."""
    shapes: list[Shape] = []
    hues = palette.VIEWS
    cell = max([30.0, *(width(v, _VALUE) + 13 for v in block.values)])
    x = 0.0
    for at, value in enumerate(block.values):
        shapes.append(Rect(x, y, cell - 2, _CELL, 4, palette.BOX, palette.BOX_LINE, 1.0))
        shapes.append(Text(x + cell / 2 - 1, y + 19, value, _VALUE, anchor="middle"))
        below = y + _CELL + 3
        for n, held in enumerate(block.tensors):
            if held.cells[at]:
                hue = hues[n % len(hues)]
                shapes.append(Rect(x + 2, below + 4 * n, cell - 6, 2.8, 1.4, hue.line))
        x += cell
    if block.more:
        shapes.append(Text(x + 4, y + 19, f"… {block.more} more", color=palette.MUTED))
        x += 70
    wide = x
    y += _CELL + 6 + 4 * len(block.tensors)
    for n, held in enumerate(block.tensors):
        some, its_wide = _tensor(held, y, hues[n % len(hues)])
        shapes += some
        wide = max(wide, its_wide)
        y += _ROW
    return shapes, wide, y + 12


def _tensor(held: Held, y: float, hue: palette.Hue) -> tuple[list[Shape], float]:
    """A tensor's row: its name, its version, where it comes from."""
    shapes: list[Shape] = [Rect(0, y + 3, 4, 14, 2, hue.line)]
    shapes.append(Text(10, y + 15.5, held.name, _NAME, bold=True))
    x = 10 + width(held.name, _NAME, bold=True) + 10
    text = f"version {held.version}"
    wide = width(text, palette.TEXT_SIZE) + 15
    shapes.append(tile(x, y + 1, wide, 19, 9.5, hue, 1.0))
    shapes.append(Text(x + 7.5, y + 14.7, text, palette.TEXT_SIZE))
    x += wide + 9
    said = held.origin + (f"; .grad {held.grad}" if held.grad else "")
    said = shorten(said, _SAID, _WIDEST_SIDE - x)
    shapes.append(Text(x, y + 15, said, _SAID, palette.MUTED))
    return shapes, x + width(said, _SAID)


def _kept(kept: Kept, y: float) -> tuple[list[Shape], float]:
    """What a node keeps: whose tensor, the version seen, and the version now."""
    hue = palette.RED if kept.stale else palette.GREEN
    said = f"{kept.node}: {kept.what}, seen at version {kept.seen}"
    said += f", now {kept.now}" if kept.stale else ""
    said = shorten(said, _SAID, _WIDEST_SIDE - 24)
    wide = width(said, _SAID, bold=kept.stale) + 22
    return [
        tile(0, y, wide, 21, 10.5, hue, 1.6 if kept.stale else 1.0),
        Text(11, y + 15, said, _SAID, bold=kept.stale),
    ], wide


# words -----------------------------------------------------------------------------------------


def _before(made: Record) -> str:
    known = [held.name for block in made.frames[0].blocks for held in block.tensors]
    start = f"{_list(known)} {'is' if len(known) == 1 else 'are'} there. " if known else ""
    return f"{start}The program has {len(made.spans)} steps."


def _caption(old: Frame, new: Frame) -> str:
    """What a statement changed, in words."""
    before = {held.name: (block.key, held) for block in old.blocks for held in block.tensors}
    said: list[str] = []
    for block in new.blocks:
        written: dict[tuple[int, int], list[str]] = {}
        rebased: list[str] = []
        for held in block.tensors:
            key, was = before.get(held.name, (None, None))
            if was is None or key != block.key:
                said.append(_made(held, block))
                continue
            if was.version != held.version:
                written.setdefault((was.version, held.version), []).append(held.name)
            if was.origin != held.origin:
                rebased.append(f"{held.name} is now {held.origin}")
            if was.grad != held.grad and held.grad:
                said.append(f"{held.name}.grad is {held.grad}")
        for (a, b), names in written.items():
            verb = "is" if len(names) == 1 else "are"
            said.append(f"{_list(names)} {verb} written to: version {a} becomes {b}")
        said += rebased
    if new.error:
        return f"{'. '.join([*said, ''])}Refused: {_first(new)}."
    fresh = {(k.node, k.what) for k in new.kept if k.stale}
    fresh -= {(k.node, k.what) for k in old.kept if k.stale}
    for node, _ in sorted(fresh):
        said.append(f"What {node} kept is out of date")
    return f"{'. '.join(said) if said else 'Nothing that is shown has changed'}."


def _made(held: Held, block: Block) -> str:
    others = [other.name for other in block.tensors if other is not held]
    shows = f", on the memory of {_list(others)}" if others else ""
    verbs = {"leaf": "is a leaf that wants a gradient", "no g": "wants no gradient"}
    verb = verbs.get(held.origin[:4], f"comes {held.origin}")
    return f"{held.name} {verb}{shows}"


def _first(frame: Frame) -> str:
    """Why a statement failed: the clash of versions in short, or the error's first sentence."""
    stale = [kept for kept in frame.kept if kept.stale]
    if stale and "modified by an inplace operation" in frame.error:
        kept = stale[-1]
        return f"{kept.node} kept {kept.what} at version {kept.seen}, and it is at {kept.now}"
    return frame.error.partition(": ")[2].partition(". ")[0].rstrip(".")


def _list(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
