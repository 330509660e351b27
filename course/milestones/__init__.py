"""Milestones: programs that run on nothing but the learner's own package ``mytorch`` and NumPy.

    python3 -m course milestone 04

The package is written whole into a folder of its own: the learner's files, and references where
one is missing. The program runs there in a Python that refuses to import toytorch or the course.
Then each file is listed with whose it was.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from course import package
from course.contents import ROOT, find

PROGRAMS = Path(__file__).parent
DATA = ROOT / "toytorch" / "vision" / "data"  # digits and a story: files, no code
LIMIT = 300  # seconds

# What the program's Python runs: it refuses the framework and the course, and says at the end which
# files of the package were imported.
_RUN = """
import json, runpy, sys
sys.path[0] = sys.argv[1]
for name in ("toytorch", "course", "torch"):
    sys.modules[name] = None
program, report, data = sys.argv[2:]
sys.argv = [program, data]
try:
    runpy.run_path(program, run_name="__main__")
finally:
    used = [name.partition(".")[2] for name in sys.modules if name.startswith("mytorch.")]
    with open(report, "w") as file:
        json.dump(used, file)
"""


@dataclass
class Run:
    """How a milestone went: what it printed, whose files it ran on, and how long it took."""

    number: int
    title: str
    passed: bool
    said: str
    seconds: float
    files: dict[str, str] = field(default_factory=dict)  # "yours", "reference" or "solved", by file
    lines: dict[str, int] = field(default_factory=dict)

    @property
    def stand_ins(self) -> list[str]:
        """The files that were not the learner's."""
        return [name for name, whose in self.files.items() if whose == "reference"]

    def __repr__(self) -> str:
        rows = [f"Milestone {self.number:02d} · {self.title}", ""]
        rows += ["    " + line for line in self.said.strip().splitlines()]
        return "\n".join([*rows, self.summary()])

    def summary(self) -> str:
        """Whose files it ran on, and whether it was reached."""
        rows = [
            "",
            *(
                f"  {_SIGNS[whose]} {name + '.py':<16}{self.lines[name]:>4} lines, {_WHOSE[whose]}"
                for name, whose in self.files.items()
            ),
        ]
        return "\n".join([*rows, "", self._verdict()])

    def _repr_html_(self) -> str:
        files = "".join(
            f'<span style="margin-right:1em;white-space:nowrap">{_SIGNS[whose]} '
            f"{escape(name)}.py <small>{self.lines[name]} lines, {_WHOSE[whose]}</small></span> "
            for name, whose in self.files.items()
        )
        accent = "#1f9d63" if self.passed and not self.stand_ins else "#4a86c8"
        accent = accent if self.passed else "#d6453d"
        return (
            f'<div style="border-left:4px solid {accent};padding:0.4em 0.9em;'
            'font-family:var(--jp-content-font-family,system-ui,sans-serif)">'
            f"<b>Milestone {self.number:02d} · {escape(self.title)}</b>"
            f'<pre style="margin:0.5em 0;font-size:0.92em">{escape(self.said.strip())}</pre>'
            f'<div style="line-height:1.7">{files}</div>'
            f'<div style="margin-top:0.4em">{escape(self._verdict())}</div></div>'
        )

    def _verdict(self) -> str:
        if not self.passed:
            return "Not reached yet."
        own = sum(self.lines.values())
        if not self.stand_ins:
            return f"Reached with zero stand-ins: these {own} lines and NumPy."
        count = len(self.stand_ins)
        return f"Reached with {count} stand-in{'s' if count > 1 else ''} (○)."


_SIGNS = {"yours": "✔", "reference": "○", "solved": "✔"}
_WHOSE = {
    "yours": "yours",
    "reference": "stands in for yours",
    "solved": "the course's answer",
}


def milestone(
    chapter: int | str,
    *,
    solved: bool = False,
    tell: Callable[[str], None] = lambda line: None,
) -> Run:
    """Run a chapter's milestone on your own package.

    Args:
        chapter: 4, 8, 10, 14, 15 or 19; or ``"04"``, ``"autograd"``.
        solved: run on the references instead.
        tell: gets each line when the program prints it.

    Raises:
        LookupError: the chapter has no milestone.
    """
    number = find(chapter).number
    program = _program(number)
    with tempfile.TemporaryDirectory(prefix="toytorch-milestone-") as place:
        home = Path(place)
        missing = package.write_whole(home, solved=solved)
        report = home / "used.json"
        started = time.monotonic()
        ran = _run(home, program, report, tell)
        seconds = time.monotonic() - started
        try:
            used = json.loads(report.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            used = []
        found = Run(number, _title(program), ran[0], ran[1], seconds)
        for name in package.FILES:
            if name in used:
                whose = "reference" if name in missing else "yours"
                found.files[name] = "solved" if solved else whose
                text = (home / package.NAME / f"{name}.py").read_text(encoding="utf-8")
                found.lines[name] = sum(bool(line.strip()) for line in text.splitlines())
    return found


def _program(number: int) -> Path:
    for path in sorted(PROGRAMS.glob("*.py")):
        if path.name.startswith(f"{number:02d}_"):
            return path
    known = ", ".join(path.name[:2] for path in sorted(PROGRAMS.glob("[0-9]*.py")))
    raise LookupError(f"chapter {number:02d} has no milestone; these have one: {known}")


def title(chapter: int | str) -> str:
    """What a chapter's milestone is called."""
    return _title(_program(find(chapter).number))


def _title(program: Path) -> str:
    said = ast.get_docstring(_parse(program.read_text(encoding="utf-8"))) or program.stem
    return said.splitlines()[0].rstrip(".")


def _run(home: Path, program: Path, report: Path, tell: Callable[[str], None]) -> tuple[bool, str]:
    command = [sys.executable, "-u", "-c", _RUN, str(home), str(program), str(report), str(DATA)]
    with tempfile.TemporaryFile("w+", encoding="utf-8") as errors:
        process = subprocess.Popen(
            command, cwd=home, stdout=subprocess.PIPE, stderr=errors, text=True, encoding="utf-8"
        )
        ender = threading.Timer(LIMIT, process.kill)
        ender.start()
        said = []
        try:
            assert process.stdout is not None
            for line in process.stdout:
                said.append(line)
                tell(line)
            process.wait()
        finally:
            late = not ender.is_alive()
            ender.cancel()
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
        errors.seek(0)
        wrong = errors.read().replace(str(home), "work")
    if late:
        wrong = f"It was ended after {LIMIT} s.\n"
    return process.returncode == 0, "".join(said) + (wrong if process.returncode else "")


def _parse(text: str) -> Any:
    """The syntax tree of a text."""
    from toytorch.facts.syntax import parse  # the launcher starts before NumPy is installed

    return parse(text)
