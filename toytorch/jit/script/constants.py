"""Attributes that compiled code takes for constants: those a class lists, or annotates as Final."""

from __future__ import annotations

import inspect
import typing

from toytorch.facts.device import device, layout
from toytorch.facts.dtype import dtype
from toytorch.facts.package import is_ours
from toytorch.nn import Module

PLAIN = (bool, float, int, str, type(None), device, layout, dtype)
SHOWN = "bool, float, int, str, NoneType, torch.device, torch.layout, torch.dtype, torch.qscheme"


def constants_of(kind: type) -> set[str]:
    """The names of a class's constants.

    >>> class Scale(Module):
    ...     __constants__ = ["factor"]
    >>> constants_of(Scale)
    {'factor'}
    """
    found = set(getattr(kind, "__constants__", ()))
    for base in kind.__mro__:
        for name, hint in inspect.get_annotations(base).items():
            text = hint if isinstance(hint, str) else ""
            if "Final" in text or typing.Final in (hint, typing.get_origin(hint)):
                found.add(name)
    return found


def fix_constants(module: Module, original: Module) -> None:
    """Lets a compiled module refuse other values for its constants."""
    held = {
        n for n in constants_of(type(original)) if isinstance(getattr(original, n, module), PLAIN)
    }
    module.__dict__["_constants"] = frozenset(held)


def check_constants(module: Module) -> None:
    """Refuses constants of a class of one's own that are no plain values."""
    kind = type(module)
    if is_ours(kind.__module__):
        return
    for name in getattr(kind, "__constants__", ()):
        wrong = invalid(module.__dict__.get(name))
        if wrong is not None:
            shown = type(wrong)
            place = "torch" if isinstance(wrong, Module) and is_ours(shown.__module__) else ""
            path = f"{shown.__module__}.{shown.__qualname__}".replace("toytorch.", "torch.")
            path = shown.__qualname__ if shown.__module__ == "builtins" and not place else path
            raise TypeError(
                f"\n'{path}' object in attribute '{kind.__name__}.{name}' is not a valid constant.\n"
                f"Valid constants are:\n1. a nn.ModuleList\n2. a value of type {{{SHOWN}}}\n"
                "3. a list or tuple of (2)\n"
            )


def invalid(value: object) -> object:
    """What in a value is no constant; None where there is nothing."""
    if isinstance(value, (list, tuple)):
        return next((w for v in value if (w := invalid(v)) is not None), None)
    return None if isinstance(value, PLAIN) else value
