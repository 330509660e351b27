"""Operations on what is no tensor: numbers, lists, strings, sizes.

In a graph `aten::add` adds tensors and `aten::add.int` Python's integers. A Builtin says what such
an operation computes, the type of its result and whether it may be left out or run twice.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from toytorch.jit import types
from toytorch.jit.types import BOOL, FLOAT, INT, NUMBER, Type


@dataclass(frozen=True)
class Builtin:
    """One operation of Python's own values."""

    name: str
    function: Callable[..., Any]
    result: Type
    pure: bool = True

    def __call__(self, *args: Any) -> Any:
        return self.function(*args)


BUILTINS: dict[str, Builtin] = {}


def builtin(name: str, function: Callable[..., Any], result: Type, pure: bool = True) -> None:
    """Adds an operation."""
    BUILTINS[name] = Builtin(name, function, result, pure)


def _size(t: Any, dim: int | None = None) -> Any:
    return list(t._array.shape) if dim is None else t._array.shape[dim]


def _item(t: Any) -> Any:
    return t.item()


for _name, _function in (("add", operator.add), ("sub", operator.sub), ("mul", operator.mul),
                         ("floordiv", operator.floordiv), ("remainder", operator.mod),
                         ("neg", operator.neg), ("__and__", operator.and_),
                         ("__or__", operator.or_), ("__xor__", operator.xor),
                         ("__lshift__", operator.lshift), ("__rshift__", operator.rshift),
                         ("bitwise_not", operator.invert), ("abs", abs)):
    builtin(_name + ".int", _function, INT)
for _name, _function in (("add", operator.add), ("sub", operator.sub), ("mul", operator.mul),
                         ("floordiv", operator.floordiv), ("remainder", operator.mod),
                         ("neg", operator.neg), ("div", operator.truediv), ("abs", abs)):
    builtin(_name + ".float", _function, FLOAT)
builtin("div.int", operator.truediv, FLOAT)
builtin("pow.int", operator.pow, NUMBER)
builtin("pow.float", operator.pow, FLOAT)
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    builtin(_name + ".int", getattr(operator, _name), BOOL)
    builtin(_name + ".float", getattr(operator, _name), BOOL)
    builtin(_name + ".str", getattr(operator, _name), BOOL)
builtin("__is__", operator.is_, BOOL)
builtin("__isnot__", operator.is_not, BOOL)
builtin("__not__", operator.not_, BOOL)
builtin("Int.Tensor", lambda t: int(_item(t)), INT)
builtin("Float.Tensor", lambda t: float(_item(t)), FLOAT)
builtin("Bool.Tensor", lambda t: bool(_item(t)), BOOL)
builtin("Int.Scalar", int, INT)
builtin("Float.Scalar", float, FLOAT)
builtin("Bool.Scalar", bool, BOOL)
builtin("item", _item, NUMBER)
builtin("size", lambda t: list(t._array.shape), types.List(INT))
builtin("size.int", _size, INT)
builtin("len.Tensor", len, INT)
builtin("dim", lambda t: t._array.ndim, INT)
builtin("numel", lambda t: int(t._array.size), INT)
builtin("sqrt.float", math.sqrt, FLOAT)
