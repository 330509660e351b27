"""Every exercise: the reference passes, the stub is open, each mutant fails under its own name.

Every wrong answer of tests/course/wrong is red, and at least half of them are named. That is asked in
this file, too, as answers are compared with what the mutants came to, which is found out once a process.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import re
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from course import package, registry
from course.build.source import read
from course.contents import Chapter, written
from course.judge import Verdict, judge, know, run_checks, verdict_on
from course.panel import Panel, html, text
from course.records import Exercise
from tests.course.wrong import Wrong, all_wrong

EXERCISES = list(registry.all_exercises().values())
LEAST = 2.5  # seconds in which every wrong answer that comes to an end does so


def name_of(found: Exercise) -> str:
    return found.name


every = pytest.mark.parametrize("found", EXERCISES, ids=name_of)
every_mutant = pytest.mark.parametrize(
    ("found", "position"),
    [(found, position) for found in EXERCISES for position in range(len(found.mutants))],
    ids=lambda value: value.name if isinstance(value, Exercise) else str(value),
)


@functools.cache
def answered(found: Exercise) -> tuple[Verdict, float]:
    """What the checks say of the reference, and the processor's seconds that took."""
    begun = time.process_time()
    verdict = judge(found, found.answer.value)
    return verdict, time.process_time() - begun


@contextlib.contextmanager
def sooner(found: Exercise) -> Iterator[None]:
    """Stop endless answers after a few times what the reference takes here, not at the learner's limit.

    Of the wrong answers here none that comes to an end takes a third of that. Whether the learner's
    limit is enough for right answers is asked with the reference, which runs under it.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(found, "limit", min(found.limit, max(LEAST, 4 * answered(found)[1])))
        yield


@every
def test_reference_is_green(found: Exercise) -> None:
    verdict, _ = answered(found)
    assert verdict.state == "green", text(verdict)
    assert "pass" in text(verdict)


@every
def test_stub_is_open(found: Exercise) -> None:
    verdict = judge(found, found.start.value)
    assert verdict.state == "open", text(verdict)


@functools.cache
def first_verdict(found: Exercise, position: int) -> Verdict:
    """What the checks say of a mutant, asked once for all tests below.

    Answers are compared with these very outcomes: another run's are those of the test of panels.
    """
    with sooner(found):
        outcomes = run_checks(found, found.mutants[position].value)
        know(found, position, outcomes)
        return verdict_on(found, outcomes)


@every_mutant
def test_mutant_is_red_under_its_own_name(found: Exercise, position: int) -> None:
    mutant = found.mutants[position]
    verdict = first_verdict(found, position)
    assert verdict.state == "red"
    said = text(verdict)
    assert verdict.mutant is mutant, said
    assert mutant.label in said
    assert mutant.why.split("\n")[0] in said
    assert mutant.label in re.sub(r"<[^>]+>", "", html(verdict)).replace("&#x27;", "'").replace(
        "&quot;", '"'
    ).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


@every_mutant
def test_panels_are_stable_and_show_no_machinery(found: Exercise, position: int) -> None:
    with sooner(found):
        again = judge(found, found.mutants[position].value)
    panels = [Panel(verdict) for verdict in (first_verdict(found, position), again)]
    assert repr(panels[0]) == repr(panels[1])
    assert panels[0]._repr_html_() == panels[1]._repr_html_()
    for shown in (repr(panels[0]), panels[0]._repr_html_()):
        assert "Traceback" not in shown
        assert "judge.py" not in shown
        assert " at 0x" not in shown
        assert not re.search(r"<(script|style|link)\b", shown)


@every
def test_the_record_is_complete(found: Exercise) -> None:
    assert re.fullmatch(r"[a-z0-9_]+\.[a-z0-9_]+", found.name)
    assert len(found.mutants) >= 3
    assert len({mutant.label for mutant in found.mutants}) == len(found.mutants)
    assert all(len(mutant.why) > 60 for mutant in found.mutants)
    assert found.checks
    assert 3 <= found.minutes <= 60
    assert len(found.prompt) > 80
    assert found.start.name == found.answer.name
    assert all(mutant.name == found.function for mutant in found.mutants)
    lines = [x for x in found.answer.source.splitlines() if x.strip()]
    assert 2 <= len(lines) <= (150 if package.file_of(found) else 45)


@every
def test_nothing_gives_the_answer_away(found: Exercise) -> None:
    """The prompt holds no line of the reference, and the stub no more than it has to."""
    body = [line.strip() for line in found.answer.source.splitlines()[1:]]
    telling = [line for line in body if len(line) > 25 and not line.startswith(('"""', "#"))]
    assert not [line for line in telling if line in found.prompt]
    assert "NotImplementedError" in found.start.source or "..." in found.start.source


@pytest.mark.parametrize("chapter", written(), ids=lambda chapter: chapter.stem)
def test_every_exercise_is_asked_and_checked_once(chapter: Chapter) -> None:
    cells = read(chapter)
    names = [found.name for found in registry.of_chapter(chapter.number)]
    asked = [c.exercise.name for c in cells if c.role == "exercise" and c.exercise]
    checked = [c.exercise.name for c in cells if c.role == "check" and c.exercise]
    assert sorted(asked) == sorted(checked) == sorted(names)
    assert asked == checked
    assert 3 <= len([n for n in names if not registry.exercise(n).optional]) <= 6


@every
def test_injection_points_open_and_close(found: Exercise) -> None:
    """A submission plugged in is used, and the framework is itself again afterwards."""
    if found.inject is None:
        with pytest.raises(RuntimeError, match="no injection point"), found.active(quiet=True):
            raise AssertionError("an exercise without an injection point was plugged in")
        return
    answer: Any = found.answer.value
    found.keep(answer)
    try:
        with found.active(quiet=True) as piece:
            assert piece is answer
        with pytest.raises(ZeroDivisionError), found.active(quiet=True):
            1 / 0  # noqa: B018
    finally:
        found.keep(None)
    assert judge(found, answer).state == "green"


# -- wrong answers --------------------------------------------------------------------------------


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


@functools.cache
def _meanings(exercise: str) -> frozenset[str]:
    """Those of an exercise's mutants, asked once for all of its wrong answers."""
    return frozenset(_meaning(mutant.source) for mutant in registry.exercise(exercise).mutants)


def _is_mutant(answer: Wrong) -> bool:
    """Whether it has become a mutant since it was written."""
    source = getattr(answer.variant, "source", None)  # what was handed in has none
    return source is not None and _meaning(source) in _meanings(answer.exercise)


@functools.cache
def others() -> list[Wrong]:
    """The wrong answers that are no mutants."""
    return [answer for answer in WRONG if not _is_mutant(answer)]


@functools.cache
def wrong_verdict(answer: Wrong) -> Verdict:
    """What the checks say, asked once a session."""
    found = registry.exercise(answer.exercise)
    with sooner(found):
        return judge(found, answer.value)


def _named(answer: Wrong) -> bool:
    """Whether the panel says which misconception it is, or that the answer is borrowed."""
    verdict = wrong_verdict(answer)
    return verdict.mutant is not None or any(o.kind == "borrowed" for o in verdict.outcomes)


@pytest.mark.parametrize("answer", WRONG, ids=lambda answer: f"{answer.exercise}: {answer.label}")
def test_a_wrong_answer_is_red(answer: Wrong) -> None:
    verdict = wrong_verdict(answer)
    assert verdict.state == "red", text(verdict)
    assert all(outcome.kind != "broken" for outcome in verdict.outcomes), text(verdict)


@pytest.mark.parametrize("number", sorted({registry.exercise(w.exercise).chapter for w in WRONG}))
def test_half_of_those_that_are_no_mutants_are_named_or_diagnosed(number: int) -> None:
    """A copy of a mutant is always named, so it does not count here."""
    own = [w for w in others() if registry.exercise(w.exercise).chapter == number]
    named = [w for w in own if _named(w)]
    told = [w for w in own if not _named(w) and wrong_verdict(w).diagnosis]
    said = f"chapter {number:02d}: of {len(own)}, {len(named)} named, {len(told)} diagnosed"
    print(said)
    assert 2 * (len(named) + len(told)) >= len(own), said


def test_every_exercise_has_five_that_are_no_mutants() -> None:
    count = Counter(answer.exercise for answer in others())
    assert not {name: count[name] for name in registry.all_exercises() if count[name] < 5}


def test_there_are_300_that_are_no_mutants() -> None:
    said = f"{len(WRONG)} wrong answers, of which {len(WRONG) - len(others())} have become mutants"
    print(said)
    assert len(others()) >= 300, said


def test_no_label_comes_twice() -> None:
    count = Counter((w.exercise, w.label) for w in WRONG)
    assert [key for key, times in count.items() if times > 1] == []
