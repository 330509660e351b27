"""Classes whose objects live in compiled functions: `@torch.jit.script class Pair: …`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from toytorch.jit import types
from toytorch.jit.types import Type


@dataclass(frozen=True)
class Object(types.Class):
    """The type of objects of a Python class; attributes are found when __init__ is compiled."""

    python: Any = field(default=None, compare=False)
    attributes: dict[str, Type] = field(default_factory=dict, compare=False, hash=False)
    learnt: list[bool] = field(default_factory=list, compare=False, hash=False)  # if asked for


SCRIPTED: dict[Any, Object] = {}


def known_class(kind: object) -> Object | None:
    """The type of a class that was scripted."""
    return SCRIPTED.get(kind)


def register(kind: Any) -> Object:
    """Makes a class known."""
    if kind not in SCRIPTED:
        SCRIPTED[kind] = Object(kind.__name__, kind)
    return SCRIPTED[kind]
