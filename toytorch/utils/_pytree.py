"""Nested containers, under the name that programs import, like `torch.utils._pytree`.

>>> tree_map_only(int, lambda n: n + 1, {"a": 1, "b": ["x", 2]})
{'a': 2, 'b': ['x', 3]}
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from types import UnionType
from typing import Any, TypeAlias

from toytorch.facts.hints import Fn
from toytorch.facts.pytree import (
    BUILT_IN,
    LEAF,
    SUPPORTED_NODES,
    Keyed,
    NodeDef,
    TreeSpec,
    broadcast_to,
    parts,
    tree_flatten,
    tree_leaves,
    tree_map,
    tree_unflatten,
)
from toytorch.facts.pytree import node_type as _get_node_type

PyTree: TypeAlias = Any
Context: TypeAlias = Any
PyTreeSpec = TreeSpec
Kinds: TypeAlias = type | tuple[type, ...] | UnionType
IsLeaf: TypeAlias = Callable[[Any], bool] | None

__all__ = [
    "SUPPORTED_NODES", "GetAttrKey", "LeafSpec", "MappingKey", "NodeDef", "PyTree", "PyTreeSpec",
    "SequenceKey", "TreeSpec", "arg_tree_leaves", "key_get", "keystr", "register_dataclass",
    "register_pytree_node", "tree_all", "tree_all_only", "tree_any", "tree_any_only",
    "tree_flatten", "tree_flatten_with_path", "tree_is_leaf", "tree_iter", "tree_leaves",
    "tree_leaves_with_path", "tree_map", "tree_map_", "tree_map_only", "tree_map_only_",
    "tree_map_with_path", "tree_structure", "tree_unflatten",
]  # fmt: skip


def LeafSpec() -> TreeSpec:
    """The recipe of one leaf."""
    return LEAF


# -- named tuples ----------------------------------------------------------------------------------


def is_structseq_class(cls: object) -> bool:
    """Whether it is a class of tuples with names that C makes, as `torch.return_types` are."""
    return isinstance(cls, type) and issubclass(cls, tuple) and hasattr(cls, "n_sequence_fields")


def is_structseq_instance(obj: object) -> bool:
    """Whether it is such a tuple."""
    return is_structseq_class(type(obj))


def is_structseq(obj: object) -> bool:
    """Whether it is such a tuple or its class."""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


def is_namedtuple_class(cls: object) -> bool:
    """Whether it is a class that `namedtuple` made, or one below it."""
    named = isinstance(cls, type) and issubclass(cls, tuple) and hasattr(cls, "_fields")
    return named and not is_structseq_class(cls)


def is_namedtuple_instance(obj: object) -> bool:
    """Whether it is a tuple of such a class."""
    return is_namedtuple_class(type(obj))


def is_namedtuple(obj: object) -> bool:
    """Whether it is such a tuple or its class."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


# -- classes that are containers -------------------------------------------------------------------


def register_pytree_node(
    cls: type,
    flatten_fn: Callable[[Any], tuple[list[Any], Any]],
    unflatten_fn: Callable[[Iterable[Any], Any], Any],
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: Callable[[Any], Any] | None = None,
    from_dumpable_context: Callable[[Any], Any] | None = None,
    flatten_with_keys_fn: Callable[[Any], tuple[list[tuple[Any, Any]], Any]] | None = None,
) -> None:
    """Says that objects of a class are containers, and how they are taken apart and built again.

    Raises ValueError for a class that is registered already. The names for files are not used.
    """
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)


_register_pytree_node = register_pytree_node


def _deregister_pytree_node(cls: type) -> None:
    """Forgets a class that was registered."""
    if cls not in BUILT_IN:
        SUPPORTED_NODES.pop(cls, None)


def register_dataclass(
    cls: type, *, field_names: list[str] | None = None, drop_field_names: list[str] | None = None
) -> None:
    """Says that objects of a dataclass are containers of their fields."""
    names = [f.name for f in fields(cls) if f.init] if field_names is None else field_names
    names = [n for n in names if n not in (drop_field_names or ())]
    register_pytree_node(
        cls,
        lambda obj: ([getattr(obj, n) for n in names], names),
        lambda values, context: cls(**dict(zip(context, values))),
        flatten_with_keys_fn=lambda obj: ([(GetAttrKey(n), getattr(obj, n)) for n in names], names),
    )


def register_constant(cls: type) -> None:
    """Says that objects of a class are containers without leaves; they need `__eq__` and `__hash__`."""
    if "__eq__" not in {name for c in cls.__mro__[:-1] for name in vars(c)}:
        raise TypeError(
            "register_constant(cls) expects `cls` to have a non-default `__eq__` implementation."
        )
    if cls.__hash__ is None:
        raise TypeError(
            "register_constant(cls) expects `cls` to have a non-default `__hash__` implementation."
        )
    register_pytree_node(
        cls, lambda obj: ([], obj), lambda _, obj: obj, flatten_with_keys_fn=lambda obj: ([], obj)
    )


# -- leaves ----------------------------------------------------------------------------------------


def tree_is_leaf(tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether it is no container."""
    return (is_leaf is not None and is_leaf(tree)) or parts(tree) is None


def tree_iter(tree: PyTree, is_leaf: IsLeaf = None) -> Iterable[Any]:
    """The leaves, one after the other."""
    yield from tree_leaves(tree, is_leaf)


def tree_structure(tree: PyTree, is_leaf: IsLeaf = None) -> TreeSpec:
    """The recipe alone."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map_(func: Fn, tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """Calls func for every leaf, and gives the container back as it is."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def _asks(kinds: Kinds | Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Whether a leaf is of these classes, or what a function says."""
    if isinstance(kinds, (type, tuple, UnionType)):
        return lambda leaf: isinstance(leaf, kinds)
    return kinds


def tree_map_only(
    type_or_types_or_pred: Kinds | Callable[[Any], bool],
    /,
    func: Callable[[Any], Any],
    tree: PyTree,
    is_leaf: IsLeaf = None,
) -> PyTree:
    """`tree_map` for leaves of some classes; the others stay."""
    chosen = _asks(type_or_types_or_pred)
    return tree_map(lambda leaf: func(leaf) if chosen(leaf) else leaf, tree, is_leaf=is_leaf)


def tree_map_only_(
    type_or_types_or_pred: Kinds | Callable[[Any], bool],
    /,
    func: Callable[[Any], Any],
    tree: PyTree,
    is_leaf: IsLeaf = None,
) -> PyTree:
    """Calls func for leaves of some classes, and gives the container back as it is."""
    tree_map_only(type_or_types_or_pred, func, tree, is_leaf)
    return tree


def tree_all(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether pred holds for every leaf."""
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether pred holds for a leaf."""
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(
    type_or_types: Kinds, /, pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None
) -> bool:
    """Whether pred holds for every leaf of some classes."""
    chosen = _asks(type_or_types)
    return all(pred(leaf) for leaf in tree_iter(tree, is_leaf) if chosen(leaf))


def tree_any_only(
    type_or_types: Kinds, /, pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None
) -> bool:
    """Whether pred holds for a leaf of some classes."""
    chosen = _asks(type_or_types)
    return any(pred(leaf) for leaf in tree_iter(tree, is_leaf) if chosen(leaf))


# -- paths -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SequenceKey:
    """A place in a tuple or a list."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        """What is there."""
        return sequence[self.idx]


@dataclass(frozen=True)
class MappingKey:
    """A key of a dictionary."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        """What is there."""
        return mapping[self.key]


@dataclass(frozen=True)
class GetAttrKey:
    """A field of a named tuple, or an attribute."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: object) -> Any:
        """What is there."""
        return getattr(obj, self.name)


def keystr(kp: tuple[Any, ...]) -> str:
    """A path as Python writes it: `['a'][0].b`."""
    return "".join(map(str, kp))


def key_get(obj: object, kp: tuple[Any, ...]) -> Any:
    """What is at the end of a path."""
    for key in kp:
        obj = key.get(obj)
    return obj


def _keys(tree: object, count: int) -> list[Any]:
    """The keys of a container's children."""
    kind = _get_node_type(tree)
    if kind not in BUILT_IN:
        keyed = SUPPORTED_NODES[kind].flatten_with_keys_fn
        if keyed is None:
            raise ValueError(
                f"Did not find a flatten_with_keys_fn for type: {type(tree)}. Please pass a "
                "flatten_with_keys_fn argument to register_pytree_node."
            )
        return [key for key, _ in keyed(tree)[0]]
    if isinstance(tree, Mapping):
        return [MappingKey(k) for k in tree]
    if hasattr(tree, "_fields"):
        return [GetAttrKey(f) for f in tree._fields]
    return [SequenceKey(i) for i in range(count)]


def _with_keys(tree: object) -> Keyed:
    """A container of Python's own as ([(key, child)], context)."""
    children, context = SUPPORTED_NODES[_get_node_type(tree)].flatten_fn(tree)
    return list(zip(_keys(tree, len(children)), children)), context


# Registrations of classes that derive from Python's containers are written with these names.
_dict_flatten, _dict_unflatten = BUILT_IN[dict].flatten_fn, BUILT_IN[dict].unflatten_fn
_list_flatten, _list_unflatten = BUILT_IN[list].flatten_fn, BUILT_IN[list].unflatten_fn
_tuple_flatten, _tuple_unflatten = BUILT_IN[tuple].flatten_fn, BUILT_IN[tuple].unflatten_fn
_list_flatten_with_keys = _tuple_flatten_with_keys = _with_keys


def _dict_flatten_with_keys(d: Mapping[Any, Any]) -> Keyed:
    return [(MappingKey(key), value) for key, value in d.items()], list(d)


def _broadcast_to_and_flatten(
    tree: PyTree, treespec: TreeSpec, is_leaf: IsLeaf = None
) -> list[Any] | None:
    """A value for every leaf of a recipe, from a tree that may stop higher up; None if it cannot."""
    return broadcast_to(tree, tree_unflatten(range(treespec.num_leaves), treespec))


def arg_tree_leaves(*args: PyTree, **kwargs: PyTree) -> list[Any]:
    """The leaves of the arguments of a call."""
    return [leaf for tree in (*args, *kwargs.values()) for leaf in tree_leaves(tree)]


def tree_leaves_with_path(
    tree: PyTree, is_leaf: IsLeaf = None
) -> list[tuple[tuple[Any, ...], Any]]:
    """(path, leaf) of every leaf."""
    found = None if is_leaf is not None and is_leaf(tree) else parts(tree)
    if found is None:
        return [((), tree)]
    children = found[0]
    return [
        ((key, *path), leaf)
        for key, child in zip(_keys(tree, len(children)), children)
        for path, leaf in tree_leaves_with_path(child, is_leaf)
    ]


def tree_flatten_with_path(
    tree: PyTree, is_leaf: IsLeaf = None
) -> tuple[list[tuple[tuple[Any, ...], Any]], TreeSpec]:
    """(path, leaf) of every leaf, and the recipe."""
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_map_with_path(func: Fn, tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """`tree_map` of a function that is given the path, too."""
    found, spec = tree_flatten_with_path(tree, is_leaf)
    others = [tree_leaves(r, is_leaf) for r in rests]
    return tree_unflatten([func(*pair, *more) for pair, *more in zip(found, *others)], spec)
