"""Scripted functions: containers that are shared, and annotations that say too little."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple  # noqa: UP035  # as programs write them

import pytest

from tests.oracle import attempt, torch, tt
from tests.outside.alike import same_words

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.*deprecated")


def put(numbers: List[int], table: Dict[str, int]) -> int:  # noqa: UP006  # as programs write them
    numbers.append(3)
    table["c"] = 3
    return len(numbers)


def inner_lists(numbers: List[List[int]]) -> int:  # noqa: UP006  # as programs write them
    numbers[0].append(3)
    return len(numbers[0])


class Pair:
    def __init__(self, a: int, b: int):
        self.a = a
        self.b = b

    def set_both(self, a: int, b: int) -> None:
        self.a, self.b = (a, b)


def of_pair(pair: Pair, a: int) -> int:
    pair.set_both(a, 4)
    return pair.a * 10 + pair.b


def no_type(x: List) -> List:  # noqa: UP006  # as programs write them
    return x


def no_types(x: Dict) -> int:  # noqa: UP006  # as programs write them
    return 1


def no_parts(x: Tuple) -> int:  # noqa: UP006  # as programs write them
    return 1


def either(x: int) -> Optional[int]:  # noqa: UP045
    return None if x > 1 else x


def anything(x: int) -> Any:
    return "out" if x > 1 else x


def test_shared_containers() -> None:
    found = []
    for m in (tt, torch):
        numbers, table, plain = m.jit.script([1, 2]), m.jit.script({"a": 1}), [1]
        nested = m.jit.script([[1], [2]])
        counts = [
            m.jit.script(put)(numbers, table),
            m.jit.script(put)(plain, {}),
            m.jit.script(inner_lists)(nested),
        ]
        first = nested[0]
        found.append((counts, list(numbers), dict(table.items()), plain, list(first)))
    assert found[0] == found[1]


@pytest.mark.parametrize("function", [no_type, no_types, no_parts])
def test_annotations_without_elements(function: Any) -> None:
    ours, theirs = (attempt(lambda m=m: m.jit.script(function))[1] for m in (tt, torch))
    assert isinstance(ours, RuntimeError)
    assert str(ours).split("\n")[0].rstrip(":") == str(theirs).split("\n")[0].rstrip(":")


@pytest.mark.parametrize("function", [either, anything])
def test_ternaries_under_hints(function: Any) -> None:
    same_words(lambda m: [m.jit.script(function)(v) for v in (1, 2)])


def test_objects_that_only_init_describes() -> None:
    same_words(lambda m: m.jit.script(of_pair)(Pair(1, 2), 3))
