"""Dictionaries whose keys are tensors, by identity, that keep none of them alive."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

__all__ = ["TensorWeakRef", "WeakIdKeyDictionary", "WeakIdRef", "WeakTensorKeyDictionary"]


class WeakIdRef(weakref.ref[Any]):
    """A weak reference that equals another one where both are to the same object."""

    _id: int

    def __new__(cls, key: object, callback: Callable[[Any], Any] | None = None) -> WeakIdRef:
        made = super().__new__(cls, key, callback)
        made._id = id(key)
        return made

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        a, b = self(), other() if isinstance(other, weakref.ref) else None
        return a is b if a is not None and b is not None else self is other


class WeakIdKeyDictionary(MutableMapping[Any, Any]):
    """A dictionary by identity of keys, which it does not keep alive.

    >>> x = torch.ones(2)
    >>> d = WeakIdKeyDictionary({x: 1})
    >>> d[x], len(d)
    (1, 1)
    >>> del x; len(d)
    0
    """

    def __init__(self, dict: Any = None, ref_type: Any = WeakIdRef) -> None:
        self.data: Any = {}
        self.ref_type = ref_type
        if dict is not None:
            self.update(dict)

    def _gone(self, ref: object) -> None:
        self.data.pop(ref, None)

    def __getitem__(self, key: object) -> Any:
        return self.data[self.ref_type(key)]

    def __setitem__(self, key: object, value: object) -> None:
        self.data[self.ref_type(key, self._gone)] = value

    def __delitem__(self, key: object) -> None:
        del self.data[self.ref_type(key)]

    def __len__(self) -> int:
        return len(self.data)

    def __iter__(self) -> Iterator[Any]:
        return iter([key for ref in list(self.data) if (key := ref()) is not None])

    def __contains__(self, key: object) -> bool:
        return self.ref_type(key) in self.data


WeakTensorKeyDictionary = WeakIdKeyDictionary


class TensorWeakRef:
    """A weak reference to a tensor."""

    def __init__(self, tensor: object) -> None:
        self.ref = WeakIdRef(tensor)

    def __call__(self) -> Any:
        return self.ref()
