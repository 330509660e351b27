"""The toytorch course: chapters, exercises, and the machine that checks and builds them.

In a notebook::

    from course import check, exercise, use

Nothing is imported until it is asked for, because ``python3 -m course`` must start on a machine
that has nothing but Python.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from course.judge import check
    from course.notebook import look, setup, start
    from course.registry import exercise, use

_HOMES = {
    "check": "course.judge",
    "exercise": "course.registry",
    "look": "course.notebook",
    "setup": "course.notebook",
    "start": "course.notebook",
    "use": "course.registry",
}

__all__ = ["check", "exercise", "look", "setup", "start", "use"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        import importlib

        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'course' has no attribute {name!r}")
