"""What a learner has solved: one small JSON file beside the course, written atomically.

``TOYTORCH_PROGRESS`` names another file; builds and tests set it, so that they leave the
learner's own untouched.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from course.contents import ROOT
from course.files import write_atomically

_RANK = {"open": 0, "red": 1, "green": 2}


def path() -> Path:
    """Where progress is kept."""
    return Path(os.environ.get("TOYTORCH_PROGRESS") or ROOT / ".progress.json")


def load(source: Path | None = None) -> dict[str, str]:
    """State by exercise name: ``"green"``, ``"red"`` or ``"open"``; empty if nothing was done."""
    try:
        data = json.loads((source or path()).read_text(encoding="utf-8"))
        return {str(name): str(state) for name, state in data["exercises"].items()}
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return {}


def record(states: dict[str, str]) -> None:
    """Merge new states in; what was solved once stays solved, however much it is played with.

    A folder that cannot be written costs the record, never the lesson.
    """
    target = path()
    before = load(target)
    merged = dict(before)
    for name, state in states.items():
        if _RANK[state] >= _RANK.get(before.get(name, "open"), 0):
            merged[name] = state
    if merged == before:
        return
    text = json.dumps({"version": 1, "exercises": dict(sorted(merged.items()))}, indent=1)
    try:
        write_atomically(target, (text + "\n").encode())
    except OSError:
        return
