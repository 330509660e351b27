"""Nested containers as a list of leaves and a recipe to build them again."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any


@dataclass(frozen=True)
class TreeSpec:
    """How leaves were nested: a container with its children, or one leaf."""

    build: Callable[[list[Any]], Any] | None = field(compare=False)  # follows from kind and keys
    children: tuple[TreeSpec, ...]
    kind: Any = None
    keys: Any = None

    def __hash__(self) -> int:
        return self.number

    @cached_property
    def number(self) -> int:
        """The hash, which is asked for at every call of a compiled function."""
        return hash((self.children, self.kind, self.keys))

    @property
    def num_leaves(self) -> int:
        """How many leaves there are."""
        return 1 if self.build is None else sum(c.num_leaves for c in self.children)


LEAF = TreeSpec(None, ())


def parts(tree: Any) -> tuple[list[Any], Any, Any] | None:
    """The children of a container, how to build it from new ones, and its keys."""
    kind = type(tree)
    if kind in (dict, OrderedDict):
        keys = list(tree)
        return [tree[k] for k in keys], lambda values: kind(zip(keys, values)), tuple(keys)
    if kind is defaultdict:
        keys = list(tree)
        return (
            [tree[k] for k in keys],
            lambda values: defaultdict(tree.default_factory, zip(keys, values)),
            tuple(keys),
        )
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return list(tree), lambda values: kind(*values), None
    if kind in (tuple, list):
        return list(tree), kind, None
    return None


def tree_flatten(tree: Any) -> tuple[list[Any], TreeSpec]:
    """(leaves, spec) of nested tuples, lists, dictionaries and named tuples.

    >>> tree_flatten({"a": 1, "b": (2, [3])})[0]
    [1, 2, 3]
    """
    found = parts(tree)
    if found is None:
        return [tree], LEAF
    children, build, keys = found
    leaves: list[Any] = []
    specs = []
    for child in children:
        more, spec = tree_flatten(child)
        leaves += more
        specs.append(spec)
    return leaves, TreeSpec(build, tuple(specs), type(tree), keys)


def tree_unflatten(leaves: Iterable[Any], spec: TreeSpec) -> Any:
    """The container that `tree_flatten` took apart, with other leaves."""
    leaves = list(leaves)
    if len(leaves) != spec.num_leaves:
        raise ValueError(
            f"tree_unflatten(leaves, treespec): `leaves` has length {len(leaves)} but "
            f"the spec refers to a pytree that holds {spec.num_leaves} items "
            f"({spec})."
        )
    stream = iter(leaves)

    def grow(s: TreeSpec) -> Any:
        return next(stream) if s.build is None else s.build([grow(c) for c in s.children])

    return grow(spec)


def tree_map(function: Callable[..., Any], tree: Any, *rest: Any) -> Any:
    """The same container with function(leaf) for every leaf (and those of `rest` beside it)."""
    leaves, spec = tree_flatten(tree)
    others = [tree_flatten(r)[0] for r in rest]
    return tree_unflatten([function(*vs) for vs in zip(leaves, *others)], spec)


def tree_leaves(tree: object) -> list[Any]:
    """The leaves of a container."""
    return tree_flatten(tree)[0]


def broadcast_to(prefix: Any, tree: Any) -> list[Any] | None:
    """A value for every leaf of `tree`, from a tree that may stop higher up; None if it cannot."""
    found, own = parts(tree), parts(prefix)
    if own is None:
        return [prefix] * len(tree_leaves(tree))
    if (
        found is None
        or type(tree) is not type(prefix)
        or len(found[0]) != len(own[0])
        or found[2] != own[2]
    ):
        return None
    values: list[Any] = []
    for p, t in zip(own[0], found[0]):
        more = broadcast_to(p, t)
        if more is None:
            return None
        values += more
    return values
