"""What a name or an expression stands for while a function is compiled.

Most are values of the graph. The others exist only for the compiler: Python's own objects, modules,
methods that wait for their arguments, and what a loop may run over.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from toytorch.jit.ir import Value

At: TypeAlias = ast.AST  # the place in a program that errors name
Given: TypeAlias = Sequence[Any]  # arguments of a call, by position


@dataclass(frozen=True, eq=False)
class Known:
    """A Python object: a function, a class, a package, a constant."""

    object: Any


@dataclass(frozen=True, eq=False)
class ModuleValue:
    """A module, and the value of the graph through which its attributes are read."""

    module: Any
    value: Value


@dataclass(frozen=True, eq=False)
class Method:
    """`value.name`, on its way to being called."""

    value: Value
    name: str


@dataclass(frozen=True, eq=False)
class ModuleMethod:
    """A module's or an object's method: a Python function with its `self`."""

    owner: Any
    name: str
    function: Any


@dataclass(frozen=True, eq=False)
class Spelled:
    """An operation by its name in the graph, which only `.code` uses: torch.len."""

    name: str


@dataclass(frozen=True)
class Record:
    """An op record by its name, which only `.code` uses: ops.aten.select."""

    name: str


@dataclass(frozen=True, eq=False)
class Items:
    """Things known one by one, which a loop runs over by being written out."""

    items: list[Any]


@dataclass(frozen=True, eq=False)
class Counted:
    """What a loop runs over by counting: a length, and the item at a place."""

    length: Callable[[], Value]
    item: Callable[[Value], Any]
    as_list: Callable[[], Value] | None = None  # all of it, where it is wanted as a list


def describe(item: object) -> str:
    """What something that is no value is, in messages."""
    if isinstance(item, ModuleValue):
        return f"module '{type(item.module).__name__}'"
    if isinstance(item, (Method, ModuleMethod)):
        return f"method '{item.name}'"
    if isinstance(item, Known):
        kind = type(item.object).__name__
        return f"python value of type '{kind}'"
    return "iterator"
