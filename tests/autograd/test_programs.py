"""Random programs agree with PyTorch: values, types, layouts, shared memory, errors, gradients.

1,500 programs; TOYTORCH_PROGRAMS=20000 in the environment asks for more.
"""

from __future__ import annotations

import os

import pytest

from tests.autograd.program_check import check, script, shrink
from tests.autograd.program_draw import draw
from tests.autograd.programs import execute
from tests.oracle import ORACLE

COUNT = int(os.environ.get("TOYTORCH_PROGRAMS", "1500"))
BATCH = 50


@pytest.mark.parametrize("first", range(0, COUNT, BATCH))
def test_random_programs(first: int) -> None:
    for seed in range(first, min(first + BATCH, COUNT)):
        check(seed)


def test_programs_are_various() -> None:
    """The generator does what it is for: most steps are used, most are accepted, some refused."""
    lines = [line for seed in range(300) for line in draw(seed)]
    assert len({line.step for line in lines}) > 250
    fates = [f for seed in range(100) for f in execute(draw(seed), ORACLE).fates]
    assert 0.02 < sum(map(bool, fates)) / len(fates) < 0.2


def test_script_runs() -> None:
    """A program is shown as a script that Python runs as it is."""
    text = script(draw(3)).replace("toytorch", "torch")
    exec(compile(text, "script", "exec"), {})
    assert "torch.tensor" in text and callable(shrink)
