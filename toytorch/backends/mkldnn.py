"""The questions of `torch.backends.mkldnn`: toytorch does not use oneDNN."""

from __future__ import annotations


def is_available() -> bool:
    """Whether oneDNN can be used: never."""
    return False
