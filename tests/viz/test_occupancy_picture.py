"""The picture of a kernel's occupancy: its numbers, its curves, its cells."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.viz.helpers import in_another_process, parsed, texts
from toytorch import viz
from toytorch.facts.cards import CARDS, KIB
from toytorch.facts.occupancy import occupancy
from toytorch.viz.draw import palette
from toytorch.viz.draw.scene import Path as Line
from toytorch.viz.draw.scene import Rect, Text
from toytorch.viz.draw.text import width as text_width

KERNELS = [
    (256, 40, 0, "A100"),
    (1000, 32, 20_000, "H100"),
    (64, 24, 0, "T4"),
    (128, 64, 48 * KIB, "RTX 3090"),
    (1, 0, 0, "V100"),
    (1024, 80, 0, "B200"),  # refused
    (32, 300, 300 * KIB, "H200"),  # refused for two reasons
]


def cells(picture: Any) -> list[Rect]:
    """The places of warps."""
    return [s for s in picture.scene.shapes
            if isinstance(s, Rect) and (s.tip == "empty" or s.tip.startswith("block "))]  # fmt: skip


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_picture_has_the_numbers_of_the_calculation(kernel: tuple[int, int, int, str]) -> None:
    threads, registers, shared, card = kernel
    picture, found = viz.occupancy(*kernel), occupancy(card, threads, registers, shared)
    places = cells(picture)
    assert len(places) == CARDS[card].warps
    filled = [p.tip for p in places if p.tip != "empty"]
    assert len(set(filled)) == len(filled) == found.warps
    assert len({tip.split(",")[0] for tip in filled}) == found.blocks
    said = texts(picture.svg)
    for limit in found.limits.values():
        assert f"{limit:,} block{'s' * (limit != 1)}" in said
    alarms = [s.text for s in picture.scene.shapes if isinstance(s, Text)
              and s.color == palette.ALARM and s.text in found.limits]  # fmt: skip
    assert alarms == found.limited_by
    assert f"limited by {' and '.join(found.limited_by)}" in said


def test_the_kernels_point_lies_on_each_curve() -> None:
    for kernel in KERNELS[:4]:
        picture = viz.occupancy(*kernel)
        curves = [s for s in picture.scene.shapes if isinstance(s, Line) and s.line == 1.8]
        dots = [s for s in picture.scene.shapes if isinstance(s, Rect) and s.tip.endswith("%")]
        assert len(curves) == len(dots) == 3
        for curve, dot in zip(curves, dots):
            x, y = dot.x + dot.w / 2, dot.y + dot.h / 2
            points = [p for _, at in curve.commands for p in at]
            assert any(
                min(a[0], b[0]) - 1 <= x <= max(a[0], b[0]) + 1
                and min(a[1], b[1]) - 0.5 <= y <= max(a[1], b[1]) + 0.5
                for a, b in zip(points, points[1:])
            )


def test_warps_go_round_the_partitions() -> None:
    # one block of six warps: two partitions have two of them, two have one
    picture = viz.occupancy(192, 32, 200 * KIB, "H100")
    rights = sorted({round(p.x // 1) for p in cells(picture) if p.tip != "empty"})
    assert len([p for p in cells(picture) if p.tip != "empty"]) == 6
    assert len(rights) == 6  # four partitions, and the second cell of two of them


def test_refusals_say_why() -> None:
    assert "the card refuses this kernel" in " ".join(texts(viz.occupancy(1024, 80).svg))
    assert "a block needs 81,920 of 65,536" in texts(viz.occupancy(1024, 80).svg)
    assert "a thread has at most 255" in texts(viz.occupancy(32, 256).svg)
    assert "a block has at most 1,024" in texts(viz.occupancy(2000).svg)
    assert "a block has at most 227 KB" in texts(viz.occupancy(32, 32, 228 * KIB).svg)
    with pytest.raises(ValueError, match="unknown card '<b>'"):
        viz.occupancy(32, card="<b>")
    with pytest.raises(ValueError, match="at least one thread"):
        viz.occupancy(0)
    with pytest.raises(ValueError, match="at least 320"):
        viz.occupancy(32, width=100.0)


@pytest.mark.parametrize("width", [320, 400, 700, 960])
def test_nothing_is_written_beyond_the_edges_or_over_each_other(width: float) -> None:
    for kernel in KERNELS:
        picture = viz.occupancy(*kernel, width=width)
        parsed(picture.svg)
        boxes = []
        for shape in picture.scene.shapes:
            if isinstance(shape, Text):
                wide = text_width(shape.text, shape.size, bold=shape.bold)
                left = shape.x - {"start": 0, "middle": wide / 2, "end": wide}[shape.anchor]
                assert shape.size >= 11
                assert left >= 0 and left + wide <= width + 0.5, shape.text
                boxes.append((left, shape.y - 8, left + wide, shape.y, shape.text))
        for n, a in enumerate(boxes):
            for b in boxes[:n]:
                apart = a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]
                assert apart, (a[4], b[4])


def test_hostile_names_stay_text() -> None:
    name = "</text><script>alert(1)</script>\"'<b>é漢\u202e"
    svg = viz.occupancy(64, card=replace(CARDS["H100"], name=name)).svg
    parsed(svg)
    assert "<script" not in svg and "\u202e" not in svg


def test_the_same_bytes_in_another_process() -> None:
    here = viz.occupancy(256, 40, 1000, "A100").svg.encode()
    code = "viz.occupancy(256, 40, 1000, 'A100').svg.encode()"
    assert in_another_process(code, hash_seed="3") == here
