"""The injection point by which a course exchanges pieces of every module."""

from __future__ import annotations

from typing import Any

import pytest

from toytorch import nn
from toytorch.nn.modules.registration import using


def test_pieces_are_used_and_given_back() -> None:
    seen: list[str] = []
    own = nn.Module.__setattr__.__wrapped__  # type: ignore[attr-defined]  # without stand-ins

    def noting(self: Any, name: str, value: Any) -> None:
        seen.append(name)
        own(self, name, value)

    with using(__setattr__=noting):
        nn.Linear(2, 2)
    assert {"weight", "in_features", "out_features"} <= set(seen)
    seen.clear()
    nn.Linear(2, 2)
    assert not seen
    with pytest.raises(ZeroDivisionError), using(named_parameters=None):
        1 / 0  # noqa: B018
    assert len(list(nn.Linear(2, 2).parameters())) == 2


def test_other_pieces_are_refused() -> None:
    with pytest.raises(TypeError, match="no piece 'forward'"), using(forward=None):
        pass
