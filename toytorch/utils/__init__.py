"""Around training: data, checkpointing."""

from toytorch.utils import _pytree, checkpoint, data, deterministic, dlpack, hooks

__all__ = ["_pytree", "checkpoint", "data", "deterministic", "dlpack", "hooks"]
