"""Which examples stand together in a batch: an epoch as rows of squares, one colour per class."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from toytorch.viz.draw import palette
from toytorch.viz.draw.picture import Picture
from toytorch.viz.draw.scene import Rect, Scene, heading, remark
from toytorch.viz.draw.text import width

MARGIN, SQUARE, GAP, HEAD = 22.0, 9.0, 1.5, 46.0
NUMBER, BETWEEN = 26.0, 40.0  # room for a batch's number, and between two epochs
HUES = (palette.BLUE, palette.AMBER, palette.GREEN, palette.PURPLE, palette.RED, palette.SKY)


def batches(labels: Any, names: Sequence[str] = (), **epochs: Any) -> Picture:
    """Epochs beside each other, each batch a row, each example a square in the colour of its class.

    `labels` are the classes of all examples, `names` their names. Each epoch is a DataLoader, of
    which only the order is asked, or a list of batches of numbers. The mouse on a square tells the
    example's number.

    >>> batches([0, 0, 1, 1], ["cat", "dog"], first=[[0, 1], [2, 3]], second=[[3, 0], [2, 1]])
    batches: 4 examples of 2 classes, in first and second
    """
    kinds = [int(label) for label in labels]
    orders = {
        name: [[int(i) for i in batch] for batch in _order(epoch)] for name, epoch in epochs.items()
    }
    if not orders or not all(orders.values()):
        raise ValueError(
            "batches needs at least one epoch with at least one batch, as in "
            "batches(labels, shuffled=loader)"
        )
    scene = Scene(0.0, 0.0, "which examples stand together", "One row of squares for each batch.")
    x, tall = MARGIN, 0
    for name, order in orders.items():
        scene.add(heading(x + NUMBER, MARGIN + 12, name.replace("_", " ")))
        _epoch(scene, x, order, kinds, names)
        longest = max(len(batch) for batch in order) * (SQUARE + GAP)
        x += NUMBER + max(longest, width(name, palette.TITLE_SIZE, bold=True)) + BETWEEN
        tall = max(tall, len(order))
    bottom = HEAD + tall * (SQUARE + 4) + 8
    classes = sorted(set(kinds))
    right = _legend(scene, bottom + 12, classes, names)
    scene.width = max(x - BETWEEN + MARGIN, right + MARGIN - 20)
    scene.height = bottom + 12 + MARGIN
    scene.ground()
    ways = " and ".join(name.replace("_", " ") for name in orders)
    return Picture(scene, f"batches: {len(kinds)} examples of {len(classes)} classes, in {ways}")


def _order(epoch: Any) -> Iterable[Iterable[int]]:
    sampler = getattr(epoch, "batch_sampler", None)
    return epoch if sampler is None else sampler


def _epoch(
    scene: Scene, left: float, order: list[list[int]], kinds: list[int], names: Sequence[str]
) -> None:
    for row, batch in enumerate(order):
        y = HEAD + row * (SQUARE + 4)
        scene.add(remark(left + NUMBER - 8, y + 8, str(row), "end"))
        for column, example in enumerate(batch):
            hue = HUES[kinds[example] % len(HUES)]
            scene.add(
                Rect(
                    left + NUMBER + column * (SQUARE + GAP),
                    y,
                    SQUARE,
                    SQUARE,
                    2,
                    hue.line,
                    tip=f"example {example}, {_name(kinds[example], names)}",
                )
            )


def _legend(scene: Scene, y: float, classes: list[int], names: Sequence[str]) -> float:
    """Names of the classes; returns where they end."""
    x = MARGIN + NUMBER
    for kind in classes:
        name = _name(kind, names)
        scene.add(Rect(x, y - 9, 10, 10, 2, HUES[kind % len(HUES)].line), remark(x + 15, y, name))
        x += width(name, palette.SMALL_SIZE) + 35
    return x


def _name(kind: int, names: Sequence[str]) -> str:
    return names[kind] if kind < len(names) else f"class {kind}"
