"""``python3 -m course grade FOLDER``: mark, write what is asked for, and say what came of it."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from course.contents import find
from course.files import write_atomically
from course.marking import by_hand, dashboard, pages, similar, statistics, submissions, table
from course.marking import totals as sums
from course.marking.grade import Judged, Mark, grade
from course.marking.late import Calendar
from course.marking.roster import Roster
from course.marking.submissions import Submission
from course.marking.supervisor import Limits


def run(options: argparse.Namespace) -> int:
    """Mark a folder; the marks go to a file, or to standard output.

    Returns:
        1 where something could not be marked or written, which the summary lists; all else is done.

    Raises:
        LookupError: there is nothing to mark, or a table that was given cannot be used. That is
            found out before anything is marked.
    """
    warnings.simplefilter("ignore", SyntaxWarning)  # of other people's code
    roster = Roster.read(options.roster) if options.roster else None
    calendar = Calendar(options.due, options.late, options.times)
    overrides = by_hand.read(options.overrides) if options.overrides else []
    chapter = find(options.chapter) if options.chapter else None
    found = list(submissions.find(options.folder, chapter))
    if roster is not None:
        found = roster.named(found)
    counted, others = submissions.last_of_each(found)
    limits = Limits(options.seconds, options.megabytes)
    judged = grade(options.folder, counted, limits=limits, jobs=options.jobs, fresh=options.fresh)
    judged = sums.complete(judged, roster, chapter)
    calendar.apply(judged)
    by_hand.apply(overrides, judged)
    named = {one.student for one in overrides} | calendar.students
    result = Class(judged, sums.totals(judged, roster), others, named, options.folder)
    failed = _write(result, options, by_hand.remarks(overrides))
    _summary(result)
    failed += _not_marked(judged)
    for line in failed:
        print(line, file=sys.stderr)
    return 1 if failed else 0


@dataclass
class Class:
    """All that is known after marking."""

    judged: list[Judged]
    totals: list[sums.Total]
    others: list[Submission]  # earlier attempts
    named: set[str]  # students whom the lecturer's tables name
    folder: Path

    def notes(self) -> Iterator[str]:
        """What the lecturer should know, besides marks."""
        by_student: dict[str, list[str]] = {}
        for one in self.others:
            path = (
                one.path.relative_to(self.folder) if self.folder in one.path.parents else one.path
            )
            by_student.setdefault(one.student, []).append(str(path))
        for student, names in by_student.items():
            yield _shown(f"{student}: not counted, as another one came later: {', '.join(names)}")
        for total in self.totals:
            if not total.listed:
                yield _shown(f"{total.person.id} is not on the roster")
            elif not total.handed_in:
                yield _shown(f"{total.person.id} handed in nothing")
        for name in sorted(self.named - {total.person.id for total in self.totals}):
            yield _shown(f"{name} is named in a table of yours, and is no student in this folder")


def _shown(text: str) -> str:
    return "".join(c if c.isprintable() else "�" for c in text)


def marks(judged: list[Judged]) -> str:
    """The marks as CSV, a line for each student and exercise."""
    header = [field.name.replace("_", " ") for field in fields(Mark)]
    return table.text(header, (astuple(one.mark) for one in judged))


def _write(result: Class, options: argparse.Namespace, remarks: dict[str, list[str]]) -> list[str]:
    """Write what is asked for. A file that cannot be written costs the others nothing."""
    judged, totals = result.judged, result.totals
    stats = statistics.statistics(judged)
    failed: list[str] = []

    def put(path: Path | None, make: Callable[[], str], mark: bool = True) -> None:
        if path is None:
            return
        try:
            content = make().encode("utf-8-sig" if mark else "utf-8", errors="replace")
            write_atomically(path, content)
        except OSError as error:
            failed.append(f"{path} was not written: {error.strerror or error}")

    if options.csv is None:
        sys.stdout.write(marks(judged))
    # spreadsheets know UTF-8 by a mark at its front; learning platforms and browsers need none
    put(options.csv, lambda: marks(judged))
    put(options.totals, lambda: sums.as_table(totals))
    put(options.statistics, lambda: statistics.as_table(stats))
    put(options.moodle, lambda: sums.moodle(totals), mark=False)
    put(options.canvas, lambda: sums.canvas(totals), mark=False)
    put(
        options.dashboard,
        lambda: dashboard.dashboard(judged, totals, list(result.notes())),
        mark=False,
    )
    put(options.similar, lambda: similar.report(similar.similar(judged)), mark=False)
    if options.feedback is not None:
        for name, page in pages.feedback(judged, remarks).items():
            put(options.feedback / name, lambda page=page: page, mark=False)  # type: ignore[misc]
    return failed


def _not_marked(judged: list[Judged]) -> list[str]:
    """What went wrong with this machine or with the marking, not with an answer; a line each."""
    marks = [one.mark for one in judged if not one.mark.by_hand]
    unmarked = {m.exercise: m.reason for m in marks if m.verdict == "unmarked"}
    lines = [f"{name}: {reason}" for name, reason in unmarked.items()]
    lines += [
        f"{m.student}, {m.exercise or m.notebook}: {m.reason}"
        for m in marks
        if m.verdict == "error"
    ]
    return [f"Not marked, 0 points for now, in {len(lines)} cases:", *lines] if lines else []


def _summary(result: Class) -> None:
    say = sys.stderr
    for one in result.totals:
        print(f"{_shown(one.person.id):<24} {one.total}", file=say)
    if len(result.totals) > 1:
        print("", *statistics.lines(statistics.statistics(result.judged)), "", sep="\n", file=say)
    for note in result.notes():
        print(note, file=say)
    kinds = Counter(one.mark.verdict for one in result.judged)
    print(", ".join(f"{count} {kind}" for kind, count in kinds.most_common()), file=say)
    if any(o.mark.verdict == "suspect" and not o.mark.by_hand for o in result.judged):
        print("Look at the suspect ones yourself: they got no points.", file=say)
