"""What conftest.py does to the tests themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests import conftest

ROOT = Path(__file__).resolve().parents[1]


class Item:
    """A collected test, as far as conftest.py looks at it."""

    def __init__(self, path: Path) -> None:
        self.path, self.marks = path, []  # type: tuple[Path, list[Any]]

    def add_marker(self, mark: Any, append: bool = True) -> None:
        self.marks.append(mark)


def silenced(paths: list[Path]) -> list[str]:
    """The files among these in whose tests warnings are no errors."""
    items: list[Any] = [Item(path) for path in paths]
    conftest.pytest_collection_modifyitems(items)
    return [str(item.path.relative_to(ROOT)) for item in items if item.marks]


def test_warnings_are_errors_in_every_doctest() -> None:
    paths = sorted((ROOT / "toytorch").rglob("*.py"))
    assert len(paths) > 300
    assert silenced(paths) == []


def test_warnings_are_ignored_only_where_pytorch_runs_beside() -> None:
    """A folder that is let off has files that run PyTorch."""
    files = silenced(sorted((ROOT / "tests").rglob("test_*.py")))
    assert files
    for folder in {Path(name).parent for name in files}:
        texts = [path.read_text(encoding="utf-8") for path in (ROOT / folder).glob("test_*.py")]
        assert any("tests.oracle" in text for text in texts), folder


def test_the_longest_files_come_first_where_several_work() -> None:
    files = sorted(conftest.HERE.rglob("test_*.py"))
    long = [conftest.HERE / name for name in conftest.LONGEST]
    assert set(long) <= set(files)
    items: list[Any] = [Item(path) for path in files]
    conftest.longest_first(items)
    assert [item.path for item in items] == [*long, *(f for f in files if f not in long)]


@pytest.mark.filterwarnings("default")
def test_the_projects_own_filter_is_strict(pytestconfig: pytest.Config) -> None:
    strict, *others = pytestconfig.getini("filterwarnings")
    assert strict == "error"
    assert (
        others
        == [
            "ignore:This DataLoader will create",  # more workers than this machine has cores
            "ignore:.torch.jit.script. is deprecated",  # by PyTorch's own forward derivatives, in tests
            "ignore:enable_nested_tensor is True",  # of nn.Transformer's own defaults, as PyTorch says it
        ]
    )
