"""Classes that the user lets files name, besides those of tensors and containers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from toytorch.core.public_modules import pytorch_module
from toytorch.facts.package import is_ours

_allowed: dict[str, Any] = {}


def _names(entry: Any) -> list[str]:
    """The names by which pickles may call a class or function; a function of tensors may stand in
    several of PyTorch's modules."""
    if isinstance(entry, tuple):
        return [entry[1]]
    module = getattr(entry, "__module__", None) or "builtins"
    if is_ours(module):
        from toytorch.serialization.known import functions  # which imports this file's users

        found = [name for name, held in functions().items() if held is entry]
        if found:
            return found
        module = pytorch_module(module, entry.__qualname__)
    return [f"{module}.{entry.__qualname__}"]


def add_safe_globals(safe_globals: Sequence[Any]) -> None:
    """Lets `save` and `load` handle these classes (or functions), called by files as they like.

    Only for what you wrote or trust: the constructor and `__setstate__` run on a file's values.
    """
    for entry in safe_globals:
        thing = entry[0] if isinstance(entry, tuple) else entry
        _allowed.update(dict.fromkeys(_names(entry), thing))


def get_safe_globals() -> list[Any]:
    """The classes and functions that were allowed."""
    return list({id(thing): thing for thing in _allowed.values()}.values())


def clear_safe_globals() -> None:
    """Allows nothing any more but tensors and containers."""
    _allowed.clear()


@contextmanager
def safe_globals(safe_globals: Sequence[Any]) -> Iterator[None]:
    """Allows classes within a block."""
    before = dict(_allowed)
    add_safe_globals(safe_globals)
    try:
        yield
    finally:
        _allowed.clear()
        _allowed.update(before)


def find(name: str) -> Any:
    """The class or function allowed under a name, or None."""
    return _allowed.get(name)


def name_of(thing: object) -> str | None:
    """The name under which a class or function is allowed, or None."""
    return next((name for name, known in _allowed.items() if known is thing), None)
