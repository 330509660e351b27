"""Every wrong answer of tests/course/wrong is red, and at least half of them are named."""

from __future__ import annotations

from collections import Counter

import pytest

from course import registry
from course.judge import judge
from course.panel import text
from tests.course.wrong import Wrong, all_wrong

WRONG = all_wrong()


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


@pytest.mark.parametrize("number", sorted({registry.exercise(w.exercise).chapter for w in WRONG}))
def test_every_exercise_has_five(number: int) -> None:
    count = Counter(w.exercise for w in WRONG)
    few = {x.name: count[x.name] for x in registry.of_chapter(number) if count[x.name] < 5}
    assert not few


def test_no_label_comes_twice() -> None:
    count = Counter((w.exercise, w.label) for w in WRONG)
    assert [key for key, times in count.items() if times > 1] == []
