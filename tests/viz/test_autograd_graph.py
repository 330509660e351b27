"""The picture of the backward graph."""

from __future__ import annotations

import base64
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import toytorch as torch
from tests.viz.helpers import in_another_process, parsed, small_graph, texts
from toytorch import viz
from toytorch.viz.draw import dot
from toytorch.viz.draw.boxes import Box


def test_it_shows_leaves_nodes_results_and_what_is_saved() -> None:
    loss, names = small_graph()
    shown = texts(viz.autograd_graph(loss, params=names).svg)
    for title in ("loss", "x", "w", "SumBackward0", "AddBackward0", "MulBackward0", "ExpBackward0"):
        assert title in shown
    assert shown.count("MulBackward0") == 2
    assert "(2, 1) float32" in shown  # the leaf w
    assert "y → (2, 3)" in shown  # a named intermediate result, with its shape
    assert "(2, 3) v0" in shown  # a saved tensor, with its version
    assert any(text.endswith("= x") for text in shown)  # and by its name where it has one


def test_saved_tensors_can_be_left_out() -> None:
    loss, names = small_graph()
    graph = viz.autograd_graph(loss, params=names, saved=False)
    assert not [text for text in texts(graph.svg) if text.endswith("v0")]


def test_versions_follow_writes() -> None:
    x = torch.ones(3, requires_grad=True)
    c = torch.ones(3)
    c.mul_(2)
    c.mul_(2)
    assert "(3,) v2" in texts(viz.autograd_graph(x * c).svg)


def test_a_write_after_saving_is_pointed_out() -> None:
    x = torch.ones(3, requires_grad=True)
    c = torch.ones(3)
    y = x * c
    c.add_(1)
    assert "(3,) v0, now v1" in texts(viz.autograd_graph(y).svg)


def test_names_are_optional_and_may_be_pairs() -> None:
    loss, names = small_graph()
    unnamed = texts(viz.autograd_graph(loss).svg)
    assert unnamed.count("leaf") == 2
    assert "result" in unnamed
    pairs = viz.autograd_graph(loss, params=list(names.items()))
    assert pairs.svg == viz.autograd_graph(loss, params=names).svg


def test_several_results_and_a_leaf_alone() -> None:
    x = torch.ones(3, requires_grad=True)
    shown = texts(viz.autograd_graph(x.sum(), x.mean()).svg)
    assert "result 0" in shown
    assert "result 1" in shown
    assert shown.count("leaf") == 1
    assert texts(viz.autograd_graph(x, params={"x": x}).svg).count("x") == 2


def test_a_graph_that_was_used_up_says_so() -> None:
    x = torch.tensor(2.0, requires_grad=True)
    y = x * x
    y.backward()
    assert "freed by backward" in texts(viz.autograd_graph(y).svg)


def test_a_branch_used_twice_has_two_arrows() -> None:
    x = torch.tensor(2.0, requires_grad=True)
    text = viz.autograd_graph(x * x).dot
    assert text.count("n1 -> n2;") == 2


def test_same_bytes_in_every_process() -> None:
    loss, names = small_graph()
    graph = viz.autograd_graph(loss, params=names)
    code = "viz.autograd_graph(loss, params=names)"
    for seed in ("1", "2"):
        assert in_another_process(f"{code}.svg.encode()", hash_seed=seed) == graph.svg.encode()
        assert in_another_process(f"{code}.dot.encode()", hash_seed=seed) == graph.dot.encode()
    pytest.importorskip("matplotlib")
    assert in_another_process(f"{code}.png()", hash_seed="3") == graph.png()


def test_the_notebook_gets_svg_png_and_words() -> None:
    pytest.importorskip("matplotlib")
    loss, names = small_graph()
    graph = viz.autograd_graph(loss, params=names)
    data, about = graph._repr_mimebundle_()
    assert data["image/svg+xml"] == graph.svg
    assert base64.b64decode(data["image/png"]).startswith(b"\x89PNG")
    assert data["text/plain"] == repr(graph)
    assert about["image/png"]["width"] == round(graph.scene.width)
    assert "0x" not in repr(graph)


def test_without_matplotlib_the_svg_is_still_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [n for n in sys.modules if n.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    data, _ = viz.autograd_graph(small_graph()[0])._repr_mimebundle_()
    assert set(data) == {"text/plain", "image/svg+xml"}


def test_hostile_names_are_escaped() -> None:
    x = torch.ones(2, requires_grad=True)
    graph = viz.autograd_graph(x.sum(), params={"<script>alert(1)</script>": x})
    assert "<script" not in graph.svg
    assert "<script>alert(1)</script>" in texts(graph.svg)
    quoted = viz.autograd_graph(x.sum(), params={'a"]; b\\': x}).dot
    assert 'label="a\\"]; b\\\\' in quoted


def test_a_chain_of_100_000_nodes_is_summed_up() -> None:
    x = torch.tensor(1.0, requires_grad=True)
    y = x
    for _ in range(100_000):
        y = y * 1.00001
    began = time.perf_counter()
    graph = viz.autograd_graph(y, params={"x": x})
    shown = texts(graph.svg)
    assert time.perf_counter() - began < 20
    assert "x" in shown
    assert "99,996 nodes in single file" in shown
    assert "99,996 × MulBackward0" in shown
    assert any("5 of 100,001 nodes shown" in text for text in shown)
    assert len(graph.svg) < 20_000


def test_a_wide_deep_graph_is_cut_and_says_so() -> None:
    w = torch.ones(4, 4, requires_grad=True)
    h = torch.ones(4, requires_grad=True)
    y = h
    for _ in range(60):
        y = torch.tanh(w @ y + h)
    graph = viz.autograd_graph(y.sum(), params={"w": w, "h": h}, limit=20)
    shown = texts(graph.svg)
    assert any(text.endswith("more nodes") for text in shown)
    assert any("nodes shown; the rest is summed up" in text for text in shown)
    assert "w" in shown
    assert "h" in shown
    assert len(graph.scene.shapes) < 400
    assert "more nodes" not in "".join(texts(viz.autograd_graph(y.sum(), limit=500).svg))


def test_save_by_ending(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    graph = viz.autograd_graph(small_graph()[0])
    assert graph.save(tmp_path / "g.svg").read_bytes() == graph.svg.encode()
    assert graph.save(str(tmp_path / "g.PNG")).read_bytes() == graph.png()
    assert graph.save(tmp_path / "g.dot").read_text() == graph.dot
    assert sorted(path.name for path in tmp_path.iterdir()) == ["g.PNG", "g.dot", "g.svg"]
    with pytest.raises(ValueError, match=r"\.svg or \.png or \.dot"):
        graph.save(tmp_path / "g.pdf")
    with pytest.raises(FileNotFoundError, match="make it first"):
        graph.save(tmp_path / "nowhere" / "g.svg")


def test_a_failed_save_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = viz.autograd_graph(small_graph()[0])
    path = graph.save(tmp_path / "g.svg")
    before = path.read_bytes()

    def refuse(*_: Any) -> None:
        raise OSError("disk is full")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="full"):
        viz.autograd_graph(small_graph()[0], saved=False).save(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["g.svg"]


def test_wrong_arguments_say_what_to_do() -> None:
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(TypeError, match="at least one tensor"):
        viz.autograd_graph()
    with pytest.raises(TypeError, match="expected a tensor"):
        viz.autograd_graph(3.0)
    with pytest.raises(RuntimeError, match="requires_grad=True"):
        viz.autograd_graph(torch.ones(2))
    with pytest.raises(ValueError, match="'auto', 'own' or 'dot'"):
        viz.autograd_graph(x.sum(), layout="neato")
    with pytest.raises(TypeError, match="dictionary of names"):
        viz.autograd_graph(x.sum(), params=3)
    with pytest.raises(ValueError, match="at least 1"):
        viz.autograd_graph(x.sum(), limit=0)


# dot -------------------------------------------------------------------------------------------


def test_without_dot_the_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    loss, _ = small_graph()
    with pytest.raises(RuntimeError, match=r"Install it.*layout='auto'"):
        viz.autograd_graph(loss, layout="dot")
    assert "SumBackward0" in texts(viz.autograd_graph(loss).svg)


def test_the_layout_of_dot_is_read() -> None:
    boxes = [Box("a"), Box("b")]
    plain = (
        "graph 1 2.0 3.0\n"
        "node n0 1.0 2.5 1.2 0.5 a solid box black lightgrey\n"
        "node n1 1.0 0.5 1.2 0.5 b solid box black lightgrey\n"
        "edge n0 n1 4 1.0 2.25 1.0 1.9 1.0 1.3 1.0 0.75 solid black\n"
        "stop\n"
    )
    placed = dot.parse(plain, boxes, [(0, 1)])
    assert (placed.width, placed.height) == (144, 216)
    assert placed.corners[0] == (72 - boxes[0].w / 2, 36 - boxes[0].h / 2)
    (route,) = placed.routes
    assert route[0] == ("M", ((72, 54),))
    assert [y for _, y in route[1][1]] == pytest.approx([79.2, 122.4, 162])


def test_dot_draws_the_same_boxes() -> None:
    loss, names = small_graph()
    if shutil.which("dot") is None and dot._from_wheel() is None:
        pytest.skip("neither Graphviz nor graphviz-pure is installed")
    by_dot = viz.autograd_graph(loss, params=names, layout="dot")
    own = viz.autograd_graph(loss, params=names, layout="own")
    parsed(by_dot.svg)
    assert sorted(texts(by_dot.svg)) == sorted(texts(own.svg))
