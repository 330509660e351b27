"""Lists and dicts that arguments of nodes are kept in: a change would go past the nodes' users."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, NoReturn

from toytorch.utils._pytree import register_pytree_node

ADVICE = (
    " object does not support mutation. If you are attempting to modify the kwargs or args of a "
    "torch.fx.Node object,\ninstead create a new copy of it and assign the copy to the node:\n\n"
    "    new_args = ...  # copy and mutate args\n    node.args = new_args"
)


def _no_mutation(self: object, *args: object, **kwargs: object) -> NoReturn:
    raise TypeError(f"{type(self).__name__!r}{ADVICE}")


class immutable_list(list[Any]):
    """A list that refuses to be changed.

    >>> immutable_list([1, 2]).append(3)
    Traceback (most recent call last):
    TypeError: 'immutable_list' object does not support mutation...
    """

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return immutable_list, (tuple(self),)


class immutable_dict(dict[Any, Any]):
    """A dict that refuses to be changed."""

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return immutable_dict, (tuple(self.items()),)


def _set(kind: type, refused: str, fixed: Callable[[Any], Hashable]) -> None:
    """Lets changes be refused, and gives a hash, so that arguments of nodes may be keys."""
    own: dict[str, Callable[..., Any]] = {"__hash__": lambda self: hash(fixed(self))}
    for name, method in {**own, **dict.fromkeys(refused.split(), _no_mutation)}.items():
        setattr(kind, name, method)


ITEMS = "__delitem__ __setitem__ clear pop"
_set(immutable_list, f"{ITEMS} __iadd__ __imul__ append extend insert remove reverse sort", tuple)
_set(
    immutable_dict,
    f"{ITEMS} __ior__ popitem setdefault update",
    lambda x: frozenset(x.items()),
)

register_pytree_node(immutable_list, lambda x: (list(x), None), lambda c, _: immutable_list(c))
register_pytree_node(
    immutable_dict,
    lambda x: (list(x.values()), list(x)),
    lambda c, keys: immutable_dict(zip(keys, c)),
)
