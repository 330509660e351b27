"""A lecturer's day: three students hand in, one right, one half, one hostile; marks come out."""

from __future__ import annotations

import csv
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from course import registry
from course.build import nbgrader
from course.cli import main
from course.contents import ROOT, find
from course.records import Exercise
from tests.course import classroom

CHAPTER = find(1)
EXERCISES = registry.of_chapter(1)
NAMES = ["ada", "bob", "eve", "max", "tim"]


@pytest.mark.slow
def test_a_folder_is_marked_and_the_hostile_are_contained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    precious = tmp_path / "precious.txt"
    precious.write_text("keep me")
    folder = tmp_path / "class"
    name = f"{CHAPTER.stem}.ipynb"
    classroom.hand_in(CHAPTER, classroom.right, folder / "submitted" / "ada" / "a1" / name)
    classroom.hand_in(CHAPTER, classroom.half, folder / "submitted" / "bob" / "a1" / name)
    attack = classroom.hostile(precious)
    classroom.hand_in(CHAPTER, attack, folder / "submitted" / "eve" / "a1" / name)

    def leaves(found: Exercise, number: int) -> str:
        return found.start.source if number else attack(found, 5)

    classroom.hand_in(CHAPTER, leaves, folder / "submitted" / "max" / "a1" / name)
    torn = folder / "submitted" / "tim" / "a1" / name
    torn.parent.mkdir(parents=True)
    torn.write_text('{"cells": [')
    table, pages = tmp_path / "marks.csv", tmp_path / "pages"

    arguments = ["grade", str(folder), "--csv", str(table), "--feedback", str(pages)]
    assert main([*arguments, "--seconds", "8", "--megabytes", "256"]) == 0

    assert precious.read_text() == "keep me"
    with table.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    by_student = {s: [r for r in rows if r["student"] == s] for s in NAMES}
    assert sum(map(len, by_student.values())) == len(rows) == len(NAMES) * len(EXERCISES)
    assert {row["verdict"] for row in by_student["ada"]} == {"green"}
    assert all(row["points"] == row["of"] for row in by_student["ada"])
    kinds = [row["verdict"] for row in by_student["bob"]]
    assert kinds == [("green", "red", "open")[number % 3] for number in range(len(EXERCISES))]
    for found, row in zip(EXERCISES, by_student["bob"], strict=True):
        if row["verdict"] == "red":
            assert row["reason"].startswith(found.mutants[0].label)
            assert float(row["points"]) < float(row["of"])
    eve = by_student["eve"]
    assert [row["verdict"] for row in eve] == [
        *("time", "memory", "suspect", "suspect", "suspect"),
        "red",  # it leaves with an exit
    ]
    assert all(float(row["points"]) == 0 for row in eve)
    assert "does a loop never end?" in eve[0]["reason"]
    assert "256 MB" in eve[1]["reason"]
    assert "pathlib" in eve[2]["reason"]
    assert "imports os" in eve[3]["reason"]
    assert "course.cases" in eve[4]["reason"]
    left = by_student["max"][0]
    assert (left["verdict"], left["points"]) == ("red", "0")
    assert "SystemExit" in left["reason"]
    assert {row["verdict"] for row in by_student["tim"]} == {"unreadable"}
    assert [row["of"] for row in by_student["tim"]] == [row["of"] for row in by_student["ada"]]
    assert "JSON" in by_student["tim"][0]["reason"]
    assert sorted(path.stem for path in pages.iterdir()) == NAMES
    assert EXERCISES[1].mutants[0].label in (pages / "bob.html").read_text(encoding="utf-8")
    assert f"{len(EXERCISES)} unreadable" in capsys.readouterr().err


def test_a_folder_without_notebooks_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["grade", str(tmp_path)]) == 1
    assert main(["grade", str(tmp_path / "nowhere")]) == 1
    said = capsys.readouterr().err
    assert "no notebook" in said
    assert "no folder" in said


def run(folder: Path, *arguments: str) -> str:
    """An nbgrader command in a course; its output."""
    paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    env = {**os.environ, "PYTHONPATH": paths, "JUPYTER_CONFIG_DIR": str(folder / ".jupyter")}
    beside = str(Path(sys.executable).parent)  # nbgrader calls its helper programs by name
    env["PATH"] = os.pathsep.join([beside, env.get("PATH", "")])
    env["TOYTORCH_MARK_SECONDS"] = "3"
    command = [sys.executable, "-m", "nbgrader", *arguments]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.slow
def test_nbgrader_end_to_end(tmp_path: Path) -> None:
    """Generate, hand in, autograde, feedback and export, with hidden checks."""
    pytest.importorskip("nbgrader", reason="nbgrader is in the extra `lecturer`")
    nbgrader.write([CHAPTER], tmp_path)
    stem = CHAPTER.stem
    run(tmp_path, "generate_assignment", stem)
    release = tmp_path / "release" / stem / f"{stem}.ipynb"
    text = release.read_text(encoding="utf-8")
    assert "HIDDEN" not in text
    assert "SOLUTION" not in text
    assert "course.marking" not in text
    assert "hidden=False" in text
    assert all(found.answer.source.splitlines()[-1] not in text for found in EXERCISES[:3])

    attack = classroom.hostile(tmp_path / "precious.txt")
    (tmp_path / "precious.txt").write_text("keep me")
    for student, answers in (("ada", classroom.right), ("bob", classroom.half), ("eve", attack)):
        target = tmp_path / "submitted" / student / stem / f"{stem}.ipynb"
        classroom.hand_in(CHAPTER, answers, target, start=release)
    run(tmp_path, "autograde", stem)
    run(tmp_path, "generate_feedback", stem)
    run(tmp_path, "export")
    with (tmp_path / "grades.csv").open(newline="") as file:
        rows = {row["student_id"]: row for row in csv.DictReader(file)}
    most = float(rows["ada"]["max_score"])
    assert float(rows["ada"]["score"]) == most > 0
    assert 0 < float(rows["bob"]["score"]) < most
    assert float(rows["eve"]["score"]) == 0
    assert (tmp_path / "precious.txt").read_text() == "keep me"
    page = (tmp_path / "feedback" / "bob" / stem / f"{stem}.html").read_text(encoding="utf-8")
    assert EXERCISES[1].mutants[0].label in page
    shutil.rmtree(tmp_path / "autograded")
