"""Programs that say `.cuda()`, `device="cuda"`, `torch.cuda.Stream()`, unchanged, on simulated
devices: they print what PyTorch prints on its CPU, and their streams have no races."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="PyTorch, the oracle of these tests, is absent")

HERE = Path(__file__).parent
NAMES = sorted(p.stem for p in (HERE / "cuda_programs").glob("*.py") if p.stem != "data")


def printed(package: str, *names: str) -> dict[str, str]:
    """What programs print, one after the other in one process."""
    done = subprocess.run(
        [sys.executable, str(HERE / "run_cuda.py"), package, *names],
        env={**os.environ, "TOYTORCH_CUDA": "simulate:2" if package == "toytorch" else ""},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@functools.cache
def wanted() -> dict[str, str]:
    """What all programs print under PyTorch, which is loaded once for them."""
    return printed("pytorch", *NAMES)


def numbers(text: str) -> list[float]:
    found = []
    for word in (
        text.replace("[", " ").replace("]", " ").replace(",", " ").replace("'", " ").split()
    ):
        try:
            found.append(float(word.rstrip(":")))
        except ValueError:
            continue
    return found


@pytest.mark.parametrize("name", NAMES)
def test_it_prints_what_pytorch_prints(name: str) -> None:
    want, got = wanted()[name], printed("toytorch", name)[name]
    assert [line.split()[:1] for line in want.split("\n")] == [
        line.split()[:1] for line in got.split("\n")
    ]
    assert numbers(got) == pytest.approx(numbers(want), rel=2e-3, abs=2e-3)
    assert len(numbers(want)) >= 2


def test_there_are_ten() -> None:
    assert len(NAMES) >= 10
