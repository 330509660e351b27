"""The learner's desk: working copies of the notebooks in ``work/``, which git ignores.

The notebooks in ``notebooks/`` are the course's. The launcher copies them to ``work/``, and the
learner works there. When a chapter of the course has changed, its copy is brought up to date: the
learner's answers, changed cells and added cells stay, and the copy as it was is kept in
``work/before/``. ``python3 -m course reset 04`` begins a chapter anew.

Standard library only: the launcher runs this before anything is installed.
"""

from __future__ import annotations

import copy
import hashlib
import json
import shutil
import time
from pathlib import Path
from typing import Any

from course.contents import ROOT
from course.files import write_atomically
from course.package import home

NOTEBOOKS = ROOT / "notebooks"
_RECORD = ".course.json"  # for each copy, what the course's notebook was when it was made

Notebook = dict[str, Any]


def notebook(stem: str) -> Path:
    """The notebook that a learner works in: the working copy where there is one."""
    mine = home() / f"{stem}.ipynb"
    return mine if mine.is_file() else NOTEBOOKS / f"{stem}.ipynb"


def prepare() -> list[str]:
    """Make working copies, and bring those up to date whose chapter has changed.

    Returns what there is to say about it, a line for each chapter that had answers.
    """
    record, said = _recorded(), []
    for source in sorted(NOTEBOOKS.glob("*.ipynb")):
        line = _prepared(source, record)
        if line:
            said.append(line)
    write_atomically(home() / _RECORD, json.dumps(record, indent=1).encode())
    return said


def reset(stem: str) -> Path | None:
    """A new working copy of a chapter; where the old one lies now, if there was one."""
    kept = _set_aside(stem)
    record = _recorded()
    record.pop(stem, None)
    _prepared(NOTEBOOKS / f"{stem}.ipynb", record)
    write_atomically(home() / _RECORD, json.dumps(record, indent=1).encode())
    return kept


def _prepared(source: Path, record: dict[str, dict[str, str]]) -> str:
    """One notebook's copy, made or brought up to date; what there is to say about it."""
    mine = home() / source.name
    new = json.loads(source.read_text(encoding="utf-8"))
    digests = {cell["id"]: _digest(cell) for cell in new["cells"]}
    seen = record.get(source.stem)
    if not mine.is_file():
        _copy(source, mine)
    elif seen == digests:
        return ""
    else:
        old = _read(mine)
        touched = old is None or seen is None or _changed(old, seen)
        kept = _set_aside(source.stem) if touched else None
        if old is None or not touched:
            _copy(source, mine)
        else:
            text = json.dumps(merged(new, old, seen or {}), ensure_ascii=False, indent=1)
            write_atomically(mine, (text + "\n").encode())
        record[source.stem] = digests
        if kept is None:
            return ""
        place = kept.relative_to(home().parent)
        if old is None:
            return f"{source.stem} could not be read and begins anew; what was there is {place}."
        return (
            f"{source.stem} has changed. Your answers are in the new one; the old one is {place}."
        )
    record[source.stem] = digests
    return ""


def merged(new: Notebook, old: Notebook, seen: dict[str, str]) -> Notebook:
    """The course's new notebook with what a learner did in the old one.

    Args:
        seen: the digests of the course's cells from which the old one was made, by cell id.
    """
    mine = {cell.get("id"): cell for cell in old["cells"]}
    added = _added(old, {*seen, *(cell["id"] for cell in new["cells"])})
    result = copy.deepcopy(new)
    cells = added.pop(None, [])
    for cell in result["cells"]:
        own = mine.get(cell["id"])
        if own is not None and _is_answer(cell, own, seen):
            cell["source"] = own["source"]
            if cell["cell_type"] == own["cell_type"] == "code":
                cell["outputs"] = own.get("outputs", [])
                cell["execution_count"] = own.get("execution_count")
        cells += [cell, *added.pop(cell["id"], [])]
    for rest in added.values():  # beside cells that the course no longer has
        cells += rest
    result["cells"] = cells
    return result


def _is_answer(cell: dict[str, Any], own: dict[str, Any], seen: dict[str, str]) -> bool:
    """Whether a cell that both have holds something of the learner's that is to stay."""
    if _digest(own) == seen.get(cell["id"]):
        return False
    exercise = "exercise" in cell.get("metadata", {}).get("toytorch", {})
    return exercise or _digest(cell) == seen.get(cell["id"])  # or the course's own is as it was


def _added(old: Notebook, known: set[str]) -> dict[Any, list[dict[str, Any]]]:
    """The learner's own cells, by the id of the course's cell that they follow."""
    found: dict[Any, list[dict[str, Any]]] = {}
    place = None
    for cell in old["cells"]:
        if cell.get("id") in known:
            place = cell["id"]
        elif "".join(cell.get("source", "")).strip():
            found.setdefault(place, []).append(cell)
    return found


def _changed(old: Notebook, seen: dict[str, str]) -> bool:
    return {cell.get("id"): _digest(cell) for cell in old["cells"]} != seen


def _digest(cell: dict[str, Any]) -> str:
    text = cell["cell_type"] + "\0" + "".join(cell["source"])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _read(path: Path) -> Notebook | None:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return found if isinstance(found["cells"], list) else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _copy(source: Path, target: Path) -> None:
    write_atomically(target, source.read_bytes())


def _set_aside(stem: str) -> Path | None:
    """Move a working copy to ``work/before``; None if there is none."""
    mine = home() / f"{stem}.ipynb"
    if not mine.is_file():
        return None
    stamp = time.strftime("%Y-%m-%d-%H%M%S")
    target, count = home() / "before" / f"{stem}-{stamp}.ipynb", 2
    while target.exists():
        target, count = target.with_name(f"{stem}-{stamp}-{count}.ipynb"), count + 1
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(str(mine), str(target))
    return target


def _recorded() -> dict[str, dict[str, str]]:
    try:
        found = json.loads((home() / _RECORD).read_text(encoding="utf-8"))
        return {str(stem): dict(cells) for stem, cells in found.items()}
    except (OSError, ValueError, AttributeError, TypeError, RecursionError):
        return {}
