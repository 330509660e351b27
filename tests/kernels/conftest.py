"""What tests of several threads share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from toytorch.loops import set_thread_count
from toytorch.loops.runtime import threads as parallel


@pytest.fixture(params=[1, 2])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    set_thread_count(request.param)
    yield request.param
    parallel._count = 0
    parallel.note_threads()
