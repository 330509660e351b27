"""Reductions that leave masked elements out, like `torch.masked`.

The functions are the compositions of `toytorch.ops` whose public names start so; records of names
like masked_fill are functions of `toytorch` itself. `masked.tensor` has tensors that carry their mask,
which is imported when it is named.
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
    if name in ("MaskedTensor", "as_masked_tensor", "is_masked_tensor", "masked_tensor"):
        return getattr(importlib.import_module("toytorch.masked.tensor"), name)
    raise AttributeError(f"module 'torch.masked' has no attribute '{name}'")
