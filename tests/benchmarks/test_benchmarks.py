"""The benchmarks run, print what they promise, and both sides do the same work."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks import report
from tests.benchmarks.case import Case
from tests.benchmarks.cases import CASES
from tests.oracle import SELFTEST, SUBJECT, differences, torch, tt
from toytorch.loops import processor

ROOT = Path(__file__).resolve().parents[2]
selftest = pytest.mark.skipif(SELFTEST, reason="compares toytorch with PyTorch")


# Sums near 0, of terms whose sizes add up to some 600,000: a float32 of that size has steps of 0.06.
CANCELLING = {"sum, 1 million floats": 0.001}


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_same_work(case: Case) -> None:
    """Results of a case agree on both sides, after three calls too."""
    theirs, ours = case.build(torch), case.build(tt)
    for _ in range(3):
        want, got = theirs(), ours()
    if want is not None and not case.random:
        bad = differences(want, got, SUBJECT)
        if bad and case.name in CANCELLING:
            bad = abs(want.item() - got.item()) > CANCELLING[case.name]
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
    from tests.benchmarks.picture import plot

    again = tmp_path / "again.svg"
    plot(told["results"], told["conditions"], again)
    assert file.read_bytes() == again.read_bytes(), "the same numbers must give the same bytes"
    assert b"<svg" in file.read_bytes()[:1000]


def result(name: str, ratio: float) -> dict[str, Any]:
    return {
        "name": name, "toytorch": 1e-3 * ratio, "pytorch": 1e-3, "ratio": ratio, "low": ratio * 0.95,
        "high": ratio * 1.05, "target": 0.9, "traffic": 0, "flops": 10**8, "samples": 3,
        "calls_per_sample": 1,
    }  # fmt: skip


def a_run(threads: int, *results: dict[str, Any]) -> dict[str, Any]:
    about = {"toytorch": "0", "pytorch_threads": threads}
    return {"about": about, "roofline": {"flops": 1e12, "bytes": 1e11}, "results": list(results)}


def test_runs_are_kept_and_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "FOLDER", tmp_path / "benchmarks")
    report.keep("avx2", a_run(1, result("a", 0.5), result("b", 1.0)))
    report.keep("avx2", a_run(1, result("b", 0.8)))  # rows that a run leaves out stay
    report.keep("avx2", a_run(2, result("a", 0.9)))
    runs = report.kept("avx2")
    assert [(r["name"], r["ratio"]) for r in runs["1"]["results"]] == [("a", 0.5), ("b", 0.8)]
    page = (tmp_path / "benchmarks" / "avx2.md").read_text(encoding="utf-8")
    assert page == report.page("avx2", runs)
    assert "## One thread" in page and "## 2 threads" in page
    assert "20 % of 1000 GFLOP/s" in page  # 10⁸ operations in half a millisecond
    new = [result("a", 0.6), result("b", 0.82), result("c", 3.0)]
    assert report.worse(new, runs["1"]) == []  # 0.57 is not above 1.1 of 0.525
    assert report.worse([result("a", 0.7)], runs["1"]) == ["a: 0.50 -> 0.70"]


@pytest.mark.parametrize("file", sorted(report.FOLDER.glob("*.json")), ids=lambda f: f.stem)
def test_pages_are_in_step(file: Path) -> None:
    text = file.with_suffix(".md").read_text(encoding="utf-8")
    assert text == report.page(file.stem, report.kept(file.stem))
    names = {c.name for c in CASES}
    for run in report.kept(file.stem).values():
        assert {r["name"] for r in run["results"]} <= names


@selftest
def test_a_lower_level() -> None:
    done = run("-k", "x * 2.0", "--cpu", "avx2")
    if processor.levels()[-1:] == ["sse4"]:
        pytest.skip("this processor has no AVX2")
    assert done.returncode == 0, done.stderr
    assert "vectors avx2, pytorch vectors AVX2" in done.stdout


def test_unknown_case() -> None:
    done = run("-k", "no such case")
    assert done.returncode == 2
    assert "no case holds" in done.stderr


@selftest
def test_the_database_is_timed() -> None:
    pytest.importorskip("expecttest", reason="PyTorch's database of operators needs expecttest")
    done = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks.database", "-k", "cumsum", "--over", "0"],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip
    assert "masked.cumsum" in done.stdout, done.stderr
    assert "geometric mean" in done.stdout
