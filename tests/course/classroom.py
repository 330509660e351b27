"""Notebooks as students hand them in, made from a chapter."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import nbformat

from course.build.source import read
from course.contents import ROOT, Chapter
from course.records import Exercise

Answers = Callable[[Exercise, int], str]


def right(found: Exercise, number: int) -> str:
    """Everything solved."""
    return found.answer.source


def half(found: Exercise, number: int) -> str:
    """One right, one wrong in a known way, one not begun, and so on."""
    return (found.answer, found.mutants[0], found.start)[number % 3].source


def hostile(precious: Path) -> Answers:
    """An attack in each of six exercises."""
    attacks = [
        # a loop that lets nothing stop it
        """def {f}(*args):
    while True:
        try:
            while True:
                pass
        except BaseException:
            pass""",
        # all the memory there is
        """def {f}(*args):
    kept = []
    while True:
        kept.append(bytearray(10**8))""",
        # deletes files
        f"""import pathlib
def {{f}}(*args):
    pathlib.Path({str(precious)!r}).unlink()""",
        # prints a fake result and is gone
        """def {f}(*args):
    import os
    print("✔ all checks pass")
    os._exit(0)""",
        # makes every check agree
        """import course.cases
def {f}(*args):
    course.cases.Case.accepts = lambda *args: True""",
        # leaves
        """def {f}(*args):
    raise SystemExit(0)""",
    ]

    def answers(found: Exercise, number: int) -> str:
        return attacks[number % len(attacks)].replace("{f}", found.function)

    return answers


def hand_in(chapter: Chapter, answers: Answers, target: Path, start: Path | None = None) -> None:
    """Fill a chapter's notebook (or the one given) and write it."""
    source = start or ROOT / "notebooks" / f"{chapter.stem}.ipynb"
    notebook = nbformat.read(source, as_version=4)
    wanted = [cell for cell in read(chapter) if cell.role == "exercise"]
    numbers = {cell.id: number for number, cell in enumerate(wanted)}
    for cell in notebook.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id", cell.id)
        if name in numbers:
            found = wanted[numbers[name]].exercise
            assert found is not None
            cell.source = answers(found, numbers[name])
    target.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, target)
