"""A course for nbgrader: assignments made from the chapters, with points and hidden checks.

`nbgrader generate_assignment` makes from it what students get: stubs, and checks without the
hidden ones. `nbgrader autograde` runs nothing of what they hand in: in its place stands the step of
course/marking/notebook.py, which takes the answers from the file, marks each in processes of its
own, shows all checks, and gives the points. Optional exercises have none in nbgrader's count: what
they earn is shown, to be entered as extra credit.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from course.build import notebooks
from course.build.source import Cell, read
from course.contents import Chapter
from course.files import write_atomically

CONFIG = '''"""The settings of nbgrader for the toytorch course."""

c = get_config()
c.CourseDirectory.course_id = "toytorch"
# The stub stands above the solution, so nothing is put where the solution was.
c.ClearSolutions.code_stub = {"python": ""}
# Answers are marked from the file, by the course. No cell of a notebook is run.
c.Autograde.autograde_preprocessors = [
    "course.marking.notebook.Mark",
    "nbgrader.preprocessors.LimitOutput",
    "nbgrader.preprocessors.SaveAutoGrades",
    "nbgrader.preprocessors.AssignLatePenalties",
    "nbgrader.preprocessors.CheckCellMetadata",
]
'''


def course(chapters: list[Chapter]) -> dict[str, str]:
    """The files of the course by their paths below its folder."""
    files = {"nbgrader_config.py": CONFIG}
    for chapter in chapters:
        files[f"source/{chapter.stem}/{chapter.stem}.ipynb"] = assignment(chapter)
    return files


def write(chapters: list[Chapter], folder: Path) -> None:
    """Write the course. Settings that are there already are left as they are."""
    for name, text in course(chapters).items():
        if name != "nbgrader_config.py" or not (folder / name).exists():
            write_atomically(folder / name, text.encode())


def assignment(chapter: Chapter) -> str:
    """The source notebook of one assignment, solutions and hidden checks included."""
    import nbformat

    cells = [cell for cell in read(chapter) if cell.in_notebook]
    for cell in cells:
        cell.solved = _source(cell)
    notebook = notebooks.solved(cells, chapter.number)
    notebook.metadata["celltoolbar"] = "Create Assignment"
    for node, cell in zip(notebook.cells, cells, strict=True):
        if cell.role in ("prompt", "exercise", "check"):
            node.metadata["nbgrader"] = nbformat.from_dict(_metadata(cell))
    return notebooks.text(notebook)


def _source(cell: Cell) -> str:
    if cell.role == "exercise":
        return f"{cell.student}\n\n### BEGIN SOLUTION\n{cell.solved}\n### END SOLUTION"
    if cell.role == "check" and cell.exercise is not None:
        return (
            "### BEGIN HIDDEN TESTS\n"
            'raise RuntimeError("nbgrader_config.py lacks course.marking.notebook.Mark")\n'
            "### END HIDDEN TESTS\n"
            f'check("{cell.exercise.name}", {cell.exercise.function}, hidden=False)'
        )
    return cell.solved


def _metadata(cell: Cell) -> dict[str, Any]:
    """Answers may be written, prompts and checks may not; points go with the checks."""
    meta: dict[str, Any] = {
        "grade": cell.role == "check",
        "grade_id": cell.id,
        "locked": cell.role != "exercise",
        "schema_version": 3,
        "solution": cell.role == "exercise",
        "task": False,
    }
    if cell.role == "check":
        optional = cell.exercise is not None and cell.exercise.optional
        meta["points"] = 0 if optional else cell.points  # the maximum: extra points are above it
    return meta
