"""The questions of `torch.backends.mkl`: toytorch does not use Intel's MKL."""

from __future__ import annotations


def is_available() -> bool:
    """Whether Intel's MKL can be used: never."""
    return False
