"""Marking a whole class: through the command that lecturers are told of, and what it writes."""

from __future__ import annotations

import csv
import functools
import io
import json
import os
import re
import time
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from nbformat.v4 import new_code_cell, new_notebook

from course import registry
from course.build.source import read
from course.cli import main
from course.contents import Chapter, find
from course.marking import driver, late, similar, supervisor
from course.marking.grade import worth
from course.marking.notebook import Mark
from course.marking.roster import Person, Roster
from course.marking.table import BadTable
from course.records import Exercise
from tests.course import classroom

FIRST, SECOND = find(1), find(2)
MOST = sum(worth(FIRST).values())
EXERCISES = registry.of_chapter(1)


chapter_cells = functools.cache(read)


def stub(found: Exercise, number: int) -> str:
    return found.start.source


def hand_in(
    path: Path, answers: classroom.Answers = classroom.right, chapter: Chapter = FIRST, day: int = 1
) -> None:
    """Write a notebook made from a chapter's source, of a day in November 2026."""
    sources, number = [], 0
    for cell in chapter_cells(chapter):
        if cell.role == "exercise" and cell.exercise:
            sources.append(answers(cell.exercise, number))
            number += 1
        elif cell.is_code:
            sources.append(cell.student)
    cells = [{"cell_type": "code", "source": source} for source in sources]
    book = {"nbformat": 4, "metadata": {"toytorch": {"chapter": chapter.number}}, "cells": cells}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(book), encoding="utf-8")
    when = time.mktime((2026, 11, day, 12, 0, 0, 0, 0, -1))
    os.utime(path, (when, when))


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


class Desk:
    """A folder with a class in it, and the command."""

    def __init__(self, tmp_path: Path) -> None:
        self.home = tmp_path
        self.folder = tmp_path / "class"
        self.table = tmp_path / "marks.csv"
        self.status = 0

    def grade(self, *options: str) -> list[dict[str, str]]:
        self.status = main(["grade", str(self.folder), "--csv", str(self.table), *options])
        return rows(self.table)

    def file(self, name: str, text: str = "") -> str:
        """The path of a table, with its content."""
        if text:
            (self.home / name).write_text(text, encoding="utf-8")
        return str(self.home / name)


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The tests of this file share what is known, and know nothing else."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The exercises for whose answers a process was started, in order."""
    started: list[str] = []
    work: Callable[..., Any] = supervisor.work

    def counted(found: Exercise, pieces: list[Any], *rest: Any, **more: Any) -> Any:
        started.extend([found.name] if pieces[0][0] != driver.LABEL else [])
        return work(found, pieces, *rest, **more)

    monkeypatch.setattr(supervisor, "work", counted)
    return started


class Page(HTMLParser):
    """What a page asks for from elsewhere, and whether its tags close."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.asks: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.asks += [f"{k}={v}" for k, v in attrs if k in ("src", "href", "xlink:href")]
        self.asks += [tag] if tag in ("script", "link", "iframe") else []
        if tag not in ("meta", "th", "wbr", "br", "rect"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in ("th", "rect"):
            assert self.open.pop() == tag


def standing_alone(path: Path) -> str:
    """The text of a page, which needs nothing else."""
    text = path.read_text(encoding="utf-8")
    page = Page(text)
    assert page.asks == []
    assert page.open == []
    assert "url(" not in text and "@import" not in text
    return text


# -- totals ---------------------------------------------------------------------------------------


ROSTER = """\ufeffID number;Full name;E-Mail
al1;Ada Lovelace;ada@example.org
bob;"Babbage, Bob";b.b@example.org
cyd;=Cyd();cyd@example.org
tim;Tim Torn;tim@example.org
"""


@pytest.fixture
def school(desk: Desk) -> Desk:
    """Ada is right, Bob half, Cyd handed in nothing, Tim's file is torn, nobody knows Eve."""
    hand_in(desk.folder / "Ada Lovelace_4711_assignsubmission_file_" / "01_tensors.ipynb")
    hand_in(desk.folder / "babbagebob_12_345_01_tensors.ipynb", classroom.half)
    hand_in(desk.folder / "eve" / "01_tensors.ipynb", stub)
    (desk.folder / "tim").mkdir()
    (desk.folder / "tim" / "01_tensors.ipynb").write_text('{"cells": [')
    return desk


def test_everybody_on_the_roster_has_a_total_with_the_right_maximum(
    school: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    roster, totals = school.file("roster.csv", ROSTER), school.file("totals.csv")
    marks = school.grade("--roster", roster, "--totals", totals)
    assert school.status == 0
    assert len(marks) == 5 * len(EXERCISES)
    found = {row["student"]: row for row in rows(Path(totals))}
    assert list(found) == ["al1", "bob", "cyd", "tim", "eve"]
    assert {row["of"] for row in found.values()} == {f"{MOST:g}"}
    assert found["al1"]["points"] == found["al1"]["01 points"] == f"{MOST:g}"
    assert 0 < float(found["bob"]["points"]) < MOST
    assert [found[name]["points"] for name in ("cyd", "tim", "eve")] == ["0"] * 3
    assert found["cyd"]["name"] == "'=Cyd()"
    assert [row["chapters handed in"] for row in found.values()] == ["1", "1", "0", "1", "1"]
    assert [row["on the roster"] for row in found.values()] == ["yes"] * 4 + ["no"]
    verdicts = {row["student"]: row["verdict"] for row in marks}
    assert verdicts == {"al1": "green", "bob": "open", "cyd": "missing", "tim": "unreadable",
                        "eve": "open"}  # fmt: skip
    for name in found:
        own = [row for row in marks if row["student"] == name]
        assert sum(float(row["points"]) for row in own) == float(found[name]["points"])
        assert sum(float(row["of"]) for row in own) == MOST
    said = capsys.readouterr().err
    assert "eve is not on the roster" in said
    assert "cyd handed in nothing" in said
    assert f"al1                      {MOST:g} of {MOST:g} points" in said


def test_tables_for_moodle_and_canvas(school: Desk) -> None:
    roster = school.file("roster.csv", ROSTER)
    moodle, canvas = school.file("moodle.csv"), school.file("canvas.csv")
    school.grade("--roster", roster, "--moodle", moodle, "--canvas", canvas)
    assert Path(moodle).read_bytes().startswith(b"ID number,Full name,Email address,01 Tensors,")
    lines = rows(Path(moodle))
    assert [line["ID number"] for line in lines] == ["al1", "bob", "cyd", "tim"]
    assert lines[0]["Email address"] == "ada@example.org"
    assert lines[0]["01 Tensors"] == lines[0]["Toytorch total"] == f"{MOST:g}"
    assert lines[2]["01 Tensors"] == "0"
    first = Path(canvas).read_text(encoding="utf-8").splitlines()
    assert first[0] == "Student,ID,SIS User ID,SIS Login ID,Section,01 Tensors"
    assert first[1] == f"Points Possible,,,,,{MOST:g}"
    assert first[2] == f"Ada Lovelace,,al1,ada@example.org,,{MOST:g}"
    assert [line.split(",")[-1] for line in first[4:]] == ["0", "0"]
    assert "eve" not in "".join(first)


def test_optional_exercises_are_extra_points(desk: Desk) -> None:
    optional = [one.name for one in registry.of_chapter(2) if one.optional]
    assert optional
    asked = [points for name, points in worth(SECOND).items() if name not in optional]
    hand_in(desk.folder / "ada" / "02_memory.ipynb", chapter=SECOND)
    hand_in(desk.folder / "bob" / "01_tensors.ipynb")
    pages, totals = desk.home / "pages", desk.file("totals.csv")
    marks = desk.grade("--totals", totals, "--feedback", str(pages))
    found = {row["student"]: row for row in rows(Path(totals))}
    assert found["ada"]["of"] == found["bob"]["of"] == f"{MOST + sum(asked):g}"
    assert found["ada"]["points"] == found["ada"]["02 points"] == f"{sum(worth(SECOND).values()):g}"
    assert found["ada"]["02 of"] == f"{sum(asked):g}"
    assert float(found["ada"]["extra points"]) == sum(worth(SECOND)[name] for name in optional)
    for row in marks:
        worth_it = worth(find(registry.exercise(row["exercise"]).chapter))[row["exercise"]]
        extra = row["exercise"] in optional
        assert float(row["extra"]) == (worth_it if extra else 0)
        assert float(row["of"]) == (0 if extra else worth_it)
    name = optional[0]
    text = standing_alone(pages / "ada.html")
    assert f"{name} · {worth(SECOND)[name]:g} of {worth(SECOND)[name]:g} extra points" in text
    assert "nothing was handed in" in text


def test_nbgrader_counts_no_maximum_for_optional_exercises() -> None:
    from course.build import nbgrader

    book = json.loads(nbgrader.assignment(SECOND))
    cells = (cell["metadata"].get("nbgrader", {}) for cell in book["cells"])
    points = {meta["grade_id"]: meta["points"] for meta in cells if meta.get("grade")}
    for name, wanted in worth(SECOND).items():
        extra = registry.exercise(name).optional
        assert points["check-" + name.replace(".", "-")] == (0 if extra else wanted)


def assigned(chapter: Chapter, names: list[str], *more: str) -> Any:
    """A notebook with answers to some exercises of a chapter, as nbgrader has it before marking."""
    cells = [new_code_cell("import toytorch as torch"), *map(new_code_cell, more)]
    for name in names:
        found = registry.exercise(name)
        cells.append(new_code_cell(found.answer.source if not more else found.start.source))
        line = (
            f'raise RuntimeError("not configured")\ncheck("{name}", {found.function}, hidden=False)'
        )
        cells.append(new_code_cell(line, metadata={"nbgrader": {"grade": True}}))
    return new_notebook(cells=cells)


def test_nbgrader_gets_no_points_for_optional_exercises_but_shows_them() -> None:
    points = worth(SECOND)
    names = ["memory.view", "memory.expand"]
    book, _ = Mark().preprocess(assigned(SECOND, names), {})
    (_, first), (panel, second) = (cell.outputs for cell in book.cells[2::2])
    assert first.data["text/plain"] == repr(float(points["memory.view"]))
    assert registry.exercise("memory.expand").optional
    assert second.data["text/plain"] == "0.0"
    most = points["memory.expand"]
    assert f"{most:g} of {most:g} extra points" in panel.data["text/html"]


def test_nbgrader_runs_no_cell_and_knows_no_other_check(tmp_path: Path) -> None:
    """Whoever exchanges the `check` of the session exchanges nothing that gives marks."""
    touched = tmp_path / "touched"
    attack = (
        "import course.marking.notebook as m, course, pathlib\n"
        f"pathlib.Path({str(touched)!r}).write_text('ran')\n"
        "m.check = course.check = check = lambda *a, **k: 9.0\n"
        "m.Mark.preprocess = lambda *a: 9.0"
    )
    book = assigned(SECOND, ["memory.view"], attack)
    book.cells.append(new_code_cell("9.0", metadata={"nbgrader": {"grade": True}}))
    book, _ = Mark().preprocess(book, {})
    assert book.cells[3].outputs[-1].data["text/plain"] == "0.0"
    assert book.cells[4].outputs[0].output_type == "error"  # which nbgrader counts as 0
    assert not touched.exists()
    with pytest.raises(RuntimeError, match="characters of code"):
        Mark().preprocess(new_notebook(cells=[new_code_cell("a0 = a1\n" * 30_000)]), {})


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("al1", "al1"), ("ada@example.org", "al1"), ("Ada Lovelace", "al1"), ("LOVELACE, ada", "al1"),
        ("Ada Lovelace_4711_assignsubmission_file_", "al1"), ("lovelaceada_12_345", "al1"),
        ("lovelaceada_LATE_12_345", "al1"), ("Zoë Li", "z"), ("Zoe\u0308 Li", "z"),
        ("John Smith", None), ("js2", "js2"), ("nobody", None), ("", None),
    ],
)  # fmt: skip
def test_folders_find_their_student(name: str, found: str | None) -> None:
    people = [Person("al1", "Ada Lovelace", "ada@example.org"), Person("z", "Zoë Li")]
    people += [Person("js1", "John Smith"), Person("js2", "John Smith")]
    person = Roster(people).find(name)
    assert (person and person.id) == found


@pytest.mark.parametrize(
    ("option", "text", "said"),
    [
        ("roster", "name,e-mail\nAda,a@b", "no column 'id'"),
        ("roster", "id\nada\nada", "line 3: ada is there twice"),
        ("roster", "", "cannot be read"),
        ("roster", "id\n" + "a" * 200_000, "cannot be read: field larger than"),
        ("overrides", "student,points\nada,1", "no column 'exercise'"),
        (
            "overrides",
            "student,exercise,points\nada,tensors.shap,1",
            "line 2: there is no exercise",
        ),
        ("overrides", "student,exercise,points\nada,tensors.shape,nan", "'nan' are no points"),
        ("overrides", "student,exercise,points\nada,,2", "points need an exercise"),
        ("late", "10% a day", "is no rule for late notebooks"),
        ("due", "tomorrow", "'tomorrow' is no time"),
    ],
)
def test_a_table_that_cannot_be_used_is_said_before_anything_is_marked(
    desk: Desk, runs: list[str], capsys: pytest.CaptureFixture[str],
    option: str, text: str, said: str,
) -> None:  # fmt: skip
    hand_in(desk.folder / "ada" / "01_tensors.ipynb")
    words = text if option in ("late", "due") else desk.file(f"{option}.csv", text)
    due = ["--due", "2026-11-02T12:00"] if option == "late" else []
    assert main(["grade", str(desk.folder), *due, f"--{option}", words]) == 1
    assert said in capsys.readouterr().err
    assert runs == []


# -- statistics -----------------------------------------------------------------------------------


def test_statistics_say_who_succeeds_and_which_mistakes_are_met(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    found = EXERCISES[0]

    def wrong(one: Exercise, number: int) -> str:
        return one.mutants[0].source if one is found else one.start.source

    for name, answers in (("a", classroom.right), ("b", wrong), ("c", wrong), ("d", stub)):
        hand_in(desk.folder / name / "01_tensors.ipynb", answers)
    hand_in(desk.folder / "e" / "02_memory.ipynb", stub, SECOND)
    table, page = desk.file("stats.csv"), desk.file("class.html")
    desk.grade("--statistics", table, "--dashboard", page)
    first = rows(Path(table))[0]
    assert first["exercise"] == found.name
    assert [first[name] for name in ("handed in", "begun", "solved")] == ["4", "3", "1"]
    assert first["success rate"] == "0.25"
    assert first["misconceptions"] == f"{found.mutants[0].label} (2)"
    assert 0 < float(first["median seconds"]) < 10
    assert [row["exercise"] for row in rows(Path(table))] == [
        one.name for number in (1, 2) for one in registry.of_chapter(number)
    ]
    line = next(x for x in capsys.readouterr().err.splitlines() if x.startswith(found.name + " "))
    assert re.search(r"1/4 +25% +3 +\d+\.\d\d s +" + re.escape(found.mutants[0].label), line)
    assert line.endswith("(2×)")
    text = standing_alone(Path(page))
    assert found.mutants[0].label in text
    assert text.count('role="img"') == 1 + len(rows(Path(table)))
    assert "1 solved, 2 wrong, 1 not begun, 1 not handed in" in text


def test_the_dashboard_shows_names_as_they_are(desk: Desk) -> None:
    hand_in(desk.folder / "<b>o & co" / "01_tensors.ipynb", stub)
    page = desk.file("class.html")
    roster = desk.file("roster.csv", "id,name\n<i>x,<script>alert(1)</script>\n")
    desk.grade("--dashboard", page, "--roster", roster)
    text = standing_alone(Path(page))
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "&lt;b&gt;o &amp; co is not on the roster" in text


# -- what the lecturer decides --------------------------------------------------------------------


def test_points_and_comments_by_hand_survive_marking_again(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    hand_in(desk.folder / "=ada" / "01_tensors.ipynb", classroom.half)
    one, two, three = (found.name for found in EXERCISES[:3])
    table = desk.file(
        "overrides.csv",
        "student,exercise,points,comment\n"
        f'\'=ada,{two},"1,5",<b>A good idea</b>\n'
        f"'=ada,{one},,Well done\n"
        f"'=ada,{three},1,\n"
        f"'=ada,{three},0.25,the later line counts\n"
        "=ada,,,Come and see me\n"
        f"zoe,{one},2,\n",
    )
    pages, totals = desk.home / "pages", desk.file("totals.csv")
    before = desk.grade()
    for _ in range(2):
        after = desk.grade(
            "--overrides", table, "--feedback", str(pages), "--totals", totals,
            "--due", "2026-10-31T12:00", "--late", "50% per day",
        )  # fmt: skip
        assert [row["student"] for row in after] == ["'=ada"] * len(EXERCISES)
        assert [row["points"] for row in after[1:3]] == ["1.5", "0.25"]  # late or not
        assert [row["by hand"] for row in after] == ["", "yes", "yes"] + [""] * (len(after) - 3)
        assert float(after[0]["points"]) == float(before[0]["points"]) * 0.5 > 0
        assert [row["comment"] for row in after[:3]] == [
            "Well done", "<b>A good idea</b>", "the later line counts",
        ]  # fmt: skip
        assert float(rows(Path(totals))[0]["points"]) == sum(float(row["points"]) for row in after)
        text = standing_alone(next(pages.iterdir()))
        for words in ("&lt;b&gt;A good idea&lt;/b&gt;", "Come and see me", "set by your lecturer"):
            assert words in text
    assert "zoe is named in a table of yours" in capsys.readouterr().err


def test_coming_late_costs_what_the_rule_says(desk: Desk) -> None:
    days = {"early": 1, "late": 4, "later": 9, "excused": 9, "proved": 9}
    for name, day in days.items():
        hand_in(desk.folder / name / "01_tensors.ipynb", day=day)
    times = desk.file(
        "late.csv",
        "student,chapter,handed in,due\nexcused,,,2026-11-10T00:00\nproved,01,2026-11-02 11:00,\n",
    )
    rule = ["--due", "02=2026-01-01T00:00", "--due", "01=2026-11-02T11:00"]
    marks = desk.grade(*rule, "--late", "10% per day, at most 25%", "--times", times)
    own = {row["student"]: row for row in marks}  # the last exercise of each
    whole = float(own["early"]["points"])
    assert {name: float(row["points"]) / whole for name, row in own.items()} == pytest.approx(
        {"early": 1, "late": 0.75, "later": 0.75, "excused": 1, "proved": 1}
    )
    assert own["late"]["late"] == "3 days late: −25 %"
    assert [own[name]["late"] for name in ("early", "excused", "proved")] == [""] * 3
    without = desk.grade(*rule)
    assert {row["points"] for row in without if row["exercise"] == EXERCISES[-1].name} == {
        f"{whole:g}"
    }
    assert "8 days late" in {row["late"] for row in without if row["student"] == "excused"}


@pytest.mark.parametrize(
    ("text", "minutes", "share"),
    [
        ("10% per day", 1, 0.1), ("10% per day", 24 * 60, 0.1), ("10% per day", 24 * 60 + 1, 0.2),
        ("5 % per hour", 150, 0.15), ("20% per week", 1, 0.2), ("10% per day", 10**6, 1.0),
        ("2.5% per day, at most 5%", 10**4, 0.05),
    ],
)  # fmt: skip
def test_rules_for_late_notebooks(text: str, minutes: int, share: float) -> None:
    rule = late.Rule.read(text)
    assert rule.cost(late.timedelta(minutes=minutes))[1] == pytest.approx(share)


@pytest.mark.parametrize("text", ["", "10 per day", "-5% per day", "10% per month", "1% per day x"])
def test_words_that_are_no_rule(text: str) -> None:
    with pytest.raises(BadTable, match="no rule"):
        late.Rule.read(text)


def test_the_last_attempt_that_can_be_read_counts(
    desk: Desk, runs: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    ada = desk.folder / "ada"
    hand_in(ada / "z_01_tensors.ipynb", stub, day=1)
    hand_in(ada / "m_01_tensors.ipynb", classroom.half, day=2)
    hand_in(ada / "a_01_tensors.ipynb", classroom.right, day=3)
    (ada / "torn_01_tensors.ipynb").write_text("{")  # now
    marks = desk.grade("--fresh")
    assert {(row["notebook"], row["verdict"]) for row in marks} == {
        ("ada/a_01_tensors.ipynb", "green")
    }
    assert len(marks) == len(runs) == len(EXERCISES)
    said = capsys.readouterr().err
    line = next(x for x in said.splitlines() if x.startswith("ada: not counted"))
    assert set(re.findall(r"(\w+)_01_tensors", line)) == {"z", "m", "torn"}


# -- what is known already ------------------------------------------------------------------------


def test_equal_answers_run_once_and_not_again(
    desk: Desk, runs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(desk.home / "own"))
    for name in ("ada", "bob", "cyd"):
        hand_in(desk.folder / name / "01_tensors.ipynb", classroom.half)
    first = desk.grade("--jobs", "3")
    begun = [row["exercise"] for row in first if row["verdict"] in ("green", "red")]
    assert sorted(runs) == sorted(set(begun))
    assert len(begun) == 3 * len(runs)
    runs.clear()
    pages = [desk.home / "pages1", desk.home / "pages2"]
    for folder in pages:
        assert desk.grade("--feedback", str(folder)) == first
    assert runs == []
    for name in ("ada.html", "bob.html"):
        text = [(folder / name).read_text(encoding="utf-8") for folder in pages]
        assert text[0] == text[1]
        assert EXERCISES[1].mutants[0].label in text[0]
    assert len(desk.grade("--fresh")) == len(first)
    assert len(runs) == len(begun) // 3
    runs.clear()
    desk.grade("--seconds", "19")  # other limits, other verdicts
    assert len(runs) == len(begun) // 3


def test_a_changed_answer_or_course_runs_again(
    desk: Desk, runs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(desk.home / "own"))
    path = desk.folder / "ada" / "01_tensors.ipynb"
    wrong = EXERCISES[0].mutants[0].source

    def changed(found: Exercise, number: int) -> str:
        return found.answer.source + "\n# and a word" if number == 0 else stub(found, number)

    def helped(found: Exercise, number: int) -> str:  # the same text, other helpers
        name = found.function
        return (
            f"{wrong.replace(name, 'helper')}\n\n{name} = helper"
            if number == 0
            else stub(found, number)
        )

    def right(found: Exercise, number: int) -> str:
        name, good = found.function, found.answer.source
        return (
            f"{good.replace(name, 'helper')}\n\n{name} = helper"
            if number == 0
            else stub(found, number)
        )

    kinds = []
    for answers in (changed, helped, right):
        hand_in(path, answers)
        kinds.append(desk.grade()[0]["verdict"])
    assert kinds == ["green", "red", "green"]
    assert len(runs) == 3
    monkeypatch.setattr("course.marking.known.state", lambda: "another course")
    desk.grade()
    assert len(runs) == 4


def test_what_was_kept_and_is_torn_is_found_out_again(
    desk: Desk, runs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(desk.home / "own"))
    hand_in(desk.folder / "ada" / "01_tensors.ipynb")
    first = desk.grade()
    kept = list((desk.home / "own").rglob("answers/*.json"))
    torn = ["", "{", "[1]", '{"kind": "green"}', '{"points": 99}', "null"]
    assert len(kept) == len(runs) == len(EXERCISES) == len(torn)
    for path, text in zip(kept, torn, strict=True):
        path.write_text(text)
    again = desk.grade()
    assert [row["points"] for row in again] == [row["points"] for row in first]
    assert len(runs) == 2 * len(EXERCISES)


# -- answers that are too alike -------------------------------------------------------------------

OWN = """
def {f}(data):
    found = []
    while isinstance(data, (list, tuple)):
        found.append(len(data))
        if not found[-1]:
            break
        for other in data[1:]:
            if type(other) != type(data[0]) or (hasattr(other, "__len__") and len(other) % 7 > 99):
                raise ValueError("ragged at depth " + str(len(found)) + " of " + repr(data)[:40])
        data = data[0]
    return tuple(found[n] + 0 for n in range(0, len(found), 1))
"""
COPY = (OWN.replace("found", "sizes").replace("other", "x").replace("data", "things")).replace(
    "        if not", "        # my own idea\n\n        if not"
)
ANOTHER = """
def {f}(data):
    try:
        inner = {{{f}(each) for each in data}} if isinstance(data, list) else None
    except TypeError as error:
        raise ValueError("ragged") from error
    return () if inner is None else (len(data), *min(inner, default=()))
"""


def test_copies_are_found_and_what_the_course_explains_is_not(desk: Desk) -> None:
    answers = {"ann": OWN, "ben": COPY, "cat": ANOTHER, "dan": "", "eva": ""}
    for name, text in answers.items():

        def answer(found: Exercise, number: int, text: str = text) -> str:
            if number or not text:
                return found.answer.source
            return text.format(f=found.function)

        hand_in(desk.folder / name / "01_tensors.ipynb", answer)
    page = desk.file("similar.html")
    desk.grade("--similar", page)
    text = standing_alone(Path(page))
    assert re.findall(r"<h2>(\w+) and (\w+)", text) == [("ann", "ben")]
    assert EXERCISES[0].name in text
    assert "# my own idea" in text
    assert text.count("class=same") > 10


def test_names_comments_and_layout_do_not_hide_a_copy() -> None:
    name = EXERCISES[0].function
    assert similar.runs(OWN.format(f=name)) == similar.runs(COPY.format(f=name))
    assert similar.tokens("a.sum(b)") != similar.tokens("a.mean(b)")
    assert similar.tokens("(") == ["("]  # what cannot be read to its end is read as far as it goes


# -- odd names ------------------------------------------------------------------------------------


@pytest.mark.skipif(os.name == "nt", reason="names that Windows does not have")
def test_odd_names_leave_every_page_written(desk: Desk) -> None:
    """63 characters of four bytes fill a name: what is added to it made it too long."""
    names: list[bytes | str] = [
        "\U0001d538" * 63, "\U0001d538" * 62 + "a", b"\xff\xfe", "a b", "a_b", "A_b", "\x1b[31m",
        "\u202egnp", "<b>", "=cmd()", "a..", "-", "CON", "x" * 250, "e\u0301", "new\nline", "%s{0}",
    ]  # fmt: skip
    for name in names:
        folder = Path(os.fsdecode(os.path.join(os.fsencode(desk.folder), os.fsencode(name))))
        hand_in(folder / "01_tensors.ipynb", stub)
    pages = desk.home / "pages"
    every = {
        option: desk.file(f"{option}.out")
        for option in ("totals", "moodle", "canvas", "statistics", "dashboard", "similar")
    }
    options = [word for option, path in every.items() for word in (f"--{option}", path)]
    marks = desk.grade("--feedback", str(pages), *options)
    assert desk.status == 0
    assert len({row["student"] for row in marks}) == len(names)
    assert len(list(pages.iterdir())) == len(names)
    for page in pages.iterdir():
        assert len(os.fsencode(page.name)) < 100
        standing_alone(page)
    assert len(rows(Path(every["totals"]))) == len(names)
    for path in map(Path, every.values()):
        assert path.read_bytes().decode("utf-8-sig")
    cells = [cell for row in csv.reader(io.StringIO(Path(every["totals"]).read_text("utf-8-sig")))
             for cell in row]  # fmt: skip
    assert not any(cell.lstrip()[:1] in "=+@" for cell in cells if cell.strip())


def test_a_page_that_cannot_be_written_is_said(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    hand_in(desk.folder / "ada" / "01_tensors.ipynb", stub)
    occupied, totals = desk.file("occupied", "a file"), desk.file("totals.csv")
    desk.grade("--feedback", occupied, "--totals", totals, "--dashboard", f"{occupied}/class.html")
    assert desk.status == 1
    said = capsys.readouterr().err
    assert "class.html was not written" in said
    assert "ada.html was not written" in said
    assert rows(Path(totals))
    assert Path(occupied).read_text() == "a file"
