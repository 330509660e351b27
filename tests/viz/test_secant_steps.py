"""A slope checked by differences: the numbers, the frames, and what is said."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

import toytorch as torch
from tests.viz.helpers import parsed, texts
from toytorch import viz


def cubic(x: Any) -> Any:
    return x * x * x - 2 * x


def test_captions_hold_the_differences() -> None:
    steps = viz.secants(cubic, 2.0, [1.0, 0.1])
    assert steps.captions == [
        "The slope at 2 is 10, says autograd. Is it?",
        "Step 1 to both sides: the chord has the slope 11, off by 1.",
        "Step 0.1 to both sides: the chord has the slope 10.01, off by 0.01.",
    ]


def test_errors_fall_and_rise_again() -> None:
    said = viz.secants(cubic, 1.1).captions[1:]
    errors = [float(line.rpartition(" ")[2].rstrip(".")) for line in said]
    best = errors.index(min(errors))
    assert 4 < best < len(errors) - 2
    assert errors[0] > 0.5
    assert errors[-1] > 1000 * errors[best]


def test_a_wrong_derivative_is_seen() -> None:
    with torch.ops.tanh.using(d_self=lambda g, result: g * (1 - result)):
        said = viz.secants(torch.tanh, 1.0, [1e-5]).captions
    assert "off by 0.2" in said[1]


def test_a_tensor_says_in_which_type() -> None:
    said = viz.secants(cubic, torch.tensor(1.1), [1e-4]).captions[1]
    error = float(said.rpartition(" ")[2].rstrip("."))
    assert error > 1e-5


def test_every_frame_is_a_picture() -> None:
    steps = viz.secants(lambda x: x.sqrt(), 1.0, [2.0, 0.5])  # not a number on the left
    for n in range(len(steps)):
        parsed(steps.svg(n))
    assert "both sides" in texts(steps.svg(0))
    assert repr(viz.secants(lambda x: 2 * x, 1.0, [1.0])) == "<secants: slope 2., 1 steps>"
    with pytest.raises(ValueError, match="positive"):
        viz.secants(cubic, 1.0, [0.0])


def test_the_same_bytes_in_another_process() -> None:
    code = (
        "from toytorch import viz\n"
        "print(viz.secants(lambda x: x * x * x - 2 * x, 1.1).html, end='')"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert run.stdout.decode() == viz.secants(lambda x: x * x * x - 2 * x, 1.1).html
