"""The questions of `torch.backends.mps`: toytorch does not use Apple's GPUs."""

from __future__ import annotations


def is_available() -> bool:
    """Whether Apple's GPUs can be used: never."""
    return False


def is_built() -> bool:
    """Whether toytorch was built with support for them: never."""
    return False
