"""Collation and conversion of nested examples, by both."""

from __future__ import annotations

from collections import OrderedDict, UserDict, deque, namedtuple
from typing import Any

import numpy as np
import pytest

from tests.oracle import ORACLE, SUBJECT, Side, attempt, told

Point = namedtuple("Point", "x y")
BATCHES: dict[str, list[Any]] = {
    "ordered": [OrderedDict(a=1), OrderedDict(a=2)], "user dicts": [UserDict(a=1), UserDict(a=2)],
    "named tuples": [Point(1, 2.0), Point(3, 4.0)], "tuples": [(1, 2), (3, 4)],
    "lists": [[1, 2], [3, 4]], "deques": [deque([1, 2]), deque([3, 4])],
    "ranges": [range(2), range(2)], "truths": [True, False], "texts": ["a", "b"], "none": [None, 1],
    "scalars": [np.float32(1), np.float32(2)], "arrays": [np.ones(2), np.zeros(2)],
    "texts of NumPy": [np.array(["a"]), np.array(["b"])], "uneven": [[1], [1, 2]],
    "objects": [object()], "deep": [{"a": [(1, "x")]}, {"a": [(2, "y")]}],
}  # fmt: skip


def shown(side: Side, function: Any, *args: Any, **more: Any) -> str:
    """A result with the types of all that it holds, or the error."""
    made, error = attempt(function, *args, **more)
    return told(error) if error else f"{type(made).__name__} {made!r}"


@pytest.mark.parametrize("name", BATCHES)
def test_collate(name: str) -> None:
    first, second = (shown(s, s.root.utils.data.default_collate, BATCHES[name])
                     for s in (ORACLE, SUBJECT))  # fmt: skip
    assert second == first


@pytest.mark.parametrize("name", BATCHES)
def test_convert(name: str) -> None:
    data = BATCHES[name]
    if name == "objects":
        data = [1]
    first, second = (shown(s, s.root.utils.data.default_convert, data) for s in (ORACLE, SUBJECT))
    assert second == first


def test_functions_for_types_of_ones_own() -> None:
    """`collate_fn_map`, and its default, which programs extend."""
    for side in (ORACLE, SUBJECT):
        parts = side.root.utils.data._utils.collate

        def total(batch: Any, *, collate_fn_map: Any = None) -> Any:
            return sum(batch)

        assert parts.collate([(1, 2), (3, 4)], collate_fn_map={int: total}) == [4, 6]
        parts.default_collate_fn_map[Point] = lambda batch, *, collate_fn_map=None: len(batch)
        try:
            assert side.root.utils.data.default_collate([Point(1, 2)] * 3) == 3
        finally:
            del parts.default_collate_fn_map[Point]


def test_datasets_side_by_side_fetch_several_at_once() -> None:
    class Several(list):  # type: ignore[type-arg]  # a dataset that can fetch several
        def __getitems__(self, indices: list[int]) -> list[Any]:
            return [self[i] for i in indices[: self[0]]]

    for side in (ORACLE, SUBJECT):
        stacked = side.root.utils.data.StackDataset
        assert stacked([1, 2, 3], [4, 5, 6]).__getitems__([0, 2]) == [(1, 4), (3, 6)]
        assert stacked(x=Several([2, 5, 7])).__getitems__([1, 2]) == [{"x": 5}, {"x": 7}]
        with pytest.raises(ValueError, match="size mismatch"):
            stacked(Several([1, 2, 3])).__getitems__([0, 2])
        loader = side.root.utils.data.DataLoader
        assert loader[int]([1], batch_size=None)._auto_collation is False
