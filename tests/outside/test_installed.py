"""What two programs print is compared as it should be; the libraries themselves need the index."""

from __future__ import annotations

import ast

import pytest

from tests.outside import installed


@pytest.mark.parametrize(
    ("want", "got", "alike"),
    [
        ("loss 0.5000", "loss 0.5001", True),
        ("loss 0.5", "loss 0.6", False),
        ("tensor([1., 2.])", "tensor([1., 2.], grad_fn=<A>)", False),
        ("nan", "0.1", False),
        ("Linear(2, 2)", "Linear(2, 2)", True),
        ("1e-9 left", "2e-9 left", True),
    ],
)
def test_lines(want: str, got: str, alike: bool) -> None:
    assert installed.same(want, got) is alike


def test_a_line_more_is_a_difference() -> None:
    assert installed.differences("a\nb", "a\nb") == []
    assert any("b" in line for line in installed.differences("a", "a\nb"))


def test_programs_are_programs() -> None:
    """Each says what it does, imports PyTorch by its name, and prints something."""
    programs = sorted((installed.HERE / "libraries").glob("use_*.py"))
    assert len(programs) >= 33
    for path in programs:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assert ast.get_docstring(tree) and "import torch\n" in path.read_text(encoding="utf-8")
        assert "print(" in path.read_text(encoding="utf-8")
