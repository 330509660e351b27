"""What a class made of each exercise: how many solved it, and which mistakes they share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from course import registry
from course.marking import table
from course.marking.grade import Judged
from course.records import Exercise

NOT_RUN = ("missing", "unreadable", "open", "unmarked", "error")


@dataclass
class Statistic:
    """One exercise. ``misconceptions`` are the known ones, ``checks`` the first that fail."""

    exercise: Exercise
    handed_in: int = 0  # notebooks with a place for it
    begun: int = 0
    solved: int = 0
    verdicts: Counter[str] = field(default_factory=Counter)
    misconceptions: Counter[str] = field(default_factory=Counter)
    checks: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)

    @property
    def success(self) -> float:
        """The share of notebooks in which it is solved."""
        return self.solved / self.handed_in if self.handed_in else 0.0

    @property
    def median(self) -> float:
        """Seconds that the middle one of the answers takes to run through its checks."""
        return median(self.seconds) if self.seconds else 0.0

    def mistakes(self) -> list[tuple[str, int]]:
        """Misconceptions met, and where none was recognised, what fails; the most frequent first."""
        return (self.misconceptions + self.checks).most_common()


def statistics(judged: Iterable[Judged]) -> list[Statistic]:
    """A statistic for every exercise that was marked, in the order of the course."""
    found: dict[str, Statistic] = {}
    for one in judged:
        mark = one.mark
        if not mark.exercise:
            continue
        each = found.setdefault(mark.exercise, Statistic(registry.exercise(mark.exercise)))
        each.verdicts[mark.verdict] += 1
        each.handed_in += mark.verdict not in ("missing", "unreadable")
        each.solved += mark.verdict == "green"
        if mark.verdict in NOT_RUN:
            continue
        each.begun += 1
        if one.verdict is not None:
            each.seconds.append(mark.seconds)
            failure = one.verdict.failure
            if one.verdict.mutant is not None:
                each.misconceptions[one.verdict.mutant.label] += 1
            elif failure is not None:
                each.checks[f"fails: {failure.check}"] += 1
    order = {name: place for place, name in enumerate(registry.all_exercises())}
    return sorted(found.values(), key=lambda each: order[each.exercise.name])


def lines(found: list[Statistic]) -> list[str]:
    """The statistics as text: a line an exercise, and its most frequent mistake."""
    shown = [f"{'exercise':<24} {'solved':>10} {'begun':>6} {'median':>8}  most frequent mistake"]
    for each in found:
        solved = f"{each.solved}/{each.handed_in} {100 * each.success:3.0f}%"
        most = each.mistakes()[:1]
        mistake = f"{most[0][0]} ({most[0][1]}×)" if most else ""
        shown.append(
            f"{each.exercise.name:<24} {solved:>10} {each.begun:>6} {each.median:>6.2f} s  {mistake}"
        )
    return shown


def as_table(found: list[Statistic]) -> str:
    """The statistics as CSV."""
    header = ["exercise", "title", "optional", "handed in", "begun", "solved", "success rate"]
    rows: list[list[Any]] = []
    for each in found:
        row: list[Any] = [each.exercise.name, each.exercise.title]
        row += ["yes" if each.exercise.optional else "no", each.handed_in, each.begun, each.solved]
        row += [round(each.success, 3), round(each.median, 3)]
        row += [
            "; ".join(f"{label} ({count})" for label, count in each.misconceptions.most_common())
        ]
        row += ["; ".join(f"{label} ({count})" for label, count in each.checks.most_common())]
        rows.append(row)
    return table.text([*header, "median seconds", "misconceptions", "other failures"], rows)
