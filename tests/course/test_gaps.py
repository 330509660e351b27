"""The walk by hints: how a skeleton is completed, and that every exercise's third hint can be."""

from __future__ import annotations

import sys
from typing import Any

import pytest

pytest.importorskip("websocket")

from course import registry
from course.hints import code_of
from course.judge import judge
from course.records import Exercise
from tests.course.walk import report
from tests.course.walk.gaps import Mismatch, fill
from tests.course.walk.learner import Walked

EVERY = list(registry.all_exercises().values())


def test_gaps_are_filled_and_all_else_is_the_hints() -> None:
    reference = '''
def mean(numbers, start=0):
    """The mean."""
    total = start
    for number in numbers:
        total += number
    count = len(numbers)
    return total / max(count, 1)
'''
    skeleton = """
def mean(numbers, start=0):
    so_far = start
    ...  # add them up
    return so_far / ...
"""
    filled = fill(skeleton, reference)
    assert filled.source == (
        "def mean(numbers, start=0):\n    so_far = start\n"
        "    for number in numbers:\n        so_far += number\n"
        "    count = len(numbers)\n    return so_far / max(count, 1)\n"
    )
    assert len(filled.gaps) >= 2


@pytest.mark.parametrize(
    ("skeleton", "reference"),
    [
        ("def f(x):\n    return ... + 1", "def f(x):\n    return x - 1"),
        ("def f(x):\n    ...\n    return x", "def f(x):\n    x = 1\n    return y"),
        ("def f(a, b):\n    return g(b, ...)", "def f(a, b):\n    return g(a, b)"),
        ("for x in y:\n    ...", "while y:\n    pass"),
        (
            "class A:\n    def f(self):\n        return ...",
            "class A:\n    def g(self):\n        return 1",
        ),
    ],
)
def test_a_skeleton_that_says_something_else_is_refused(skeleton: str, reference: str) -> None:
    with pytest.raises(Mismatch, match="line"):
        fill(skeleton, reference)


@pytest.mark.parametrize("found", EVERY, ids=lambda found: found.name)
def test_the_third_hint_leads_to_a_green_answer(found: Exercise) -> None:
    """Its gaps filled from the reference, the skeleton passes the checks; empty gaps do not."""
    (skeleton,) = code_of(found.hints[2])
    filled = fill(skeleton, found.answer.source)
    assert filled.gaps
    for line in _telling(skeleton):
        assert line in filled.source.replace('"', "'"), line
    space: dict[str, Any] = dict(vars(sys.modules[found.answer.module]))
    space.pop(found.function, None)
    exec(compile(filled.source, f"hint of {found.name}", "exec"), space)
    assert judge(found, space[found.function]).state == "green"


def _telling(skeleton: str) -> list[str]:
    """Lines of the skeleton without a gap, as `ast.unparse` writes them: heads and plain calls."""
    import ast

    lines = ast.unparse(ast.parse(skeleton)).replace('"', "'").splitlines()
    return [line.strip() for line in lines if "..." not in line and line.strip().startswith("def ")]


def test_both_walks_of_a_chapter_are_kept_side_by_side(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "RECORD", tmp_path / "walked.json")
    monkeypatch.setattr(report, "PAGE", tmp_path / "walk.md")
    monkeypatch.setattr(report.load, "__defaults__", (tmp_path / "walked.json",))
    plain = Walked("01_tensors", "HeadlessChrome/1", 50.0, 20.0, exercises={"tensors.shape": 1.0})
    hinted = Walked(
        "01_tensors", wall=90.0, exercises={"tensors.shape": 9.0}, hinted={"tensors.shape": 3}
    )
    report.keep([plain])
    report.keep([hinted], hints=True)
    report.keep([plain])
    known = report.load()["01_tensors"]
    assert known["exercises"] == {"tensors.shape": 1.0}
    assert known["hints"]["gaps"] == {"tensors.shape": 3}
    row = (tmp_path / "walk.md").read_text(encoding="utf-8")
    assert "90.0 s, 1 exercises, 3 gaps" in row
    assert "3 gaps filled" in report.table([hinted])
