"""Judging hostile, broken and unfinished submissions."""

from __future__ import annotations

import linecache
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from course import judge as judging
from course import progress, registry
from course.cases import Case, call, same, show
from course.contents import ROOT
from course.judge import judge
from course.panel import html, text
from course.records import Check, Exercise
from course.registry import exercise


def doubling(limit: float = 10.0) -> Exercise:
    """A small exercise: double a number."""
    found = Exercise("test.double", "Doubling", 1, 5, "Double it.", limit=limit)

    def cases(f: Any) -> Iterator[Case]:
        yield call(f, 2).gives(4)
        yield call(f, 5).gives(10)

    def negative(f: Any) -> Iterator[Case]:
        yield call(f, -1).gives(-2)

    found.checks += [Check("positive", cases), Check("negative", negative)]
    return found


def test_right_code_is_green() -> None:
    verdict = judge(doubling(), lambda x: 2 * x)
    assert verdict.state == "green"
    assert text(verdict) == "✔ test.double · Doubling: all 2 checks pass"


def test_wrong_code_shows_input_expected_and_got() -> None:
    verdict = judge(doubling(), lambda x: x * x)
    said = text(verdict)
    assert verdict.state == "red"
    assert "(5)" in said
    assert "10" in said
    assert "25" in said
    assert "0 of 2 checks pass" in said


def test_an_error_shows_the_learners_line_and_nothing_of_ours() -> None:
    def broken(x: int) -> int:
        return x.nothing  # type: ignore[attr-defined,no-any-return]

    said = text(judge(doubling(), broken))
    assert "AttributeError" in said
    assert "return x.nothing" in said
    assert "judge" not in said
    assert "Traceback" not in said


def test_unfinished_code_is_open() -> None:
    def stub(x: int) -> int:
        raise NotImplementedError

    for submission in (stub, lambda x: ..., None, ...):
        verdict = judge(doubling(), submission)
        assert verdict.state == "open"
        assert "open" in text(verdict)


def test_half_written_code_is_red_not_open() -> None:
    def half(x: int) -> int:
        if x == 2:
            return 4
        raise NotImplementedError

    assert judge(doubling(), half).state == "red"


def test_an_endless_loop_ends() -> None:
    def endless(x: int) -> int:
        while True:
            x += 1

    begin = time.monotonic()
    verdict = judge(doubling(limit=0.4), endless)
    assert time.monotonic() - begin < 5
    assert verdict.state == "red"
    assert "no answer within 0.4 s" in text(verdict)
    assert "(2)" in text(verdict)


def test_a_loop_that_swallows_exceptions_gives_control_back() -> None:
    release = []

    def stubborn(x: int) -> int:
        while not release:
            try:
                time.sleep(0.01)
            except BaseException:
                continue
        return x

    begin = time.monotonic()
    verdict = judge(doubling(limit=0.3), stubborn)
    release.append(True)
    assert time.monotonic() - begin < 5
    assert verdict.state == "red"


def test_deep_recursion_is_told_in_words() -> None:
    def deep(x: int) -> int:
        return deep(x + 1)

    assert "the call stack is full" in text(judge(doubling(), deep))


def test_an_error_inside_a_check_of_ours_is_said_to_be_ours() -> None:
    found = doubling()
    space: dict[str, Any] = {}
    source = "def faulty(f):\n    raise KeyError('oops')\n    yield 1\n"
    exec(compile(source, "our_check.py", "exec"), space)  # a file other than the submission's
    found.checks.append(Check("faulty", space["faulty"]))
    said = text(judge(found, lambda x: 2 * x))
    assert "Your code was not to blame" in said


def test_markup_in_a_result_is_escaped() -> None:
    page = html(judge(doubling(), lambda x: "<script>alert(1)</script>"))
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


def test_check_records_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOYTORCH_PROGRESS", str(tmp_path / "progress.json"))
    found = next(iter(registry.all_exercises().values()))
    assert judging.check(found.name, found.start.value).state == "open"
    assert judging.check(found.name, found.answer.value).state == "green"
    assert registry.use(found.name) is found.answer.value
    assert judging.check(found.name, found.mutants[0].value).state == "red"
    assert registry.use(found.name) is found.answer.value  # the framework's own stands in
    assert progress.load() == {found.name: "green"}  # solved once stays solved
    assert list(tmp_path.iterdir()) == [tmp_path / "progress.json"]


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, '{"exercises": {"a.b": []}, "log": [[Infinity, "a", "b", "c"]]}', '{"log": 3}'],
)
def test_progress_survives_what_it_never_wrote(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "kept.json"
    kept.write_text(text)
    monkeypatch.setenv("TOYTORCH_PROGRESS", str(kept))
    assert progress.load() == {} and progress.log() == []


def test_progress_survives_a_damaged_file_and_a_folder_it_cannot_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOYTORCH_PROGRESS", str(tmp_path / "p.json"))
    (tmp_path / "p.json").write_text("{not json", encoding="utf-8")
    assert progress.load() == {}
    progress.record({"a.b": "green"})
    assert progress.load() == {"a.b": "green"}
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("TOYTORCH_PROGRESS", str(tmp_path / "file" / "p.json"))
    progress.record({"a.b": "green"})
    assert progress.load() == {}


def test_what_the_package_offers_is_not_hidden_by_its_modules() -> None:
    """`from course import exercise` gives the function whatever was imported before."""
    code = "from course import check, look, use, start, setup, exercise\nimport course\n"
    code += "for name in course.__all__: assert callable(getattr(course, name)), name"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_an_unknown_exercise_gets_a_suggestion() -> None:
    name = next(iter(registry.all_exercises()))
    with pytest.raises(LookupError, match=name.replace(".", r"\.")):
        judging.check(name + "x", None)


@pytest.mark.parametrize(
    ("got", "expected", "agree"),
    [
        ((2, 3), (2, 3), True),
        ([2, 3], (2, 3), False),
        (1, True, False),
        (True, True, True),
        (0.1 + 0.2, 0.3, True),
        (float("nan"), float("nan"), True),
        ("1", 1, False),
        ({"a": [1.0]}, {"a": [1.0]}, True),
        ({"a": 1}, {"b": 1}, False),
        (None, 0, False),
    ],
)
def test_same(got: Any, expected: Any, agree: bool) -> None:
    assert same(got, expected) is agree


def test_long_values_are_cut_and_addresses_removed() -> None:
    assert len(show(list(range(10_000)))) <= 400
    assert " at 0x" not in show(object())


def test_stages_that_are_not_written_yet_are_not_wrong() -> None:
    """An answer in stages: what is there passes, and the panel says what comes next."""
    source = """
class Layout:
    def __init__(self, shape, strides=None, offset=0):
        self.shape, self.offset = tuple(shape), offset
        steps, cells = [], 1
        for size in reversed(self.shape):
            steps.insert(0, cells)
            cells *= max(size, 1)
        self.strides = tuple(steps if strides is None else strides)

    def cell(self, *index):
        if len(index) != len(self.shape):
            raise IndexError
        for i, size in zip(index, self.shape):
            if not -size <= i < size:
                raise IndexError
        moves = zip(index, self.shape, self.strides)
        return self.offset + sum(i % size * step for i, size, step in moves)

    def cells(self):
        import itertools
        return [self.cell(*i) for i in itertools.product(*map(range, self.shape))]

    def later(self, *given):
        raise NotImplementedError  # still to be written

    transpose = narrow = expand = windows = is_contiguous = view = later
"""
    space: dict[str, Any] = {}
    linecache.cache["<stages>"] = (len(source), None, source.splitlines(True), "<stages>")
    exec(compile(source, "<stages>", "exec"), space)
    verdict = judge(exercise("memory.layout"), space["Layout"])
    said = text(verdict)
    assert verdict.unfinished
    assert verdict.mutant is None
    assert "1 of 5 checks pass so far" in said
    assert "To write" in said
    assert "raise NotImplementedError  # still to be written" in said
    assert "✘" not in said
    assert "#d6453d" not in html(verdict)
