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

    @property
    def num_nodes(self) -> int:
        """How many containers and leaves there are."""
        return 1 + sum(c.num_nodes for c in self.children)

    @property
    def num_children(self) -> int:
        """How many parts the outermost container has."""
        return len(self.children)

    @property
    def type(self) -> Any:
        """The class of the container, None for a leaf."""
        return self.kind

    @property
    def context(self) -> Any:
        """The keys of a dictionary, or what the class was registered to keep."""
        return list(self.keys) if isinstance(self.keys, tuple) else self.keys

    def is_leaf(self) -> bool:
        """Whether it is one leaf."""
        return self.build is None

    def __repr__(self) -> str:
        return self.described(0)

    def described(self, indent: int) -> str:
        """The text of it, with all children but the first on lines of their own."""
        if self.build is None:
            return "*"
        indent += 2
        children = f",\n{' ' * indent}".join(c.described(indent) for c in self.children)
        return f"TreeSpec({self.kind.__name__}, {self.context}, [{children}])"


LEAF = TreeSpec(None, ())
REGISTERED: dict[type, tuple[Callable[..., Any], Callable[..., Any]]] = {}  # flatten, unflatten


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
    if kind in REGISTERED:
        flatten, unflatten = REGISTERED[kind]
        children, context = flatten(tree)
        return list(children), lambda values: unflatten(values, context), context
    return None


def tree_flatten(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> tuple[list[Any], TreeSpec]:
    """(leaves, spec) of nested tuples, lists, dictionaries, named tuples and registered classes.

    What `is_leaf` says yes to is not taken apart.

    >>> tree_flatten({"a": 1, "b": (2, [3])})[0]
    [1, 2, 3]
    """
    found = None if is_leaf is not None and is_leaf(tree) else parts(tree)
    if found is None:
        return [tree], LEAF
    children, build, keys = found
    leaves: list[Any] = []
    specs = []
    for child in children:
        more, spec = tree_flatten(child, is_leaf)
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


def tree_map(
    func: Callable[..., Any],
    tree: Any,
    *rests: Any,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:
    """The same container with func(leaf) for every leaf (and those of `rests` beside it)."""
    leaves, spec = tree_flatten(tree, is_leaf)
    others = [tree_flatten(r, is_leaf)[0] for r in rests]
    return tree_unflatten([func(*vs) for vs in zip(leaves, *others)], spec)


def tree_leaves(tree: object, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """The leaves of a container."""
    return tree_flatten(tree, is_leaf)[0]


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
