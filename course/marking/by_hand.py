"""What the lecturer decides: points and comments in a table, laid over every marking."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from course import registry
from course.marking import table
from course.marking.grade import Judged

_COLUMNS = {
    "student": ("id", "student id"),
    "exercise": (),
    "points": (),
    "comment": ("feedback",),
}


@dataclass(frozen=True)
class Override:
    """A line of the table. Without points it is a comment; without exercise, one on everything."""

    student: str
    exercise: str
    points: float | None
    comment: str


def read(path: Path) -> list[Override]:
    """The lines of a table with the columns student, exercise, points, comment.

    Raises:
        BadTable: it cannot be read, names an exercise that there is not, or points that are none.
    """
    found = []
    for row in table.read(path, _COLUMNS, ["student", "exercise", "points"]):
        if row["exercise"]:
            try:
                registry.exercise(row["exercise"])
            except LookupError as error:
                raise table.BadTable(f"{row.place}: {error.args[0]}") from None
        elif row["points"]:
            raise table.BadTable(f"{row.place}: points need an exercise")
        points = _points(row) if row["points"] else None
        found.append(Override(row["student"], row["exercise"], points, row["comment"]))
    return found


def _points(row: table.Row) -> float:
    try:
        points = float(row["points"].replace(",", "."))
    except ValueError:
        points = math.nan
    if not math.isfinite(points):
        raise table.BadTable(f"{row.place}: {row['points']!r} are no points")
    return points


def apply(overrides: list[Override], judged: list[Judged]) -> None:
    """Lay the lecturer's points and comments over the marks. Of two lines the later counts."""
    said = {(one.student, one.exercise): one for one in overrides if one.exercise}
    for each in judged:
        one = said.get((each.mark.student, each.mark.exercise))
        if one is None:
            continue
        each.mark.comment = one.comment
        if one.points is not None:
            each.mark.points, each.mark.by_hand = one.points, "yes"


def remarks(overrides: list[Override]) -> dict[str, list[str]]:
    """Comments on all that a student handed in, by student."""
    found: dict[str, list[str]] = {}
    for one in overrides:
        if not one.exercise and one.comment:
            found.setdefault(one.student, []).append(one.comment)
    return found
