"""Reference pages: one for every op, true to its record, with examples that run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import toytorch
from toytorch.core.op import registry
from toytorch.ops import reference

PUBLIC = sorted(n for n in registry if not n.startswith("_"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: Any) -> Path:
    path = Path(tmp_path_factory.mktemp("reference"))
    reference.write(path)
    return path


def test_every_op_has_a_page(folder: Path) -> None:
    index = (folder / "README.md").read_text()
    for name in [*PUBLIC, *reference.PUBLIC]:
        assert f"({name}.md)" in index
    for link in re.findall(r"\((.*?\.md)\)", index):
        text = (folder / link).read_text()
        assert text.startswith(f"# {link[:-3]}\n")
        assert len(text.splitlines()[2]) > 2, f"{link}: says nothing"
        assert text.count("```") % 2 == 0


@pytest.mark.parametrize("name", PUBLIC)
def test_page_says_what_the_record_says(name: str) -> None:
    op, text = registry[name], reference.page(registry[name])
    assert str(op.schema) in text
    assert op.doc in text
    assert not op.formula or str(op.formula) in text
    for argument in op.derivatives:
        assert f"d {argument} = " in text
    for formula in op.formulas.values():
        assert str(formula) in text


@pytest.mark.filterwarnings("ignore:Casting complex")  # PyTorch says so, too, as a UserWarning
def test_examples_give_what_they_show() -> None:
    """Re-run every example; most ops have one."""
    shown = 0
    for name in PUBLIC:
        text = reference.example(registry[name])
        if not text:
            continue
        call, _, result = text.removeprefix(">>> ").partition("\n")
        if not registry[name].random and "dropout" not in name:
            again = eval(call, {"torch": toytorch})  # the package's own text
            shown += 1
            assert repr(again) == result, call
    assert shown > 200


def test_help(capsys: Any) -> None:
    help(toytorch.exp)
    text = capsys.readouterr().out
    assert "exp(Tensor self) -> Tensor" in text
    assert "d self = g * result" in text


def test_derivatives_are_shown_as_formulas() -> None:
    assert reference.formula_of(registry["sin"], "self") == "g * cos(self)"
    assert "mm(g, weight)" in reference.page(registry["linear"])
