"""The names under which this package is known in this process."""

from __future__ import annotations

NAMES = {"toytorch"}  # `toytorch.alias` adds "torch"


def is_ours(module: object) -> bool:
    """Whether a module, by its name, is a part of this package.

    >>> is_ours("toytorch.nn"), is_ours("torchvision"), is_ours(None)
    (True, False, False)
    """
    return isinstance(module, str) and module.partition(".")[0] in NAMES
