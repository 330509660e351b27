"""Parameters in lists and dictionaries."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.nn.modules.container import pairs_of
from toytorch.nn.modules.module import Module
from toytorch.nn.parameter import Parameter


def _as_parameter(value: object) -> Any:
    """A plain tensor becomes a parameter; anything else stays as it is."""
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        return Parameter(value)
    return value


def _line(key: int | str, value: object, kind: str) -> str:
    """How one entry is printed."""
    if not isinstance(value, Tensor):
        return f"  ({key}): Object of type: {type(value).__name__}"
    size = "x".join(map(str, value.shape))
    where = f" ({value.device})" if value.is_cuda else ""
    what = "Parameter" if isinstance(value, Parameter) else "Tensor"
    return f"  ({key}): {what} containing: [{kind} of size {size}{where}]"


class ParameterList(Module):
    """Parameters in a list; tensors become parameters, other objects are kept as they are.

    >>> ParameterList([torch.zeros(2)])
    ParameterList(  (0): Parameter containing: [torch.float32 of size 2])
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def _get_abs_string_index(self, index: int) -> str:
        at = operator.index(index)
        if not -self._size <= at < self._size:
            raise IndexError(f"index {at} is out of range")
        return str(at % self._size)

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)(self[i] for i in range(*index.indices(len(self))))
        return getattr(self, self._get_abs_string_index(index))

    def __setitem__(self, index: int, param: object) -> None:
        setattr(self, self._get_abs_string_index(index), _as_parameter(param))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter([self[i] for i in range(len(self))])

    def append(self, value: object) -> ParameterList:
        """Adds one at the end."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Adds several at the end."""
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(
                "ParameterList.extend should be called with an iterable, but got "
                f"{type(values).__name__}"
            )
        for value in values:
            self.append(value)
        return self

    def __iadd__(self, values: Iterable[Any]) -> ParameterList:
        return self.extend(values)

    def extra_repr(self) -> str:
        return "\n".join(_line(i, p, str(getattr(p, "dtype", ""))) for i, p in enumerate(self))

    def __call__(self, *args: object, **kwargs: object) -> Any:
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """Parameters by name; tensors become parameters, other objects are kept as they are."""

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    @staticmethod
    def _checked(key: str) -> str:
        if not isinstance(key, str):
            raise TypeError(
                "Index given to ParameterDict cannot be used as a key as it is not a string (type "
                f"is '{type(key).__name__}'). Open an issue on github if you need non-string keys."
            )
        return key

    def __getitem__(self, key: str) -> Any:
        return getattr(self, self._checked(key))

    def __setitem__(self, key: str, value: Tensor) -> None:
        self._keys[key] = None
        setattr(self, self._checked(key), _as_parameter(value))

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, self._checked(key))

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._keys)

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def copy(self) -> ParameterDict:
        """Another dictionary of the same parameters."""
        return ParameterDict(OrderedDict(self.items()))

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The entry of a name, set to `default` first if there was none."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Takes all entries out."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key: str) -> Any:
        """Takes an entry out, and gives it."""
        found = self[key]
        del self[key]
        return found

    def popitem(self) -> tuple[str, Any]:
        """Takes the last entry out, and gives it with its name."""
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def get(self, key: str, default: Any = None) -> Any:
        """The entry of a name, or `default`."""
        return self[key] if key in self._keys else default

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """A dictionary with the same entry under every name."""
        return ParameterDict((k, default) for k in keys)

    def keys(self) -> Any:
        """The names."""
        return self._keys.keys()

    def values(self) -> Any:
        """The entries."""
        return (self[k] for k in self._keys)

    def items(self) -> Any:
        """(name, entry) pairs."""
        return ((k, self[k]) for k in self._keys)

    def update(self, parameters: Any) -> None:
        """Adds or replaces entries; those of a plain dictionary in the order of their names."""
        pairs = pairs_of("ParameterDict", parameters)
        plain = isinstance(parameters, Mapping) and not isinstance(parameters, OrderedDict)
        for key, value in sorted(pairs, key=operator.itemgetter(0)) if plain else pairs:
            self[key] = value

    def extra_repr(self) -> str:
        return "\n".join(
            _line(k, p, p.type() if isinstance(p, Tensor) else "") for k, p in self.items()
        )

    def __call__(self, *args: object, **kwargs: object) -> Any:
        raise RuntimeError("ParameterDict should not be called.")

    def __or__(self, other: Iterable[Any]) -> ParameterDict:
        made = self.copy()
        made.update(other)
        return made

    def __ror__(self, other: object) -> ParameterDict:
        made = ParameterDict(other)
        made.update(self)
        return made

    def __ior__(self, other: object) -> ParameterDict:
        self.update(other)
        return self
