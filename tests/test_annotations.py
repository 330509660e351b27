"""The annotations of toytorch say what its functions are given."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.annotations import Watch, fits
from toytorch.facts import size


def test_a_wrong_annotation_is_found() -> None:
    with Watch() as watch, pytest.raises(TypeError):
        size.contiguous_strides(6)  # type: ignore[arg-type]  # what is to be found
    (line,) = watch.lines()
    assert "contiguous_strides(shape: collections.abc.Sequence[int]) was given builtins.int" in line


def test_parts_of_annotations_are_looked_at() -> None:
    assert fits((1, 2), tuple[int, ...]) and not fits((1, "2"), tuple[int, ...])
    assert fits({"a": 1}, dict[str, int]) and not fits({"a": "b"}, dict[str, int])
    assert fits([1], list[int] | None) and not fits(3, list[int] | None)


def test_programs_give_what_annotations_say() -> None:
    """In a process of its own, for the programs say `import torch`."""
    root = Path(__file__).parents[1]
    run = subprocess.run(
        [sys.executable, "-m", "tests.annotations"], cwd=root, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr[-2000:]
    assert run.stdout.strip() == ""
