"""Nested containers and plain symbolic functions, beside PyTorch's."""

from __future__ import annotations

import importlib
from collections import OrderedDict, defaultdict, namedtuple
from collections.abc import Callable
from typing import Any

import pytest

from tests.oracle import attempt, error_difference, torch, tt

Pair = namedtuple("Pair", "first second")
TREES = [
    1, [], (), {}, [1, (2, {"a": 3})], {"a": [1, 2], "b": (3,)}, Pair(1, [2, 3]), None,
    OrderedDict(b=1, a=(2, 3)), [[[[1]], 2], "text", 2.5], {"x": {"y": {"z": [1, 2]}}},
    defaultdict(list, {"k": [1]}),
]  # fmt: skip
CALLS: list[Callable[[Any, Any], Any]] = [
    lambda p, t: p.tree_flatten(t)[0],
    lambda p, t: p.tree_leaves(t, is_leaf=lambda x: isinstance(x, tuple)),
    lambda p, t: p.tree_unflatten(p.tree_leaves(t), p.tree_structure(t)),
    lambda p, t: p.tree_map(lambda x: (x, x), t),
    lambda p, t: p.tree_map(lambda x, y: [x, y], t, t),
    lambda p, t: p.tree_map(str, t, is_leaf=lambda x: isinstance(x, list)),
    lambda p, t: p.tree_map_only(int, lambda x: x + 1, t),
    lambda p, t: p.tree_map_only((float, str), str, t),
    lambda p, t: p.tree_map_only(lambda x: x == 2, str, t),
    lambda p, t: p.tree_map_(str, t),
    lambda p, t: p.tree_map_only_(int, str, t),
    lambda p, t: p.tree_all(lambda x: isinstance(x, int), t),
    lambda p, t: p.tree_any(lambda x: isinstance(x, int), t),
    lambda p, t: p.tree_all_only(int, lambda x: x > 1, t),
    lambda p, t: p.tree_any_only(int, lambda x: x > 1, t),
    lambda p, t: list(p.tree_iter(t)),
    lambda p, t: p.tree_is_leaf(t),
    lambda p, t: [(p.keystr(k), v) for k, v in p.tree_flatten_with_path(t)[0]],
    lambda p, t: [p.key_get(t, k) for k, _ in p.tree_leaves_with_path(t)],
    lambda p, t: p.tree_map_with_path(lambda k, x: (p.keystr(k), x), t),
    lambda p, t: (lambda s: (s.num_leaves, s.num_nodes, s.num_children, s.is_leaf()))(
        p.tree_structure(t)
    ),
    lambda p, t: p.tree_unflatten([1, 2, 3, 4, 5, 6, 7], p.tree_structure(t)) and None,
]


@pytest.mark.parametrize("at", range(len(CALLS)))
def test_trees(at: int) -> None:
    theirs = importlib.import_module("torch.utils._pytree")
    ours = importlib.import_module(f"{tt.__name__}.utils._pytree")
    for tree in TREES:
        want, refused = attempt(CALLS[at], theirs, tree)
        got, failed = attempt(CALLS[at], ours, tree)
        assert not error_difference(refused, failed, text=False), tree
        assert got == want and type(got) is type(want), tree


def test_recipes_are_printed_alike() -> None:
    theirs = importlib.import_module("torch.utils._pytree")
    ours = importlib.import_module(f"{tt.__name__}.utils._pytree")
    for tree in ([1, (2, [3, 4])], {"a": [1, 2], "b": (3,)}, 1, []):
        assert repr(ours.tree_structure(tree)) == repr(theirs.tree_structure(tree))


def test_registered_classes() -> None:
    class Box:
        def __init__(self, *parts: Any) -> None:
            self.parts = parts

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Box) and self.parts == other.parts

    for package in (torch, tt):
        p = importlib.import_module(f"{package.__name__}.utils._pytree")
        p.register_pytree_node(
            Box,
            lambda b: (list(b.parts), None),
            lambda parts, _: Box(*parts),
            flatten_with_keys_fn=lambda b, p=p: (
                [(p.SequenceKey(i), v) for i, v in enumerate(b.parts)],
                None,
            ),
        )
        assert p.tree_map(lambda x: x + 1, [Box(1, (2,)), 3]) == [Box(2, (3,)), 4]
        assert [p.keystr(k) for k, _ in p.tree_leaves_with_path({"b": Box(1, 2)})] == [
            "['b'][0]",
            "['b'][1]",
        ]
        with pytest.raises(ValueError, match="already registered"):
            p.register_pytree_node(Box, lambda b: ([], None), lambda parts, _: Box())


def test_symbolic_functions_of_plain_numbers() -> None:
    calls: list[Callable[[Any], Any]] = [
        lambda m: m.sym_int(2.7), lambda m: m.sym_int(-2.7), lambda m: m.sym_float(2),
        lambda m: m.sym_max(2, 3.0), lambda m: m.sym_max(4, 3.0), lambda m: m.sym_min(2, 3.0),
        lambda m: m.sym_min(2, 3), lambda m: m.sym_not(True), lambda m: m.sym_sqrt(4),
        lambda m: m.sym_sum([1, 2]), lambda m: m.sym_ite(True, 1, 2), lambda m: m.sym_not(False),
        lambda m: isinstance(3, m.SymInt),
    ]  # fmt: skip
    for call in calls:
        want, got = call(torch), call(tt)
        assert got == want and type(got) is type(want)


def test_sizes_are_containers() -> None:
    for t in (torch, tt):
        p = importlib.import_module(f"{t.__name__}.utils._pytree")
        tree = {"a": t.Size([1, 2])}
        assert p.tree_leaves(tree) == [1, 2] and p.tree_map(lambda x: x + 1, tree) == {"a": (2, 3)}
        assert p.tree_map(str, tree) == {"a": ("1", "2")}
        assert [p.keystr(k) for k, _ in p.tree_leaves_with_path(tree)] == ["['a'][0]", "['a'][1]"]


@pytest.mark.parametrize("kind", ["namedtuple", "structseq"])
def test_what_is_a_named_tuple(kind: str) -> None:
    class Below(Pair):
        pass

    def said(t: Any) -> Any:
        p = importlib.import_module(f"{t.__name__}.utils._pytree")
        largest = t.ones(2).max(0)
        asked = [Pair, Pair(1, 2), Below, type(largest), largest, 1, (1,), int, t.Size([1])]
        return [
            getattr(p, f"is_{kind}{end}")(x) for end in ("", "_class", "_instance") for x in asked
        ]

    assert said(tt) == said(torch)
