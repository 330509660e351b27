"""Around training: data, checkpointing."""

import importlib
import importlib.util
from types import ModuleType

from toytorch.core.swap import swap_tensors
from toytorch.utils import _pytree, checkpoint, data, deterministic, dlpack, hooks

__path__.append(f"{__path__[0]}/../compat/utils")  # `toytorch.utils.flop_counter` and the like

__all__ = ["_pytree", "checkpoint", "data", "deterministic", "dlpack", "hooks", "swap_tensors"]


def __getattr__(name: str) -> ModuleType:
    """Finds modules that are imported when first named."""
    place = f"toytorch.utils.{name}"
    if name.startswith("__") or importlib.util.find_spec(place) is None:
        raise AttributeError(f"module 'torch.utils' has no attribute '{name}'")
    return importlib.import_module(place)
