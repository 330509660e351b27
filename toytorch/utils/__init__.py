"""Around training: data, checkpointing."""

from toytorch.utils import _pytree, checkpoint, data, deterministic, dlpack, hooks

__path__.append(f"{__path__[0]}/../compat/utils")  # `toytorch.utils.flop_counter` and the like

__all__ = ["_pytree", "checkpoint", "data", "deterministic", "dlpack", "hooks"]
