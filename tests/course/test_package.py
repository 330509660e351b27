"""The learner's package mytorch: it grows with green checks, references stand in, milestones run on it."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from course import package
from course.contents import ROOT
from course.judge import check
from course.milestones import PROGRAMS, milestone

NUMBERS = sorted(int(path.name[:2]) for path in PROGRAMS.glob("[0-9]*.py"))


@pytest.fixture(autouse=True)
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    """A learner's folder, and a notebook session whose cells are ``In``."""
    monkeypatch.setenv("TOYTORCH_PROGRESS", str(tmp_path / "progress.json"))
    shell = SimpleNamespace(user_ns={"In": [""]})
    monkeypatch.setattr("IPython.get_ipython", lambda: shell)
    loaded = {name: module for name, module in sys.modules.items() if _own(name)}
    _forget()
    yield shell
    _forget()
    sys.modules.update(loaded)  # exercises that were read before stand on these


def _own(name: str) -> bool:
    return name.split(".")[0] == package.NAME


def _forget() -> None:
    for name in [name for name in sys.modules if _own(name)]:
        del sys.modules[name]


def solve(shell: SimpleNamespace, name: str) -> None:
    """Write an exercise's reference into a cell, with the imports it needs, and check it."""
    found = package.exercise_of(name)
    shell.user_ns["In"] += [
        package.reference(name),
        f'check("{found.name}", {found.function})',
    ]
    assert check(found.name, found.answer.value).state == "green"


def test_references_stand_in_at_first() -> None:
    tensor = importlib.import_module("mytorch.tensor")
    assert tensor.Tensor(2.0, requires_grad=True).requires_grad
    assert "tensor" in package.stand_ins()
    assert package.written() == []


def test_a_green_answer_becomes_a_file(session: SimpleNamespace) -> None:
    solve(session, "broadcast")
    path = package.folder() / "broadcast.py"
    assert path.read_text().startswith('"""My own broadcast: written in chapter 04')
    assert package.written() == ["broadcast"]
    module = importlib.import_module("mytorch.broadcast")
    assert Path(str(module.__file__)) == path
    assert "broadcast" not in package.stand_ins()
    names = importlib.import_module("mytorch")
    assert names.sum_to is module.sum_to
    with pytest.raises(AttributeError, match="mytorch has no Nonsense"):
        names.Nonsense  # noqa: B018


def test_a_file_imports_what_the_files_before_it_define(session: SimpleNamespace) -> None:
    for name in ("embedding", "norm", "attention", "gpt"):
        solve(session, name)
    text = (package.folder() / "gpt.py").read_text()
    assert "from mytorch.attention import Attention" in text
    assert text.count("class ") == 1


def test_the_folder_is_a_package_without_the_course(session: SimpleNamespace) -> None:
    for name in package.FILES:
        solve(session, name)
    line = "import mytorch; t = mytorch.Tensor(3.0, requires_grad=True); (t * t).backward()"
    done = subprocess.run(
        [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, '.'); {line}; print(t.grad)"],
        cwd=package.home(),
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == "6.0", done.stderr


def test_a_lecturers_own_files_take_no_part_in_marking(
    session: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    solve(session, "broadcast")
    monkeypatch.setenv("TOYTORCH_PACKAGE", "references")
    _forget()
    importlib.import_module("mytorch.broadcast")
    assert "broadcast" in package.stand_ins()


@pytest.mark.parametrize("name", package.FILES)
def test_references_are_files_on_their_own(name: str) -> None:
    """Their text needs nothing but NumPy, the standard library and the package."""
    text = package.reference(name)
    compile(text, name, "exec")
    assert "course" not in text.split('"""', 2)[2]
    assert "toytorch" not in text.split('"""', 2)[2]


@pytest.mark.parametrize("name", ["module", "conv", "attention", "gpt"])
def test_any_file_can_be_the_first_that_is_imported(name: str) -> None:
    """Reading its exercise reads the chapter, whose other exercises import this file as well."""
    function = package.exercise_of(name).function
    lines = [
        f"import course, sys; from mytorch.{name} import {function}",
        "from course import registry; registry.all_exercises()",
        f"assert sys.modules['mytorch.{name}'].{function} is {function}",
        f"from course import package; assert '{name}' in package.stand_ins()",
    ]
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("number", NUMBERS)
def test_milestones_are_reached_with_zero_stand_ins(number: int) -> None:
    found = milestone(number, solved=True)
    assert found.passed, found.said
    assert found.stand_ins == []
    assert "zero stand-ins" in repr(found)
    assert found.seconds < 120


def test_a_milestone_says_whose_files_it_ran_on(session: SimpleNamespace) -> None:
    solve(session, "broadcast")
    found = milestone(4)
    assert found.passed, found.said
    assert found.files == {"broadcast": "yours", "tensor": "reference"}
    assert "with 1 stand-in (○)" in repr(found)
    assert "○ tensor.py" in repr(found)
    assert "stands in for yours" in found._repr_html_()


def test_a_wrong_package_does_not_reach_it(session: SimpleNamespace) -> None:
    """Nothing of ours stands in for a file that is there, right or wrong; toytorch is out of reach."""
    solve(session, "broadcast")
    wrong = package.reference("tensor").replace("(g * b, g * a)", "(g * a, g * b)")
    (package.folder() / "tensor.py").write_text(wrong)
    assert not milestone(4).passed
    (package.folder() / "tensor.py").write_text("from toytorch import Tensor\n")
    found = milestone(4)
    assert not found.passed
    assert "toytorch" in found.said
    assert "Not reached" in repr(found)


def test_a_chapter_without_a_milestone_is_refused() -> None:
    with pytest.raises(LookupError, match="chapter 01 has no milestone; these have one: 04"):
        milestone(1)


def test_the_command(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "course", "milestone", "04", "--solved"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "zero stand-ins" in done.stdout
