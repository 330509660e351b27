"""What each student has in all, and the tables that learning platforms take in.

Moodle: columns that identify a student ("ID number", "Email address") and one for each grade item;
which is which is said when the file is imported (its "Grade import", CSV file).

Canvas: its gradebook looks for Student, ID, SIS User ID, SIS Login ID and Section in this order,
then for one column an assignment. A line "Points Possible" below the header has their maxima. ID is
Canvas's own number, which nobody else knows; where it is empty, the SIS identifiers are looked up.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from course import registry
from course.contents import CHAPTERS, Chapter
from course.marking import table
from course.marking.grade import Judged, missing
from course.marking.roster import Person, Roster


@dataclass
class Sum:
    """Points, the maximum, and how many of the points are for optional exercises."""

    points: float = 0.0
    of: float = 0.0
    extra: float = 0.0

    def add(self, other: Sum) -> None:
        """Add another sum to this one."""
        self.points = round(self.points + other.points, 2)
        self.of = round(self.of + other.of, 2)
        self.extra = round(self.extra + other.extra, 2)

    def __str__(self) -> str:
        more = f", {self.extra:g} of them extra" if self.extra else ""
        return f"{self.points:g} of {self.of:g} points{more}"


@dataclass
class Total:
    """A student with what they have, by the number of the chapter and in all."""

    person: Person
    listed: bool = True  # on the roster, if there is one
    chapters: dict[int, Sum] = field(default_factory=dict)
    total: Sum = field(default_factory=Sum)
    handed_in: set[int] = field(default_factory=set)


def complete(judged: list[Judged], roster: Roster | None, chapter: Chapter | None) -> list[Judged]:
    """All marks of all students, in the order of the roster: with 0 for what nobody handed in.

    A chapter counts if somebody handed it in, or if it is the one that is marked.
    """
    by_student: dict[str, list[Judged]] = {name: [] for name in (roster.people if roster else ())}
    for one in judged:
        by_student.setdefault(one.mark.student, []).append(one)
    numbers = {_chapter(one) for one in judged if one.mark.exercise}
    if chapter is not None:
        numbers.add(chapter.number)
    result = []
    for student, own in by_student.items():
        there = {_chapter(one) for one in own if one.mark.exercise}
        for each in CHAPTERS:
            if each.number in numbers - there:
                own += missing(student, each)
        result += sorted(own, key=_chapter)
    return result


def _chapter(one: Judged) -> int:
    return registry.exercise(one.mark.exercise).chapter if one.mark.exercise else 0


def totals(judged: Iterable[Judged], roster: Roster | None = None) -> list[Total]:
    """A total for each student."""
    found: dict[str, Total] = {}
    for one in judged:
        mark = one.mark
        person = roster.people.get(mark.student) if roster else None
        total = found.setdefault(
            mark.student,
            Total(person or Person(mark.student), roster is None or person is not None),
        )
        if mark.exercise:
            more = Sum(mark.points, mark.of, mark.points if mark.extra else 0.0)
            total.chapters.setdefault(_chapter(one), Sum()).add(more)
            total.total.add(more)
            if mark.verdict != "missing":
                total.handed_in.add(_chapter(one))
    return list(found.values())


def _named(found: list[Total]) -> list[Chapter]:
    numbers = {number for total in found for number in total.chapters}
    return [chapter for chapter in CHAPTERS if chapter.number in numbers]


def as_table(found: list[Total]) -> str:
    """A line a student: points and maximum of each chapter, then of all."""
    chapters = _named(found)
    header = ["student", "name", "e-mail", "on the roster", "chapters handed in"]
    for chapter in chapters:
        header += [f"{chapter.number:02d} points", f"{chapter.number:02d} of"]
    rows = []
    for one in found:
        row: list[Any] = [one.person.id, one.person.name, one.person.email]
        row += ["yes" if one.listed else "no", len(one.handed_in)]
        for chapter in chapters:
            part = one.chapters.get(chapter.number, Sum())
            row += [part.points, part.of]
        rows.append([*row, one.total.points, one.total.of, one.total.extra])
    return table.text([*header, "points", "of", "extra points"], rows)


def moodle(found: list[Total]) -> str:
    """A table for Moodle's import of grades. Who is not on the roster is left out."""
    chapters = _named(found)
    header = ["ID number", "Full name", "Email address", *map(_item, chapters), "Toytorch total"]
    rows = (
        [one.person.id, one.person.name, one.person.email, *_points(one, chapters)]
        for one in found
        if one.listed
    )
    return table.text(header, rows)


def canvas(found: list[Total]) -> str:
    """A table for the import of Canvas's gradebook. Who is not on the roster is left out."""
    chapters = _named(found)
    header = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", *map(_item, chapters)]
    most = {n: part.of for one in found for n, part in one.chapters.items()}
    possible = ["Points Possible", "", "", "", "", *(most[c.number] for c in chapters)]
    rows = (
        [one.person.name or one.person.id, "", one.person.id, one.person.email or one.person.id, ""]
        + _points(one, chapters)[:-1]
        for one in found
        if one.listed
    )
    return table.text(header, [possible, *rows])


def _item(chapter: Chapter) -> str:
    return f"{chapter.number:02d} {chapter.title}"


def _points(one: Total, chapters: list[Chapter]) -> list[Any]:
    parts = [one.chapters.get(chapter.number, Sum()).points for chapter in chapters]
    return [*parts, one.total.points]
