"""When notebooks were due, when they came, and what coming late costs.

A time without a zone is one of this computer's clock. A file's time is that of its last change: it
is right where the files were collected as they were, and wrong where a program that unpacked them
gave them its own. For those, and for extensions, there is a table.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from course import registry
from course.contents import find
from course.marking import table
from course.marking.grade import Judged

_RULE = re.compile(
    r"\s*(?P<share>\d+(?:\.\d+)?)\s*%\s*per\s+(?P<unit>hour|day|week)"
    r"(?:\s*,\s*at\s+most\s+(?P<most>\d+(?:\.\d+)?)\s*%)?\s*"
)
_UNITS = {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(weeks=1)}
_COLUMNS = {
    "student": ("id", "student id"),
    "chapter": (),
    "handed in": ("handed_in", "time"),
    "due": ("extension",),
}


@dataclass(frozen=True)
class Rule:
    """What a day late costs: a share of the points that were earned, per unit that has begun."""

    share: float = 0.0
    unit: str = "day"
    most: float = 1.0

    @classmethod
    def read(cls, text: str) -> Rule:
        """A rule from words: ``10% per day`` or ``5% per hour, at most 50%``.

        Raises:
            BadTable: these words are no rule.
        """
        said = _RULE.fullmatch(text)
        if said is None:
            raise table.BadTable(
                f"{text!r} is no rule for late notebooks: say “10% per day”, or “5% per hour, "
                "at most 50%” (hour, day or week)"
            )
        most = float(said["most"] or 100) / 100
        return cls(float(said["share"]) / 100, said["unit"], min(most, 1.0))

    def cost(self, late: timedelta) -> tuple[str, float]:
        """How late that is, in words, and the share of points that it costs."""
        units = math.ceil(late / _UNITS[self.unit])
        share = min(units * self.share, self.most)
        words = f"{units} {self.unit}{'s' * (units != 1)} late"
        return (f"{words}: −{100 * share:g} %" if share else words), share


class Calendar:
    """Due dates by chapter, the exceptions by student, and the rule."""

    def __init__(self, due: Sequence[str], rule: str | None, times: Path | None) -> None:
        """Read all of it.

        Args:
            due: ``2026-11-30T18:00`` for every chapter, or ``04=2026-11-30T18:00`` for one.
            rule: what coming late costs; nothing without it.
            times: a table of exceptions: student, chapter (empty: all), handed in, due.

        Raises:
            BadTable: something of it cannot be understood.
        """
        self._due: dict[int | None, datetime] = {}
        for text in due:
            chapter, _, time = text.rpartition("=")
            number = find(chapter.strip()).number if chapter else None
            self._due[number] = _time(time, f"--due {text}")
        if (rule or times) and not due:
            raise table.BadTable("--late and --times need --due, the time that counts for most")
        self.rule = Rule.read(rule) if rule else Rule()
        self._own: dict[tuple[str, int | None, str], datetime] = {}
        for row in table.read(times, _COLUMNS, ["student"]) if times else []:
            number = find(row["chapter"]).number if row["chapter"] else None
            for what in ("handed in", "due"):
                if row[what]:
                    self._own[row["student"], number, what] = _time(row[what], row.place)

    @property
    def students(self) -> set[str]:
        """Who has an exception."""
        return {student for student, _, _ in self._own}

    def apply(self, judged: list[Judged]) -> None:
        """Take from marks what coming late costs, and say so in them."""
        for one in judged:
            mark = one.mark
            if not mark.exercise or not one.handed_in:
                continue
            chapter = registry.exercise(mark.exercise).chapter
            due = self._exception(mark.student, chapter, "due") or self._due.get(
                chapter, self._due.get(None)
            )
            came = self._exception(mark.student, chapter, "handed in") or one.handed_in
            if due and came > due:
                mark.late, share = self.rule.cost(came - due)
                mark.points = round(mark.points * (1 - share), 2)

    def _exception(self, student: str, chapter: int, what: str) -> datetime | None:
        return self._own.get((student, chapter, what)) or self._own.get((student, None, what))


def _time(text: str, place: str) -> datetime:
    try:
        return datetime.fromisoformat(text.strip()).astimezone()
    except (ValueError, OverflowError, OSError):
        raise table.BadTable(
            f"{place}: {text.strip()!r} is no time: write 2026-11-30T18:00"
        ) from None
