"""The `check` that marks: what nbgrader's hidden tests put in the place of the learner's own.

The answer is taken from the text of the cells that ran, and goes through the same process, limits
and controls as in ``course grade``. The panel shows all checks, hidden ones too; the result of the
call is the points, which nbgrader reads from the cell.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from course import registry
from course.contents import CHAPTERS
from course.marking.grade import Marker, Task
from course.marking.submissions import Submission
from course.marking.supervisor import Limits


def check(name: str, submission: Any, *, hidden: bool = True) -> float:
    """Mark the answer that this session's cells define; show why; return the points.

    For an optional exercise that is 0, as nbgrader takes no points beyond a cell's maximum: the
    extra points are shown, for the lecturer to enter as extra credit.

    Args:
        name: the exercise.
        submission: what the cell hands over. It is not called: its text is, in another process.
        hidden: as students' cells say it; marking always runs every check.

    ``TOYTORCH_MARK_SECONDS`` sets the time for one answer; 20 seconds without it.

    Raises:
        RuntimeError: this machine cannot mark the exercise, which is no fault of the answer.
    """
    from IPython import get_ipython
    from IPython.display import HTML, display

    found = registry.exercise(name)
    shell: Any = get_ipython()
    sources = [] if shell is None else shell.user_ns.get("In", [])
    cells = [SimpleNamespace(cell_type="code", source=source) for source in sources if source]
    chapter = next(c for c in CHAPTERS if c.number == found.chapter)
    notebook = SimpleNamespace(cells=cells)
    seconds = float(os.environ.get("TOYTORCH_MARK_SECONDS", "20"))
    with tempfile.TemporaryDirectory() as nowhere:
        marker = Marker(Path(nowhere), Limits(seconds))
        tasks = marker.tasks(Submission("", Path("notebook"), chapter, notebook))
        task: Task = next(task for task in tasks if task.exercise is found)
        judged = marker.judge(task)
    if judged.mark.verdict in ("unmarked", "error"):
        raise RuntimeError(judged.mark.reason)
    if judged.verdict is not None and judged.mark.verdict != "suspect":
        from course.panel import Panel

        display(Panel(judged.verdict))
    else:
        from html import escape

        words = f"<p><b>{escape(judged.mark.verdict)}</b>: {escape(judged.mark.reason)}</p>"
        display(HTML(words))
    if found.optional:
        extra = f"{judged.mark.points:g} of {judged.mark.extra:g} extra points"
        display(HTML(f"<p><b>{extra}</b>, to be entered as extra credit.</p>"))
        return 0.0
    return float(judged.mark.points)
