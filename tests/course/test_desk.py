"""The learner's desk: working copies, updates that keep answers, and beginning anew."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from course import desk


def cell(name: str, source: str, kind: str = "code", **toytorch: Any) -> dict[str, Any]:
    """A cell of a notebook."""
    made: dict[str, Any] = {"id": name, "cell_type": kind, "source": source, "metadata": {}}
    if toytorch:
        made["metadata"]["toytorch"] = toytorch
    if kind == "code":
        made |= {"outputs": [], "execution_count": None}
    return made


def write(path: Path, *cells: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"cells": list(cells), "metadata": {}, "nbformat": 4}))


def sources(path: Path) -> list[str]:
    return ["".join(one["source"]) for one in json.loads(path.read_text())["cells"]]


TEXT = cell("text", "What is a stride?", "markdown")
PLAY = cell("play", "x.stride()")
STUB = cell("exercise-a", "def f(x):\n    ...", exercise="memory.a")
CHECK = cell("check-a", 'check("memory.a", f)', check="memory.a")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A course of one chapter, and a learner who has opened it once."""
    monkeypatch.setenv("TOYTORCH_PROGRESS", str(tmp_path / "progress.json"))
    monkeypatch.setattr(desk, "NOTEBOOKS", tmp_path / "notebooks")
    write(tmp_path / "notebooks" / "02_memory.ipynb", TEXT, PLAY, STUB, CHECK)
    assert desk.prepare() == []
    return tmp_path


def test_the_first_start_copies(place: Path) -> None:
    mine = place / "work" / "02_memory.ipynb"
    assert sources(mine) == sources(place / "notebooks" / "02_memory.ipynb")
    assert desk.notebook("02_memory") == mine
    assert desk.notebook("03_operations").parent == place / "notebooks"


def test_the_next_start_leaves_work_alone(place: Path) -> None:
    mine = place / "work" / "02_memory.ipynb"
    write(mine, TEXT, PLAY, {**STUB, "source": "def f(x): return x"}, CHECK)
    before = mine.read_bytes()
    assert desk.prepare() == []
    assert mine.read_bytes() == before


def test_a_copy_that_nobody_touched_follows_the_course(place: Path) -> None:
    new = {**TEXT, "source": "What are strides?"}
    write(place / "notebooks" / "02_memory.ipynb", new, PLAY, STUB, CHECK)
    assert desk.prepare() == []
    assert sources(place / "work" / "02_memory.ipynb")[0] == "What are strides?"
    assert not (place / "work" / "before").exists()


def test_an_update_keeps_answers_changes_and_added_cells(place: Path) -> None:
    mine = place / "work" / "02_memory.ipynb"
    answer = {**STUB, "source": "def f(x):\n    return x", "execution_count": 3}
    tried = {**PLAY, "source": "x.T.stride()"}
    note = cell("my-note", "my own thought", "markdown")
    first = cell("my-first", "1 + 1")
    write(mine, first, TEXT, tried, note, answer, CHECK)
    new_stub = {**STUB, "source": "def f(x):\n    # better\n    ..."}
    new_text = {**TEXT, "source": "What are strides?"}
    extra = cell("picture", "viz.storage(x)")
    write(place / "notebooks" / "02_memory.ipynb", new_text, extra, PLAY, new_stub, CHECK)
    (said,) = desk.prepare()
    assert "02_memory has changed. Your answers are in the new one" in said
    assert sources(mine) == [
        "1 + 1",
        "What are strides?",
        "viz.storage(x)",
        "x.T.stride()",
        "my own thought",
        "def f(x):\n    return x",
        'check("memory.a", f)',
    ]
    (kept,) = (place / "work" / "before").iterdir()
    assert sources(kept)[1] == "What is a stride?"
    assert kept.name in said
    assert desk.prepare() == []


def test_a_cell_that_the_course_changed_too_is_the_courses(place: Path) -> None:
    """Only answers outlive a change of their cell; the learner's text is in the copy kept."""
    mine = place / "work" / "02_memory.ipynb"
    write(mine, TEXT, {**PLAY, "source": "x.T.stride()"}, STUB, CHECK)
    write(
        place / "notebooks" / "02_memory.ipynb",
        TEXT,
        {**PLAY, "source": "x.stride(0)"},
        STUB,
        CHECK,
    )
    assert len(desk.prepare()) == 1
    assert sources(mine)[1] == "x.stride(0)"


def test_what_follows_a_cell_that_is_gone_stays(place: Path) -> None:
    mine = place / "work" / "02_memory.ipynb"
    write(mine, TEXT, PLAY, cell("mine", "keep me"), STUB, CHECK)
    write(place / "notebooks" / "02_memory.ipynb", TEXT, STUB, CHECK)
    desk.prepare()
    assert "keep me" in sources(mine)


@pytest.mark.parametrize("text", ["", "{", "[]", "[" * 100_000, '{"cells": 3}', '{"cells": {}}'])
def test_a_copy_that_cannot_be_read_is_kept_aside(place: Path, text: str) -> None:
    mine = place / "work" / "02_memory.ipynb"
    mine.write_text(text)
    write(place / "notebooks" / "02_memory.ipynb", TEXT, STUB, CHECK)
    (said,) = desk.prepare()
    assert "could not be read" in said
    assert len(sources(mine)) == 3
    assert next((place / "work" / "before").iterdir()).read_text() == text


def test_reset_begins_anew_and_keeps_the_old(place: Path) -> None:
    mine = place / "work" / "02_memory.ipynb"
    write(mine, TEXT, PLAY, {**STUB, "source": "def f(x): return x"}, CHECK)
    first, second = desk.reset("02_memory"), desk.reset("02_memory")
    assert first is not None and second is not None and first != second
    assert "return x" in sources(first)[2]
    assert sources(mine) == sources(place / "notebooks" / "02_memory.ipynb")
    mine.unlink()
    assert desk.reset("02_memory") is None
    assert mine.is_file()
    assert desk.prepare() == []


@pytest.mark.parametrize("text", ["{broken", "[" * 100_000])
def test_a_damaged_record_costs_no_work(place: Path, text: str) -> None:
    mine = place / "work" / "02_memory.ipynb"
    write(mine, TEXT, PLAY, {**STUB, "source": "def f(x): return x"}, CHECK)
    (place / "work" / ".course.json").write_text(text)
    desk.prepare()
    assert sources(mine) == [
        "What is a stride?",
        "x.stride()",
        "def f(x): return x",
        'check("memory.a", f)',
    ]
