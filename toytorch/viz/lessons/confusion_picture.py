"""What was taken for what: a confusion matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toytorch.viz.draw import palette
from toytorch.viz.draw.picture import Picture
from toytorch.viz.draw.scene import Rect, Scene, Shape, Text, heading, remark
from toytorch.viz.draw.text import shorten, width

MARGIN, SIDE, LABEL = 22.0, 34.0, 110.0


def confusion(matrix: Any, names: Sequence[str] = (), *, title: str = "") -> Picture:
    """A matrix of counts, rows what it was and columns what was said; right answers are green.

    The darker, the larger the share of the row. `names` are those of the classes. Raises ValueError
    for a matrix that is not square or has negative counts.

    >>> confusion([[9, 1], [0, 10]], ["cat", "dog"])
    confusion: 19 of 20 right, most often cat taken for dog (1)
    """
    rows = [[int(count) for count in row] for row in matrix]
    n = len(rows)
    if not n or any(len(row) != n for row in rows) or min(map(min, rows)) < 0:
        raise ValueError("a confusion matrix is square, with counts of 0 and more")
    said = [names[i] if i < len(names) else str(i) for i in range(n)]
    wide = min(LABEL, max(width(name, palette.TEXT_SIZE) for name in said))
    left, top = MARGIN + 22 + wide + 10, MARGIN + 46
    side = max(SIDE, min(LABEL, wide) + 8) if n <= 6 else SIDE
    scene = Scene(
        left + n * side + 60 + MARGIN,
        top + n * SIDE + MARGIN + 6,
        title or "what was taken for what",
    )
    right, total = sum(rows[i][i] for i in range(n)), sum(map(sum, rows))
    head = title or f"{right} of {total} right"
    scene.add(
        heading(MARGIN, MARGIN + 10, head),
        remark(left + n * side / 2, top - 26, "answer", "middle"),
        remark(MARGIN, top - 8, "truth"),
        remark(left + n * side + 50, top - 8, "right", "end"),
    )
    size = palette.TEXT_SIZE
    for i, row in enumerate(rows):
        y, whole = top + i * SIDE, sum(row)
        middle = left + i * side + side / 2
        scene.add(
            Text(left - 10, y + 21, shorten(said[i], size, LABEL), size, anchor="end"),
            Text(middle, top - 8, shorten(said[i], size, side + 4), size, anchor="middle"),
        )
        if whole:
            scene.add(remark(left + n * side + 50, y + 21, f"{row[i] / whole:.0%}", "end"))
        for j, count in enumerate(row):
            tip = f"{count} of {whole} {said[i]} taken for {said[j]}"
            scene.add(*_cell(left + j * side, y, side, count, whole, i == j, tip))
    scene.ground()
    wrong = [(rows[i][j], -i, -j) for i in range(n) for j in range(n) if i != j and rows[i][j]]
    worst = ""
    if wrong:
        count, i, j = max(wrong)
        worst = f", most often {said[-i]} taken for {said[-j]} ({count})"
    scene.description = f"{right} of {total} right{worst}."
    return Picture(scene, f"confusion: {right} of {total} right{worst}")


def _cell(
    x: float, y: float, side: float, count: int, whole: int, right: bool, tip: str
) -> list[Shape]:
    """A count, on a colour that is strong where it is more than half of its row."""
    hue = palette.GREEN if right else palette.RED
    strong = bool(whole) and count / whole > 0.5
    fill = palette.REST if not count else hue.line if strong else hue.tint
    cell: list[Shape] = [Rect(x + 1, y + 1, side - 2, SIDE - 2, 4, fill, "none", tip=tip)]
    if count:
        ink = palette.BOX if strong else palette.INK
        middle = x + side / 2
        cell.append(Text(middle, y + 21, str(count), palette.TEXT_SIZE, ink, "middle", right))
    return cell
