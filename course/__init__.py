"""The toytorch course: chapters, exercises, and the machine that checks and builds them.

In a notebook::

    from course import check, exercise, use

Nothing is imported until it is asked for, because ``python3 -m course`` must start on a machine
that has nothing but Python.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from course import package

if TYPE_CHECKING:
    from course.gallery import pictures
    from course.hints import hint
    from course.judge import check
    from course.milestones import milestone
    from course.notebook import look, setup, start
    from course.pieces import catch_up
    from course.registry import exercise, use
    from course.terms import glossary

_HOMES = {
    "catch_up": "course.pieces",
    "check": "course.judge",
    "exercise": "course.registry",
    "glossary": "course.terms",
    "hint": "course.hints",
    "look": "course.notebook",
    "milestone": "course.milestones",
    "pictures": "course.gallery",
    "setup": "course.notebook",
    "start": "course.notebook",
    "use": "course.registry",
}

__all__ = [
    "catch_up",
    "check",
    "exercise",
    "glossary",
    "hint",
    "look",
    "milestone",
    "pictures",
    "setup",
    "start",
    "use",
]


package.install()


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        import importlib

        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'course' has no attribute {name!r}")
