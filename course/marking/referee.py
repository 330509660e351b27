"""The process that judges an answer. It never runs it: it is told what each case came to, as data.

It goes through the checks as they stand in the course, with the reference in the place of the
answer, which gives inputs and what is expected of them. For each case it reads one line from the
answer's process (:mod:`course.marking.worker`), makes a plain value of it, and judges that. A line
says of itself which case it belongs to. What does not fit is no answer.

On standard input: a job, then the lines of the other process. On standard output: after each line
``+`` (go on with this case), or ``-`` (go on with the next), and at last the report.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any, BinaryIO

from course import deadline, judge, registry
from course.cases import Case
from course.judge import Outcome
from course.marking import plain
from course.records import Check, Exercise
from course.running import Came


def main() -> None:
    """Do one job and end."""
    lines, out = sys.stdin.buffer, sys.stdout.buffer
    job = json.loads(lines.readline())
    found = registry.exercise(job["exercise"])
    found.limit = min(found.limit, job["limit"])
    report = {"mutants": mutants(found)} if job.get("mutants") else _report(found, Talk(lines, out))
    out.write(json.dumps(report).encode() + b"\n")
    out.flush()


def rows(outcomes: list[Outcome]) -> list[list[str]]:
    """Outcomes as plain data."""
    return [[o.check, o.kind, o.given, o.wanted, o.got, o.where] for o in outcomes]


def mutants(found: Exercise) -> list[list[list[str]]]:
    """What each known misconception comes to, as an answer would."""
    return [rows(_Own(found, mutant.value, found.checks).finished()) for mutant in found.mutants]


class _Own(judge.Trial):
    """A trial of our own code, whose values have travelled as those of answers do."""

    def finished(self) -> list[Outcome]:
        plain.same_dice()
        if not deadline.run(self.go, self.found.limit):
            self.outcomes.append(self.out_of_time())
        return self.outcomes

    def came(self, step: Case) -> Came:
        came = super().came(step)
        if came.error is None:
            came.got = plain.value(plain.text(came.got))
        return came


def _report(found: Exercise, talk: Talk) -> dict[str, Any]:
    begun = talk.read()
    if begun.kind == "wrong":
        return {"outcomes": [], "wrong": str(begun.parts[0])[:2000], "over": ""}
    trial = Referee(found, talk)
    if begun.kind == "borrowed":
        return {"outcomes": rows([trial.borrowed(_name(found, begun))]), "wrong": "", "over": ""}
    over = trial.judged() if begun.kind == "begin" else "lost"
    return {"outcomes": rows(trial.outcomes), "wrong": "", "over": over}


class Line:
    """A line of the answer's process: its kind, what else stands in it, and a value's text."""

    def __init__(self, line: bytes) -> None:
        head, _, self.value = line.decode("ascii", "replace").partition("\t")
        try:
            self.kind, *self.parts = json.loads(head)
        except (ValueError, TypeError, RecursionError):
            self.kind, self.parts = "lost", []

    @property
    def came(self) -> Came:
        """What a case came to."""
        what, printed, where = self.parts[-3:]
        try:
            got = plain.value(self.value)
        except plain.BadData:
            got, what = plain.Opaque("nothing", "nothing that can be read"), "value"
        if what == "error" and isinstance(got, BaseException):
            return Came(None, got, str(where)[:500], bool(printed))
        return Came(got, None, str(where)[:500], bool(printed))


class Talk:
    """The two ends of the conversation with the answer's process."""

    def __init__(self, lines: BinaryIO, out: BinaryIO) -> None:
        self.lines, self.out = lines, out

    def read(self) -> Line:
        line = self.lines.readline()
        return Line(line if line.endswith(b"\n") else b'["gone"]')

    def say(self, what: bytes) -> None:
        self.out.write(what + b"\n")
        self.out.flush()


class _Over(deadline.OutOfTime):
    """The answer's side has come to its end, or lost its place."""


class _Between(Exception):
    """The answer failed between two cases."""

    def __init__(self, came: Came) -> None:
        self.came = came


class Referee(judge.Trial):
    """A trial that is told what each step came to."""

    def __init__(self, found: Exercise, talk: Talk) -> None:
        super().__init__(found, found.answer.value, found.checks)
        self.talk = talk
        self.place = [-1, -1, -1]  # check, case, step
        self._line: Line | None = None  # read, and not used up
        self._owed: list[int] = []  # the case whose last line has had no reply

    def judged(self) -> str:
        """Judge all checks. What ended them: "", "gone" (its process) or "lost" (its place)."""
        try:
            self.judge([])
        except _Over as over:
            kind = str(over)
            if kind == "late":
                self.outcomes.append(self.out_of_time())
            elif kind == "cut":
                self.outcomes.append(self.cut_short())
            elif kind == "borrowed" and self._line is not None:
                self.outcomes[:] = [self.borrowed(_name(self.found, self._line))]
            else:
                self.outcomes.append(self._ended("error", "the code ended the process it ran in"))
                return "gone" if kind == "gone" else "lost"
        return ""

    def outcomes_of(self, group: Check) -> Iterator[Outcome]:
        """Outcomes of a check, for the answer that is not here."""
        self.place = [self.place[0] + 1, -1, -1]
        try:
            for case in group.cases(self.submission):
                self.place[1:] = [self.place[1] + 1, -1]
                self.case = case
                yield self.outcome(case)
            self.place[1:] = [self.place[1] + 1, -1]  # no more steps of the last case
            last = self._next()
            if last.kind == "between":
                raise _Between(last.came)
            self._line = None
        except _Between as between:
            self._line = None
            yield self.in_between(group, between.came)

    def came(self, step: Case) -> Came:
        """What a step came to over there."""
        self.place[2] += 1
        self._reply()
        step.settle()
        line = self._next()
        if line.kind == "between":
            raise _Between(line.came)
        if line.kind == "end":  # it stays: the check has no more cases over there
            return Came(plain.Opaque("nothing", "nothing: the check ended before it"))
        self._line = None
        return line.came

    def _reply(self) -> None:
        """Tell whoever waits for it whether to go on with the same case."""
        if self._owed:
            self.talk.say(b"+" if self._owed == self.place[:2] else b"-")
            self._owed = []

    def _next(self) -> Line:
        """The line that is due."""
        self._reply()
        if self._line is None:
            self._line = self.talk.read()
            self._owed = self.place[:2] if self._line.kind == "case" else []
        line = self._line
        if line.kind == "case" and line.parts[:3] == self.place and len(line.parts) == 6:
            return line
        if line.kind == "between" and line.parts[:1] == self.place[:1] and len(line.parts) == 4:
            return line
        if line.kind == "end" and line.parts == self.place[:1]:
            return line
        raise _Over(line.kind if line.kind in ("late", "cut", "gone", "borrowed") else "lost")


def _name(found: Exercise, line: Line) -> str:
    """Which of the framework's own answers was used."""
    said = str(line.parts[0]) if line.parts else ""
    return said if said in found.without else found.without[0] if found.without else "toytorch"
