"""The benchmarks run, print what they promise, and both sides do the same work."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks.case import Case
from tests.benchmarks.cases import CASES
from tests.oracle import SELFTEST, SUBJECT, differences, torch, tt

ROOT = Path(__file__).resolve().parents[2]
selftest = pytest.mark.skipif(SELFTEST, reason="compares toytorch with PyTorch")


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_same_work(case: Case) -> None:
    """Results of a case agree on both sides, after three calls too."""
    theirs, ours = case.build(torch), case.build(tt)
    for _ in range(3):
        want, got = theirs(), ours()
    if want is not None and not case.random:
        bad = differences(want, got, SUBJECT)
        assert not bad, bad


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-m", "tests.benchmarks", "--quick", *arguments],
        cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


@selftest
def test_table() -> None:
    done = run("-k", "10 floats")
    assert done.returncode == 0, done.stderr
    assert "pytorch threads 1, numpy threads 1" in done.stdout
    rows = [line for line in done.stdout.splitlines() if "10 floats" in line]
    assert len(rows) == 3
    assert all("µs" in line for line in rows)


@selftest
def test_json_and_plot(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    file = tmp_path / "plot.svg"
    done = run("-k", "x * 2.0", "--json", "--plot", str(file))
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["conditions"]["pytorch_threads"] == 1
    (result,) = told["results"]
    assert result["ratio"] > 0
    assert result["low"] <= result["ratio"] <= result["high"]
    from tests.benchmarks.__main__ import plot

    again = tmp_path / "again.svg"
    plot(told["results"], told["conditions"], again)
    assert file.read_bytes() == again.read_bytes(), "the same numbers must give the same bytes"
    assert b"<svg" in file.read_bytes()[:1000]


def test_unknown_case() -> None:
    done = run("-k", "no such case")
    assert done.returncode == 2
    assert "no case holds" in done.stderr
