"""Tensors that become each other, and how modules convert their parameters."""

from __future__ import annotations

import weakref
from typing import Any

# What `torch.__future__` says of parameters that a module converts: new ones take their place, or they
# become what the new ones were; else they get new data.
overwrite = swap = False


def swap_tensors(t1: Any, t2: Any) -> None:
    """Each of two tensors becomes what the other was, so that whoever holds one has the other.

    Raises RuntimeError where a weak reference leads to one, or where their classes have other slots.

    >>> a, b = torch.zeros(1), torch.ones(2)
    >>> swap_tensors(a, b)
    >>> a, b
    (tensor([1., 1.]), tensor([0.]))
    """
    for name, tensor in ("t1", t1), ("t2", t2):
        if weakref.getweakrefs(tensor):
            raise RuntimeError(f"Cannot swap {name} because it has weakref associated with it")
    slots = slots_of(t1)
    if slots != slots_of(t2):
        raise RuntimeError("Cannot swap t1 and t2 if they have different slots")
    for name in ("__class__", "__dict__", *slots):
        here, there = getattr(t1, name, None), getattr(t2, name, None)
        setattr(t1, name, there)
        setattr(t2, name, here)


def slots_of(tensor: Any) -> set[str]:
    """What a tensor holds beside its `__dict__`."""
    named = (vars(c).get("__slots__", ()) for c in type(tensor).__mro__)
    each = (n for names in named for n in ((names,) if isinstance(names, str) else names))
    return {*each} - {"__dict__", "__weakref__"}
