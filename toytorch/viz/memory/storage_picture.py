"""Memory under tensors as a picture: the cells of a storage, and each view as a grid over them."""

from __future__ import annotations

from itertools import chain, zip_longest

from toytorch.viz.draw import palette
from toytorch.viz.draw.boxes import legend, moved, tinted
from toytorch.viz.draw.palette import Hue
from toytorch.viz.draw.picture import Picture
from toytorch.viz.draw.scene import (
    Path,
    Rect,
    Scene,
    Shape,
    Text,
    arrow_head,
    heading,
    remark,
    segment,
    tile,
)
from toytorch.viz.draw.text import clean, shorten, width
from toytorch.viz.graph.graph_read import shape_text
from toytorch.viz.memory.cells import Block, Memory, Pick, View, blocks, chosen_cells, memories

MARGIN = 26.0
_CELL = 30.0  # height of a memory cell
_GRID = 38.0  # height of a cell in a view, which shows two numbers
_MOST_CELLS = 48
_GAP = 26.0  # width left for an ellipsis
_WIDE = 760.0  # what does not fit beside each other goes below

UNUSED = palette.BOX


def storage(*tensors: object, **named: object) -> Picture:
    """Draw tensors over the memory that they show.

    Every storage is a row of numbered cells; every tensor is a grid whose cells give the value and,
    below it, the number of the memory cell it is, under the tensor's shape, stride and offset.
    Tensors that share a storage are drawn under the same row, where bars in their colours say which
    tensors see a cell. A cell that is seen at several places, by two tensors or twice by one (as
    with stride 0), has a colour of its own. Large tensors are shown in part. Name tensors by
    keyword: `storage(x=x, t=x.t())`.

    Raises TypeError where there is nothing to draw or an argument is no strided tensor.

    Example:
        >>> x = torch.arange(6).reshape(2, 3)
        >>> storage(x=x, t=x.t())
        <storage: 6 cells of int64; x (2, 3) stride (3, 1) offset 0; ...>
    """
    if not tensors and not named:
        raise TypeError("storage() needs at least one tensor: storage(x) or storage(x=x, t=x.t())")
    default = ["tensor"] if len(tensors) == 1 else [f"tensor {n}" for n in range(len(tensors))]
    pairs = [*zip(default, tensors, strict=True), *named.items()]
    found = memories(pairs)
    summary = "storage: " + " | ".join(_words(memory) for memory in found)
    shapes: list[Shape] = []
    y, wide = MARGIN, 0.0
    several = False
    for memory in found:
        panel, panel_width, panel_height, shared = _panel(memory)
        shapes += moved(panel, MARGIN, y)
        y += panel_height + 34
        wide = max(wide, panel_width)
        several = several or shared
    key, key_width, key_height = _legend(several)
    scene = Scene(max(wide, key_width) + 2 * MARGIN, y - 8 + key_height + 18, summary)
    scene.add(*shapes, *moved(key, MARGIN, y - 8))
    scene.ground()
    return Picture(scene, f"<{summary}>")


def _words(memory: Memory) -> str:
    views = "; ".join(
        f"{v.name} {shape_text(v.shape)} stride {shape_text(v.stride)} offset {v.offset}"
        for v in memory.views
    )
    return f"{memory.cells:,} cells of {memory.dtype}; {views}"


def _legend(several: bool) -> tuple[list[Shape], float, float]:
    entries = [
        ("cell seen once, in the colour of its tensor", tinted(palette.VIEWS[0], 1.0), False)
    ]
    if several:
        entries.append(("memory cell seen at several places", tinted(palette.SHARED, 1.0), False))
    return legend(entries)


# one storage ---------------------------------------------------------------------------------


def _panel(memory: Memory) -> tuple[list[Shape], float, float, bool]:
    """Return one storage with its views: shapes, width, height, and whether it shares cells."""
    matrices = [blocks(view) for view in memory.views]
    visible = [[c for b in some if b for c in b.cells.values()] for some in matrices]
    in_turn = (c for row in zip_longest(*visible) for c in row if c is not None)
    shown = chosen_cells(memory, in_turn, _MOST_CELLS)
    drawn = sorted({c for c in (*shown, *chain(*visible)) if c is not None})
    values = {cell: memory.value(cell) for cell in drawn}
    touches = {cell: [view.places(cell) for view in memory.views] for cell in drawn}
    shared = {cell for cell, counts in touches.items() if sum(counts) > 1}
    wide = 42.0
    for cell in drawn:
        wide = max(wide, width(values[cell], 12.5) + 14, width(str(cell), palette.SMALL_SIZE) + 10)
    wide = min(round(wide), 92.0)

    again = "the same memory read as " if memory.again else "memory: "
    title = f"{again}{memory.cells:,} {'cell' if memory.cells == 1 else 'cells'} of {memory.dtype}"
    size = f"{memory.cells * memory.item_bytes:,} bytes"
    shapes: list[Shape] = [
        heading(0, 12, title),
        Text(width(title, palette.TITLE_SIZE, bold=True) + 12, 12, size, color=palette.MUTED),
    ]
    hues = [palette.VIEWS[n % len(palette.VIEWS)] for n in range(len(memory.views))]
    row, row_width, row_height = _cells(shown, values, touches, hues, wide)
    shapes += moved(row, 0, 26)
    y = 26 + row_height + 26
    x, line_height, panel_width = 0.0, 0.0, row_width
    for at, (view, hue, some) in enumerate(zip(memory.views, hues, matrices, strict=True)):
        twice = {cell for cell, counts in touches.items() if counts[at] > 1}
        grid, grid_width, grid_height = _view(view, some, hue, values, twice, wide)
        if x and x + grid_width > max(_WIDE, row_width):
            x, y, line_height = 0.0, y + line_height + 30, 0.0
        shapes += moved(grid, x, y)
        panel_width = max(panel_width, x + grid_width)
        x += grid_width + 46
        line_height = max(line_height, grid_height)
    panel_width = max(panel_width, width(title, palette.TITLE_SIZE, bold=True) + 90)
    return shapes, panel_width, y + line_height, bool(shared)


def _cells(
    shown: list[Pick],
    values: dict[int, str],
    touches: dict[int, list[int]],
    hues: list[Hue],
    wide: float,
) -> tuple[list[Shape], float, float]:
    """Return the memory cells, each with its number and one bar for each view that shows it."""
    shapes: list[Shape] = []
    bars = 4.0 * max((sum(map(bool, counts)) for counts in touches.values()), default=0)
    line_height = _CELL + bars + 24
    x = y = longest = 0.0
    in_line, per_line = 0, min(16, int(_WIDE / wide))
    for cell in shown:
        if in_line == per_line:
            x, y, in_line = 0.0, y + line_height + 4, 0
        in_line += 1
        if cell is None:
            shapes.append(_dots(x + _GAP / 2, y + _CELL / 2))
            x += _GAP
            longest = max(longest, x)
            continue
        seen = [hue for hue, count in zip(hues, touches[cell], strict=True) if count]
        hue = palette.SHARED if sum(touches[cell]) > 1 else seen[0] if seen else None
        middle = x + wide / 2
        fill, line = (hue.tint, hue.line) if hue else (UNUSED, palette.BOX_LINE)
        ink = palette.INK if seen else palette.MUTED
        shapes.append(Rect(x + 1, y, wide - 2, _CELL, 4.0, fill, line, 1.0))
        text = shorten(values[cell], 12.5, wide - 8)
        shapes.append(Text(middle, y + 19.5, text, 12.5, ink, "middle"))
        for at, its in enumerate(seen):
            shapes.append(Rect(x + 4, y + _CELL + 3 + 4 * at, wide - 8, 2.6, 1.3, its.line))
        base = y + _CELL + bars + 15
        shapes.append(remark(middle, base, str(cell), "middle"))
        x += wide
        longest = max(longest, x)
    if not shown:
        shapes.append(Rect(1, 0, 84, _CELL, 4.0, "none", palette.EDGE, 1.0, (4.0, 3.0)))
        shapes.append(Text(43, 19.5, "no cells", color=palette.MUTED, anchor="middle"))
        longest = 84.0
    return shapes, longest, y + line_height


def _dots(x: float, y: float) -> Text:
    return Text(x, y + 3, "…", 14.0, palette.MUTED, "middle")


# one view ------------------------------------------------------------------------------------


def _view(
    view: View,
    matrices: list[Block | None],
    hue: Hue,
    values: dict[int, str],
    twice: set[int],
    wide: float,
) -> tuple[list[Shape], float, float]:
    """Return a view's heading and its grid."""
    name = shorten(clean(view.name), palette.TITLE_SIZE, 200, bold=True)
    tip = view.name if name != clean(view.name) else ""
    facts = f"shape {shape_text(view.shape)} · stride {shape_text(view.stride)}"
    facts += f" · offset {view.offset}"
    formula = view.formula() if view.numel else "no elements, so no cells"
    shapes: list[Shape] = [
        Rect(0, 1, 4, 13, 2.0, hue.line),
        Text(11, 12, name, palette.TITLE_SIZE, palette.INK, bold=True, tip=tip),
        Text(11, 29, facts, palette.TEXT_SIZE, palette.INK),
        Text(11, 45, formula, palette.TEXT_SIZE, palette.MUTED),
    ]
    longest = max(
        width(name, palette.TITLE_SIZE, bold=True),
        width(facts, palette.TEXT_SIZE),
        width(formula, palette.TEXT_SIZE),
    )
    longest += 11
    if not view.numel:
        return shapes, longest, 50.0
    x, top, bottom = 0.0, 62.0, 62.0
    for number_, block in enumerate(matrices):
        if block is None:
            shapes.append(_dots(x + 4, top + 40))
            x += 26
            continue
        grid, w, h = _grid(view, block, hue, values, twice, wide, steps=number_ == 0)
        shapes += moved(grid, x, top)
        x += w + 20
        bottom = max(bottom, top + h)
    return shapes, max(longest, x - 20), bottom


def _grid(
    view: View,
    block: Block,
    hue: Hue,
    values: dict[int, str],
    twice: set[int],
    wide: float,
    *,
    steps: bool,
) -> tuple[list[Shape], float, float]:
    """Return one matrix; with `steps`, arrows beside it say how far a step moves in memory."""
    across = len(block.columns) > 1 and bool(view.shape)
    down = len(block.rows) > 1
    reach = width(f"+{view.stride[-2]}", 10.5) if down else 0.0
    left = max(34.0, reach + 16.0) if down and steps else 0.0
    # blocks stand on one line whether they carry arrows or not
    top = (16.0 if block.label else 0.0) + (20.0 if across else 0.0)
    shapes: list[Shape] = []
    if block.label:
        shapes.append(Text(left, 10, block.label, palette.TEXT_SIZE, palette.MUTED, bold=True))
    x_of, x = [], left
    for column in block.columns:
        x_of.append(x)
        x += _GAP if column is None else wide
    y_of, y = [], top
    for row in block.rows:
        y_of.append(y)
        y += 20.0 if row is None else _GRID
    for r, row in enumerate(block.rows):
        if row is None:
            shapes.append(_dots((left + x) / 2, y_of[r] + 9))
            continue
        for c, column in enumerate(block.columns):
            if column is None:
                shapes.append(_dots(x_of[c] + _GAP / 2, y_of[r] + _GRID / 2))
                continue
            cell = block.cells[row, column]
            its = palette.SHARED if cell in twice else hue
            shapes += _cell(x_of[c], y_of[r], wide, values[cell], cell, its)
    if steps and across and block.columns[1] is not None:
        start, end = x_of[0] + wide / 2, x_of[1] + wide / 2
        middle, step = (start + end) / 2, f"+{view.stride[-1]}"
        label = Text(middle, top - 11, step, palette.SMALL_SIZE, hue.line, "middle")
        shapes += [*_step((start, top - 6), (end, top - 6), hue.line), label]
    if steps and down and block.rows[1] is not None:
        start, end = y_of[0] + _GRID / 2, y_of[1] + _GRID / 2
        base = (start + end) / 2 + 3.5
        label = Text(left - 14, base, f"+{view.stride[-2]}", palette.SMALL_SIZE, hue.line, "end")
        shapes += [*_step((left - 7, start), (left - 7, end), hue.line), label]
    return shapes, x, y


def _cell(x: float, y: float, wide: float, value: str, cell: int, hue: Hue) -> list[Shape]:
    """A square with a value, and below it the number of its memory cell."""
    middle, value = x + wide / 2, shorten(value, 12.5, wide - 8)
    return [
        tile(x + 1, y + 1, wide - 2, _GRID - 2, 4.0, hue),
        Text(middle, y + 17.5, value, 12.5, palette.INK, "middle"),
        remark(middle, y + 31.0, str(cell), "middle"),
    ]


def _step(start: tuple[float, float], end: tuple[float, float], color: str) -> list[Shape]:
    way = (end[0] - start[0], end[1] - start[1])
    length = abs(way[0]) + abs(way[1])
    stop = (end[0] - way[0] / length * 5, end[1] - way[1] / length * 5)
    return [Path(segment(start, stop), stroke=color, line=1.3), arrow_head(end, way, color, 6.5)]
