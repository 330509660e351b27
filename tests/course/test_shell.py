"""The commands a learner types: status, check, run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest

from course import progress, registry, shell
from course.build.source import read
from course.contents import ROOT, find
from course.judge import judge
from course.panel import text


@pytest.fixture(autouse=True)
def own_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOYTORCH_PROGRESS", str(tmp_path / "progress.json"))


def test_status_counts_what_is_solved(capsys: pytest.CaptureFixture[str]) -> None:
    first = registry.of_chapter(1)
    progress.record({first[0].name: "green", first[1].name: "red"})
    assert shell.status() == 0
    said = capsys.readouterr().out
    assert f"1/{len(first)}" in said
    assert "✔✘○" in said
    assert "20 Reading PyTorch itself" in said


def test_optional_exercises_are_shown_and_not_counted(capsys: pytest.CaptureFixture[str]) -> None:
    own = registry.of_chapter(5)
    optional = [found.name for found in own if found.optional]
    assert optional == ["inplace.slices", "inplace.culprit"]
    progress.record({optional[0]: "green"})
    assert shell.status() == 0
    said = capsys.readouterr().out
    assert f"0/{len(own) - 2}  {'○' * (len(own) - 2)}  optional ✔○" in said
    needed = sum(not found.optional for found in registry.all_exercises().values())
    assert f"0 of {needed} exercises solved." in said
    assert "And of the optional ones: inplace.slices." in said
    assert "(optional)" in text(judge(registry.exercise(optional[0]), None))


@pytest.mark.slow
def test_check_of_a_learners_notebook(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One exercise right, one wrong in a known way, the others untouched."""
    chapter, found = find(1), registry.of_chapter(1)
    sources: dict[str, Any] = {c.id: c for c in read(chapter)}
    notebook = nbformat.read(ROOT / "notebooks" / f"{chapter.stem}.ipynb", as_version=4)
    for cell in notebook.cells:
        if cell.id == "exercise-" + found[0].name.replace(".", "-"):
            cell.source = sources[cell.id].solved
        if cell.id == "exercise-" + found[1].name.replace(".", "-"):
            cell.source = found[1].mutants[0].source
    path = tmp_path / f"{chapter.stem}.ipynb"
    nbformat.write(notebook, path)
    assert shell.check(str(path)) == 1
    said = capsys.readouterr().out
    assert f"✔ {found[0].name}" in said
    assert f"✘ {found[1].name}" in said
    assert found[1].mutants[0].label in said
    assert f"○ {found[2].name}" in said
    assert f"1 of {len(found)} exercises" in said
    assert progress.load()[found[0].name] == "green"
    assert progress.load()[found[1].name] == "red"


@pytest.mark.slow
def test_run_reports_time_and_exercises(capsys: pytest.CaptureFixture[str]) -> None:
    assert shell.run(find(1)) == 0
    said = capsys.readouterr().out
    count = len(registry.of_chapter(1))
    assert f"{count} of {count} exercises green" in said
    assert " s." in said


def test_a_reader_that_has_read_enough_is_no_error(tmp_path: Path) -> None:
    """As in `python3 -m course status | head -1`."""
    process = subprocess.Popen(
        [sys.executable, "-m", "course", "status"],
        cwd=ROOT,
        env={**os.environ, "TOYTORCH_PROGRESS": str(tmp_path / "progress.json")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    said = process.stderr.read().decode()
    process.stderr.close()
    process.wait()
    assert "Traceback" not in said
    assert "BrokenPipe" not in said
