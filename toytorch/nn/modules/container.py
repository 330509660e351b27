"""Modules that hold modules."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, TypeVar

from toytorch.core.public_modules import finder
from toytorch.core.tensor import Tensor
from toytorch.nn.modules.module import Module

T = TypeVar("T", bound="_Numbered")


class _Numbered(Module):
    """What Sequential and ModuleList share: children in order, found by number."""

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def _get_abs_string_index(self, index: int) -> str:
        at, names = operator.index(index), list(self._modules)
        if not -len(names) <= at < len(names):
            raise IndexError(f"index {at} is out of range")
        return names[at]

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, self._get_abs_string_index(index), module)

    def __delitem__(self, index: Any) -> None:
        names = (
            list(self._modules)[index]
            if isinstance(index, slice)
            else [self._get_abs_string_index(index)]
        )
        for name in names:
            del self._modules[name]
        self._renumber(self._modules.values())

    def _renumber(self, modules: Iterable[Any]) -> None:
        """Names modules by number."""
        named = OrderedDict((str(i), m) for i, m in enumerate(modules))
        self.__dict__["_modules"] = named

    def _put_before(self, index: int, module: Any) -> None:
        """Adds a module before one that has a number for a name, as all after it have."""
        for i in range(len(self), index, -1):
            self._modules[str(i)] = self._modules[str(i - 1)]
        self._modules[str(index)] = module

    def append(self: T, module: Module) -> T:
        """Adds a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self: T, modules: Any) -> T:
        """Adds modules at the end."""
        if not isinstance(modules, Iterable):
            raise TypeError(
                f"{type(self).__name__}.extend should be called with an iterable, but "
                f"got {type(modules).__name__}"
            )
        for module in list(modules):
            self.append(module)
        return self

    def pop(self, key: Any) -> Any:
        """Takes a module out, and gives it."""
        found = self[key]
        del self[key]
        return found

    def __getitem__(self, index: int) -> Any:
        raise NotImplementedError


class Sequential(_Numbered):
    """Modules one after the other: y = fₙ(…f₂(f₁(x))).

    >>> from toytorch import nn
    >>> nn.Sequential(nn.Linear(1, 2), nn.ReLU())
    Sequential(
      (0): Linear(in_features=1, out_features=2, bias=True)
      (1): ReLU()
    )
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        named = (
            args[0].items()
            if len(args) == 1 and isinstance(args[0], OrderedDict)
            else ((str(i), m) for i, m in enumerate(args))
        )
        for name, module in named:
            self.add_module(name, module)

    def forward(self, input: Tensor) -> Any:
        for module in self._modules.values():
            input = module(input)
        return input

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return self.__class__(OrderedDict(list(self._modules.items())[index]))
        return self._modules[self._get_abs_string_index(index)]

    def insert(self, index: int, module: Module) -> Sequential:
        """Adds a module before a place."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        n = len(self)
        if not -n <= index <= n:
            raise IndexError(f"Index out of range: {index}")
        self._put_before(index % n if index < 0 else index, module)
        return self

    @staticmethod
    def _need_sequential(other: Iterable[Any]) -> None:
        if not isinstance(other, Sequential):
            raise ValueError(
                "add operator supports only objects of Sequential class, but "
                f"{type(other)} is given."
            )

    def __add__(self, other: Any) -> Sequential:
        self._need_sequential(other)
        return Sequential(*self, *other)

    def __iadd__(self, other: Any) -> Sequential:
        self._need_sequential(other)
        return self.extend(other)

    def _need_count(self, other: Iterable[Any] | int) -> None:
        if not isinstance(other, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(other)}")
        if other <= 0:
            raise ValueError(f"Non-positive multiplication factor {other} for {type(self)}")

    def __mul__(self, other: int) -> Sequential:
        self._need_count(other)
        return Sequential(*list(self) * other)

    __rmul__ = __mul__

    def __imul__(self, other: int) -> Sequential:
        self._need_count(other)
        return self.extend(list(self) * (other - 1))


class ModuleList(_Numbered):
    """Modules in a list; it is not called itself.

    >>> from toytorch import nn
    >>> nn.ModuleList([nn.ReLU(), nn.ReLU()])
    ModuleList(
      (0-1): 2 x ReLU()
    )
    """

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return self.__class__(list(self._modules.values())[index])
        return self._modules[self._get_abs_string_index(index)]

    def insert(self, index: int, module: Module) -> None:
        """Adds a module before a place."""
        self._put_before(index, module)

    def __iadd__(self, modules: Any) -> ModuleList:
        return self.extend(modules)

    def __add__(self, other: Any) -> ModuleList:
        return ModuleList(chain(self, other))

    def __repr__(self) -> str:
        blocks: list[tuple[int, int, str]] = []  # like modules that follow one another, as one
        for i, text in enumerate(map(repr, self)):
            if blocks and blocks[-1][2] == text:
                blocks[-1] = (blocks[-1][0], i, text)
            else:
                blocks.append((i, i, text))
        lines = [
            f"({a}): {text}" if a == b else f"({a}-{b}): {b - a + 1} x {text}"
            for a, b, text in blocks
        ]
        inner = "".join("\n  " + line.replace("\n", "\n  ") for line in lines)
        return f"{self._get_name()}({inner}{chr(10) if lines else ''})"


def pairs_of(name: str, given: Any) -> list[tuple[str, Any]]:
    """The (key, value) pairs of a mapping or of an iterable of pairs."""
    if not isinstance(given, Iterable):
        raise TypeError(
            f"{name}.update should be called with an iterable of key/value pairs, but "
            f"got {type(given).__name__}"
        )
    if isinstance(given, Mapping) or hasattr(given, "items"):
        return list(given.items())
    pairs = []
    for i, pair in enumerate(given):
        if not isinstance(pair, Iterable):
            raise TypeError(
                f"{name} update sequence element #{i} should be Iterable; is{type(pair).__name__}"
            )
        entry = tuple(pair)
        if len(entry) != 2:
            raise ValueError(
                f"{name} update sequence element #{i} has length {len(entry)}; 2 is required"
            )
        pairs.append(entry)
    return pairs


class ModuleDict(Module):
    """Modules by name; it is not called itself.

    >>> from toytorch import nn
    >>> list(nn.ModuleDict({"act": nn.ReLU(), "out": nn.Linear(2, 1)}).keys())
    ['act', 'out']
    """

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: object) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Takes all modules out."""
        self._modules.clear()

    def pop(self, key: str) -> Any:
        """Takes a module out, and gives it."""
        return self._modules.pop(key)

    def keys(self) -> Any:
        """The names."""
        return self._modules.keys()

    def values(self) -> Any:
        """The modules."""
        return self._modules.values()

    def items(self) -> Any:
        """(name, module) pairs."""
        return self._modules.items()

    def update(self, modules: Any) -> None:
        """Adds or replaces modules, from a mapping or from pairs."""
        for key, module in pairs_of("ModuleDict", modules):
            self[key] = module


__getattr__ = finder(__name__)
