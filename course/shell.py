"""The commands that need the environment: status, run, check, build."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from course import desk, progress, registry
from course.build import make, notebooks
from course.build.source import Cell, SourceError, read
from course.contents import ROOT, Chapter, find
from course.notebook import table


def status() -> int:
    """Print progress per chapter, and per exercise how often it was tried and hinted at."""
    states = progress.load()
    print(table(states))
    found = registry.all_exercises()
    needed = [name for name, one in found.items() if not one.optional]
    done = sum(states.get(name) == "green" for name in needed)
    counts = progress.counts(progress.log())
    if any(name in counts for name in found):
        print()
    for name in found:
        if name in counts:
            tried, shown = counts[name]
            print(f"  {_SIGNS[states.get(name, 'open')]} {name:<24} {_tries(tried, shown)}")
    print(f"\n{done} of {len(needed)} exercises solved.")
    more = [name for name, one in found.items() if one.optional and states.get(name) == "green"]
    if more:
        print(f"And of the optional ones: {', '.join(more)}.")
    return 0


_SIGNS = {"green": "✔", "red": "✘", "open": "○"}


def _tries(tried: int, shown: int) -> str:
    text = f"{tried} attempt{'s' * (tried != 1)}"
    return text + (f", {shown} hint{'s' * (shown != 1)}" if shown else "")


def hint(name: str, grade: int | None) -> int:
    """Print a hint."""
    from course.hints import hint as ask

    try:
        print(ask(name, grade))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def run(chapter: Chapter) -> int:
    """Execute a chapter's solved notebook from its source; report time and exercises."""
    print(f"Running chapter {chapter.number:02d}, {chapter.title}, with its exercises solved.")
    started = time.monotonic()
    bar = Bar()
    try:
        cells = read(chapter)
        notebooks.execute(cells, progress=bar)
    except SourceError as error:
        bar.close()
        print(f"\n{error}", file=sys.stderr)
        return 1
    bar.close()
    for cell in cells:
        if cell.role == "code":
            _print_streams(cell)
    checks = [cell for cell in cells if cell.role == "check"]
    green = sum(_plain(cell).startswith("✔") for cell in checks)
    codes = sum(cell.is_code for cell in cells)
    took = time.monotonic() - started
    print(f"{codes} cells, {green} of {len(checks)} exercises green, {took:.1f} s.")
    return 0 if green == len(checks) else 1


def _print_streams(cell: Cell) -> None:
    for output in cell.outputs:
        if output.output_type == "stream" and output.name == "stdout":
            print("  │ " + output.text.rstrip("\n").replace("\n", "\n  │ "))


def reset(chapter: str) -> int:
    """A new working copy of a chapter's notebook; the old one is kept."""
    kept = desk.reset(find(chapter).stem)
    print(f"work/{find(chapter).stem}.ipynb is new.")
    if kept is not None:
        print(f"The old one is {kept.relative_to(kept.parents[2])}.")
    return 0


def milestone(chapter: str, *, solved: bool) -> int:
    """Run a milestone on the learner's own package and say whose files it ran on."""
    from course.milestones import milestone as reach
    from course.milestones import title

    print(f"Milestone {find(chapter).number:02d} · {title(chapter)}\n")
    found = reach(
        chapter, solved=solved, tell=lambda line: print("    " + line, end="", flush=True)
    )
    if not found.passed:
        print("    " + found.said.strip().splitlines()[-1] if found.said.strip() else "")
    print(f"{found.summary()}\n{found.seconds:.1f} s.")
    return 0 if found.passed else 1


def check(name: str) -> int:
    """Run a learner's notebook in a process of its own and report every exercise."""
    path = Path(name) if name.endswith(".ipynb") else None
    chapter = find(path.stem if path else name)
    path = path or desk.notebook(chapter.stem)
    if not path.exists():
        print(f"There is no notebook {path}.", file=sys.stderr)
        return 1
    print(f"Checking {path.name}: running it from the top.")
    states, said = _run_learners(path)
    exercises = registry.of_chapter(chapter.number)
    for found in exercises:
        state = states.get(found.name, "open")
        print(said.get(found.name) or f"○ {found.name} · {found.title}: its check did not run")
        if state == "red":
            print()
    progress.record({one.name: states[one.name] for one in exercises if one.name in states})
    for one in exercises:
        if one.name in states:
            progress.note(one.name, "check", states[one.name])
    needed = [one for one in exercises if not one.optional]
    green = sum(states.get(one.name) == "green" for one in needed)
    print(f"\n{green} of {len(needed)} exercises of chapter {chapter.number:02d} are green.")
    return 0 if green == len(needed) else 1


def _run_learners(path: Path) -> tuple[dict[str, str], dict[str, str]]:
    """States and panel texts by exercise name. Cells that raise do not stop the others."""
    import nbclient
    import nbformat
    from nbclient.exceptions import CellTimeoutError, DeadKernelError

    notebook: Any = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    bar = Bar()
    codes = [cell for cell in notebook.cells if cell.cell_type == "code"]
    with tempfile.TemporaryDirectory(prefix="toytorch-check-") as folder:
        client = nbclient.NotebookClient(
            notebook,
            timeout=notebooks.CELL_SECONDS,
            kernel_name="python3",
            allow_errors=True,
            coalesce_streams=True,
            extra_arguments=notebooks.QUIET,
            on_cell_execute=lambda cell, cell_index, **_: (
                bar.show(codes.index(cell) + 1, len(codes)) if cell in codes else None
            ),
            resources={"metadata": {"path": str(path.resolve().parent)}},
        )
        try:
            client.execute(env=notebooks.environment(Path(folder)))
        except CellTimeoutError:
            bar.close()
            print(f"A cell ran longer than {notebooks.CELL_SECONDS} s and was stopped there.")
        except DeadKernelError:
            bar.close()
            print("The notebook's Python process ended: a cell used up its memory or quit.")
        states = progress.load(Path(folder) / "progress.json")
    bar.close()
    said = {}
    for cell in codes:
        for output in cell.outputs:
            text = str(output.get("data", {}).get("text/plain", ""))
            match = re.match(r"[✔✘○] (\S+) · ", text)
            if match:
                said[match.group(1)] = text
                states.setdefault(match.group(1), "open")
    return states, said


def build(chapters: list[Chapter], *, check: bool, out: Path | None) -> int:
    """Build chapters and the start page, or say which files are out of step."""
    behind: list[str] = []
    files = make.start_files()
    for chapter in chapters:
        started = time.monotonic()
        bar = Bar(f"{chapter.number:02d} {chapter.title}  ")
        try:
            built = make.build(chapter, progress=bar).files
        except SourceError as error:
            bar.close()
            print(f"\n{error}", file=sys.stderr)
            return 1
        bar.close()
        files.update(built)
        print(f"{chapter.stem}: built in {time.monotonic() - started:.1f} s", flush=True)
        if not check:
            make.save(built, out or ROOT)
    if not check:
        make.save(files, out or ROOT)
        return 0
    behind = make.in_step(files, out or ROOT)
    if behind:
        print("Out of step with their sources (run `python3 -m course build`):")
        print("\n".join(f"  {name}" for name in behind))
        return 1
    print(f"{len(files)} files are in step with their sources.")
    return 0


def site(out: Path | None) -> int:
    """Write the site and say where it is."""
    from course.site import write

    folder = out or ROOT / "site"
    started = time.monotonic()
    count = write(folder)
    print(f"{count} files in {time.monotonic() - started:.1f} s. Open {folder / 'index.html'}")
    return 0


def pdf(chapters: list[Chapter], folder: Path) -> int:
    """Print the chapters' slides, one file each and one slide a page."""
    from course.build import pdf as printer

    for chapter in chapters:
        slides = ROOT / "slides" / f"{chapter.stem}.html"
        if not slides.exists():
            raise LookupError(
                f"There are no slides of chapter {chapter.number:02d} yet: "
                f"python3 -m course build {chapter.number:02d}"
            )
        target = folder / f"{chapter.stem}.pdf"
        printer.write(slides, target)
        print(target)
    return 0


def nbgrader(chapters: list[Chapter], folder: Path) -> int:
    """Write a course for nbgrader and say how to go on."""
    from course.build import nbgrader

    nbgrader.write(chapters, folder)
    print(f"{len(chapters)} assignments are in {folder}. There:")
    print(f"  nbgrader generate_assignment {chapters[0].stem}")
    return 0


def _plain(cell: Cell) -> str:
    return "".join(str(o.get("data", {}).get("text/plain", "")) for o in cell.outputs)


class Bar:
    """A progress bar over cells; silent where there is no terminal."""

    def __init__(self, title: str = "") -> None:
        self.title = title
        self.started = time.monotonic()
        self.live = sys.stdout.isatty()

    def __call__(self, number: int, count: int, cell: Cell) -> None:
        self.show(number, count)

    def show(self, number: int, count: int) -> None:
        """Say that cell ``number`` of ``count`` now runs."""
        if not self.live:
            if not os.environ.get("CI") and (number == count or number % 10 == 0):
                print(f"  cell {number} of {count}", flush=True)
            return
        width = min(30, shutil.get_terminal_size().columns - 40)
        full = width * number // count
        seconds = time.monotonic() - self.started
        bar = "█" * full + "·" * (width - full)
        print(f"\r\x1b[K  {self.title}{bar} {number}/{count}  {seconds:.0f} s", end="", flush=True)

    def close(self) -> None:
        """Clear the line."""
        if self.live:
            print("\r\x1b[K", end="", flush=True)
