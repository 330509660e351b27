"""Around training: data, checkpointing."""

from toytorch.utils import checkpoint, data

__all__ = ["checkpoint", "data"]
