"""From submissions to marks: verdicts and points."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from course import judge, registry
from course.build.source import read
from course.contents import Chapter
from course.judge import Outcome, Verdict
from course.marking import extract, known, screen, supervisor
from course.marking.known import BASELINE
from course.marking.submissions import Submission
from course.marking.supervisor import Limits, Result
from course.records import Exercise

_ENDED = {
    "time": "ran longer than {seconds:g} s and was ended: does a loop never end?",
    "memory": "used more than {megabytes} MB beyond the framework's own and was ended",
    "early": "its process ended itself before all checks were done (sys.exit, or a crash)",
    "start": "the marking process did not start: mark it again",
}


class CannotMark(Exception):
    """The course's own answer does not pass on this machine: nobody's can be marked."""


@dataclass
class Mark:
    """One line of the CSV file: what a student gets for an exercise, and why.

    The maximum is ``of``. An optional exercise adds nothing to it: what it is worth stands in
    ``extra``.
    """

    student: str
    notebook: str
    exercise: str
    points: float
    of: float
    extra: float
    verdict: str
    reason: str
    late: str = ""  # how late, and what that costs
    by_hand: str = ""  # "yes" where the lecturer has set the points
    comment: str = ""  # the lecturer's
    seconds: float = 0.0


@dataclass
class Judged:
    """A mark with what its feedback shows."""

    mark: Mark
    verdict: Verdict | None = None
    source: str = ""  # the definition that was asked for
    code: str = ""  # all that takes part in it
    handed_in: datetime | None = None


@dataclass
class Came:
    """What an answer came to, as plain data: what is kept between markings.

    ``state`` is that of the verdict, empty where there is none. ``mutant`` is the position of the
    misconception that was recognised.
    """

    kind: str
    reason: str
    share: float = 0.0
    seconds: float = 0.0
    state: str = ""
    outcomes: list[list[Any]] = field(default_factory=list)
    mutant: int | None = None

    def verdict(self, found: Exercise) -> Verdict | None:
        """The verdict that the panel of the feedback shows."""
        if not self.state:
            return None
        mutant = None if self.mutant is None else found.mutants[self.mutant]
        return Verdict(found, self.state, [Outcome(*row) for row in self.outcomes], mutant)


def grade(
    folder: Path,
    handed_in: Sequence[Submission],
    *,
    limits: Limits | None = None,
    jobs: int | None = None,
    fresh: bool = False,
) -> list[Judged]:
    """Mark notebooks; one entry per exercise, or per notebook of no chapter.

    Args:
        folder: where they lie; no answer may read in there.
        handed_in: the notebooks, see :mod:`course.marking.submissions`.
        limits: what one answer may use.
        jobs: how many answers run at a time; by default as many as there are processors.
        fresh: mark everything again, whatever is known from earlier markings.
    """
    marker = Marker(folder, limits or Limits(), fresh=fresh)
    tasks = [task for one in handed_in for task in marker.tasks(one)]
    with ThreadPoolExecutor(jobs or os.cpu_count() or 1) as pool:
        done = pool.map(marker.judge, tasks)
        return list(_bar(done, len(tasks)))


def _bar(done: Iterator[Judged], count: int) -> Iterator[Judged]:
    if not sys.stderr.isatty():
        return done
    from tqdm import tqdm

    bar: Iterator[Judged] = tqdm(done, total=count, desc="marking", unit="answer", file=sys.stderr)
    return bar


@dataclass(frozen=True)
class Task:
    """One exercise of one submission; no exercise where the notebook belongs to no chapter."""

    submission: Submission
    exercise: Exercise | None = None
    points: float = 0.0


@functools.cache
def worth(chapter: Chapter) -> dict[str, float]:
    """The points of a chapter's exercises. They come from the course, not from any notebook."""
    name = f"points-{chapter.stem}-{known.state()}"
    points = known.load(name)  # reading a chapter takes longer than marking what is known
    if points is None:
        cells = read(chapter)
        points = {c.exercise.name: c.points for c in cells if c.exercise and c.role == "check"}
        known.keep(name, points)
    found = registry.of_chapter(chapter.number)
    return {one.name: float(points.get(one.name, 1.0)) for one in found}


def missing(student: str, chapter: Chapter) -> list[Judged]:
    """The marks of somebody who handed in nothing of a chapter."""
    marks = (
        _mark(student, "", registry.exercise(name), points, "missing", "nothing was handed in")
        for name, points in worth(chapter).items()
    )
    return [Judged(mark) for mark in marks]


class Marker:
    """Marks answers. Whether an exercise can be marked here is found out once, by its reference."""

    def __init__(
        self, folder: Path, limits: Limits, screened: bool = True, *, fresh: bool = False
    ) -> None:
        self.folder = folder
        self.limits = limits
        self.screened = screened
        self.fresh = fresh
        self._whole: dict[str, str] = {}  # what keeps an exercise from being marked, if anything
        self._mutants: dict[str, list[list[list[str]]]] = {}
        self._came: dict[str, Came] = {}
        self._locks: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()

    def tasks(self, submission: Submission) -> list[Task]:
        """What there is to mark in a notebook."""
        if submission.chapter is None:
            return [Task(submission)]
        points = worth(submission.chapter)
        return [Task(submission, registry.exercise(name), points[name]) for name in points]

    def judge(self, task: Task) -> Judged:
        """Mark one answer. Whatever goes wrong with one costs the others nothing."""
        try:
            judged = self._judge(task)
        except CannotMark as error:
            judged = self._told(task, "unmarked", str(error))
        except Exception as error:
            reason = f"marking it failed ({type(error).__name__}: {error}); look at it yourself"
            judged = self._told(task, "error", reason)
        judged.handed_in = task.submission.time
        return judged

    def _judge(self, task: Task) -> Judged:
        submission, found = task.submission, task.exercise
        if submission.problem or found is None:
            return self._told(task, "unreadable", f"the notebook {submission.problem}")
        answer = extract.answer(submission.notebook.cells, found.name, found.function)
        if answer.problem:
            kind = "red" if answer.problem.startswith("SyntaxError") else "open"
            return self._told(task, kind, answer.problem)
        if answer.source.strip() == found.start.source.strip():
            came = Came("open", "not begun: the stub as it was", state="open")
            return self._judged(task, answer, came)
        nodes = [node for piece in answer.pieces for node in piece.nodes]
        odd = screen.objections(nodes) if self.screened else []
        if odd:
            reason = f"not run: {', '.join(odd)}, which no answer needs; look at it yourself"
            return self._judged(task, answer, Came("suspect", reason))
        return self._judged(task, answer, self._once(found, answer))

    def _told(self, task: Task, kind: str, reason: str) -> Judged:
        """No points, for something that is no matter of checks."""
        return Judged(
            _mark(
                task.submission.student, self._path(task), task.exercise, task.points, kind, reason
            )
        )

    def _judged(self, task: Task, answer: extract.Answer, came: Came) -> Judged:
        assert task.exercise is not None
        judged = self._told(task, came.kind, came.reason)
        judged.mark.points = round(task.points * came.share, 2)
        judged.mark.seconds = round(came.seconds, 2)
        judged.verdict = came.verdict(task.exercise)
        judged.source, judged.code = answer.source, answer.code
        return judged

    def _path(self, task: Task) -> str:
        path = task.submission.path
        name = str(path.relative_to(self.folder) if path.is_relative_to(self.folder) else path)
        return name.replace(os.sep, "/")

    def _once(self, found: Exercise, answer: extract.Answer) -> Came:
        """What an answer comes to; equal answers run once, and not again in a later marking."""
        said = [known.state(), found.name, asdict(self.limits), answer.identity]
        key = hashlib.sha256(json.dumps(said).encode()).hexdigest()
        with self._locked(key):
            if key not in self._came:
                kept = None if self.fresh else known.load(f"answers/{key}")
                try:
                    self._came[key] = Came(**kept) if kept else self._run(found, answer)
                except TypeError:  # an entry of another make
                    self._came[key] = self._run(found, answer)
                if self._came[key].kind != "error":
                    known.keep(f"answers/{key}", asdict(self._came[key]))
            return self._came[key]

    def _run(self, found: Exercise, answer: extract.Answer) -> Came:
        self._can_be_marked(found)
        pieces = [[piece.label, piece.source, piece.statements] for piece in answer.pieces]
        result = supervisor.work(found, pieces, self.limits, [self.folder])
        came = self._came_to(found, result)
        verdict = came.verdict(found)
        passed = [check for check in found.checks if verdict and verdict.passed(check.title)]
        came.share = 0.0 if came.kind == "ended" else len(passed) / len(found.checks)
        return came

    def _came_to(self, found: Exercise, result: Result) -> Came:
        """What the checks say of an answer, or why they say nothing."""
        seconds = result.seconds
        if result.wrong:
            return Came("red", f"could not be loaded: {result.wrong}", seconds=seconds)
        outcomes = [Outcome(*row) for row in result.outcomes]
        if result.ended or not outcomes:
            ended = result.ended or "early"
            kind = {"early": "ended", "start": "error"}.get(ended, ended)
            reason = _ENDED[ended].format(**vars(self.limits))
            state = "red" if outcomes else ""
            return Came(kind, reason, 0.0, seconds, state, list(result.outcomes))
        state = judge.state_of(outcomes)
        if state == "open":
            return Came("open", "raises NotImplementedError", 0.0, seconds, state)
        if state == "green":
            reason = f"all {len(found.checks)} checks pass"
            return Came(state, reason, 0.0, seconds, state, list(result.outcomes))
        mutant = judge.recognise(found, outcomes, lambda n: self._signature(found, n))
        verdict = Verdict(found, state, outcomes, mutant)
        failure = verdict.failure
        assert failure is not None
        kind, reason = {"timeout": "time"}.get(failure.kind, state), _reason(verdict, failure)
        if failure.got.startswith(("MemoryError", "ArrayMemoryError", "_ArrayMemoryError")):
            more = _ENDED["memory"].format(**vars(self.limits)).removesuffix(" and was ended")
            kind, reason = "memory", f"{more}. {reason}"
        position = None if mutant is None else found.mutants.index(mutant)
        return Came(kind, reason, 0.0, seconds, state, list(result.outcomes), position)

    # -- what is known of an exercise -------------------------------------------------------------

    def _can_be_marked(self, found: Exercise) -> None:
        with self._locked(found.name):
            if found.name not in self._whole:
                self._whole[found.name] = _why_not(known.reference(found))
        why = self._whole[found.name]
        if why:
            raise CannotMark(
                f"not marked: the course's own answer to {found.name} does not pass behind the "
                f"barriers ({why}); run `python3 -m course test`"
            )

    def _locked(self, name: str) -> threading.Lock:
        with self._lock:
            return self._locks.setdefault(name, threading.Lock())

    def _signature(self, found: Exercise, position: int) -> list[tuple[str, str]]:
        with self._locked(f"{found.name} mutants"):
            if found.name not in self._mutants:
                self._mutants[found.name] = known.mutants(found)
        rows = self._mutants[found.name]
        return [Outcome(*row).signature for row in rows[position]] if position < len(rows) else []


def _mark(
    student: str, notebook: str, found: Exercise | None, points: float, verdict: str, reason: str
) -> Mark:
    """A mark of no points yet."""
    optional = found is not None and found.optional
    return Mark(
        _printable(student),
        _printable(notebook),
        found.name if found else "",
        0.0,
        0.0 if optional else points,
        points if optional else 0.0,
        verdict,
        _printable(" ".join(reason.split())),
    )


def _printable(text: str) -> str:
    """A text without characters that steer terminals, turn the direction, or are none."""
    return "".join(c if c.isprintable() else "�" for c in text)


def _why_not(result: Result) -> str:
    """What keeps the reference from passing; empty where it passes."""
    if result.green:
        return ""
    failed = next((Outcome(*row) for row in result.outcomes if row[1] != "ok"), None)
    if result.wrong or failed is None:
        ended = _ENDED[result.ended or "early"].format(**vars(BASELINE))
        return result.wrong or ended
    return f"{failed.check}: {failed.given} came to {failed.got}"


def _reason(verdict: Verdict, failure: Outcome) -> str:
    shown = f"{failure.check}: {failure.given} should give {failure.wanted}, came to {failure.got}"
    if failure.where:
        shown += f" ({failure.where})"
    if verdict.mutant is None:
        return shown
    return f"{verdict.mutant.label}. {verdict.mutant.why} [{shown}]"
