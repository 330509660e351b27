"""Nested containers as a list of leaves and a recipe to build them again."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from toytorch.facts.size import Size

Keyed = tuple[list[tuple[Any, Any]], Any]


@dataclass(frozen=True)
class NodeDef:
    """How containers of a class are taken apart, into (children, context), and built again."""

    type: type
    flatten_fn: Callable[[Any], tuple[list[Any], Any]]
    unflatten_fn: Callable[[Iterable[Any], Any], Any]
    flatten_with_keys_fn: Callable[[Any], Keyed] | None = None


@dataclass(frozen=True)
class TreeSpec:
    """How leaves were nested: a class of containers with its context and children, or one leaf.

    The context is what the class needs beside its children: the keys of a dictionary, the class of
    a named tuple. Of a leaf `type` is None.
    """

    type: Any
    context: Any
    children_specs: Sequence[TreeSpec]

    def __hash__(self) -> int:
        return self.number

    @cached_property
    def number(self) -> int:
        """The hash, which is asked for at every call of a compiled function."""
        return hash((self.type, repr(self.context), tuple(self.children_specs)))

    @property
    def num_leaves(self) -> int:
        """How many leaves there are."""
        return 1 if self.type is None else sum(c.num_leaves for c in self.children_specs)

    @property
    def num_nodes(self) -> int:
        """How many containers and leaves there are."""
        return 1 + sum(c.num_nodes for c in self.children_specs)

    @property
    def num_children(self) -> int:
        """How many parts the outermost container has."""
        return len(self.children_specs)

    def children(self) -> list[TreeSpec]:
        """The recipes of the parts."""
        return list(self.children_specs)

    def child(self, index: int) -> TreeSpec:
        """The recipe of a part."""
        return self.children_specs[index]

    def is_leaf(self) -> bool:
        """Whether it is one leaf."""
        return self.type is None

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """The container with these leaves."""
        return tree_unflatten(leaves, self)

    def __repr__(self) -> str:
        return self.described(0)

    def described(self, indent: int) -> str:
        """The text of it, with all children but the first on lines of their own."""
        if self.type is None:
            return "*"
        indent += 2
        children = f",\n{' ' * indent}".join(c.described(indent) for c in self.children_specs)
        return f"TreeSpec({self.type.__name__}, {self.context}, [{children}])"


LEAF = TreeSpec(None, None, ())
BUILT_IN: dict[
    Any, NodeDef
] = {  # Python's own containers; `namedtuple` stands for all named tuples
    list: NodeDef(list, lambda t: (t, None), lambda values, _: list(values)),
    tuple: NodeDef(tuple, lambda t: (list(t), None), lambda values, _: tuple(values)),
    dict: NodeDef(dict, lambda t: (list(t.values()), list(t)), lambda v, k: dict(zip(k, v))),
    OrderedDict: NodeDef(
        OrderedDict, lambda t: (list(t.values()), list(t)), lambda v, k: OrderedDict(zip(k, v))
    ),
    defaultdict: NodeDef(
        defaultdict,
        lambda t: (list(t.values()), [t.default_factory, list(t)]),
        lambda values, context: defaultdict(context[0], zip(context[1], values)),
    ),
    deque: NodeDef(
        deque, lambda t: (list(t), t.maxlen), lambda values, maxlen: deque(values, maxlen=maxlen)
    ),
    # PyTorch makes a tuple of it; what is compiled has to give back the sizes that it was given.
    Size: NodeDef(Size, lambda t: (list(t), None), lambda values, _: as_sizes(values)),
    namedtuple: NodeDef(tuple, lambda t: (list(t), type(t)), lambda values, kind: kind(*values)),
}


def as_sizes(values: Iterable[Any]) -> tuple[Any, ...]:
    """Sizes; a tuple, if something else was made of one of them."""
    made = tuple(values)
    return Size(made) if all(type(v) is int for v in made) else made


SUPPORTED_NODES = dict(BUILT_IN)  # and classes that programs registered


def node_type(tree: object) -> Any:
    """The class under which a container is found; that of a leaf is found nowhere."""
    kind = type(tree)
    if kind not in SUPPORTED_NODES and isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return namedtuple
    return kind


def parts(tree: Any) -> tuple[list[Any], Any] | None:
    """The children of a container and its context; None for a leaf."""
    node = SUPPORTED_NODES.get(node_type(tree))
    return None if node is None else node.flatten_fn(tree)


def tree_flatten(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> tuple[list[Any], TreeSpec]:
    """(leaves, spec) of nested tuples, lists, dictionaries, named tuples and registered classes.

    What `is_leaf` says yes to is not taken apart.

    >>> tree_flatten({"a": 1, "b": (2, [3])})[0]
    [1, 2, 3]
    """
    kind = node_type(tree)
    node = SUPPORTED_NODES.get(kind)
    if node is None or (is_leaf is not None and is_leaf(tree)):
        return [tree], LEAF
    children, context = node.flatten_fn(tree)
    leaves: list[Any] = []
    specs = []
    for child in children:
        more, spec = tree_flatten(child, is_leaf)
        leaves += more
        specs.append(spec)
    return leaves, TreeSpec(kind, context, tuple(specs))


def tree_unflatten(leaves: Iterable[Any], spec: TreeSpec) -> Any:
    """The container that `tree_flatten` took apart, with other leaves."""
    leaves = list(leaves)
    if len(leaves) != spec.num_leaves:
        raise ValueError(
            f"tree_unflatten(leaves, treespec): `leaves` has length {len(leaves)} but the spec "
            f"refers to a pytree that holds {spec.num_leaves} items ({spec})."
        )
    stream = iter(leaves)

    def grow(s: TreeSpec) -> Any:
        if s.type is None:
            return next(stream)
        return SUPPORTED_NODES[s.type].unflatten_fn([grow(c) for c in s.children_specs], s.context)

    return grow(spec)


def tree_map(
    func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Callable[[Any], bool] | None = None
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
        or found[1] != own[1]
    ):
        return None
    values: list[Any] = []
    for p, t in zip(own[0], found[0]):
        more = broadcast_to(p, t)
        if more is None:
            return None
        values += more
    return values
