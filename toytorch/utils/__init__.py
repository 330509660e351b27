"""Around training: data."""

from toytorch.utils import data

__all__ = ["data"]
