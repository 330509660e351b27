"""Every program of the corpus: in Python, as a graph, compiled, and compiled from its own code."""

from __future__ import annotations

from typing import Any

import pytest

import toytorch as torch
from tests.jit.script.corpus import CASES, carried
from tests.jit.script.run import again, canonical, outcome, same
from toytorch.jit import interpreter


def test_size() -> None:
    assert len(CASES) >= 150


@pytest.mark.parametrize("name", sorted(CASES))
def test_program(name: str) -> None:
    case = CASES[name]
    scripted = torch.jit.script(case.function)
    space = case.function.__globals__
    reread = again(scripted, space)
    assert canonical(reread.graph) == canonical(scripted.graph), scripted.code
    for call in case.calls:
        wanted = outcome(case.function, carried(call, torch), torch)
        ways = {
            "compiled": scripted,
            "interpreted": _interpreted(scripted),
            "from its code": lambda *args: reread(*scripted.flat(args)),
        }
        for how, f in ways.items():
            got = outcome(f, carried(call, torch), torch)
            assert same(wanted, got), f"{how}{call}: {got} instead of {wanted}\n{scripted.graph}"


def _interpreted(scripted: Any) -> Any:
    def run(*args: Any) -> Any:
        return interpreter.run(scripted.graph, scripted.flat(args))

    return run
