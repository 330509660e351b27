"""The programs of `programs.py` compute the same losses as with PyTorch, step after step."""

from __future__ import annotations

import pytest

import toytorch as tt
from tests.benchmarks.programs import PROGRAMS

STEPS = 4


@pytest.mark.parametrize("name", PROGRAMS)
def test_same_losses(name: str) -> None:
    torch = pytest.importorskip("torch")
    losses = []
    for m in (tt, torch):
        m.manual_seed(1)
        step = PROGRAMS[name](m)
        losses.append([step().item() for _ in range(STEPS)])
    assert losses[0] == pytest.approx(losses[1], rel=1e-4, abs=1e-6)
