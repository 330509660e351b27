"""What tests of several threads share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from toytorch.backends.loops import parallel, set_thread_count


@pytest.fixture(params=[1, 2])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    set_thread_count(request.param)
    yield request.param
    parallel._count = 0
    parallel.note_threads()
