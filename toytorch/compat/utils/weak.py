"""Dictionaries whose keys are tensors, by identity, that keep none of them alive."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, MutableMapping
from typing import Any

__all__ = ["TensorWeakRef", "WeakIdKeyDictionary", "WeakIdRef", "WeakTensorKeyDictionary"]


class WeakIdRef(weakref.ref):  # type: ignore[type-arg]  # of anything
    """A weak reference that equals another one where both are to the same object."""

    def __init__(self, key: Any, callback: Any = None) -> None:
        super().__init__(key, callback)
        self._id = id(key)

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        a, b = self(), other() if isinstance(other, weakref.ref) else None
        return a is b if a is not None and b is not None else self is other


class WeakIdKeyDictionary(MutableMapping[Any, Any]):
    """A dictionary by identity of keys, which it does not keep alive.

    >>> import toytorch as torch
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

    def _gone(self, ref: Any) -> None:
        self.data.pop(ref, None)

    def __getitem__(self, key: Any) -> Any:
        return self.data[self.ref_type(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.data[self.ref_type(key, self._gone)] = value

    def __delitem__(self, key: Any) -> None:
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

    def __init__(self, tensor: Any) -> None:
        self.ref = WeakIdRef(tensor)

    def __call__(self) -> Any:
        return self.ref()
