"""Random programs: eager, traced and interpreted, traced and compiled do the same.

TOYTORCH_PROGRAMS=3000 runs as many; kernels run as blocked NumPy here, but for a few that are
compiled (a kernel takes longer to compile than a hundred programs to run).
"""

from __future__ import annotations

import os

import pytest

from tests.jit.programs import interpreted, outcome, program, same, trace
from toytorch.loops.runtime import jit

COUNT = int(os.environ.get("TOYTORCH_PROGRAMS", "300"))
TOGETHER = 50


def disagreements(seeds: range) -> list[str]:
    found = []
    for seed in seeds:
        p = program(seed)
        if p is None:
            continue
        try:
            wanted = outcome(p.function, p.leaves)
        except (RuntimeError, NotImplementedError, UnboundLocalError, NameError):
            continue  # a program that does not run cannot be compared
        traced = trace(p)
        for how, f in (("graph", interpreted(traced)), ("plan", traced), ("again", traced)):
            bad = same(wanted, outcome(f, p.leaves))
            if bad:
                found.append(f"seed {seed}, {how}: {bad[:300]}\n{p.text}")
                break
    return found


@pytest.mark.parametrize("first", range(0, COUNT, TOGETHER))
def test_traced_programs(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit, "works", lambda: False)
    monkeypatch.setattr(jit, "pays", lambda count: False)
    found = disagreements(range(first, min(first + TOGETHER, COUNT)))
    assert not found, "\n\n".join(found)


def test_compiled_programs() -> None:
    found = disagreements(range(20))
    assert not found, "\n\n".join(found)
