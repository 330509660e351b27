"""Pictures of the compiler: what they say, that they are well formed and always the same bytes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import toytorch as torch
from tests.viz.helpers import in_another_process, in_browser, parsed, texts
from toytorch import viz

FUNCTION = "lambda x: ((-(-x) * 2).tanh() - x).sum(1)"
f = eval(FUNCTION)  # the same text runs in another process


def loop(x: torch.Tensor, n: int) -> torch.Tensor:
    """A function with blocks."""
    for i in range(n):
        if i > 1:
            x = x * 2
    return x


def test_graph() -> None:
    picture = viz.ir(f, torch.ones(4, 3))
    said = texts(picture.svg)
    assert {"FusionGroup", "mul", "tanh", "sub", "sum"} <= set(said)
    assert "4 × 3 float32" in said and "neg" not in said  # -(-x) is x
    parsed(picture.svg)


def test_graph_with_blocks_and_writes() -> None:
    said = texts(viz.ir(torch.jit.script(loop).graph).svg)
    assert {"Loop", "block 0", "%x"} <= set(said)

    def write(x: Any) -> Any:
        y = x * 2
        y.add_(1)
        return y

    picture = viz.ir(torch.jit.trace(write, torch.ones(2)).graph)
    assert "add_" in texts(picture.svg) and "writes" in picture.svg


def test_large_graphs_say_that_they_are_cut() -> None:
    def many(x: Any) -> Any:
        for _ in range(30):
            x = x.sin() @ x
        return x

    graph = torch.jit.trace(many, torch.ones(2, 2)).graph
    cut = texts(viz.ir(graph, limit=10).svg)
    assert sum(word == "sin" for word in cut) == 5 and "the first 10 of 60 operations" in cut


def test_passes_step_by_step() -> None:
    steps = viz.passes(f, torch.ones(4, 3))
    names = [caption.partition(" ")[0] for caption in steps.captions]
    assert "simplify_algebra" in names and names[-1] == "fuse"
    said = texts(re.search(r"<svg.*?</svg>", steps.html, re.DOTALL).group())  # type: ignore[union-attr]
    assert "before" in said and "after" in said
    with pytest.raises(RuntimeError, match="no pass changes"):
        viz.passes(lambda x: x @ x, torch.ones(2, 2))


def branching(x: Any, y: Any) -> Any:
    z = x * y
    if z.sum() > 0:
        z = z * 2
    return torch.tanh(z)


def test_a_trace_step_by_step() -> None:
    steps = viz.trace_steps(branching, torch.ones(3), torch.ones(3))
    assert [caption.split()[1] for caption in steps.captions[1:-1]] == ["2", "4", "5"]
    said = texts(re.search(r"<svg.*?</svg>", steps.html, re.DOTALL).group())  # type: ignore[union-attr]
    assert {"the program", "the graph", "z = z * 2", "%0 = mul(%x, %y)"} <= set(said)
    other = viz.trace_steps(branching, -torch.ones(3), torch.ones(3))
    assert len(other) == len(steps) - 1  # line 4 did not run


def test_a_run_step_by_step() -> None:
    steps = viz.run_steps(torch.jit.script(loop), torch.ones(2), 2)
    assert steps.captions[0] == "The inputs are entered."
    turns = [caption for caption in steps.captions if caption.startswith("Turn")]
    assert turns == ["Turn 0 begins.", "Turn 1 begins."]
    expected = viz.compiler.text_steps.value_text(loop(torch.ones(2), 2))
    assert steps.captions[-1] == f"The result is {expected}."


def test_lines_step_by_step() -> None:
    steps = viz.text_steps(
        [("first", (["a"], {0}), ([], ())), ("second", (["a"], ()), (["b"], {0}))]
    )
    assert steps.captions == ["first", "second"] and steps.png(1)
    with pytest.raises(ValueError, match="one frame"):
        viz.text_steps([])


def test_kernels_in_all_languages() -> None:
    shown = viz.kernel_sources(f, torch.ones(4, 3))
    assert len(shown) == 1 and "tanh" in repr(shown)
    texts_of = shown.sources[0]
    assert "for " in texts_of["python"] and "__global__" in texts_of["cuda"]
    assert "llvm" not in texts_of or "define" in texts_of["llvm"]  # not without llvmlite
    document = in_browser(f"<!doctype html><body>{shown.html}</body>")
    languages = set(texts_of) & {"program", "python", "llvm", "cuda"}
    assert document.count("<pre") == len(languages) and "&lt;" in document
    with pytest.raises(RuntimeError, match="nothing is fused"):
        viz.kernel_sources(lambda x: x @ x, torch.ones(2, 2))


def test_bytes_moved() -> None:
    said = texts(viz.traffic(f, torch.ones(1000, 300)).svg)
    amounts = [float(word.split()[0]) for word in said if word.endswith("MB")]
    # by hand: x·2 moves 2 arrays of 1.2 MB, tanh 2, -x 3, the sum 1; one kernel reads x once
    assert amounts == [9.6, 1.2]


@pytest.mark.parametrize(
    "expression",
    [
        f"viz.ir({FUNCTION}, torch.ones(4, 3)).svg.encode()",
        f"viz.passes({FUNCTION}, torch.ones(4, 3)).html.encode()",
        f"viz.traffic({FUNCTION}, torch.ones(4, 3)).svg.encode()",
        f"viz.run_steps(torch.jit.trace({FUNCTION}, torch.ones(4, 3)), torch.ones(4, 3)).html.encode()",
        f"viz.kernel_sources({FUNCTION}, torch.ones(4, 3)).html.encode()",
    ],
)
def test_the_same_bytes(expression: str) -> None:
    first, second = (in_another_process(expression, hash_seed=seed) for seed in ("1", "2"))
    assert first == second and len(first) > 500


def test_files(tmp_path: Path) -> None:
    for name, made in (
        ("a.html", viz.passes(f, torch.ones(2, 2))),
        ("b.html", viz.kernel_sources(f, torch.ones(2, 2))),
        ("c.svg", viz.traffic(f, torch.ones(2, 2))),
    ):
        made.save(tmp_path / name)  # type: ignore[attr-defined]
        assert (tmp_path / name).stat().st_size > 500
