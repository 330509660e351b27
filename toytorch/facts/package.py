"""The names under which this package is known in this process."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import FunctionType
from typing import Any

NAMES = {"toytorch"}  # `toytorch.alias` adds "torch"


def is_ours(module: object) -> bool:
    """Whether a module, by its name, is a part of this package.

    >>> is_ours("toytorch.nn"), is_ours("torchvision"), is_ours(None)
    (True, False, False)
    """
    return isinstance(module, str) and module.partition(".")[0] in NAMES


def show(names: dict[str, object], *more: str) -> None:
    """Writes the `__all__` of a package that imports what it shows: its classes and functions, and `more`.

    >>> names = {"sqrt": len, "_near": len, "number": 3}
    >>> show(names, "number"); names["__all__"]
    ['number', 'sqrt']
    """
    found = {n for n, v in names.items() if callable(v) and v is not Any and n[0] != "_"}
    names["__all__"] = sorted(found | {*more})


def findable(names: Mapping[str, object], module: str) -> None:
    """Tells the functions of a package where `pickle` finds them: it looks for a name in a module.

    Of several names of a function the one that it calls itself is chosen.
    """
    own_first = sorted(names.items(), key=lambda item: item[0] != getattr(item[1], "__name__", ""))
    for name, value in own_first:
        if isinstance(value, FunctionType) and is_ours(value.__module__):
            home = vars(sys.modules[value.__module__])
            if home.get(value.__qualname__) is not value:
                value.__module__, value.__qualname__ = module, name
