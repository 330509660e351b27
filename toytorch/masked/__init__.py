"""Reductions that leave masked elements out, like `torch.masked`.

The functions, such as `masked.sum`, are those that `toytorch.ops` makes public under names that begin
with "masked."; `masked_fill` and its like are functions of `toytorch` itself. The tensors that carry
their mask are in `masked.tensor`, which is imported when one of its names is first used.
"""

import importlib
from typing import Any

from toytorch.ops.define import PUBLIC as _PUBLIC

globals().update(
    {
        name.removeprefix("masked."): function
        for name, function in _PUBLIC.items()
        if name.startswith("masked.")
    }
)


def __getattr__(name: str) -> Any:
    if name == "_ops":  # where PyTorch keeps the functions
        return importlib.import_module("toytorch.masked")
    if name in ("MaskedTensor", "as_masked_tensor", "is_masked_tensor", "masked_tensor"):
        return getattr(importlib.import_module("toytorch.masked.tensor"), name)
    raise AttributeError(f"module 'torch.masked' has no attribute '{name}'")
