"""Random programs: eager, traced and scripted do the same, gradients too, after every pass.

Script reads the text of a program, where a trace only watches it run: a write, a view and a key
must mean the same in both. TOYTORCH_PROGRAMS=3000 runs as many. Kernels run as blocked NumPy.
"""

from __future__ import annotations

import itertools
import linecache
import os
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

import toytorch as torch
from tests.jit.pass_check import PASSES, everything
from tests.jit.programs import Program, interpreted, outcome, program, same, trace
from toytorch.jit import interpreter
from toytorch.jit.check import check
from toytorch.jit.script.errors import UnsupportedNodeError
from toytorch.loops.runtime import jit

COUNT = int(os.environ.get("TOYTORCH_PROGRAMS", "200"))
TOGETHER = 50
SHARE = 0.15  # of 50 may be refused (84 of 2,435 are): a starred list has no length in a graph
NUMBERS = itertools.count()


def script(p: Program) -> Any:
    """A program as `torch.jit.script` sees it in a file."""
    name = f"<scripted program {next(NUMBERS)}>"
    linecache.cache[name] = (len(p.text), None, p.text.splitlines(True), name)
    space: dict[str, Any] = {"torch": torch, "F": torch.nn.functional}
    exec(compile(p.text, name, "exec"), space)
    try:
        return torch.jit.script(space["f"])
    finally:
        del linecache.cache[name]


def ways(p: Program, scripted: Any) -> list[tuple[str, Callable[..., Any]]]:
    """How the program is run, and by what."""

    def after(apply: Any) -> Callable[..., Any]:
        before = str(scripted.graph)
        made = check(apply(scripted.graph), apply.__name__)
        assert str(scripted.graph) == before, f"{apply.__name__} changed its input"
        return lambda *args: interpreter.run(made, args)

    traced = trace(p)
    return [
        ("graph", interpreted(scripted)),
        ("plan", scripted),
        ("again", scripted),
        ("traced", interpreted(traced)),
        *((f"after {f.__name__}", after(f)) for f in [*PASSES, everything]),
    ]


def compare(seed: int, counts: Counter[str]) -> str:
    """Where a scripted program differs; nothing if nowhere. What happened is counted."""
    p = program(seed)
    if p is None:
        return ""
    try:
        wanted = outcome(p.function, p.leaves)
    except (RuntimeError, NotImplementedError, UnboundLocalError, NameError):
        return ""  # a program that does not run cannot be compared
    counts["programs"] += 1
    try:
        scripted = script(p)
    except UnsupportedNodeError as error:
        counts[error.plain] += 1
        return ""
    counts["scripted"] += 1
    for how, f in ways(p, scripted):
        if bad := same(wanted, outcome(f, p.leaves)):
            return f"seed {seed}, {how}: {bad[:300]}\n{p.text}\n{scripted.graph}"
    return ""


@pytest.mark.parametrize("first", range(0, COUNT, TOGETHER))
def test_scripted_programs(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit, "works", lambda: False)
    monkeypatch.setattr(jit, "pays", lambda count: False)
    counts: Counter[str] = Counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [compare(seed, counts) for seed in range(first, min(first + TOGETHER, COUNT))]
    print(dict(counts))
    assert not any(found), "\n\n".join(filter(None, found))
    assert counts["scripted"] >= (1 - SHARE) * counts["programs"], counts
