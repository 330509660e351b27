"""Batches as rows of squares."""

from __future__ import annotations

import pytest

import toytorch as torch
from tests.viz.helpers import SVG, parsed, texts
from toytorch import viz
from toytorch.utils.data import DataLoader, TensorDataset


def test_one_square_per_example_and_one_row_per_batch() -> None:
    labels = torch.tensor([0, 0, 1, 1, 2])
    loader = DataLoader(TensorDataset(labels), batch_size=2)
    picture = viz.batches(labels, ["a", "b"], in_order=loader, mixed=[[4, 0, 2]])
    said = texts(picture.svg)
    assert {"in order", "mixed", "a", "b", "class 2"} <= set(said)
    tips = [t.text for t in parsed(picture.svg).iter(f"{SVG}title")][1:]
    assert tips[:5] == [
        "example 0, a",
        "example 1, a",
        "example 2, b",
        "example 3, b",
        "example 4, class 2",
    ]
    assert len(tips) == 8
    assert picture.png()[:4] == b"\x89PNG"
    assert repr(picture) == "batches: 5 examples of 3 classes, in in order and mixed"


@pytest.mark.parametrize("epochs", [{}, {"none": []}])
def test_nothing_to_draw(epochs: dict[str, list[list[int]]]) -> None:
    with pytest.raises(ValueError, match="at least one epoch"):
        viz.batches([0, 1], (), **epochs)
