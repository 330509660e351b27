"""How many Python functions a call passes; `python -m tests.walks` lists them."""

from __future__ import annotations

import pytest

from tests.walks import WALKS, steps

MOST = {"x[1:3].add_(1)": 24, "second call of a compiled function": 18}


@pytest.mark.parametrize("name", MOST)
def test_ways_are_short(name: str) -> None:
    found = steps(WALKS[name]())
    assert 5 < len(found) <= MOST[name], "\n".join(" ".join(step) for step in found)
