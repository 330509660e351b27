"""What a caller gives, as the value of the type that a compiled function declares.

Lists and dictionaries are copied, as in PyTorch: what the function appends is not seen outside.
Those that `script` made of a list or a dictionary are the caller's own.
Numbers may come as tensors of one element or as NumPy's, lists as any sequence, devices as text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from toytorch.core.tensor import Tensor
from toytorch.facts.device import device
from toytorch.jit import types
from toytorch.jit.builtins import fits


class Refused(Exception):
    """A value that does not stand for the type."""


class ScriptList(list[Any]):
    """A list that compiled functions work on itself: what they write into it is seen outside."""


class ScriptDict(dict[Any, Any]):
    """A dictionary that compiled functions work on itself."""


def shared(value: object) -> Any:
    """A list or dictionary, with all those inside, that compiled functions do not copy.

    >>> numbers = shared([[1], [2]])
    >>> numbers, numbers[0].__class__.__name__
    ([[1], [2]], 'ScriptList')
    """
    if value.__class__ is list:
        return ScriptList(map(shared, value))
    if value.__class__ is dict:
        return ScriptDict({k: shared(v) for k, v in value.items()})
    return value


def given(value: object, kind: types.Type) -> Any:
    """The value as one of a type; Refused where it is none.

    >>> given((1, 2), types.List(types.FLOAT)), given(Tensor([3]), types.INT)
    ([1.0, 2.0], 3)
    """
    if isinstance(kind, types.Tensor):
        if value is None or isinstance(value, Tensor):
            return value
        raise Refused
    if isinstance(kind, types.Optional):
        return None if value is None else given(value, kind.element)
    if isinstance(kind, types.Union):  # no conversions, as in PyTorch, but a copy of a list
        found = next((m for m in kind.elements if types.holds(m, value)), None)
        if found is None:
            raise Refused
        return given(value, found)
    if isinstance(kind, types.List):
        if isinstance(value, ScriptList):
            for v in value:
                given(v, kind.element)  # Refused where one does not fit
            return value
        if kind.count and isinstance(single(value), (bool, int, float)):
            return [given(value, kind.element)] * kind.count
        return [given(v, kind.element) for v in sequence(value)]
    if isinstance(kind, types.Dict):
        if isinstance(value, ScriptDict):
            for k, v in value.items():
                given(k, kind.key), given(v, kind.value)
            return value
        if isinstance(value, Mapping):
            return {given(k, kind.key): given(v, kind.value) for k, v in value.items()}
        raise Refused
    if isinstance(kind, types.Tuple):
        return of_tuple(value, kind)
    if isinstance(kind, types.Enum) and not isinstance(value, kind.python):
        raise Refused
    if isinstance(kind, (types.Class, types.Future)) or kind == types.ANY:
        return value
    if kind in NUMBERS:
        return NUMBERS[kind](value)
    if kind == types.STR and isinstance(value, bytes):
        return value.decode()
    if kind == types.DEVICE and isinstance(value, str):
        return device(value)
    if fits(kind, types.of(value), {}):
        return value
    raise Refused


def sequence(value: object) -> Iterable[Any]:
    """What a list may be made of."""
    if isinstance(value, (Mapping, str, bytes)) or not (
        isinstance(value, Sequence) or (hasattr(value, "__len__") and hasattr(value, "__iter__"))
    ):
        raise Refused
    if isinstance(value, Tensor) and not value.dim():
        raise Refused
    return value


def of_tuple(value: object, kind: types.Tuple) -> Any:
    """A tuple of as many parts as the type has."""
    parts = list(sequence(value))
    if len(parts) != len(kind.elements):
        raise Refused
    made = [given(v, k) for v, k in zip(parts, kind.elements)]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*made)
    return kind.python(*made) if kind.python is not None else tuple(made)


def single(value: object) -> Any:
    """A number, from a number of Python's or NumPy's or from a tensor of one element."""
    if isinstance(value, Tensor):
        if value.numel() != 1:
            raise Refused
        return value.item()
    return value.item() if isinstance(value, np.generic) else value


def number(*taken: type) -> Callable[[Any], Any]:
    """A number of the last type from one of the others. PyTorch cuts fractions off tensors and
    NumPy's numbers where it wants an int, but refuses Python's floats."""

    def make(value: object) -> Any:
        found = single(value)
        if isinstance(found, taken) or (
            taken[-1] is int and found is not value and isinstance(found, float)
        ):
            return found if found.__class__ is taken[-1] else taken[-1](found)
        raise Refused

    return make


def scalar(value: object) -> Any:
    """A number of any kind."""
    found = single(value)
    if isinstance(found, (bool, int, float, complex)) and not isinstance(value, np.generic):
        return found
    raise Refused


def truth(value: object) -> bool:
    """A bool, from a number, or None, which is false."""
    found = single(value)
    if found is None or isinstance(found, (bool, int, float, complex)):
        return bool(found)
    raise Refused


NUMBERS: dict[types.Type, Callable[[Any], Any]] = {
    types.INT: number(bool, int),
    types.FLOAT: number(bool, int, float),
    types.COMPLEX: number(bool, int, float, complex),
    types.NUMBER: scalar,
    types.BOOL: truth,
}
