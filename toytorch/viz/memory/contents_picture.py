"""What a file of tensors holds: every part of a nested dictionary, and how many bytes it takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from toytorch.core.tensor import Tensor
from toytorch.viz.draw import palette
from toytorch.viz.draw.measures import size
from toytorch.viz.draw.picture import Picture
from toytorch.viz.draw.scene import Rect, Scene, Text, heading, remark
from toytorch.viz.draw.text import clean, shorten, width

MARGIN, ROW, BAR, LABEL = 22.0, 24.0, 260.0, 300.0
HUES = (palette.BLUE, palette.PURPLE, palette.AMBER, palette.GREEN, palette.RED, palette.SKY)


def contents(state: Mapping[str, Any], *, depth: int = 2, title: str = "") -> Picture:
    """The parts of a checkpoint as bars: one colour for each entry, one row for what is in it.

    `state` is a dictionary as `torch.save` takes it; below `depth` levels everything is added up.
    Memory that two entries share is counted in both.

    >>> contents({"model": {"weight": torch.zeros(100)}, "epoch": 3})
    contents: 2 entries, 1 tensor, 400 B
    """
    if not state:
        raise ValueError("there is nothing in this state to draw")
    rows: list[tuple[int, int, str, Any]] = []  # level, entry, name, value
    for number, (key, value) in enumerate(state.items()):
        rows.append((0, number, str(key), value))
        if depth > 1 and isinstance(value, Mapping):
            rows += [(1, number, str(name), part) for name, part in value.items()]
    tensors = list(_tensors(state))
    total = sum(_bytes(t) for t in tensors)
    most = max([*(sum(_bytes(t) for t in _tensors(v)) for v in state.values()), 1])
    many = f"{len(tensors)} tensor{'s' * (len(tensors) != 1)}"
    head = title or f"{many}, {size(total)}"
    scene = Scene(2 * MARGIN + LABEL + BAR + 90, MARGIN + 34 + ROW * len(rows) + MARGIN - 6, head)
    scene.add(heading(MARGIN, MARGIN + 10, head))
    for at, (level, number, name, value) in enumerate(rows):
        y, hue = MARGIN + 34 + at * ROW, HUES[number % len(HUES)]
        held = sum(_bytes(t) for t in _tensors(value))
        x = MARGIN + level * 18
        label = shorten(clean(name), palette.TEXT_SIZE, 170, bold=level == 0)
        scene.add(Text(x, y + 14, label, palette.TEXT_SIZE, bold=level == 0))
        said = _said(value)
        if said:
            start = x + width(label, palette.TEXT_SIZE, bold=level == 0) + 10
            scene.add(
                remark(start, y + 14, shorten(said, palette.SMALL_SIZE, MARGIN + LABEL - start - 8))
            )
        if held:
            wide = max(2.0, held / most * BAR)
            scene.add(
                Rect(
                    MARGIN + LABEL,
                    y + 4,
                    wide,
                    ROW - 10,
                    3,
                    hue.line if level == 0 else hue.tint,
                    hue.line,
                ),
                remark(MARGIN + LABEL + wide + 8, y + 14, size(held)),
            )
    scene.ground()
    scene.description = f"{len(state)} entries: " + ", ".join(map(str, state)) + "."
    return Picture(scene, f"contents: {len(state)} entries, {many}, {size(total)}")


def _tensors(value: object) -> Iterator[Any]:
    """All tensors and arrays in a nest of containers."""
    if hasattr(value, "element_size") or isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _tensors(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _tensors(part)


def _bytes(tensor: Tensor) -> int:
    if isinstance(tensor, np.ndarray):
        return int(tensor.nbytes)
    return int(tensor.numel() * tensor.element_size())


def _said(value: Any) -> str:
    """A value in a few words."""
    if hasattr(value, "element_size"):
        return f"{tuple(value.shape)} {str(value.dtype).removeprefix('torch.')}"
    if isinstance(value, Mapping):
        return f"{len(value)} entr{'y' if len(value) == 1 else 'ies'}"
    if isinstance(value, list | tuple):
        inside = len(list(_tensors(value)))
        return f"{len(value)} value{'s' * (len(value) != 1)}" + (
            f", {inside} tensor{'s' * (inside != 1)}" if inside else ""
        )
    return clean(repr(value))
