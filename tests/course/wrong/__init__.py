"""Wrong answers that somebody might hand in. Each has to be red; see test_exercises.py.

A file a chapter. They were written before the properties that catch them, and none of them is a
copy of a mutant at that time; some have become mutants since.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from course import registry
from course.variant import Variant

T = TypeVar("T")


@dataclass(frozen=True)
class Wrong:
    """A wrong answer: to which exercise, what is wrong with it, and its code."""

    exercise: str
    label: str
    variant: Variant

    @property
    def value(self) -> Any:
        """The function or class."""
        return self.variant.value


_all: list[Wrong] = []


def wrong(exercise: str, label: str) -> Callable[[T], T]:
    """Decorator: a wrong answer to an exercise, and what is wrong with it."""

    def keep(definition: T) -> T:
        _all.append(Wrong(exercise, label, Variant.of(definition, "wrong", label)))
        return definition

    return keep


def handed_in(exercise: str, label: str, make: Callable[[], Any]) -> None:
    """A wrong answer that nobody wrote: something of the framework's."""
    _all.append(Wrong(exercise, label, _Given(make)))  # type: ignore[arg-type]


def like(exercise: str, label: str, *changes: tuple[str, str]) -> None:
    """A wrong answer that is the reference but for some places: (text, what stands there)."""
    answer = registry.exercise(exercise).answer
    _all.append(Wrong(exercise, label, answer.changed("wrong", label, "", changes)))


class _Given:
    def __init__(self, make: Callable[[], Any]) -> None:
        self.value = make()


def all_wrong() -> list[Wrong]:
    """Every wrong answer of every chapter."""
    for info in sorted(pkgutil.iter_modules(__path__), key=lambda info: info.name):
        importlib.import_module(f"{__name__}.{info.name}")
    return list(_all)
