"""Which notebooks lie in a folder, whose they are, and of which chapter.

FOLDER/submitted/STUDENT/ASSIGNMENT/*.ipynb     an nbgrader course
FOLDER/STUDENT/ASSIGNMENT/*.ipynb               its submitted folder
FOLDER/STUDENT/*.ipynb
FOLDER/STUDENT_04_autograd.ipynb                names before the chapter's own
"""

from __future__ import annotations

import json
import os
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from course.contents import CHAPTERS, Chapter

_KNOWN = {chapter.stem: chapter for chapter in CHAPTERS}
# What a notebook may hold, so that reading it costs little, whatever it holds. The largest of the
# solved chapters has 1.3 MB, 1,000 brackets, 5,300 commas, 19,000 characters of code in 530 lines.
_LARGEST = 20  # MB of a file, pictures and all
_MOST_BRACKETS = 100_000  # in the whole file: each may be an object of its own
_MOST_COMMAS = 1_000_000
_MOST_CODE = 150_000  # characters
_MOST_LINES = 3_000  # and semicolons


@dataclass(frozen=True)
class Submission:
    """A notebook that somebody handed in. ``problem`` says why it cannot be marked.

    ``time`` is that of the file.
    """

    student: str
    path: Path
    chapter: Chapter | None = None
    notebook: Any = None
    problem: str = ""
    time: datetime | None = None


def last_of_each(found: Iterable[Submission]) -> tuple[list[Submission], list[Submission]]:
    """The notebook of each student and chapter that counts, and the others.

    The last one counts, of those that can be read; of two files of the same second, the one whose
    name comes last. A notebook of no chapter stands for itself.
    """
    counted: dict[tuple[str, str], Submission] = {}
    others = []
    for one in found:
        slug = one.chapter.slug if one.chapter else f"/{one.path}"
        earlier = counted.setdefault((one.student, slug), one)
        if earlier is not one:
            late, early = (one, earlier) if _rank(one) >= _rank(earlier) else (earlier, one)
            counted[one.student, slug] = late
            others.append(early)
    return list(counted.values()), others


def _rank(one: Submission) -> tuple[bool, float]:
    return not one.problem, one.time.timestamp() if one.time else 0.0


def find(folder: Path, chapter: Chapter | None = None) -> Iterator[Submission]:
    """All submissions in a folder, of all chapters or of one, in the order of their names.

    Links are not followed: they are submissions that cannot be marked.

    Raises:
        LookupError: the folder does not exist, or holds no notebook.
    """
    if not folder.is_dir():
        raise LookupError(f"There is no folder {folder}.")
    root = folder / "submitted" if (folder / "submitted").is_dir() else folder
    paths = sorted(_paths(root))
    if not paths:
        raise LookupError(f"There is no notebook in {root}.")
    for path in paths:
        submission = _open(root, path)
        if chapter is None or submission.chapter in (None, chapter):
            yield submission


def _paths(root: Path) -> Iterator[Path]:
    """Notebooks, and links to folders, which may stand for some."""
    for place, folders, files in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(".")]
        names = [name for name in files if name.endswith(".ipynb") and not name.startswith(".")]
        names += [name for name in folders if os.path.islink(os.path.join(place, name))]
        yield from (Path(place, name) for name in names)


def _open(root: Path, path: Path) -> Submission:
    student, by_name = _names(root, path)
    time = _time(path)
    if by_name is not None and not by_name.written:
        by_name = None
    try:
        number, cells = _read(path)
    except Exception as error:
        said = " ".join(str(error).split())[:200] or type(error).__name__
        return Submission(student, path, by_name, None, f"cannot be read: {said}", time)
    # the chapter that the notebook itself names, if it is one of ours
    chapter = next((c for c in CHAPTERS if c.number == number), by_name)
    if chapter is None or not chapter.written:
        problem = "belongs to no chapter of the course"
        return Submission(student, path, problem=problem, time=time)
    return Submission(student, path, chapter, SimpleNamespace(cells=cells), time=time)


def _time(path: Path) -> datetime | None:
    try:
        return datetime.fromtimestamp(path.lstat().st_mtime).astimezone()
    except (OSError, ValueError, OverflowError):  # a file's time may be any number
        return None


def _read(path: Path) -> tuple[Any, list[Any]]:
    """The number of the chapter as the notebook has it, and its cells of code."""
    if path.is_symlink():
        raise ValueError("it is a link, not a file")
    if not path.is_file():
        raise ValueError("it is no file")
    if path.stat().st_size > _LARGEST * 2**20:
        raise ValueError(f"it is larger than {_LARGEST} MB; without its outputs it would do")
    data = path.read_bytes()
    if data.count(b"{") + data.count(b"[") > _MOST_BRACKETS or data.count(b",") > _MOST_COMMAS:
        raise ValueError("it holds more lists and numbers than any notebook")
    try:
        book: Any = json.loads(data.decode("utf-8-sig"))
    except json.JSONDecodeError as error:
        raise ValueError(f"Notebook does not appear to be JSON: {error}") from None
    if not isinstance(book, dict) or not isinstance(book.get("nbformat", 0), int):
        raise ValueError("it is no notebook")
    if book.get("nbformat", 0) < 4:
        import nbformat  # for the forms of earlier years

        book = nbformat.reads(json.dumps(book), as_version=4)  # type: ignore[no-untyped-call,unused-ignore]
    found = book.get("cells")
    if not isinstance(found, list) or not found:
        raise ValueError("it has no cells")
    cells = []
    for cell in found:
        if isinstance(cell, dict) and cell.get("cell_type") == "code":
            source = cell.get("source", "")
            source = "".join(map(str, source)) if isinstance(source, list) else str(source)
            cells.append(SimpleNamespace(cell_type="code", source=source))
    problem = too_much(cell.source for cell in cells)
    if problem:
        raise ValueError(problem)
    ours = book.get("metadata", {})
    ours = ours.get("toytorch", {}) if isinstance(ours, dict) else {}
    return ours.get("chapter") if isinstance(ours, dict) else None, cells


def too_much(sources: Iterable[str]) -> str:
    """Why nobody should parse this code, which is longer than any chapter's; empty if it is not."""
    texts = list(sources)
    size = sum(map(len, texts))
    if size > _MOST_CODE:
        return f"it holds {size:,} characters of code, and {_MOST_CODE:,} is the most"
    lines = sum(1 + text.count("\n") + text.count(";") for text in texts)
    if lines > _MOST_LINES:
        return f"it holds {lines:,} lines of code, and {_MOST_LINES:,} is the most"
    return ""


def _names(root: Path, path: Path) -> tuple[str, Chapter | None]:
    """Student and chapter as far as names tell."""
    # one system writes ö as one character, another as two
    path = Path(unicodedata.normalize("NFC", str(path.relative_to(root))))
    parts = path.parts
    chapter = next((c for stem, c in _KNOWN.items() if stem in path.stem), None)
    if len(parts) > 1:
        return parts[0], chapter
    rest = path.stem.replace(chapter.stem, "") if chapter else path.stem
    return re.sub(r"^[-_. ]+|[-_. ]+$", "", rest) or path.stem, chapter
