"""The ops by their own names, below the public ones, like `torch.ops.aten`."""

from __future__ import annotations

from typing import Any

from toytorch.core.op import registry
from toytorch.ops.define import PUBLIC


def __getattr__(name: str) -> Any:
    if name in PUBLIC:
        return PUBLIC[name]
    if name in registry:
        return registry[name].function
    raise AttributeError(f"'_OpNamespace' 'aten' object has no attribute '{name}'")
