"""What a chapter has to have and no other test asks for: lines to write, tags, the lecturer's page."""

from __future__ import annotations

import difflib
import re
import subprocess
import sys

import nbformat
import pytest

from course import package, registry
from course.contents import ROOT, Chapter, written
from course.records import Exercise

every = pytest.mark.parametrize("chapter", written(), ids=lambda chapter: chapter.stem)


def to_write(found: Exercise) -> int:
    """How many lines of an answer are not in its stub."""
    stub, answer = (
        [line for line in variant.source.splitlines() if line.strip()]
        for variant in (found.start, found.answer)
    )
    changes = difflib.SequenceMatcher(None, stub, answer, autojunk=False).get_opcodes()
    return sum(end - start for kind, _, _, start, end in changes if kind != "equal")


@every
def test_the_larger_exercise_has_40_to_90_lines(chapter: Chapter) -> None:
    own = [found for found in registry.of_chapter(chapter.number) if package.file_of(found)]
    most = max(map(to_write, own))
    assert 40 <= most <= 90, f"{most} lines"


@every
def test_no_check_is_expected_to_fail(chapter: Chapter) -> None:
    """With this tag, nbval would take a red check for what should be there."""
    for folder in ("notebooks", "solutions"):
        notebook = nbformat.read(ROOT / folder / f"{chapter.stem}.ipynb", as_version=4)
        checks = [c for c in notebook.cells if "check" in c.metadata.get("toytorch", {})]
        assert checks
        assert not [c.id for c in checks if "raises-exception" in c.metadata.get("tags", ())]


@every
def test_the_lecturers_page_has_its_four_parts(chapter: Chapter) -> None:
    page = (ROOT / "course" / "lecturer" / f"{chapter.stem}.md").read_text(encoding="utf-8")
    title, *parts = re.split(r"^## ", page, flags=re.M)
    heads = [part.partition("\n")[0] for part in parts]
    assert title.startswith("# ")
    assert heads == ["Timings", "Predict the output", "Live-coding checkpoints", "Rubric"]
    assert all(len(part) > 200 for part in parts)


def test_checks_and_mutants_in_files_of_their_own_are_found() -> None:
    """Whatever the files are called: each of them is imported with its chapter."""
    registry.all_exercises()
    for path in sorted((ROOT / "course" / "exercises").glob("ch*/*.py")):
        if path.stem != "__init__":
            assert f"course.exercises.{path.parent.name}.{path.stem}" in sys.modules


def test_no_file_names_a_registry() -> None:
    """A lock file with an address would lead elsewhere on another machine, or nowhere."""
    files = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.splitlines()
    if not files:
        pytest.skip("no git checkout")
    names = [name for name in files if re.search(r"(^|/)[\w.-]+\.lock$|lock\.(json|ya?ml)$", name)]
    assert not names
    for name in files:
        if name.endswith((".toml", ".txt", ".cfg", ".yml", ".yaml")) and "/" not in name:
            text = (ROOT / name).read_text(encoding="utf-8")
            assert not re.search(r"index-url|registry\s*=|files\.pythonhosted", text), name
