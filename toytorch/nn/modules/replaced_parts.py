"""An injection point of the course: pieces that all modules share, exchanged for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from toytorch.nn.modules.registration import Tree
from toytorch.nn.modules.state import Stateful

OWNERS: dict[str, type] = {
    "__setattr__": Tree,
    "named_parameters": Tree,
    "state_dict": Stateful,
    "load_state_dict": Stateful,
}


@contextmanager
def using(**pieces: Any) -> Iterator[None]:
    """Replaces methods of every module while the block lasts.

    >>> from toytorch import nn
    >>> with using(named_parameters=lambda module, **options: iter([("nothing", None)])):
    ...     list(nn.Linear(1, 1).parameters())
    [None]
    >>> len(list(nn.Linear(1, 1).parameters()))
    2
    """
    for name in pieces:
        if name not in OWNERS:
            raise TypeError(
                f"modules have no piece {name!r} to replace; it can be one of {', '.join(OWNERS)}"
            )
    before = {name: getattr(OWNERS[name], name) for name in pieces}
    for name, piece in pieces.items():
        setattr(OWNERS[name], name, piece)
    try:
        yield
    finally:
        for name, piece in before.items():
            setattr(OWNERS[name], name, piece)
