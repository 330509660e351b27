"""New tensors like one that `vmap` shows: one for every example, so that each may be written to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.facts import state


def of_each(input: Tensor, make: Callable[[Tensor, int], Any]) -> Any:
    """`make(whole, size)` from the view of the innermost `vmap` that batches the input; None
    outside of one. `whole` is the batch, `size` its length."""
    for mode in reversed(state.local.modes):
        full = getattr(mode, "full", None)
        whole = None if full is None else full(input)
        if whole is not None:
            return mode.hide(make(whole, mode.size))
    return None
