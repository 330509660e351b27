"""Read a chapter's jupytext source and expand its exercise and check cells.

Cell-line metadata (after ``# %%``):

==================  ===============================================================================
``exercise="N"``    the cell becomes the prompt and the stub (solved: the reference) of exercise N
``check="N"``       the cell becomes ``check("N", function)``; ``points=2`` is its weight in marking
``slide="..."``     slide, subslide, fragment, more (same slide); without it: not on slides;
                    ``notes``: what the speaker sees (key S), in no notebook
``show="..."``      on slides show only the ``code``, the ``output``, or the exercise's ``prompt``
``keep=true``       the learner's notebook is delivered with this cell's output (first pictures)
``varies=true``     the output differs from run to run (timings): nbval does not compare it
``raises=true``     the cell raises on purpose (traps)
``folded=true``     the code is folded away in JupyterLab (a click unfolds it) and not on slides:
                    plotting code, where only the picture matters
==================  ===============================================================================
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from typing import Any

from course import registry
from course.contents import Chapter
from course.records import Exercise

SLIDES = ("slide", "subslide", "fragment", "more", "notes")
SHOWS = ("code", "output", "prompt")
_KEYS = {"exercise", "check", "points", "slide", "show", "keep", "varies", "raises", "folded"}
_IGNORED = {"lines_to_next_cell", "lines_to_end_of_cell_marker"}  # jupytext's own
_SOLUTION = re.compile(
    r"^([ \t]*)### BEGIN SOLUTION[ \t]*\n.*?^[ \t]*### END SOLUTION[ \t]*$", re.S | re.M
)
_TITLE = re.compile(r"\s*##[^\n]*\s*")  # a heading and nothing below it
COLUMNS = 75  # of code that still fit on a slide


class SourceError(ValueError):
    """A chapter's source says something that cannot be built; the message says where."""


@dataclass
class Cell:
    """One cell of the built notebooks.

    ``role`` is prose, code, prompt, exercise or check. ``student`` and ``solved`` are the two
    sources; they differ in exercises only.
    """

    id: str
    role: str
    student: str
    solved: str
    slide: str = ""
    show: str = ""
    exercise: Exercise | None = None
    points: float = 0
    keep: bool = False
    varies: bool = False
    raises: bool = False
    folded: bool = False
    outputs: list[Any] = field(default_factory=list)
    count: int | None = None

    @property
    def is_code(self) -> bool:
        """Whether this is a code cell."""
        return self.role not in ("prose", "prompt")

    @property
    def in_notebook(self) -> bool:
        """Speaker notes and the titles of slides, which are cells of their own, are in none."""
        return self.slide != "notes" and not (
            self.role == "prose" and _TITLE.fullmatch(self.solved)
        )


def read(chapter: Chapter) -> list[Cell]:
    """All cells of a chapter, expanded.

    Raises:
        SourceError: no source, an unknown key, exercise or slide kind, or a line of code too wide.
    """
    if not chapter.written:
        raise SourceError(f"chapter {chapter.number:02d} has no source yet: {chapter.source.name}")
    return parse(chapter.source.read_text(encoding="utf-8"), chapter.stem)


def parse(text: str, name: str) -> list[Cell]:
    """The cells of a source text; ``name`` is used in messages."""
    import jupytext

    notebook = jupytext.reads(text, fmt="py:percent")
    cells: list[Cell] = []
    for number, raw in enumerate(notebook.cells, start=1):
        meta = {key: value for key, value in raw.metadata.items() if key not in _IGNORED}
        place = f"{name}, cell {number} ({raw.source.strip()[:40]!r})"
        cells += _expand(raw, meta, place)
    _name_ids(cells)
    _check_width(cells, name)
    return cells


def _expand(raw: Any, meta: dict[str, Any], place: str) -> list[Cell]:
    unknown = set(meta) - _KEYS - {"tags"}
    if unknown:
        raise SourceError(f"{place}: unknown {sorted(unknown)}; known are {sorted(_KEYS)}")
    slide, show = meta.get("slide", ""), meta.get("show", "")
    if slide and slide not in SLIDES:
        raise SourceError(f"{place}: slide={slide!r}; known are {', '.join(SLIDES)}")
    if show and show not in SHOWS:
        raise SourceError(f"{place}: show={show!r}; known are {', '.join(SHOWS)}")
    source = raw.source.strip("\n")
    if "exercise" in meta:
        return _exercise(_find(meta["exercise"], place), slide, show)
    if "check" in meta:
        return [_check(_find(meta["check"], place), float(meta.get("points", 1)))]
    role = "code" if raw.cell_type == "code" else "prose"
    cell = Cell("", role, _without_solution(source), _solution(source), slide, show)
    cell.keep, cell.varies = bool(meta.get("keep")), bool(meta.get("varies"))
    cell.raises, cell.folded = bool(meta.get("raises")), bool(meta.get("folded"))
    if cell.folded:
        if role != "code":
            raise SourceError(f"{place}: folded=true is for code; fold prose with <details>")
        cell.show = "output"
    return [cell]


def _find(name: str, place: str) -> Exercise:
    try:
        return registry.exercise(name)
    except LookupError as error:
        raise SourceError(f"{place}: {error}") from None


def _exercise(found: Exercise, slide: str, show: str) -> list[Cell]:
    facts = [f"Exercise `{found.name}`", f"about {found.minutes} minutes"]
    if found.optional:
        facts.insert(1, "optional")
    if found.hints:
        facts.append(f'stuck? `hint("{found.name}")`')
    prompt = f"### ✎ {found.title}\n\n*{' · '.join(facts)}*\n\n{found.prompt}"
    code = "more" if slide and show != "prompt" else ""
    return [
        Cell(f"prompt-{_slug(found.name)}", "prompt", prompt, prompt, slide, show, found),
        Cell(
            f"exercise-{_slug(found.name)}",
            "exercise",
            found.start.source,
            found.answer.source,
            code,
            "code",
            found,
        ),
    ]


def _check(found: Exercise, points: float) -> Cell:
    source = f'check("{found.name}", {found.function})'
    name = f"check-{_slug(found.name)}"
    return Cell(name, "check", source, source, exercise=found, points=points)


def _slug(name: str) -> str:
    return re.sub(r"[^a-zA-Z0-9-]+", "-", name)


def _without_solution(source: str) -> str:
    return _SOLUTION.sub(r"\1# your code here", source)


def _solution(source: str) -> str:
    lines = source.splitlines()
    return "\n".join(x for x in lines if not re.match(r"[ \t]*### (BEGIN|END) SOLUTION", x))


def _name_ids(cells: list[Cell]) -> None:
    """Ids come from the text, so that a cell keeps its id when others are put before it."""
    used: set[str] = set()
    for cell in cells:
        stem = cell.id or f"{cell.role}-{hashlib.sha1(cell.solved.encode()).hexdigest()[:8]}"
        name, again = stem, 2
        while name in used:
            name, again = f"{stem}-{again}", again + 1
        used.add(name)
        cell.id = name


def _check_width(cells: list[Cell], name: str) -> None:
    wide = [
        f"  {cell.id}, {len(line)} columns: {line.strip()}"
        for cell in cells
        if cell.is_code
        for line in dict.fromkeys((cell.solved + "\n" + cell.student).splitlines())
        if len(line) > COLUMNS
    ]
    if wide:
        raise SourceError(
            f"{name}: slides hold {COLUMNS} columns of code, shorten these lines:\n"
            + "\n".join(wide)
        )
