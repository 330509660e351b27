"""Pictures of training: maps of answers, confusion, what a checkpoint holds."""

from __future__ import annotations

import re
from typing import Any

import pytest

import toytorch as torch
from tests.viz.helpers import in_another_process, parsed, texts
from toytorch import viz

POINTS = torch.tensor([[-1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
LABELS = torch.tensor([0, 1, 1])


def left_or_right(points: Any) -> Any:
    """Class 0 left of the middle, class 1 right of it."""
    return torch.stack([-points[:, 0], points[:, 0]], 1)


def always_one(points: Any) -> Any:
    """Class 1 everywhere."""
    return torch.tensor([[0.0, 1.0]]).expand(len(points), 2)


def maps() -> Any:
    return viz.boundary_steps(
        POINTS,
        LABELS,
        {"epoch 0": always_one, "epoch 1": left_or_right},
        unseen=(POINTS[:2], LABELS[:2]),
        resolution=8,
    )


def test_a_map_has_the_colour_of_the_answer() -> None:
    steps = maps()
    assert repr(steps) == "<boundary steps: 2 moments from epoch 0 to epoch 1>"
    rows = steps._animation.scene.shapes
    before = [
        s
        for s in rows
        if getattr(s, "when", None) == (0, 0) and hasattr(s, "w") and s.h < 60 and s.w > 300
    ]
    after = [
        s
        for s in rows
        if getattr(s, "when", None) == (1, 1) and hasattr(s, "w") and 150 < s.w < 200
    ]
    assert len(before) == 8  # one run in each row
    assert len(after) == 16  # two runs
    assert len({s.fill for s in after}) == 2


def test_captions_say_both_numbers() -> None:
    first, second = maps().captions
    assert first.startswith("epoch 0: 67% of the 3 training points right, 50% of 2 others. Losses")
    assert second.startswith("epoch 1: ")
    for step in (0, 1):
        parsed(maps().svg(step))


def test_a_map_is_the_same_in_another_process() -> None:
    code = (
        "viz.boundary_steps(torch.tensor([[-1.0, 0.0], [1.0, 0.0]]), torch.tensor([0, 1]), "
        "{'a 0': lambda p: torch.stack([-p[:, 0], p[:, 0]], 1), 'a 1': lambda p: "
        "torch.stack([-p[:, 1], p[:, 0]], 1)}, unseen=(torch.tensor([[-1.0, 0.0]]), "
        "torch.tensor([0]))).html.encode()"
    )
    assert in_another_process(code, hash_seed="1") == in_another_process(code, hash_seed="2")


@pytest.mark.parametrize(
    ("points", "snapshots", "says"),
    [(POINTS, {}, "at least one snapshot"), (torch.zeros(3, 3), {"a": always_one}, "in a plane")],
)
def test_maps_that_cannot_be(points: Any, snapshots: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        viz.boundary_steps(points, LABELS, snapshots, unseen=(POINTS, LABELS))


def test_confusion_tells_counts_and_the_worst() -> None:
    picture = viz.confusion(torch.tensor([[5, 2, 0], [1, 4, 0], [0, 0, 0]]), ["a", "b"])
    assert repr(picture) == "confusion: 9 of 12 right, most often a taken for b (2)"
    said = texts(picture.svg)
    assert {"9 of 12 right", "a", "b", "2", "5", "4", "1", "71%", "80%"} <= set(said)
    assert picture.png()[:4] == b"\x89PNG"


@pytest.mark.parametrize("wrong", [[], [[1, 2]], [[1, -1], [0, 0]]])
def test_what_is_no_confusion_matrix(wrong: Any) -> None:
    with pytest.raises(ValueError, match="square"):
        viz.confusion(wrong)


def test_contents_counts_bytes() -> None:
    state = {
        "model": {"w": torch.zeros(256), "b": torch.zeros(2)},
        "epoch": 3,
        "rates": [torch.zeros(1, dtype=torch.float64), 0.5],
    }
    picture = viz.contents(state)
    assert repr(picture) == "contents: 3 entries, 3 tensors, 1.02 KB"
    said = texts(picture.svg)
    assert {
        "model",
        "2 entries",
        "w",
        "(256,) float32",
        "1 KB",
        "8 B",
        "3",
        "2 values, 1 tensor",
    } <= set(said)
    assert "w" not in texts(viz.contents(state, depth=1).svg)
    assert not re.search("0x", picture.svg)
    with pytest.raises(ValueError, match="nothing"):
        viz.contents({})
