"""What tests of several threads share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from toytorch.loops import processor, set_thread_count
from toytorch.loops.runtime import threads as parallel


@pytest.fixture(params=[1, 2])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    set_thread_count(request.param)
    yield request.param
    parallel._count = 0
    parallel.note_threads()


@pytest.fixture
def wide_registers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels are written for 32 registers of 512 bits; LLVM makes narrower vectors of them."""
    wide = processor.this()._replace(vector=64, registers=32)
    monkeypatch.setattr(processor, "this", lambda: wide)
