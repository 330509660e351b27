"""The question of `torch.backends.openmp`."""

from __future__ import annotations


def is_available() -> bool:
    """Whether loops run on OpenMP's threads: never, they have threads of their own."""
    return False
