"""What an object has from a part of it or its class, and what it tells of its attributes."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from types import FunctionType
from typing import Any


def of_part(path: str, doc: str | None = None, written: bool = False) -> Any:
    """A property that stands for an attribute of a part, which may be `written` through it.

    >>> class Pair:
    ...     real = of_part("first.real", "That of the first.")
    >>> pair = Pair()
    >>> pair.first = 3 + 4j
    >>> pair.real
    3.0
    """
    part, _, name = path.rpartition(".")

    def write(self: object, value: object) -> None:
        setattr(attrgetter(part)(self), name, value)

    return property(attrgetter(path), write if written else None, doc=doc)


class Stated:
    """A class whose subclasses may state its attributes in their headers.

    >>> class Shape(Stated):
    ...     sides = 0
    >>> class Square(Shape, sides=4):
    ...     pass
    >>> Square.sides
    4
    """

    def __init_subclass__(cls, **stated: object) -> None:
        others = {name: value for name, value in stated.items() if not hasattr(cls, name)}
        super().__init_subclass__(**others)  # of another base, or refused
        for name in stated.keys() - others.keys():
            value = stated[name]
            setattr(cls, name, staticmethod(value) if isinstance(value, FunctionType) else value)


def shows(names: str, if_true: str = "", **usual: object) -> Callable[[Any], str]:
    """An `extra_repr` that tells attributes: of `=size` the value alone, of `bias?` whether there is
    one, of `mode.value` the value of an enumeration, of `name!r` the `repr`; and last `if_true`,
    where it is. An attribute that has its usual value, or a tuple of it alone, is not told.

    >>> class Half:
    ...     size, p, bias, stride, inplace = 2, 0.5, None, (1, 1), True
    ...     extra_repr = shows("=size p bias? stride", if_true="inplace", stride=1)
    >>> Half().extra_repr()
    '2, p=0.5, bias=False, inplace=True'
    """

    def extra_repr(self: Any) -> str:
        parts = []
        for name in names.split():
            path = name.strip("=?").removesuffix("!r")
            value = attrgetter(path)(self)
            value = value is not None if name[-1] == "?" else value
            each = value if isinstance(value, tuple) else [value]
            if path in usual and all(v == usual[path] for v in each):
                continue
            value = repr(value) if name.endswith("!r") else value
            parts.append(f"{value}" if name[0] == "=" else f"{path.partition('.')[0]}={value}")
        if if_true and getattr(self, if_true):
            parts.append(f"{if_true}=True")
        return ", ".join(parts)

    return extra_repr
