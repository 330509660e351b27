"""Compiled code for the smallest calls, where programs that nobody debugged draw them.

What is compiled is for many elements, and most tests have few: an empty dimension, a kernel of one
place, `x.lerp_(x, w)` and a condition without dimensions were never seen by it. Here the numbers from
which it takes over are one.
"""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from tests.outside.alike import same
from tests.outside.search import look
from toytorch.loops.runtime import jit

# Where a module says from how many elements it asks for a kernel.
FROM = {
    "core.memory_order": "MANY",
    "jit.fuser.group": "WORTH",
    "jit.fuser.kernels": "LARGE",
    "kernels.attention": "FEW",
    "kernels.dispatch_stub": "LARGE",
    "kernels.few": "FEW",
    "kernels.fourier": "MANY",
    "kernels.matmul": "LEAST",
    "kernels.pool": "FEW",
    "kernels.softmax": "FEW",
    "kernels.top": "FEW",
    "loops.formula": "LARGE",
    "loops.runtime.jit": "SMALLEST",
    "ops.indexing.along_dim": "FEW",
    "ops.indexing.subscript": "LARGE",
    "ops.nn.embedding": "FEW",
    "ops.reductions.extremes": "MANY",
    "ops.reductions.searching": "FEW",
    "ops.reductions.sort": "FEW",
    "ops.shaping.copies": "MANY",
}


@pytest.fixture(autouse=True)
def for_the_smallest(monkeypatch: pytest.MonkeyPatch) -> None:
    if not jit.works():
        pytest.skip("there is no compiler")
    monkeypatch.setattr(jit, "pays", lambda count: True)
    for name, number in FROM.items():
        module = importlib.import_module(f"toytorch.{name}")
        assert isinstance(getattr(module, number), int)
        monkeypatch.setattr(module, number, 1)


@pytest.mark.parametrize("first", range(2_800_400, 2_800_500, 20))
def test_random_programs(first: int) -> None:
    found_broken = (2_800_160, 2_800_294, 2_800_397)
    for seed in (*range(first, first + 20), *found_broken):
        found = look(seed)
        assert found is None, f"{found.program}\n{found.difference}"


def test_a_condition_without_dimensions() -> None:
    def gradients(m: Any) -> Any:
        a, b = m.ones(3, 1, 3, requires_grad=True), m.ones(3, 3, 1, requires_grad=True)
        m.where(m.tensor(True), a, b).sum().backward()
        return a.grad.tolist(), b.grad.tolist()

    same(gradients)
