"""Every wrong answer of tests/course/wrong is red, and at least half of them are named."""

from __future__ import annotations

import ast
import functools
from collections import Counter

import pytest

from course import registry
from course.judge import Verdict, judge
from course.panel import text
from tests.course.wrong import Wrong, all_wrong

WRONG = all_wrong()


def _meaning(source: str) -> str:
    """A definition without its docstrings and comments."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(
            node, clean=False
        ):
            node.body = node.body[1:] or [ast.Pass()]
    return ast.dump(tree)


def _is_mutant(answer: Wrong) -> bool:
    """Whether it has become a mutant since it was written."""
    source = getattr(answer.variant, "source", None)  # what was handed in has none
    mutants = registry.exercise(answer.exercise).mutants
    return source is not None and _meaning(source) in {_meaning(m.source) for m in mutants}


OTHERS = [answer for answer in WRONG if not _is_mutant(answer)]


@functools.cache
def verdict_on(answer: Wrong) -> Verdict:
    """What the checks say, asked once a session."""
    return judge(registry.exercise(answer.exercise), answer.value)


def _named(answer: Wrong) -> bool:
    """Whether the panel says which misconception it is, or that the answer is borrowed."""
    verdict = verdict_on(answer)
    return verdict.mutant is not None or any(o.kind == "borrowed" for o in verdict.outcomes)


@pytest.mark.parametrize("answer", WRONG, ids=lambda answer: f"{answer.exercise}: {answer.label}")
def test_a_wrong_answer_is_red(answer: Wrong) -> None:
    verdict = verdict_on(answer)
    assert verdict.state == "red", text(verdict)
    assert all(outcome.kind != "broken" for outcome in verdict.outcomes), text(verdict)


@pytest.mark.parametrize("number", sorted({registry.exercise(w.exercise).chapter for w in OTHERS}))
def test_half_of_those_that_are_no_mutants_are_named_or_diagnosed(number: int) -> None:
    """A copy of a mutant is always named, so it does not count here."""
    own = [w for w in OTHERS if registry.exercise(w.exercise).chapter == number]
    named = [w for w in own if _named(w)]
    told = [w for w in own if not _named(w) and verdict_on(w).diagnosis]
    said = f"chapter {number:02d}: of {len(own)}, {len(named)} named, {len(told)} diagnosed"
    print(said)
    assert 2 * (len(named) + len(told)) >= len(own), said


def test_every_exercise_has_five_that_are_no_mutants() -> None:
    count = Counter(answer.exercise for answer in OTHERS)
    assert not {name: count[name] for name in registry.all_exercises() if count[name] < 5}


def test_there_are_300_that_are_no_mutants() -> None:
    said = f"{len(WRONG)} wrong answers, of which {len(WRONG) - len(OTHERS)} have become mutants"
    print(said)
    assert len(OTHERS) >= 300, said


def test_no_label_comes_twice() -> None:
    count = Counter((w.exercise, w.label) for w in WRONG)
    assert [key for key, times in count.items() if times > 1] == []
