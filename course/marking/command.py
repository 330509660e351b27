"""``python3 -m course grade FOLDER``: mark, and say in the terminal what came of it."""

from __future__ import annotations

import argparse
import io
import sys
import warnings
from collections import Counter

from course.contents import find
from course.files import write_atomically
from course.marking.grade import Judged, feedback, grade, write_csv
from course.marking.supervisor import Limits


def run(options: argparse.Namespace) -> int:
    """Mark a folder; the CSV goes to a file, or to standard output.

    Returns:
        1 where something could not be marked, which the summary lists; the rest is marked.
    """
    warnings.simplefilter("ignore", SyntaxWarning)  # of other people's code
    judged = grade(
        options.folder,
        chapter=find(options.chapter) if options.chapter else None,
        limits=Limits(options.seconds, options.megabytes),
        jobs=options.jobs,
    )
    text = io.StringIO()
    write_csv(judged, text)
    if options.csv is None:
        sys.stdout.write(text.getvalue())
    else:
        # with a mark at its front by which spreadsheets know that this is UTF-8
        write_atomically(options.csv, text.getvalue().encode("utf-8-sig"))
    if options.feedback is not None:
        for name, page in feedback(judged).items():
            write_atomically(options.feedback / name, page.encode(errors="replace"))
    _summary(judged)
    failed = _not_marked(judged)
    for line in failed:
        print(line, file=sys.stderr)
    return 1 if failed else 0


def _not_marked(judged: list[Judged]) -> list[str]:
    """What went wrong with this machine or with the marking, not with an answer; a line each."""
    marks = [one.mark for one in judged]
    unmarked = {m.exercise: m.reason for m in marks if m.verdict == "unmarked"}
    lines = [f"{name}: {reason}" for name, reason in unmarked.items()]
    lines += [
        f"{m.student}, {m.exercise or m.notebook}: {m.reason}"
        for m in marks
        if m.verdict == "error"
    ]
    return [f"Not marked, 0 points for now, in {len(lines)} cases:", *lines] if lines else []


def _summary(judged: list[Judged]) -> None:
    points: dict[str, list[float]] = {}
    for one in judged:
        both = points.setdefault(one.mark.student, [0.0, 0.0])
        both[0] += one.mark.points
        both[1] += one.mark.of
    for student, (got, of) in points.items():
        print(f"{student:<24} {got:g} of {of:g} points", file=sys.stderr)
    for student, notebooks in twice(judged):
        names = " and ".join(notebooks)
        print(f"{student} handed in {names}: both are marked, and added up here.", file=sys.stderr)
    kinds = Counter(one.mark.verdict for one in judged)
    print(", ".join(f"{count} {kind}" for kind, count in kinds.most_common()), file=sys.stderr)
    if kinds["suspect"]:
        print("Look at the suspect ones yourself: they got no points.", file=sys.stderr)


def twice(judged: list[Judged]) -> list[tuple[str, tuple[str, ...]]]:
    """Students with several notebooks for the same exercises, and these notebooks."""
    found: dict[tuple[str, str], list[str]] = {}
    for one in judged:
        if one.mark.exercise:
            found.setdefault((one.mark.student, one.mark.exercise), []).append(one.mark.notebook)
    several = ((student, tuple(names)) for (student, _), names in found.items() if len(names) > 1)
    return list(dict.fromkeys(several))
