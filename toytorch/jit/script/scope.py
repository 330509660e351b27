"""The names a compiled function knows, block by block."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from toytorch.jit.ir import Block, Value


class Scope:
    """The names of one block; those of the blocks around it are seen through it.

    names      what each name stands for
    assigned   the names this block assigns to, in order (a test like `x is not None` changes what
               a name stands for without assigning to it)
    missing    why a name is not defined, for those that only one branch of an if defines
    own        names of comprehensions, which hide those outside
    """

    def __init__(self, block: Block, outer: Scope | None = None) -> None:
        self.block, self.outer = block, outer
        self.names: dict[str, Any] = {}
        self.assigned: dict[str, None] = {}
        self.missing: dict[str, str] = {}
        self.own: frozenset[str] = frozenset()

    def around(self) -> Iterator[Scope]:
        """This scope and those around it."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.outer

    def find(self, name: str) -> Any:
        """What a name stands for; None if it is not defined."""
        for scope in self.around():
            if name in scope.names:
                return scope.names[name]
            if name in scope.missing:
                return None
        return None

    def reason(self, name: str) -> str:
        """Why a name is not defined, where that is known."""
        for scope in self.around():
            if name in scope.missing:
                return scope.missing[name]
        return ""

    def set(self, name: str, item: object) -> None:
        """Assigns to a name."""
        self.names[name] = item
        self.assigned[name] = None
        self.missing.pop(name, None)

    def refine(self, name: str, value: Value) -> None:
        """Lets a name stand for a value of which more is known."""
        self.names[name] = value

    def forget(self, name: str, why: str) -> None:
        """Takes a name's meaning away."""
        self.names.pop(name, None)
        self.missing[name] = why
