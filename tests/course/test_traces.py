"""Errors in notebooks show the learner's lines; ``%tb`` shows the rest."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbclient
import nbformat.v4 as v4
import pytest

from course.build.notebooks import QUIET, environment

CELLS = [
    "import toytorch as torch\nfrom course import setup, exercise, check\nsetup()",
    "def half(a, b):\n    return a + b\n\nhalf(torch.ones(2, 3), torch.ones(2, 4))",
    "%tb",
    "import numpy as np\nnp.zeros(2) @ np.zeros(3)",
    "try:\n    {}['key']\nexcept KeyError:\n    torch.ones(2) + torch.ones(3)",
    "check('tensors.shap', None)",
]


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What each cell shows as an error."""
    folder: Path = tmp_path_factory.mktemp("traces")
    notebook: Any = v4.new_notebook(cells=[v4.new_code_cell(cell) for cell in CELLS])
    client = nbclient.NotebookClient(
        notebook, allow_errors=True, extra_arguments=QUIET,
        resources={"metadata": {"path": str(folder)}},
    )  # fmt: skip
    client.execute(env=environment(folder))
    shown = []
    for cell in notebook.cells:
        lines = [line for out in cell.outputs for line in out.get("traceback", [])]
        shown.append(re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(lines)))
    return shown


def test_the_way_through_the_framework_is_left_out(said: list[str]) -> None:
    assert said[0] == ""
    assert "----> 4 half(torch.ones(2, 3)" in said[1]
    assert "in half(a, b)" in said[1]
    assert "dispatch.py" not in said[1] and "During handling" not in said[1]
    assert said[1].endswith("must match the size of tensor b (4) at non-singleton dimension 1")
    assert len(said[1].splitlines()) < 16


def test_tb_shows_it(said: list[str]) -> None:
    assert "dispatch.py" in said[2]


def test_what_is_not_ours_is_shown_as_ever(said: list[str]) -> None:
    assert "matmul" in said[3]
    assert "KeyError: 'key'" in said[4] and "During handling" in said[4]  # the learner's own
    assert "dispatch.py" not in said[4]


def test_an_error_of_the_course_is_its_message(said: list[str]) -> None:
    assert "registry.py" not in said[5]
    assert "did you mean tensors.shape" in said[5]
