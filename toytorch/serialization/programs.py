"""Classes of the program that reads a file: its networks, its settings.

With `weights_only=False` a file may hold their objects. PyTorch imports whatever a file names and runs
what it says; here a class has to be there already, and its objects are made without any call: an
empty object, to which the attributes are given. So no code runs that a file has chosen, and a class
that needs a call (or has one waiting, `__del__`) is refused, as are classes of the standard library
and all functions.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

from toytorch.core.tensor import Tensor
from toytorch.facts.package import is_ours
from toytorch.nn import Module
from toytorch.serialization.rebuild import require

# What would run, or would have to, when an object is made or forgotten; slots are set by calls, too.
CALLS = ("__new__", "__setstate__", "__del__", "__slots__")
HEAP = 1 << 9  # CPython's flag of classes that a program has made


class Own(NamedTuple):
    """A class of the program."""

    thing: type


def find(name: str) -> Own | None:
    """The program's class of this full name, if it was defined or imported already."""
    module, _, rest = name.rpartition(".")
    outer: list[str] = []
    while module and module not in sys.modules:  # a class within a class
        module, _, part = module.rpartition(".")
        outer.insert(0, part)
    top = module.partition(".")[0]  # what is named after PyTorch stands in the tables of `known.py`
    if not module or is_ours(top) or top == "torch" or top in sys.stdlib_module_names:
        return None
    held: Any = sys.modules[module]
    for part in (*outer, rest):
        held = vars(held).get(part) if hasattr(held, "__dict__") else None
    return Own(held) if isinstance(held, type) and is_plain(held) else None


def is_plain(cls: type) -> bool:
    """Whether objects of a class can be made without a call of its own."""
    return all(
        c in (object, Tensor) or (is_ours(c.__module__) and issubclass(c, Module)) or is_simple(c)
        for c in cls.__mro__
    )


def is_simple(cls: type) -> bool:
    """Whether a class by itself is one of Python code, without such calls."""
    return bool(cls.__flags__ & HEAP) and not any(vars(cls).get(name) for name in CALLS)


def attributes(cls: type, state: Any) -> dict[str, Any]:
    """The attributes of an object, checked: no file may replace what a module does."""
    require(
        type(state) is dict and all(type(k) is str for k in state),
        "the state of an object must be a dict",
    )
    for name in state:
        does = issubclass(cls, Module) and (
            name == "_compiled" or callable(getattr(Module, name, 0))
        )
        require(
            not (does or name.startswith("__")),
            f"a {cls.__name__} has no attribute {name!r} that a file may set",
        )
    return dict(state)
