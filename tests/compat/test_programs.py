"""Programs as they are found in tutorials, unchanged: toytorch prints what PyTorch prints.

Each of `programs/` runs in two processes, once where `torch` is PyTorch and once where it is
toytorch (`toytorch.alias`). Texts have to be the same, numbers within 1e-3.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
NAMES = sorted(p.stem for p in (HERE / "programs").glob("*.py") if p.stem != "common")
NUMBER = re.compile(r"-?(?:\d+\.?\d*(?:e[+-]?\d+)?|inf|nan)\b")
RTOL, ATOL = 1e-3, 1e-4

pytest.importorskip("torch", reason="PyTorch, the oracle of these programs, is absent")


@cache
def results(package: str) -> dict[str, Any]:
    """What all programs print under one of the packages."""
    env = {
        **os.environ,
        "PYTHONPATH": str(HERE.parent.parent),
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONHASHSEED": "0",
    }
    done = subprocess.run(
        [sys.executable, str(HERE / "run_all.py"), package, *NAMES],
        env=env,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def difference(ours: str, theirs: str) -> str:
    """The first line that differs; nothing if none does."""
    a, b = ours.splitlines(), theirs.splitlines()
    for x, y in zip(a, b):
        if NUMBER.sub("#", x).split() != NUMBER.sub("#", y).split() or any(
            not close(p, q) for p, q in zip(NUMBER.findall(x), NUMBER.findall(y))
        ):
            return f"toytorch: {x}\nPyTorch:  {y}"
    return "" if len(a) == len(b) else f"{len(a)} lines and {len(b)}"


def close(x: str, y: str) -> bool:
    p, q = float(x), float(y)
    return p == q or (p != p and q != q) or abs(p - q) <= ATOL + RTOL * abs(q)


@pytest.mark.parametrize("name", NAMES)
def test_a_program_prints_the_same(name: str) -> None:
    theirs, ours = results("torch")[name], results("toytorch")[name]
    assert not theirs["error"], f"under PyTorch: {theirs['error']}"
    assert not ours["error"], f"under toytorch: {ours['error']}"
    assert len(theirs["out"]) > 20
    assert not difference(ours["out"], theirs["out"])


def test_numbers_that_differ_are_found() -> None:
    assert difference("loss 1.000", "loss 1.0004") == ""
    assert difference("loss 1.0", "loss 1.1")
    assert difference("Loss 1.0", "loss 1.0")
    assert difference("a 1\nb 2", "a 1")
