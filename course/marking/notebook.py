"""Marking in nbgrader: the step that takes the place of running the notebook.

nbgrader runs a submitted notebook in a kernel and reads the points from what its cells print, so
that every cell of a student has a hand in the mark. Here no cell is run. The answers are taken from
the text of the notebook and marked as ``course grade`` marks them, each in a process of its own,
and the cells with the checks get the panel and the points as their output. ``nbgrader_config.py``
of the assignments names this step (course/build/nbgrader.py).
"""

from __future__ import annotations

import os
import re
import tempfile
from html import escape
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nbformat
from nbconvert.preprocessors import Preprocessor
from traitlets import Bool

from course import registry
from course.contents import CHAPTERS
from course.marking import submissions
from course.marking.grade import Judged, Marker, Task
from course.marking.submissions import Submission
from course.marking.supervisor import Limits
from course.panel import Panel
from course.records import Exercise

_CHECK = re.compile(r"""^check\(\s*["']([\w.]+)["']""", re.M)


class Mark(Preprocessor):
    """Gives each cell with a check its points, and the panel that says why.

    ``TOYTORCH_MARK_SECONDS`` sets the time for one answer; 20 seconds without it.
    """

    enabled = Bool(True).tag(config=True)

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        """Mark a notebook.

        Raises:
            RuntimeError: this machine cannot mark an exercise, which is no fault of the answer, or
                the notebook holds more code than any chapter.
        """
        cells = [
            SimpleNamespace(cell_type="code", source=str(cell.source))
            for cell in nb.cells
            if cell.cell_type == "code"
        ]
        problem = submissions.too_much(cell.source for cell in cells)
        if problem:
            raise RuntimeError(f"the notebook is not marked: {problem}")
        for cell in nb.cells:
            if cell.cell_type != "code":
                continue
            cell.outputs = []
            if cell.metadata.get("nbgrader", {}).get("grade"):
                name = _CHECK.search(str(cell.source))
                cell.outputs = _outputs(name[1], cells) if name else [_NOT_OURS]
        return nb, resources


_NOT_OURS = nbformat.v4.new_output(
    "error", ename="NotMarked", evalue="no check of the course: mark it by hand", traceback=[]
)


def _outputs(name: str, cells: list[Any]) -> list[Any]:
    found = registry.exercise(name)
    judged = _judged(found, cells)
    points, html = judged.mark.points, _shown(judged)
    if found.optional:  # nbgrader takes no points beyond a cell's maximum
        extra = f"{points:g} of {judged.mark.extra:g} extra points"
        html += f"<p><b>{extra}</b>, to be entered as extra credit.</p>"
        points = 0.0
    panel = nbformat.v4.new_output("display_data", {"text/html": html})
    said = nbformat.v4.new_output("execute_result", {"text/plain": repr(float(points))})
    return [panel, said]


def _judged(found: Exercise, cells: list[Any]) -> Judged:
    chapter = next(c for c in CHAPTERS if c.number == found.chapter)
    seconds = float(os.environ.get("TOYTORCH_MARK_SECONDS", "20"))
    with tempfile.TemporaryDirectory() as nowhere:
        marker = Marker(Path(nowhere), Limits(seconds))
        notebook = SimpleNamespace(cells=cells)
        tasks = marker.tasks(Submission("", Path("notebook"), chapter, notebook))
        task: Task = next(task for task in tasks if task.exercise is found)
        judged = marker.judge(task)
    if judged.mark.verdict in ("unmarked", "error"):
        raise RuntimeError(judged.mark.reason)
    return judged


def _shown(judged: Judged) -> str:
    if judged.verdict is not None and judged.mark.verdict != "suspect":
        return Panel(judged.verdict)._repr_html_()
    return f"<p><b>{escape(judged.mark.verdict)}</b>: {escape(judged.mark.reason)}</p>"
