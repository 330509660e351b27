"""Stepping through a program: what is read after each statement, and how it is told."""

from __future__ import annotations

import subprocess
import sys

import pytest

import toytorch as torch
from tests.viz.helpers import parsed, texts
from toytorch import viz
from toytorch.viz.memory.program_record import record

CLASH = """
x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = x.exp()
y.mul_(10)
y.sum().backward()
"""
VIEW = """
w = torch.tensor([2.0, 3.0], requires_grad=True)
base = torch.ones(4)
view = base[1:3]
view.mul_(w)
(base * base).sum().backward()
"""


def test_a_clash_is_recorded_and_ends_the_program() -> None:
    made = record(CLASH + "never = 1\n", {})
    assert len(made.frames) == 5
    assert [f.error != "" for f in made.frames] == [False] * 4 + [True]
    kept = made.frames[3].kept
    assert [(k.node, k.what, k.seen, k.now) for k in kept] == [
        ("ExpBackward0", "y, its result", 0, 1)
    ]
    assert kept[0].stale


def test_views_share_memory_and_version() -> None:
    made = record(VIEW, {})
    block = made.frames[4].blocks[1]
    assert [(h.name, h.version, h.origin) for h in block.tensors] == [
        ("base", 1, "from CopySlices"),
        ("view", 1, "from AsStridedBackward0"),
    ]
    assert block.tensors[1].cells == [False, True, True, False]
    assert block.values == ["1.", "2.", "3.", "1."]
    assert made.frames[-1].blocks[0].tensors[0].grad == "[4., 6.]"


def test_captions_tell_the_story() -> None:
    said = viz.program_steps(VIEW).captions
    assert said[0] == "The program has 5 steps."
    assert said[1] == "w is a leaf that wants a gradient."
    assert said[3] == "view wants no gradient, on the memory of base."
    assert "base and view are written to: version 0 becomes 1" in said[4]
    assert "base is now from CopySlices" in said[4]
    clash = viz.program_steps(CLASH).captions
    assert clash[-1] == "Refused: ExpBackward0 kept y, its result at version 0, and it is at 1."


def test_given_names_are_there_from_the_start() -> None:
    x = torch.ones(2)
    steps = viz.program_steps("x.add_(1)\nassert x.sum() == 3, 'no'", x=x)
    assert steps.captions == [
        "x is there. The program has 2 steps.",
        "x is written to: version 0 becomes 1.",
        "Refused: no.",
    ]
    with pytest.raises(ValueError, match="no statements"):
        viz.program_steps("# nothing")
    with pytest.raises(SyntaxError):
        viz.program_steps("x =")


def test_every_frame_is_a_picture() -> None:
    steps = viz.program_steps(CLASH)
    for n in range(len(steps)):
        parsed(steps.svg(n))
    assert "version 1" in texts(steps.svg())
    assert "version 1" not in texts(steps.svg(2))
    assert repr(steps) == "<program of 4 steps>"


def test_the_same_bytes_in_another_process() -> None:
    code = f"from toytorch import viz; print(viz.program_steps({CLASH!r}).html, end='')"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert run.stdout.decode() == viz.program_steps(CLASH).html
