"""How a program of the corpus is written down: a function with arguments to call it with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass
class T:
    """A tensor among the arguments, made anew for every call and on either side."""

    data: Any
    grad: bool = False
    dtype: str = ""

    def on(self, root: Any) -> Any:
        made = root.tensor(self.data, dtype=getattr(root, self.dtype) if self.dtype else None)
        return made.requires_grad_() if self.grad else made


@dataclass
class Case:
    """A function and the arguments of several calls."""

    function: Callable[..., Any]
    calls: list[tuple[Any, ...]]


CASES: dict[str, Case] = {}
X = T([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]])
G = T([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]], grad=True)
V = T([1.0, 2.0, 3.0])


def calls(*args: tuple[Any, ...]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Adds a function to the corpus; each argument is the tuple of one call."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        assert function.__name__ not in CASES, function.__name__
        CASES[function.__name__] = Case(function, list(args))
        return function

    return add


def carried(value: Any, root: Any) -> Any:
    """Arguments of one side."""
    if isinstance(value, T):
        return value.on(root)
    if isinstance(value, (list, tuple)):
        parts = [carried(v, root) for v in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if isinstance(value, dict):
        return {k: carried(v, root) for k, v in value.items()}
    return value
