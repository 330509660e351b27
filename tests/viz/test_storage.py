"""The picture of memory under tensors."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

import toytorch as torch
from tests.viz.helpers import in_another_process, parsed, texts
from toytorch import viz
from toytorch.viz.memory.cells import View, blocks, memories, picks


def drawn_cells(view: View) -> list[int]:
    return [cell for block in blocks(view) if block is not None for cell in block.cells.values()]


def test_a_matrix_shows_values_cells_and_facts() -> None:
    x = torch.arange(6).reshape(2, 3)
    shown = texts(viz.storage(x=x * 10).svg)
    assert "memory: 6 cells of int64" in shown
    assert "48 bytes" in shown
    assert "shape (2, 3) · stride (3, 1) · offset 0" in shown
    assert "[i, j] is cell 0 + 3·i + 1·j" in shown
    assert "+1" in shown
    assert "+3" in shown
    assert shown.count("50") == 2  # once in memory, once in the view
    assert shown.count("5") == 2  # the number of that cell, likewise


def test_views_of_one_storage_share_one_row() -> None:
    x = torch.arange(12.0).reshape(3, 4)
    picture = viz.storage(x=x, t=x.t(), row=x[1])
    shown = texts(picture.svg)
    assert [text for text in shown if text.startswith("memory:")] == ["memory: 12 cells of float32"]
    assert "shape (4, 3) · stride (1, 4) · offset 0" in shown
    assert "shape (4,) · stride (1,) · offset 4" in shown
    assert "memory cell seen at several places" in shown
    assert repr(picture).startswith(
        "<storage: 12 cells of float32; x (3, 4) stride (4, 1) offset 0"
    )


def test_separate_storages_have_rows_of_their_own() -> None:
    shown = texts(viz.storage(torch.zeros(2), torch.ones(2)).svg)
    assert shown.count("memory: 2 cells of float32") == 2
    assert "tensor 0" in shown
    assert "tensor 1" in shown
    assert "memory cell seen at several places" not in shown


def test_cells_are_those_that_indexing_reads() -> None:
    base = torch.arange(60)
    views = [
        base.reshape(3, 4, 5),
        base.reshape(3, 4, 5).permute(2, 0, 1),
        base[7:50:3],
        base.reshape(6, 10)[1:4, 2:9:2],
        base.reshape(2, 2, 3, 5).transpose(0, 3),
        base[4],
        base[:5].expand(3, 5),
    ]
    for tensor in views:
        view = memories([("v", tensor)])[0].views[0]
        for index in itertools.product(*(range(size) for size in tensor.shape)):
            assert view.cell(index) == tensor[index].item()


@pytest.mark.parametrize(
    ("shape", "stride", "offset"),
    [
        ((3, 4), (4, 1), 0),
        ((4, 3), (1, 4), 2),
        ((3, 3), (0, 1), 1),
        ((3, 4), (2, 1), 0),
        ((), (), 5),
        ((2, 0), (1, 1), 0),
        ((2, 3, 2), (7, 2, 3), 1),
        ((5,), (3,), 4),
        ((2, 2), (0, 0), 3),
    ],
)
def test_places_counts_elements(
    shape: tuple[int, ...], stride: tuple[int, ...], offset: int
) -> None:
    view = View("v", shape, stride, offset, "float32")
    cells = [view.cell(index) for index in itertools.product(*(range(size) for size in shape))]
    for cell in range(30):
        assert view.places(cell) == min(2, cells.count(cell))


def test_stride_zero_shows_one_cell_many_times() -> None:
    picture = viz.storage(rows=torch.tensor([7, 8, 9]).expand(3, 3))
    shown = texts(picture.svg)
    assert "memory: 3 cells of int64" in shown
    assert "+0" in shown
    assert shown.count("7") == 4
    assert "memory cell seen at several places" in shown


def test_a_number_an_empty_tensor_and_many_dimensions() -> None:
    assert "the element is cell 0" in texts(viz.storage(torch.tensor(3.5)).svg)
    empty = texts(viz.storage(torch.zeros(0, 3), torch.zeros(2, 0)).svg)
    assert empty.count("no cells") == 2
    assert empty.count("no elements, so no cells") == 2
    cube = texts(viz.storage(torch.arange(24).reshape(2, 3, 4)).svg)
    assert "[0]" in cube
    assert "[1]" in cube
    deep = texts(viz.storage(torch.zeros(2, 3, 2, 2, 2)).svg)
    assert "[0, 0, 0]" in deep
    assert "[1, 2, 1]" in deep
    assert "[0, 2, 0]" not in deep


def test_a_large_tensor_is_shown_in_part() -> None:
    x = torch.arange(1_000_000).reshape(1000, 1000)
    picture = viz.storage(x=x, block=x[500:510, 3:6])
    shown = texts(picture.svg)
    assert len(picture.svg) < 80_000
    assert shown.count("…") > 4
    assert "999999" in shown
    assert "500003" in shown
    assert len(drawn_cells(memories([("x", x)])[0].views[0])) <= 49


def test_a_view_in_another_dtype_is_the_same_memory() -> None:
    x = torch.ones(4)
    shown = texts(viz.storage(x=x, bits=x.view(torch.int32)).svg)
    assert "the same memory read as 4 cells of int32" in shown
    assert "1065353216" in shown


@pytest.mark.parametrize("name", ["bool", "uint8", "int64", "float16", "bfloat16", "complex64"])
def test_every_kind_of_value(name: str) -> None:
    tensor = torch.tensor([0, 1, 1, 0]).to(getattr(torch, name)).reshape(2, 2)
    parsed(viz.storage(t=tensor).svg)


def test_drawing_changes_nothing() -> None:
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    version = y._version
    viz.storage(y=y, part=y[1:])
    assert y._version == version
    assert x.grad is None
    y.sum().backward()


def test_picks() -> None:
    assert picks(8, 8) == list(range(8))
    assert picks(9, 8) == [0, 1, 2, 3, 4, 5, None, 8]
    assert picks(0, 8) == []


def test_same_bytes_in_every_process() -> None:
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    code = "viz.storage(x=x, part=x[1:]).svg.encode()"
    here = viz.storage(x=x, part=x[1:]).svg.encode()
    assert in_another_process(code, hash_seed="1") == here
    assert in_another_process(code, hash_seed="2") == here


def test_hostile_names_and_wrong_arguments(tmp_path: Path) -> None:
    picture = viz.storage(**{"<script>alert(1)</script>": torch.ones(2)})
    assert "<script" not in picture.svg
    assert picture.save(tmp_path / "s.svg").read_bytes() == picture.svg.encode()
    with pytest.raises(TypeError, match="at least one tensor"):
        viz.storage()
    with pytest.raises(TypeError, match="tensors with strides, got list"):
        viz.storage([1, 2])
