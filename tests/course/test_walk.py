"""A chapter walked in JupyterLab in a real browser, and the record of all walks."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from course.build.source import read
from course.contents import Chapter, find, written
from course.registry import of_chapter
from tests.course import chromium

pytest.importorskip("jupyterlab")
pytest.importorskip("websocket")

from tests.course.walk import learner, report
from tests.course.walk.devtools import Browser


@pytest.fixture
def page() -> Iterator[Browser]:
    chromium.find()
    with Browser() as opened:
        yield opened


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="JupyterLab is ended by a signal")
def test_the_first_chapter_is_walked_from_untouched_to_green() -> None:
    chromium.find()
    walked = learner.walk(find("01"))
    assert walked.wrong == []
    assert list(walked.exercises) == [found.name for found in of_chapter(1)]


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="JupyterLab is ended by a signal")
def test_the_first_chapter_is_walked_by_hints() -> None:
    chromium.find()
    walked = learner.walk(find("01"), hints=True)
    assert walked.wrong == []
    assert list(walked.hinted) == [found.name for found in of_chapter(1)]
    assert all(walked.hinted.values())


@pytest.mark.browser
def test_what_goes_wrong_on_a_page_is_heard(page: Browser, tmp_path: Path) -> None:
    bad = tmp_path / "bad.html"
    bad.write_text("<img src='nothing.png'><script>console.error('ouch'); lost()</script>")
    page.open(bad.as_uri())
    page.until("document.readyState === 'complete'")
    assert any("ouch" in said for said in page.complaints)
    assert any("lost is not defined" in said for said in page.complaints)
    assert any("nothing.png" in said for said in page.failed)
    with pytest.raises(RuntimeError, match="no_such_name"):
        page.ask("no_such_name")
    page.picture(tmp_path / "seen.png")
    assert (tmp_path / "seen.png").read_bytes().startswith(b"\x89PNG")


# Chapters whose exercises have changed since their last walk. Take one out when it was walked again:
# python -m tests.course.walk 05 --record
CHANGED_SINCE: tuple[int, ...] = ()


@pytest.mark.parametrize("chapter", written(), ids=lambda chapter: chapter.stem)
def test_every_chapter_was_walked(chapter: Chapter) -> None:
    walks = report.load()
    assert chapter.stem in walks, f"python -m tests.course.walk {chapter.number:02d} --record"
    done = walks[chapter.stem]["exercises"]
    now = {cell.exercise.name for cell in read(chapter) if cell.exercise}
    assert (set(done) != now) == (chapter.number in CHANGED_SINCE)
    assert walks[chapter.stem]["cells"] < 60


def test_the_page_says_what_the_record_says() -> None:
    assert report.PAGE.read_text(encoding="utf-8") == report.page(report.load())


def test_no_chapter_takes_away_a_learners_name() -> None:
    """A cell that bound the name of an exercise's function would make its check judge another."""
    for chapter in written():
        cells = read(chapter)
        mine = {c.exercise.function for c in cells if c.exercise and c.role == "exercise"}
        for cell in cells:
            if cell.is_code and cell.role not in ("exercise", "check"):
                taken = _bound(cell.solved) & mine
                assert not taken, f"{chapter.stem}, {cell.id}: {taken}"


def _bound(source: str) -> set[str]:
    """The names that a cell binds at its top level; functions keep theirs to themselves."""
    found: set[str] = set()
    waiting: list[ast.AST] = list(ast.parse(source).body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif not isinstance(node, ast.Lambda):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found.add(node.id)
            waiting += ast.iter_child_nodes(node)
    return found
