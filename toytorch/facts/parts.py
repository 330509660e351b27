"""What an object has from a part of it."""

from __future__ import annotations

from operator import attrgetter
from typing import Any


def of_part(path: str, doc: str) -> Any:
    """A property that stands for an attribute of a part.

    >>> class Pair:
    ...     real = of_part("first.real", "That of the first.")
    >>> pair = Pair()
    >>> pair.first = 3 + 4j
    >>> pair.real
    3.0
    """
    return property(attrgetter(path), doc=doc)
