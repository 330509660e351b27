"""Every wrong answer of tests/course/wrong is red, and at least half of them are named."""

from __future__ import annotations

import ast
from collections import Counter

import pytest

from course import registry
from course.judge import judge
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


@pytest.mark.parametrize("answer", WRONG, ids=lambda answer: f"{answer.exercise}: {answer.label}")
def test_a_wrong_answer_is_red(answer: Wrong) -> None:
    verdict = judge(registry.exercise(answer.exercise), answer.value)
    assert verdict.state == "red", text(verdict)
    assert all(outcome.kind != "broken" for outcome in verdict.outcomes), text(verdict)


@pytest.mark.parametrize("number", sorted({registry.exercise(w.exercise).chapter for w in WRONG}))
def test_half_of_them_are_named(number: int) -> None:
    own = [w for w in WRONG if registry.exercise(w.exercise).chapter == number]
    verdicts = [judge(registry.exercise(w.exercise), w.value) for w in own]
    named = [v.mutant is not None or v.failure.kind == "borrowed" for v in verdicts if v.failure]
    told = sum(bool(v.diagnosis) for v in verdicts)
    said = f"chapter {number:02d}: {len(own)} wrong answers, {sum(named)} named, {told} diagnosed"
    print(said)
    assert 2 * sum(named) >= len(own), said


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
