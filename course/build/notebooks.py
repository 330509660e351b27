"""Make notebooks from cells, and run them."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from course import package
from course.build.source import Cell, SourceError
from course.contents import ROOT
from course.files import write_atomically
from course.panel import title_of, waiting

_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
CELL_SECONDS = 120
QUIET = ["--IPKernelApp.log_level=40"]  # errors only; a kernel's start-up notes help no learner

Progress = Callable[[int, int, Cell], None]


def solved(cells: list[Cell], chapter: int) -> Any:
    """The solved notebook, with whatever outputs the cells have."""
    kept = (cell for cell in cells if cell.in_notebook)
    return _notebook([_node(cell, cell.solved, cell.outputs, cell.count) for cell in kept], chapter)


def untouched(cells: list[Cell], chapter: int) -> Any:
    """The learner's notebook: stubs, no outputs except pictures to begin with.

    Each check cell carries the text it prints once solved, out of sight behind a neutral panel.
    That is what ``pytest --nbval-lax`` compares with, so an open exercise fails and a solved one
    passes.
    """
    nodes = []
    for cell in filter(lambda cell: cell.in_notebook, cells):
        outputs, count = ([], None) if not cell.keep else (cell.outputs, cell.count)
        if cell.role == "check":
            outputs, count = _expected(cell), cell.count
        nodes.append(_node(cell, cell.student, outputs, count))
    return _notebook(nodes, chapter)


def execute(cells: list[Cell], *, progress: Progress | None = None) -> None:
    """Run all cells, solved, in a new kernel and keep their outputs, made the same at every run.

    Raises:
        SourceError: a cell raised that should not, or did not that should; names the cell.
    """
    import nbclient
    from nbclient.exceptions import CellExecutionError

    notebook = solved(cells, 0)
    numbered = [cell for cell in cells if cell.is_code]
    place = {cell.id: number for number, cell in enumerate(numbered, start=1)}
    by_id = {cell.id: cell for cell in cells}

    def tell(cell: Any, cell_index: int, **_: Any) -> None:
        if progress is not None and cell.id in place:
            progress(place[cell.id], len(numbered), by_id[cell.id])

    with tempfile.TemporaryDirectory(prefix="toytorch-run-") as folder:
        client = nbclient.NotebookClient(
            notebook,
            timeout=CELL_SECONDS,
            kernel_name="python3",
            record_timing=False,
            coalesce_streams=True,
            extra_arguments=QUIET,
            on_cell_execute=tell,
            resources={"metadata": {"path": folder}},
        )
        # whoever has come so far has solved the chapters before
        numbers = [cell.exercise.chapter for cell in cells if cell.exercise]
        package.begin(Path(folder) / "work", before=min(numbers, default=0))
        try:
            client.execute(env=environment(Path(folder)))
        except CellExecutionError as error:
            raise SourceError(_ANSI.sub("", str(error)).strip()) from None
    for node in notebook.cells:
        cell = by_id[node.id]
        if cell.is_code:
            cell.outputs = [settled(output, cell) for output in node.outputs]
            cell.count = node.execution_count
    _demand_green(cells)


def _demand_green(cells: list[Cell]) -> None:
    """A solved notebook with a check that is not green (an import is missing, say) is no answer."""
    for cell in cells:
        said = "".join(str(output.get("data", {}).get("text/plain", "")) for output in cell.outputs)
        if cell.role == "check" and not said.startswith("✔"):
            raise SourceError(
                f"cell {cell.id}: the reference does not pass in the notebook\n{said}"
            )


def environment(folder: Path) -> dict[str, str]:
    """The environment of a kernel that must neither find nor leave traces of a learner."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTHONHASHSEED": "0",
        "TOYTORCH_PROGRESS": str(folder / "progress.json"),
        "IPYTHONDIR": str(folder / "ipython"),
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }


def text(notebook: Any) -> str:
    """A notebook's bytes as they are committed."""
    import nbformat

    nbformat.validate(notebook)
    written: str = nbformat.writes(notebook, version=4)
    return written.rstrip("\n") + "\n"


def save(notebook: Any, target: Path) -> None:
    """Write a notebook; the file appears whole or not at all."""
    write_atomically(target, text(notebook).encode())


# -- parts ----------------------------------------------------------------------------------------


def _notebook(nodes: list[Any], chapter: int) -> Any:
    import nbformat.v4 as v4

    notebook = v4.new_notebook(cells=nodes)
    notebook.nbformat_minor = 5
    notebook.metadata = {
        "kernelspec": dict(_KERNEL),
        "language_info": {"name": "python"},
        "toytorch": {"chapter": chapter},
    }
    return notebook


def _node(cell: Cell, source: str, outputs: list[Any], count: int | None) -> Any:
    import nbformat.v4 as v4

    meta = _metadata(cell)
    if not cell.is_code:
        return v4.new_markdown_cell(source, id=cell.id, metadata=meta)
    return v4.new_code_cell(
        source, id=cell.id, metadata=meta, outputs=outputs, execution_count=count
    )


def _metadata(cell: Cell) -> dict[str, Any]:
    meta: dict[str, Any] = {}
    tags = []
    if cell.role == "check":
        tags.append("nbval-check-output")
    if cell.varies:
        tags.append("nbval-ignore-output")
    if cell.raises:
        tags.append("raises-exception")
    if tags:
        meta["tags"] = tags
    if cell.exercise is not None and cell.is_code:
        meta["toytorch"] = {cell.role: cell.exercise.name}
        if cell.role == "check":
            meta["toytorch"]["points"] = cell.points
    if cell.folded:
        meta["jupyter"] = {"source_hidden": True}
    if cell.slide:
        meta["slideshow"] = {"slide_type": "-" if cell.slide == "more" else cell.slide}
    return meta


def _expected(cell: Cell) -> list[Any]:
    """A check cell's solved output with the neutral panel in place of the green one."""
    import copy

    outputs = copy.deepcopy(cell.outputs)
    found = cell.exercise
    for output in outputs:
        if found is not None and "text/html" in output.get("data", {}):
            output["data"]["text/html"] = waiting(title_of(found), found.name)
    return outputs


def settled(output: Any, cell: Cell) -> Any:
    """An output without anything that depends on the machine it ran on."""
    if output.output_type == "error":
        if not cell.raises:
            raise SourceError(f"cell {cell.id} raised {output.ename}: {output.evalue}")
        output.traceback = [f"\x1b[31m{output.ename}\x1b[39m: {output.evalue}"]
    said = str(output)
    for trace, what in ((" at 0x", "a memory address"), (str(ROOT), "a path of this machine")):
        if trace in said:
            at = said.index(trace)
            raise SourceError(
                f"cell {cell.id} prints {what}: give it a stable text: {said[max(0, at - 80) : at + 200]}"
            )
    return output
