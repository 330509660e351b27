"""Notebooks: solved ones pass strict nbval, untouched ones fail in exactly their checks."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pytest

from course.build import make, notebooks
from course.build.source import Cell, read
from course.contents import CHAPTERS, ROOT, Chapter, written

every = pytest.mark.parametrize("chapter", written(), ids=lambda chapter: chapter.stem)
LEAVING = (9, 10)  # chapters that write data sets and checkpoints
SANITIZE = Path(__file__).with_name("nbval.sanitize")

# Runs in a kernel before its first cell: there is no other machine.
ALONE = """
import sys

def _alone(event, args):
    host = {"socket.getaddrinfo": args[:1], "socket.connect": args[1:2]}.get(event, ("localhost",))[0]
    host = host[0] if isinstance(host, tuple) else "localhost" if isinstance(host, int) else host
    if host not in ("localhost", "127.0.0.1", "::1", "0.0.0.0", None) and not str(host).startswith("/"):
        raise OSError(f"a chapter asks for {host}")

sys.addaudithook(_alone)
"""


# Runs pytest, and keeps what the cells put out. jsonschema reads the grammars of addresses where
# rfc3987_syntax is installed, which takes two seconds: no notebook holds what they are for.
NBVAL = """
import json, sys
sys.modules["rfc3987_syntax"] = None
import pytest

class Outputs:
    said = {}

    def pytest_runtest_teardown(self, item):
        self.said[item.name] = getattr(item, "test_outputs", [])

    def pytest_sessionfinish(self):
        with open("outputs.json", "w", encoding="utf-8") as file:
            json.dump(self.said, file)

sys.exit(pytest.main(plugins=[Outputs()]))
"""


def nbval(notebook: Path, mode: str, tmp_path: Path, **variables: str) -> dict[str, bool]:
    """Run pytest with nbval over a notebook; whether each cell passed, by its name.

    What the cells put out is in `outputs.json` of the folder then; `ran` reads it. ``variables`` are
    added to the environment.
    """
    report = tmp_path / "report.xml"
    report.unlink(missing_ok=True)
    command = [
        *(sys.executable, "-c", NBVAL, mode, "--nbval-current-env", "-q"),
        *("-o", "addopts=", "-p", "no:cacheprovider", "-p", "no:xdist"),
        *(f"--nbval-sanitize-with={SANITIZE}", "-W", "ignore"),
        *(f"--junitxml={report}", str(notebook)),
    ]
    env = {**notebooks.environment(tmp_path), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "", **variables}
    env.pop("PYTEST_ADDOPTS", None)
    if os.name == "posix":
        env["PATH"] = str(tmp_path)  # no dot, no compiler
    startup = tmp_path / "ipython" / "profile_default" / "startup"
    startup.mkdir(parents=True, exist_ok=True)
    (startup / "alone.py").write_text(ALONE, encoding="utf-8")
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert report.exists(), done.stdout + done.stderr
    cells = {}
    for item in ET.parse(report).iter("testcase"):
        cells[str(item.get("name"))] = item.find("failure") is None and item.find("error") is None
    if mode == "--nbval":
        assert done.returncode == 0, done.stdout[-4000:]
    return cells


def ran(chapter: Chapter, tmp_path: Path) -> list[Cell]:
    """The cells of a chapter with what they put out under nbval.

    Settled as in a build: nothing of this machine, and no error but where one belongs. Where nbval
    runs a cell the kernel does not count, so they are numbered here.
    """
    said = json.loads((tmp_path / "outputs.json").read_text(encoding="utf-8"))
    cells = read(chapter)
    codes = [cell for cell in cells if cell.in_notebook and cell.is_code]
    assert len(said) == len(codes)
    for number, cell in enumerate(codes):
        outputs = [nbformat.from_dict(output) for output in said[f"Cell {number}"]]
        cell.outputs = [notebooks.settled(output, cell) for output in outputs]
        cell.count = number + 1
        for output in cell.outputs:
            if "execution_count" in output:
                output.execution_count = cell.count
    return cells


def another_processor() -> dict[str, str]:
    """Variables under which NumPy, BLAS and toytorch compute as on an older machine.

    Their sums are then taken in another order, so that last bits differ.
    """
    features: Any = np._core._multiarray_umath  # type: ignore[attr-defined]  # NumPy's stubs leave it out
    here = [name for name in features.__cpu_dispatch__ if features.__cpu_features__.get(name)]
    found = {"NPY_DISABLE_CPU_FEATURES": " ".join(here)}
    found |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "TOYTORCH_THREADS"), "2")
    if platform.machine().lower() in ("x86_64", "amd64"):
        return found | {"OPENBLAS_CORETYPE": "Nehalem", "TOYTORCH_CPU": "sse4"}
    return found | {"TOYTORCH_NATIVE": "0"}


def codes(notebook: Path) -> list[Any]:
    return [c for c in nbformat.read(notebook, as_version=4).cells if c.cell_type == "code"]


def test_a_kernel_of_these_tests_is_alone(tmp_path: Path) -> None:
    cells = [
        "import socket, shutil",
        "socket.create_connection(('192.0.2.1', 80), timeout=1)",
        "socket.getaddrinfo('example.org', 80)",
        "assert shutil.which('dot') is shutil.which('cc') is shutil.which('gcc') is None",
        "assert socket.getaddrinfo('localhost', 80)",
    ]
    made = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(cell, execution_count=1) for cell in cells],
        metadata={"kernelspec": {"name": "python3", "display_name": "", "language": "python"}},
    )
    path = tmp_path / "alone.ipynb"
    nbformat.write(made, path)
    passed = list(nbval(path, "--nbval-lax", tmp_path).values())
    assert passed == [True, False, False, True, True]


@pytest.mark.skipif(
    platform.machine().lower() not in ("x86_64", "amd64"), reason="kinds of BLAS are x86's here"
)
def test_another_processor_computes_differently() -> None:
    """Else the test below would compare a build with itself."""
    line = (
        "import toytorch as t; t.manual_seed(0); x = t.randn(300, 300); "
        "print((x @ x.exp()).numpy().tobytes().hex())"
    )
    said = []
    for variables in ({}, another_processor()):
        env = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
        said.append(subprocess.run([sys.executable, "-c", line], env=env, capture_output=True,
                                   text=True, check=True).stdout)  # fmt: skip
    assert len(said[0]) == len(said[1]) == 720_001
    assert said[0] != said[1]


@every
@pytest.mark.slow
def test_solved_notebook_passes_strict_nbval(chapter: Chapter, tmp_path: Path) -> None:
    """And what its cells put out makes the same files that are committed, byte for byte.

    Those were built with one thread; here are two, on another kind of processor. `course build
    --check`, another stage of CI, builds on this one. Chapters that leave files behind, and with
    TOYTORCH_ALL=1 all, run once more in the same folder, which may not disturb, as they were built.
    """
    path = ROOT / "solutions" / f"{chapter.stem}.ipynb"
    again = [{}] if os.environ.get("TOYTORCH_ALL") or chapter.number in LEAVING else []
    for variables in (another_processor(), *again):
        cells = nbval(path, "--nbval", tmp_path, **variables)
        assert len(cells) == len(codes(path))
        assert all(cells.values())
        built = make.written(chapter, ran(chapter, tmp_path))
        assert make.in_step(built.files) == [], "run python3 -m course build"


@every
@pytest.mark.slow
def test_untouched_notebook_runs_to_its_end_and_fails_in_exactly_its_check_cells(
    chapter: Chapter, tmp_path: Path
) -> None:
    """Their panels say that the exercises are open."""
    path = ROOT / "notebooks" / f"{chapter.stem}.ipynb"
    passed = nbval(path, "--nbval-lax", tmp_path)
    checks = {
        f"Cell {number}" for number, cell in enumerate(codes(path)) if "check(" in cell.source[:6]
    }
    assert checks
    failed = {re.sub(r"^.*::", "", name) for name, good in passed.items() if not good}
    assert failed == checks
    for cell in ran(chapter, tmp_path):
        if cell.role == "check":
            shown = "".join(str(output.data.get("text/plain", "")) for output in cell.outputs)
            assert shown.startswith("○"), shown
            assert "open" in shown


@every
def test_learners_notebook_with_the_answers_filled_in_is_the_solved_one(chapter: Chapter) -> None:
    """What nbval expects of a check cell is what a solved exercise prints.

    So it passes lax nbval where the solved notebook, which is run above, passes strict nbval.
    """
    answers = {cell.id: cell.solved for cell in read(chapter)}
    panel = re.compile(SANITIZE.read_text(encoding="utf-8").splitlines()[1].partition(": ")[2])
    mine, solved = (
        nbformat.read(ROOT / folder / f"{chapter.stem}.ipynb", as_version=4).cells
        for folder in ("notebooks", "solutions")
    )
    for cell, other in zip(mine, solved, strict=True):
        filled = answers[cell.id] if cell.id.startswith("exercise-") else cell.source
        assert (cell.cell_type, filled, cell.metadata) == (
            other.cell_type, other.source, other.metadata,
        )  # fmt: skip
        if cell.cell_type == "code" and cell.outputs:
            assert (
                cell.execution_count is not None
            )  # nbval asks for a number, for it to be compared
        if "nbval-check-output" in cell.metadata.get("tags", ()):
            expected, printed = (
                json.loads(panel.sub("PANEL", json.dumps(one.outputs, ensure_ascii=False)))
                for one in (cell, other)
            )
            assert expected == printed


@every
def test_learners_notebook_holds_stubs_and_no_answers(chapter: Chapter) -> None:
    cells = {cell.id: cell for cell in read(chapter) if cell.in_notebook}
    untouched = nbformat.read(ROOT / "notebooks" / f"{chapter.stem}.ipynb", as_version=4)
    solved = nbformat.read(ROOT / "solutions" / f"{chapter.stem}.ipynb", as_version=4)
    assert [c.id for c in untouched.cells] == [c.id for c in solved.cells] == list(cells)
    for mine, theirs in zip(untouched.cells, solved.cells, strict=True):
        cell = cells[mine.id]
        assert mine.source == cell.student
        assert theirs.source == cell.solved
        if cell.role == "exercise":
            assert "NotImplementedError" in mine.source or "..." in mine.source
            assert not re.search(r"raise NotImplementedError\s*(#.*)?$", theirs.source, re.M)
        if cell.role == "check":
            assert "not checked yet" in mine.outputs[0].data["text/html"]
            assert mine.execution_count is not None  # nbval compares nothing without one
        elif cell.is_code and not cell.keep:
            assert mine.outputs == []


@every
def test_titles_of_slides_are_in_no_notebook(chapter: Chapter) -> None:
    """A heading with nothing below it is a slide's; those of sections have text."""
    for folder in ("notebooks", "solutions"):
        notebook = nbformat.read(ROOT / folder / f"{chapter.stem}.ipynb", as_version=4)
        for cell in notebook.cells:
            if cell.cell_type == "markdown":
                assert not re.fullmatch(r"\s*#+ [^\n]*\s*", cell.source), cell.source


@every
def test_every_output_is_free_of_this_machine(chapter: Chapter) -> None:
    for folder in ("notebooks", "solutions"):
        text = (ROOT / folder / f"{chapter.stem}.ipynb").read_text(encoding="utf-8")
        assert str(ROOT) not in text
        assert str(Path.home()) + os.sep not in text
        assert not re.search(r" at 0x[0-9a-f]", text)


@every
def test_the_first_screen_has_a_picture_and_the_chapter_two(chapter: Chapter) -> None:
    solved = nbformat.read(ROOT / "solutions" / f"{chapter.stem}.ipynb", as_version=4)
    pictured = [
        number
        for number, cell in enumerate(solved.cells)
        for output in cell.get("outputs", [])
        if {"image/png", "image/svg+xml"} & set(output.get("data", {}))
        or "<svg" in str(output.get("data", {}).get("text/html", ""))
    ]
    assert len(pictured) >= 2
    assert pictured[0] <= 4


def test_start_page_lists_every_chapter() -> None:
    page = (ROOT / "notebooks" / "00_start.ipynb").read_text(encoding="utf-8")
    shown = nbformat.reads(page, as_version=4).cells[1].outputs[0].data["text/html"]
    for chapter in CHAPTERS:
        assert chapter.title in shown
        assert (f'href="{chapter.stem}.ipynb"' in shown) == chapter.written
