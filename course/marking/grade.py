"""From submissions to marks: verdicts, points, the CSV file and feedback pages."""

from __future__ import annotations

import csv
import itertools
import os
import random
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, dataclass, fields
from html import escape
from pathlib import Path
from typing import Any

from course import judge, panel, registry
from course.build.source import read
from course.contents import Chapter
from course.judge import Outcome, Verdict
from course.marking import extract, screen, supervisor
from course.marking.known import BASELINE, baseline
from course.marking.submissions import Submission, find
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
    """One line of the CSV file."""

    student: str
    notebook: str
    exercise: str
    points: float
    of: float
    verdict: str
    reason: str
    seconds: float


@dataclass
class Judged:
    """A mark with what its feedback shows."""

    mark: Mark
    verdict: Verdict | None = None
    source: str = ""


def grade(
    folder: Path,
    *,
    chapter: Chapter | None = None,
    limits: Limits | None = None,
    jobs: int | None = None,
    screened: bool = True,
) -> list[Judged]:
    """Mark every notebook in a folder; one entry per exercise, or per unreadable notebook.

    Args:
        folder: see :mod:`course.marking.submissions` for how it may be laid out.
        chapter: mark this chapter only.
        limits: what one answer may use.
        jobs: how many answers run at a time; by default as many as there are processors.
        screened: whether answers that reach for the system are left for a person to look at.

    Raises:
        LookupError: there is nothing to mark.
    """
    marker = Marker(folder, limits or Limits(), screened)
    tasks = [task for found in find(folder, chapter) for task in marker.tasks(found)]
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
    """One exercise of one submission; no exercise where the notebook cannot be marked."""

    submission: Submission
    exercise: Exercise | None = None
    points: float = 0.0


class Marker:
    """Marks answers. What reference and mutants come to is found out once per exercise."""

    def __init__(self, folder: Path, limits: Limits, screened: bool = True) -> None:
        self.folder = folder
        self.limits = limits
        self.screened = screened
        self._known: dict[str, Result] = {}
        self._locks: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()
        self._chance = random.SystemRandom()

    def tasks(self, submission: Submission) -> list[Task]:
        """What there is to mark in a notebook. Points come from the course, not from the file."""
        if submission.problem or submission.chapter is None:
            return [Task(submission)]
        cells = read(submission.chapter)
        points = {c.exercise.name: c.points for c in cells if c.exercise and c.role == "check"}
        found = registry.of_chapter(submission.chapter.number)
        return [Task(submission, one, points.get(one.name, 1.0)) for one in found]

    def judge(self, task: Task) -> Judged:
        """Mark one answer. Whatever goes wrong with one costs the others nothing."""
        try:
            return self._judge(task)
        except CannotMark as error:
            return Judged(self._mark(task, 0.0, "unmarked", str(error)))
        except Exception as error:
            reason = f"marking it failed ({type(error).__name__}: {error}); look at it yourself"
            return Judged(self._mark(task, 0.0, "error", reason))

    def _judge(self, task: Task) -> Judged:
        submission, found = task.submission, task.exercise
        if found is None:
            mark = self._mark(task, 0.0, "unreadable", f"the notebook {submission.problem}")
            return Judged(mark)
        answer = extract.answer(submission.notebook.cells, found.name, found.function)
        if answer.problem:
            kind = "red" if answer.problem.startswith("SyntaxError") else "open"
            return Judged(self._mark(task, 0.0, kind, answer.problem))
        if answer.source.strip() == found.start.source.strip():
            return Judged(
                self._mark(task, 0.0, "open", "not begun: the stub as it was"),
                Verdict(found, "open"),
                answer.source,
            )
        nodes = [node for piece in answer.pieces for node in piece.nodes]
        odd = screen.objections(nodes) if self.screened else []
        if odd:
            reason = f"not run: {', '.join(odd)}, which no answer needs; look at it yourself"
            return Judged(self._mark(task, 0.0, "suspect", reason), None, answer.source)
        return self._run(task, found, answer)

    def _run(self, task: Task, found: Exercise, answer: extract.Answer) -> Judged:
        controls = self._controls(found)
        pieces = [[piece.label, piece.source, piece.statements] for piece in answer.pieces]
        result = supervisor.work(found, pieces, controls, self.limits, [self.folder])
        verdict, kind, reason = self._verdict(found, result)
        passed = [check for check in found.checks if verdict and verdict.passed(check.title)]
        share = len(passed) / len(found.checks)
        tampered = self._tampered(found, result, controls) if share else ""
        if tampered:
            kind, reason, share = "suspect", f"{tampered}; look at it yourself ({reason})", 0.0
        mark = self._mark(task, round(task.points * share, 2), kind, reason, result.seconds)
        return Judged(mark, verdict, answer.source)

    def _verdict(self, found: Exercise, result: Result) -> tuple[Verdict | None, str, str]:
        """The verdict as the checks see it, the word for the CSV file, and the reason."""
        said = result.reports.get("answer")
        if said is None:
            ended = _ENDED[result.ended or "early"].format(**vars(self.limits))
            return None, {"early": "ended", "start": "error"}.get(result.ended, result.ended), ended
        if said["wrong"]:
            return None, "red", f"could not be loaded: {said['wrong']}"
        outcomes = [Outcome(*row) for row in said["outcomes"]]
        state = judge.state_of(outcomes)
        if state == "open":
            return Verdict(found, "open"), "open", "raises NotImplementedError"
        if state == "green":
            return Verdict(found, state, outcomes), state, f"all {len(found.checks)} checks pass"
        mutant = judge.recognise(found, outcomes, lambda n: self._signature(found, n))
        verdict = Verdict(found, state, outcomes, mutant)
        failure = verdict.failure
        assert failure is not None
        kind = {"timeout": "time"}.get(failure.kind, state)
        if failure.got.startswith(("MemoryError", "ArrayMemoryError", "_ArrayMemoryError")):
            kind = "memory"
            more = _ENDED["memory"].format(**vars(self.limits)).removesuffix(" and was ended")
            return verdict, kind, f"{more}. {_reason(verdict, failure)}"
        return verdict, kind, _reason(verdict, failure)

    def _tampered(self, found: Exercise, result: Result, controls: list[str]) -> str:
        """Whether the checks tell right from wrong after the answer as they did without it."""
        before = self._baseline(found).reports
        for name in controls:
            report = result.reports.get(name)
            if report is None:
                return "after this code had run, the checks did not come to their end"
            if _kinds(report) != _kinds(before[name]):
                what = "the reference" if name == "reference" else "a known mistake"
                return (
                    f"after this code had run, {what} no longer comes out as it should: "
                    "it changes the checks or the framework"
                )
        return ""

    # -- what is known of an exercise -------------------------------------------------------------

    def _baseline(self, found: Exercise) -> Result:
        with self._lock:
            lock = self._locks.setdefault(found.name, threading.Lock())
        with lock:
            if found.name not in self._known:
                self._known[found.name] = baseline(found)
            known = self._known[found.name]
        why = _why_not(known)
        if why:
            raise CannotMark(
                f"not marked: the course's own answer to {found.name} does not pass behind the "
                f"barriers ({why}); run `python3 -m course test`"
            )
        return known

    def _controls(self, found: Exercise) -> list[str]:
        """The reference and the mutants that fail quickly, in an order nobody can know."""
        reports = self._baseline(found).reports
        quick = sorted(
            (r["seconds"], n) for n, r in reports.items() if n not in ("ready", "answer")
        )
        chosen, spent = [], 0.0
        for seconds, name in quick:
            spent += seconds
            if spent < 2.0 or name == "reference" or len(chosen) < 2:
                chosen.append(name)
        self._chance.shuffle(chosen)
        return chosen

    def _signature(self, found: Exercise, position: int) -> list[tuple[str, str]]:
        report = self._baseline(found).reports.get(str(position))
        rows = report["outcomes"] if report else []
        return [Outcome(*row).signature for row in rows]

    def _mark(
        self, task: Task, points: float, verdict: str, reason: str, seconds: float = 0.0
    ) -> Mark:
        path = task.submission.path
        name = str(path.relative_to(self.folder) if path.is_relative_to(self.folder) else path)
        exercise = task.exercise.name if task.exercise else ""
        one_line = _printable(" ".join(reason.split()))
        return Mark(
            _printable(task.submission.student),
            _printable(name.replace(os.sep, "/")),
            exercise,
            points,
            task.points,
            verdict,
            one_line,
            round(seconds, 1),
        )


def _printable(text: str) -> str:
    """A text without characters that steer terminals, turn the direction, or are none."""
    return "".join(c if c.isprintable() else "�" for c in text)


def _why_not(known: Result) -> str:
    """What keeps the reference from passing; empty where it passes."""
    said = known.reports.get("reference")
    if said is None:
        return _ENDED[known.ended or "early"].format(**vars(BASELINE))
    if said["wrong"] or not said["outcomes"]:
        return str(said["wrong"] or "it has no checks")
    failed = next((Outcome(*row) for row in said["outcomes"] if row[1] != "ok"), None)
    return "" if failed is None else f"{failed.check}: {failed.given} came to {failed.got}"


def _kinds(report: dict[str, Any]) -> list[str]:
    return [str(row[1]) for row in report["outcomes"]]


def _reason(verdict: Verdict, failure: Outcome) -> str:
    shown = f"{failure.check}: {failure.given} should give {failure.wanted}, came to {failure.got}"
    if failure.where:
        shown += f" ({failure.where})"
    if verdict.mutant is None:
        return shown
    return f"{verdict.mutant.label}. {verdict.mutant.why} [{shown}]"


# -- what the lecturer takes away -----------------------------------------------------------------


def write_csv(judged: list[Judged], target: Any) -> None:
    """The marks as CSV. Cells that a spreadsheet would take for formulas are made harmless."""
    writer = csv.writer(target, lineterminator="\n")
    writer.writerow(field.name for field in fields(Mark))
    for one in judged:
        writer.writerow(_harmless(value) for value in astuple(one.mark))


def _harmless(value: Any) -> Any:
    if isinstance(value, str) and value.lstrip()[:1] in tuple("=+-@＝＋－＠"):
        return "'" + value
    return f"{value:g}" if isinstance(value, float) else value


def feedback(judged: list[Judged]) -> dict[str, str]:
    """A page per student, by file name: every answer with its panel and its points."""
    by_student: dict[str, list[Judged]] = {}
    for one in judged:
        by_student.setdefault(one.mark.student, []).append(one)
    pages: dict[str, str] = {}
    for student, own in by_student.items():
        stem = "".join(c if c.isalnum() or c in "-_" else "_" for c in student)
        stem = stem.encode()[:80].decode(errors="ignore")  # systems count bytes
        taken = {name.lower() for name in pages}  # some systems take "Ada" for "ada"
        tries = itertools.chain([stem], (f"{stem}-{n}" for n in itertools.count(2)))
        name = next(name for name in tries if f"{name}.html".lower() not in taken)
        pages[f"{name}.html"] = _page(student, own)
    return pages


def _page(student: str, own: list[Judged]) -> str:
    points, of = sum(o.mark.points for o in own), sum(o.mark.of for o in own)
    parts = []
    for one in own:
        mark, shown = one.mark, ""
        if one.verdict is not None and mark.verdict in ("green", "red", "open", "time", "memory"):
            shown = panel.html(one.verdict)
        if one.verdict is None or mark.verdict == "suspect":
            shown = f"<p>{escape(mark.reason)}</p>"
        code = f"<pre>{escape(one.source)}</pre>" if one.source else ""
        title = escape(mark.exercise or mark.notebook)
        parts.append(f"<h2>{title} · {mark.points:g} of {mark.of:g}</h2>{code}{shown}")
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{escape(student)} · toytorch</title><style>body{{font:16px/1.5 system-ui,"
        "sans-serif;max-width:60em;margin:2em auto;padding:0 1em;color:#1c2430}"
        "h2{font-size:1.1em;margin-top:2em}pre{background:#f4f2ee;padding:.7em;"
        "border-radius:6px;overflow-x:auto}</style></head><body>"
        f"<h1>{escape(student)}: {points:g} of {of:g} points</h1>{''.join(parts)}</body></html>\n"
    )
