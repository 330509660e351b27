"""`python3 -m course test --gpu`: without a card it says what to install; its parts otherwise."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from course import gpu
from course.contents import ROOT
from tests.cuda.conftest import GPU, pretended

XML = """<?xml version="1.0"?><testsuites><testsuite name="pytest">
<testcase classname="tests.cuda.test_a" name="test_one[cuda-add]"/>
<testcase classname="tests.cuda.test_a" name="test_two"><failure message="m">line 1
E   AssertionError: two</failure></testcase>
<testcase classname="tests.cuda.test_a" name="test_three"><skipped message="no"/></testcase>
<testcase classname="tests.cuda.test_a" name="test_four"><error message="m">no fixture</error>
</testcase></testsuite></testsuites>
"""


@pytest.mark.skipif(GPU, reason="there is a card")
def test_without_a_card() -> None:
    before = os.times()
    done = subprocess.run(
        [sys.executable, "-m", "course", "test", "--gpu"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == gpu.NO_CARD == 2
    after = os.times()  # of processors, which other work on the machine does not lengthen
    used = after.children_user + after.children_system
    assert used - before.children_user - before.children_system < 3
    assert "No tests were run: " in done.stderr and "[test,cuda12]" in done.stderr
    assert "Traceback" not in done.stderr


def test_results_are_read(tmp_path: Path) -> None:
    path = tmp_path / "results.xml"
    path.write_text(XML)
    counts, failures = gpu.outcome(path)
    assert counts == {"passed": 1, "failed": 2, "skipped": 1}
    assert [name for name, _ in failures] == [
        "tests.cuda.test_a.test_two",
        "tests.cuda.test_a.test_four",
    ]
    assert "AssertionError: two" in failures[0][1]
    assert gpu.outcome(tmp_path / "none.xml")[1] == [("pytest", "it wrote no results")]


def test_a_report() -> None:
    """Written from times that were really taken, of the stand-in."""
    from tests.cuda import measure

    with pretended(formulas=False):
        facts = {**measure.facts(), "measured": measure.measured(8, 16, 1)}
    facts["measured"]["torch"] = {"version": "0", "seconds": facts["measured"]["seconds"]}
    text = gpu.report(
        facts, {"passed": 3, "failed": 1, "skipped": 0}, [("a.b", "boom")], "2026-01-01"
    )
    assert text.startswith("# toytorch on stand-in for CuPy, 2026-01-01")
    assert "3 passed, 1 failed, 0 skipped." in text and "### a.b" in text and "boom" in text
    assert "| softmax |" in text and "| iou fused |" in text and "| 1.00 |" in text
    assert "CuPy: 14.2.0" in text and "100% |" in text
    assert len([line for line in text.splitlines() if line.startswith("| ")]) >= 12 + 2


def test_a_report_of_a_broken_run() -> None:
    text = gpu.report({"card": "X", "broken": "RuntimeError: no"}, {"passed": 0}, [], "2026-01-01")
    assert "The measurements did not run" in text and "RuntimeError: no" in text


def test_many_failures_are_cut_short() -> None:
    text = gpu.report({"card": "X"}, {}, [(f"t{k}", "boom") for k in range(60)], "2026-01-01")
    assert text.count("### t") == gpu.LONGEST and "- t59" in text
