"""Hints in three grades: an idea, a worked trace, a skeleton.

from course import hint

hint("memory.view")       # the idea; asked again: the trace, then the skeleton
hint("memory.view", 3)    # the skeleton at once
"""

from __future__ import annotations

import re
from typing import Any

from course import panel, progress
from course.records import Exercise
from course.registry import exercise

GRADES = ("idea", "worked trace", "skeleton")


class Hint:
    """One hint: Markdown in a frame in notebooks, text elsewhere."""

    def __init__(self, found: Exercise, grade: int) -> None:
        self.exercise, self.grade = found, grade

    @property
    def markdown(self) -> str:
        """The hint's own text."""
        return self.exercise.hints[self.grade - 1]

    def _headline(self) -> str:
        return f"hint {self.grade} of {len(self.exercise.hints)}, {GRADES[self.grade - 1]}"

    def _next(self) -> str:
        if self.grade == len(self.exercise.hints):
            return "There is no further hint."
        return f'Ask again for the next one, the {GRADES[self.grade]}: hint("{self.exercise.name}")'

    def __repr__(self) -> str:
        found = self.exercise
        plain = re.sub(r"^```\w*\n?", "", self.markdown, flags=re.M)
        lines = [f"{found.name} · {found.title}: {self._headline()}", *plain.strip().split("\n")]
        return "\n  ".join([*lines, "", self._next()])

    def _repr_html_(self) -> str:
        from course.build import markup

        found = self.exercise
        body = f"<div>{markup.markdown(self.markdown)}</div>{panel.small(self._next())}"
        return panel.frame("open", found.title, found.name, self._headline(), body)


def hint(name: str, grade: int | None = None) -> Hint:
    """A hint for an exercise. The first call shows the first, each further call the next.

    Args:
        name: the exercise, as in its prompt.
        grade: 1 for the idea, 2 for a worked trace, 3 for a skeleton.

    Raises:
        LookupError: no such exercise, or it has no hints.
        ValueError: no such grade.
    """
    found = exercise(name)
    if not found.hints:
        raise LookupError(f"{name} has no hints")
    if grade is None:
        grade = min(progress.hints(name) + 1, len(found.hints))
    if grade not in range(1, len(found.hints) + 1):
        raise ValueError(f"there are hints 1 to {len(found.hints)}, and no hint {grade!r}")
    progress.note(name, "hint", str(grade))
    return Hint(found, grade)


def code_of(text: str) -> list[str]:
    """The Python blocks of a Markdown text."""
    blocks: list[Any] = re.findall(r"^```python\n(.*?)^```", text, flags=re.M | re.S)
    return [str(block) for block in blocks]
