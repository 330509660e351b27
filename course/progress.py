"""What a learner has done: one small JSON file beside the course, written atomically.

``exercises`` holds the best state of each exercise; ``log`` every check and every hint, with its
time. ``TOYTORCH_PROGRESS`` names another file; builds and tests set it, so that they leave the
learner's own untouched.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from course.contents import ROOT
from course.files import write_atomically

_RANK = {"open": 0, "red": 1, "green": 2}
_LONGEST = 10_000  # entries of the log that are kept, the latest


@dataclass(frozen=True)
class Entry:
    """One thing a learner did: ``what`` is ``check`` (``how``: its state) or ``hint`` (its grade)."""

    time: int  # seconds since 1970
    exercise: str
    what: str
    how: str


def path() -> Path:
    """Where progress is kept."""
    return Path(os.environ.get("TOYTORCH_PROGRESS") or ROOT / ".progress.json")


def load(source: Path | None = None) -> dict[str, str]:
    """State by exercise name: ``"green"``, ``"red"`` or ``"open"``; empty if nothing was done."""
    states = _read(source or path()).get("exercises")
    if not isinstance(states, dict):
        return {}
    return {str(name): str(state) for name, state in states.items() if str(state) in _RANK}


def log(source: Path | None = None) -> list[Entry]:
    """Every check and hint, in order of time."""
    rows = _read(source or path()).get("log")
    try:
        return [Entry(int(row[0]), *map(str, row[1:4])) for row in rows or []]
    except (TypeError, ValueError, LookupError, OverflowError):
        return []


def record(states: dict[str, str]) -> None:
    """Merge new states in; what was solved once stays solved, however much it is played with.

    A folder that cannot be written costs the record, never the lesson.
    """
    before = load()
    merged = dict(before)
    for name, state in states.items():
        if _RANK[state] >= _RANK.get(before.get(name, "open"), 0):
            merged[name] = state
    if merged != before:
        _write(merged, log())


def note(exercise: str, what: str, how: str) -> None:
    """Add a check (with its state) or a hint (with its grade) to the log."""
    entry = Entry(int(time.time()), exercise, what, how)
    _write(load(), [*log(), entry][-_LONGEST:])


def hints(exercise: str) -> int:
    """The highest grade of hint that was shown for an exercise."""
    return max(
        (int(e.how) for e in log() if e.exercise == exercise and e.what == "hint"), default=0
    )


def counts(entries: list[Entry]) -> dict[str, tuple[int, int]]:
    """By exercise: how many checks found written code, and how many different hints were shown."""
    tried = Counter(e.exercise for e in entries if e.what == "check" and e.how != "open")
    shown = Counter(name for name, _ in {(e.exercise, e.how) for e in entries if e.what == "hint"})
    return {name: (tried[name], shown[name]) for name in {**tried, **shown}}


def _read(source: Path) -> dict[str, Any]:
    try:
        data = json.loads(source.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def _write(states: dict[str, str], entries: list[Entry]) -> None:
    data = {
        "version": 2,
        "exercises": dict(sorted(states.items())),
        "log": [list(astuple(entry)) for entry in entries],
    }
    text = json.dumps(data, indent=1)
    try:
        write_atomically(path(), (text + "\n").encode())
    except OSError:
        return
