"""Lists that hold themselves are refused, and lists that are met twice are not."""

from __future__ import annotations

from typing import Any

import pytest

import toytorch as tt


def within_itself() -> list[Any]:
    made: list[Any] = [0]
    made.append(made)
    return made


@pytest.mark.parametrize(
    "data", [within_itself(), [[1, 2], within_itself()]], ids=["alone", "inside"]
)
@pytest.mark.parametrize("function", [tt.tensor, tt.as_tensor])
def test_a_list_within_itself(function: Any, data: Any) -> None:
    with pytest.raises(TypeError, match="self-referential lists are incompatible"):
        function(data)


def test_lists_within_each_other() -> None:
    one: list[Any] = [1.0]
    two = [2.0, one]
    one.append(two)
    with pytest.raises((TypeError, ValueError)):
        tt.tensor(one)


def test_a_list_met_twice() -> None:
    row = [1, 2.5]
    assert tt.tensor([[row, row], [row, row]]).tolist() == [[row, row], [row, row]]
