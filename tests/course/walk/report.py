"""What came of the walks: a table to read now, a record to keep, a page in the documentation."""

from __future__ import annotations

import json
import os
import platform
from datetime import date
from pathlib import Path
from typing import Any

from course.contents import ROOT
from course.files import write_atomically
from tests.course.walk.learner import Walked

RECORD = ROOT / "course" / "walked.json"
PAGE = ROOT / "docs" / "walk.md"

_HEAD = """# Every chapter, walked

Each chapter was walked as a learner walks it: its untouched notebook in JupyterLab in a real
browser, cell by cell with Shift+Enter. At each exercise the stub was run (the panel says that it
is open), a wrong answer was typed (the panel names the misconception), then the right one (the
panel is green). `python -m tests.course.walk --record` does it again and writes this page; with
`--out DIR` it takes pictures.

*Cells* is the time of all cells of the solved chapter, each counted once. *Walk* is the whole walk
with its wrong answers, by a learner who needs no time to think. An exercise's time goes from
Shift+Enter in its check cell to the panel. *Load* is the machine's load average at the end of the
walk, which itself makes about 2: where it is more, others were at work, and times are longer.

*By hints* is the time of a second walk, `--hints`. It asks for the three hints of each exercise
with `hint(name, 1)` to `hint(name, 3)` in a cell of its own, and types the code of the third. A
machine cannot think, so the gaps of that skeleton (`...`) are filled from the reference: *gaps* is
how many. Everything outside the gaps is as the hint has it. If skeleton and reference differ there,
the walk is wrong (`tests/course/walk/gaps.py`). So the walk shows that the hints lead to an answer
that is green; it does not show that a person finds what belongs into the gaps.
"""


def table(walks: list[Walked]) -> str:
    """Times and findings as text."""
    lines = []
    for one in walks:
        lines.append(
            f"{one.chapter:16} cells {one.cells:6.1f} s   walk {one.wall:6.1f} s   "
            f"slowest {one.slowest[0]} {one.slowest[1]:.1f} s"
        )
        for name, seconds in one.exercises.items():
            gaps = f"   {one.hinted[name]} gaps filled" if name in one.hinted else ""
            lines.append(f"    {name:28} {seconds:5.2f} s{gaps}")
        lines += [f"  WRONG {said}" for said in one.wrong]
        lines += [f"  look  {said}" for said in one.looks]
    return "\n".join(lines)


def keep(walks: list[Walked], *, hints: bool = False) -> None:
    """Merge walks into the record, and write the page from it."""
    known = load()
    for one in walks:
        if hints:
            known.setdefault(one.chapter, {})["hints"] = {
                "walk": one.wall,
                "exercises": one.exercises,
                "gaps": one.hinted,
                "date": date.today().isoformat(),
            }
            continue
        known[one.chapter] = {
            "cells": one.cells,
            "walk": one.wall,
            "exercises": one.exercises,
            "date": date.today().isoformat(),
            "browser": one.browser.replace("HeadlessChrome", "Chromium (headless)"),
            "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}",
            "python": platform.python_version(),
            "load": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None,
            **{key: value for key, value in known.get(one.chapter, {}).items() if key == "hints"},
        }
    known = dict(sorted(known.items()))
    write_atomically(RECORD, (json.dumps(known, indent=1) + "\n").encode())
    write_atomically(PAGE, page(known).encode())


def load(source: Path = RECORD) -> dict[str, Any]:
    """The record by chapter; empty if there is none."""
    return dict(json.loads(source.read_text(encoding="utf-8"))) if source.exists() else {}


def page(known: dict[str, Any]) -> str:
    """The documentation's page as Markdown."""
    titles = ("chapter", "cells", "walk", "load", "exercises", "date", "by hints")
    lines = [_HEAD, f"| {' | '.join(titles)} |", "|" + " --- |" * len(titles)]
    for stem, one in known.items():
        pieces = ", ".join(f"`{name}` {s:.2f} s" for name, s in one["exercises"].items())
        lines.append(
            f"| {stem} | {one['cells']:.1f} s | {one['walk']:.1f} s | {one.get('load') or '–'} "
            f"| {pieces} | {one['date']} | {_by_hints(one.get('hints'))} |"
        )
    where = sorted({(o["browser"], o["machine"], o["python"]) for o in known.values()})
    lines.append("")
    lines += [f"{browser}; {machine}; Python {python}." for browser, machine, python in where]
    return "\n".join(lines) + "\n"


def _by_hints(one: dict[str, Any] | None) -> str:
    """What the table says of a walk by hints."""
    if one is None:
        return "–"
    gaps = sum(one["gaps"].values())
    return f"{one['walk']:.1f} s, {len(one['gaps'])} exercises, {gaps} gaps, {one['date']}"
