"""Lists and dicts that arguments of nodes are kept in: a change would go past the nodes' users."""

from __future__ import annotations

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


CHANGES = (
    "__delitem__ __iadd__ __imul__ __setitem__ append clear extend insert pop remove reverse sort"
)
for _name in CHANGES.split():
    setattr(immutable_list, _name, _no_mutation)
for _name in [
    "__delitem__",
    "__ior__",
    "__setitem__",
    "clear",
    "pop",
    "popitem",
    "setdefault",
    "update",
]:
    setattr(immutable_dict, _name, _no_mutation)
_hashes = {immutable_list: tuple, immutable_dict: lambda x: frozenset(x.items())}
for _kind, _fixed in _hashes.items():  # so that arguments of nodes may be keys
    type.__setattr__(_kind, "__hash__", lambda self, fixed=_fixed: hash(fixed(self)))

register_pytree_node(immutable_list, lambda x: (list(x), None), lambda c, _: immutable_list(c))
register_pytree_node(
    immutable_dict,
    lambda x: (list(x.values()), list(x)),
    lambda c, keys: immutable_dict(zip(keys, c)),
)
