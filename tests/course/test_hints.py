"""Hints: three of them for every exercise, none of them the answer; asked for, shown, logged."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import pytest

from course import hint, progress, registry, shell
from course.build.source import read
from course.contents import written
from course.hints import code_of
from course.judge import check, run_checks, state_of
from course.records import Exercise

# Chapters with an exercise that has no hints yet. Take a chapter out when all of its have them.
NOT_YET: tuple[int, ...] = ()
EVERY = list(registry.all_exercises().values())
HINTED = [found for found in EVERY if found.hints]
every_hinted = pytest.mark.parametrize("found", HINTED, ids=lambda found: found.name)


@pytest.fixture(autouse=True)
def own_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOYTORCH_PROGRESS", str(tmp_path / "progress.json"))


def test_every_exercise_has_three() -> None:
    without = [found.name for found in EVERY if len(found.hints) != 3]
    assert [n for n in without if registry.exercise(n).chapter not in NOT_YET] == []
    done = [n for n in NOT_YET if all(len(x.hints) == 3 for x in registry.of_chapter(n))]
    assert done == [], f"the hints of {done} are complete: take them out of NOT_YET"


@every_hinted
def test_no_hint_is_an_answer(found: Exercise) -> None:
    """Neither a hint's own code nor that of all hints together passes the checks.

    Where lines are left out, loops may have no end: what takes seconds is no answer either.
    """
    hasty = dataclasses.replace(found, limit=2.0)
    blocks = [block for text in found.hints for block in code_of(text)]
    for source in [*blocks, "\n\n".join(blocks)]:
        space: dict[str, Any] = dict(vars(registry_module(found)))
        space.pop(found.function, None)
        try:
            exec(compile(source, f"hint of {found.name}", "exec"), space)
        except Exception:
            continue
        submission = space.get(found.function)
        if submission is not None and submission is not ...:
            assert state_of(run_checks(hasty, submission)) != "green"


def registry_module(found: Exercise) -> Any:
    import sys

    return sys.modules[found.answer.module]


@every_hinted
def test_the_skeleton_begins_like_the_answer_and_leaves_lines_out(found: Exercise) -> None:
    idea, trace, skeleton = found.hints
    (code,) = code_of(skeleton)
    assert re.search(rf"^(def|class) {found.function}\b", code, re.M)
    assert "..." in code
    compile(code, found.name, "exec")
    assert len(idea) > 60 and len(trace) > 60
    assert len(idea) < 900
    hard = [line.strip() for line in found.answer.source.splitlines()]
    shown = {line.strip() for text in found.hints for line in text.splitlines()}
    left_out = [line for line in hard if line and line not in shown]
    assert left_out


@pytest.mark.parametrize("chapter", written(), ids=lambda chapter: chapter.stem)
def test_prompts_say_how_to_ask_and_the_chapter_imports_it(chapter: Any) -> None:
    cells = read(chapter)
    hinted = [c for c in cells if c.role == "prompt" and c.exercise and c.exercise.hints]
    for cell in hinted:
        assert cell.exercise is not None
        assert f'hint("{cell.exercise.name}")' in cell.student
    if hinted:
        first = next(cell for cell in cells if cell.is_code)
        assert re.search(r"^from course import .*\bhint\b", first.student, re.M)


@pytest.fixture
def hinted(monkeypatch: pytest.MonkeyPatch) -> Exercise:
    found = EVERY[0]
    monkeypatch.setattr(
        found, "hints", ("The **idea** is $x^2$.", "A trace.", "```python\ndef f(): ...\n```")
    )
    return found


def test_each_call_shows_the_next_hint(hinted: Exercise) -> None:
    name = hinted.name
    shown = [repr(hint(name)) for _ in range(4)]
    assert "hint 1 of 3" in shown[0] and "idea" in shown[0]
    assert "hint 2 of 3" in shown[1]
    assert "hint 3 of 3" in shown[2] and "```" not in shown[2] and "def f()" in shown[2]
    assert shown[3] == shown[2]
    assert "hint 1 of 3" in repr(hint(name, 1))
    page = hint(name, 1)._repr_html_()
    assert "<strong>idea</strong>" in page and "<math" in page
    with pytest.raises(ValueError, match="1 to 3"):
        hint(name, 4)


def test_attempts_and_hints_are_logged_and_shown(
    hinted: Exercise, capsys: pytest.CaptureFixture[str]
) -> None:
    name = hinted.name
    check(name, hinted.start.value)
    check(name, hinted.mutants[0].value)
    hint(name)
    hint(name, 1)
    hint(name, 3)
    check(name, hinted.answer.value)
    entries = progress.log()
    assert [(e.what, e.how) for e in entries] == [
        ("check", "open"),
        ("check", "red"),
        ("hint", "1"),
        ("hint", "1"),
        ("hint", "3"),
        ("check", "green"),
    ]
    assert all(e.exercise == name and e.time > 1_700_000_000 for e in entries)
    assert shell.status() == 0
    assert re.search(rf"✔ {re.escape(name)} +2 attempts, 2 hints", capsys.readouterr().out)


def test_a_progress_file_of_before_is_read_and_kept() -> None:
    progress.path().write_text(json.dumps({"version": 1, "exercises": {"a.b": "green"}}))
    assert progress.load() == {"a.b": "green"} and progress.log() == []
    progress.note("a.c", "check", "red")
    assert progress.load() == {"a.b": "green"} and len(progress.log()) == 1


def test_a_damaged_log_costs_the_log_only() -> None:
    progress.path().write_text('{"exercises": {"a.b": "green"}, "log": [1, 2]}')
    assert progress.load() == {"a.b": "green"} and progress.log() == []


def test_an_exercise_without_hints_says_so() -> None:
    bare = next((found for found in EVERY if not found.hints), None)
    if bare is not None:
        with pytest.raises(LookupError, match="no hints"):
            hint(bare.name)
