"""One walk: every cell in order, and each exercise open, then wrong in a known way, then right.

A walk by hints asks for the three hints of each exercise in the notebook instead of being wrong
once. It then types the third one, with its gaps filled (see `gaps`).
"""

from __future__ import annotations

import json
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import nbformat

from course import registry
from course.contents import ROOT, Chapter
from course.registry import exercise
from tests.course.walk.devtools import CONTROL, SHIFT, Browser
from tests.course.walk.gaps import Mismatch, fill
from tests.course.walk.lab import Lab, running

_SCRIPT = (Path(__file__).parent / "page.js").read_text(encoding="utf-8")
_HIGH = 1100  # pixels: an output that fills more than a screen
_START = "00_start"


@dataclass
class Walked:
    """What came of a walk.

    Fields:
        wall: seconds in the browser from the first key to the last, wrong answers included.
        cells: seconds that the cells of the solved chapter took, each counted once.
        exercises: seconds from Shift+Enter to the panel, by exercise, for the right answer.
        hinted: in a walk by hints, how many gaps of the third hint were filled, by exercise.
        times: seconds by cell.
        wrong: what is wrong. A walk is good when this is empty.
        looks: where to look: outputs that are long, must be scrolled, or are small.
    """

    chapter: str
    browser: str = ""
    wall: float = 0.0
    cells: float = 0.0
    slowest: tuple[str, float] = ("", 0.0)
    exercises: dict[str, float] = field(default_factory=dict)
    hinted: dict[str, int] = field(default_factory=dict)
    times: dict[str, float] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    looks: list[str] = field(default_factory=list)

    @property
    def record(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


def walk(chapter: Chapter, out: Path | None = None, *, hints: bool = False) -> Walked:
    """Walk a chapter in a fresh JupyterLab and browser; pictures go to ``out`` if given."""
    walked = Walked(chapter.stem)
    scratch = tempfile.TemporaryDirectory(prefix="toytorch-walk-", ignore_cleanup_errors=True)
    with scratch as folder, running(chapter, Path(folder)) as lab, Browser() as page:
        walked.browser = page.version
        page.call("Page.addScriptToEvaluateOnNewDocument", source=_SCRIPT)
        learner = (_Hinted if hints else _Learner)(page, lab, chapter, walked, out)
        learner.work_through()
        learner.look_back()
        learner.see_progress()
        walked.wrong += [f"console: {said}" for said in dict.fromkeys(page.complaints)]
        walked.wrong += [f"request failed: {said}" for said in dict.fromkeys(page.failed)]
        walked.wrong += [f"request to outside: {said}" for said in dict.fromkeys(page.outside)]
    return walked


class _Learner:
    def __init__(
        self, page: Browser, lab: Lab, chapter: Chapter, walked: Walked, out: Path | None
    ) -> None:
        self.page, self.lab, self.chapter, self.walked, self.out = page, lab, chapter, walked, out
        solution: Any = nbformat.read(  # type: ignore[no-untyped-call]
            ROOT / "solutions" / f"{chapter.stem}.ipynb", as_version=4
        )
        self.shows = {cell.id: bool(cell.get("outputs")) for cell in solution.cells}

    def work_through(self) -> None:
        """From the untouched notebook to all panels green."""
        self._open(self.chapter.stem)
        self.cells: list[dict[str, Any]] = self.page.ask("walk.cells()")
        self._picture("untouched")
        begin = time.monotonic()
        place = {c["toytorch"].get("exercise"): i for i, c in enumerate(self.cells)}
        for index, cell in enumerate(self.cells):
            if cell["kind"] != "code":
                continue
            name = cell["toytorch"].get("check")
            if name:
                self._solve(name, place[name], index)
            else:
                self._count(cell["id"], self._run(index))
                self._expect_output(index)
        self.walked.wall = round(time.monotonic() - begin, 1)

    def _solve(self, name: str, at: int, check: int) -> None:
        """The stub has been run already. Check it, then answer wrongly, then rightly."""
        found = exercise(name)
        mutant = found.mutants[0]
        self._run(check)
        self._demand(check, name, "open", "Until then")
        self._type(at, mutant.source)
        self._run(at)
        self._run(check)
        self._demand(check, name, "A known misconception", mutant.label)
        self._picture(f"red-{name}")
        self._type(at, found.answer.source)
        self._count(self.cells[at]["id"], self._run(at))
        seconds = self._run(check)
        self._count(name, seconds)
        self._demand(check, name, "pass")
        self.walked.exercises[name] = round(seconds, 2)

    def look_back(self) -> None:
        """Measure every output; with a folder for pictures, take them from top to bottom."""
        for index, cell in enumerate(self.cells):
            if cell["kind"] == "code":
                seen = self.page.ask(f"walk.measure({index})")
                notes = [*seen["wide"], *seen["tiny"]]
                if seen["height"] > _HIGH:
                    notes.append(f"{seen['height']}px high")
                self.walked.looks += [f"{cell['id']}: {note}" for note in notes]
        if self.out is None:
            return
        self.page.size(1280, 1500)
        self.page.ask("walk.top()")
        number = 1
        self._picture(f"{number:02d}")
        while self.page.ask("walk.down(80)") and number < 60:
            number += 1
            self._picture(f"{number:02d}")
        self.page.size(1280, 900)

    def see_progress(self) -> None:
        """The start page must count this chapter's exercises as done."""
        self.page.ask("walk.save()")
        self._open(_START)
        cells = self.page.ask("walk.cells()")
        index = next(i for i, cell in enumerate(cells) if "start()" in cell["source"])
        self._run(index)
        needed = [one for one in registry.of_chapter(self.chapter.number) if not one.optional]
        done = len(needed)
        text = self.page.ask(f"walk.said({index})")["text"]
        self._picture("start")
        row = text.partition(self.chapter.line)[2][:80]  # minutes and links stand between them
        if f"\u2002{done}/{done}" not in row:
            self.walked.wrong.append(f"the start page does not say {done}/{done}")

    # -- keys and answers -----------------------------------------------------------------------

    def _open(self, stem: str) -> None:
        self.page.open(self.lab.address(stem))
        self.page.until(f"walk.ready({json.dumps(stem + '.ipynb')})", 120)

    def _run(self, index: int) -> float:
        """Shift+Enter in a cell; the seconds until it is done."""
        self.page.ask(f"walk.select({index})")
        self.page.ask(f"walk.watch({index}) || true")
        begin = time.monotonic()
        self.page.press("Enter", SHIFT)
        self.page.ask("walk.finished().then(() => true)")
        return time.monotonic() - begin

    def _type(self, index: int, source: str) -> None:
        """Replace a cell's text: Enter, Ctrl+A, the keys."""
        self.page.ask(f"walk.select({index})")
        self.page.press("Enter")
        self.page.press("a", CONTROL)
        self.page.write(source)
        self.page.press("Escape")
        typed = self.page.ask("walk.cells()")[index]["source"]
        if typed != source:
            raise AssertionError(f"the editor holds\n{typed}\ninstead of\n{source}")

    def _count(self, what: str, seconds: float) -> None:
        self.walked.cells = round(self.walked.cells + seconds, 2)
        self.walked.times[what] = round(seconds, 2)
        if seconds > self.walked.slowest[1]:
            self.walked.slowest = (what, round(seconds, 2))

    def _expect_output(self, index: int) -> None:
        cell, said = self.cells[index], self.page.ask(f"walk.said({index})")
        raises = "raises-exception" in cell["tags"]
        if bool(said["error"]) != raises:
            self.walked.wrong.append(f"{cell['id']}: {said['error'] or 'raised nothing'}")
        if self.shows.get(cell["id"]) and not said["count"]:
            self.walked.wrong.append(f"{cell['id']}: no output, the solved notebook has one")
        if said["warned"]:
            self.walked.wrong.append(f"{cell['id']}: stderr {said['warned'][:200]}")

    def _demand(self, check: int, name: str, *words: str) -> None:
        said = self.page.ask(f"walk.said({check})")
        text = " ".join(said["text"].split())
        missing = [word for word in words if " ".join(word.split()) not in text]
        if missing or said["error"]:
            self.walked.wrong.append(f"{name}: {said['error'] or missing} not in “{text[:300]}”")

    def _picture(self, name: str) -> None:
        if self.out is not None:
            self.page.picture(self.out / self.chapter.stem / f"{name}.png")


class _Hinted(_Learner):
    """Who answers with the third hint; the time of an exercise is that of all three and the answer."""

    def _solve(self, name: str, at: int, check: int) -> None:
        found = exercise(name)
        self._run(check)
        self._demand(check, name, "open", "Until then")
        begin = time.monotonic()
        shown = [self._ask(name, grade, check) for grade in range(1, len(found.hints) + 1)]
        try:
            filled = fill(shown[-1], found.answer.source)
        except (Mismatch, SyntaxError) as error:
            self.walked.wrong.append(f"{name}: the third hint does not lead to the answer: {error}")
            return
        self.walked.hinted[name] = len(filled.gaps)
        self._type(at, filled.source)
        self._count(self.cells[at]["id"], self._run(at))
        self._count(name, self._run(check))
        self._demand(check, name, "pass")
        self.walked.exercises[name] = round(time.monotonic() - begin, 2)

    def _ask(self, name: str, grade: int, check: int) -> str:
        """Ask for a hint in a cell of one's own below the check; the code that it shows."""
        self.page.ask(f"walk.select({check})")
        self.page.press("b")  # a new cell below, which is then the active one
        asked = check + 1
        self._type(asked, f'hint("{name}", {grade})')
        self._run(asked)
        self._demand(asked, name, f"hint {grade} of 3")
        self._picture(f"hint-{name}-{grade}")
        code: list[str] = self.page.ask(f"walk.code({asked})")
        self.page.ask(f"walk.select({asked})")
        self.page.press("d")
        self.page.press("d")  # and away with it
        if len(self.page.ask("walk.cells()")) != len(self.cells):
            raise AssertionError(f"the cell that asked for hint {grade} of {name} is still there")
        return code[-1] if code else ""
