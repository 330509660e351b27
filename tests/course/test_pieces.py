"""Catching up: one's own pieces come back in a later chapter, the framework's stand in."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from course import pieces, registry
from course.judge import check
from course.pieces import catch_up

FIRST, SECOND, THIRD = registry.of_chapter(1)[:3]


@pytest.fixture(autouse=True)
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    """A learner's folder, and a notebook session whose cells are ``In``."""
    monkeypatch.setenv("TOYTORCH_PROGRESS", str(tmp_path / "progress.json"))
    shell = SimpleNamespace(user_ns={"In": [""]})
    monkeypatch.setattr("IPython.get_ipython", lambda: shell)
    yield shell
    for found in registry.all_exercises().values():
        found.keep(None)
        found.uninstall()


def solve(shell: SimpleNamespace, number: int = 0) -> object:
    """Write the answer to an exercise of chapter 1 in a cell, and check it in the next."""
    found = registry.of_chapter(1)[number]
    shell.user_ns["In"] += [
        "import math\nimport toytorch as torch",
        found.answer.source,
        f'check("{found.name}", {found.function})',
    ]
    answer = found.answer.value
    assert check(found.name, answer).state == "green"
    return answer


def test_without_pieces_the_frameworks_stand_in() -> None:
    shown = catch_up(3)
    assert set(shown.states.values()) == {"framework"}
    assert "0 of your own answers" in repr(shown)
    assert not [name for name in shown.states if registry.exercise(name).chapter >= 3]


def test_a_green_piece_is_kept_and_comes_back(session: SimpleNamespace) -> None:
    solve(session)
    solve(session, 3)
    for found in registry.of_chapter(1):
        found.keep(None)  # a new session
    shown = catch_up(2)
    assert [shown.states[found.name] for found in registry.of_chapter(1)[:4]] == [
        *("yours", "framework", "framework", "yours")
    ]
    assert "2 of your own answers" in repr(shown)
    mine = registry.use(FIRST.name)
    assert mine is not FIRST.answer.value
    assert Path(mine.__code__.co_filename).parent == pieces.folder()
    assert "✔" in shown._repr_html_()


def test_a_red_piece_is_not_kept(session: SimpleNamespace) -> None:
    session.user_ns["In"] += [FIRST.mutants[0].source]
    assert check(FIRST.name, FIRST.mutants[0].value).state == "red"
    assert not pieces.folder().exists()


def test_a_piece_that_no_longer_passes_or_reads_is_said(session: SimpleNamespace) -> None:
    pieces.folder().mkdir()
    (pieces.folder() / f"{FIRST.name}.py").write_text(FIRST.mutants[0].source)
    (pieces.folder() / f"{SECOND.name}.py").write_text("def (")
    shown = catch_up()
    assert shown.states[FIRST.name] == "changed"
    assert shown.states[SECOND.name] == "framework"
    assert "1 of yours no longer" in repr(shown)
    assert registry.use(FIRST.name) is FIRST.answer.value


def test_installing_plugs_pieces_in(session: SimpleNamespace) -> None:
    import toytorch as torch

    found = registry.exercise("autograd.order")
    pieces.folder().mkdir()
    source = found.answer.source.replace("done, seen =", "calls.append(1)\n    done, seen =")
    (pieces.folder() / "autograd.order.py").write_text("calls = []\n\n\n" + source)
    assert catch_up(5, install=True).states[found.name] == "yours"
    calls = found.piece().__globals__["calls"]
    calls.clear()
    x = torch.tensor(0.5, requires_grad=True)
    x.tanh().backward()
    assert calls
    found.uninstall()
    calls.clear()
    x.tanh().backward()
    assert not calls


@pytest.mark.slow
def test_all_pieces_at_once_pass_again_and_train(session: SimpleNamespace) -> None:
    """With every piece plugged in, checks run on the framework alone and networks learn as before."""
    import toytorch as torch

    earlier = [one for one in registry.all_exercises().values() if one.chapter < 8]
    pieces.folder().mkdir()
    for found in earlier:
        module = Path(str(sys.modules[found.answer.module].__file__)).read_text(encoding="utf-8")
        imports = [n for n in ast.parse(module).body if isinstance(n, ast.Import | ast.ImportFrom)]
        lines = [ast.unparse(n) for n in imports if "course" not in ast.unparse(n)]
        text = "\n".join([*lines, found.answer.source])
        (pieces.folder() / f"{found.name}.py").write_text(text, encoding="utf-8")
    losses = []
    for install in (False, True, True):
        states = catch_up(8, install=install).states
        assert {name for name, state in states.items() if state != "yours"} == set()
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(5):
            optimizer.zero_grad()
            a, b = net(torch.randn(3, 4)).unbind(1)  # a node with two results
            loss = (a.view(3, 1).expand(3, 2).sigmoid() * b.reshape(3, 1)).square().mean()
            loss.backward()
            optimizer.step()
        losses.append(loss.item())
    assert losses[1] == pytest.approx(losses[0], rel=1e-5)


def test_a_folder_that_cannot_be_written_costs_the_piece_only(
    session: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(pieces, "write_atomically", refuse)
    solve(session)
    assert catch_up().states[FIRST.name] == "framework"
