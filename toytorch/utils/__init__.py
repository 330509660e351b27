"""Around training: data, checkpointing."""

from toytorch.utils import checkpoint, data, dlpack

__all__ = ["checkpoint", "data", "dlpack"]
