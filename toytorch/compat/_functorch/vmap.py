"""`vmap`, and the steps of it that libraries repeat for classes of their own."""

from __future__ import annotations

import importlib
from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.facts.pytree import broadcast_to as _broadcast_to_and_flatten
from toytorch.facts.pytree import tree_flatten, tree_unflatten
from toytorch.func import vmap

__all__ = [
    "Tensor", "_add_batch_dim", "_broadcast_to_and_flatten", "_remove_batch_dim",
    "is_batchedtensor", "tree_flatten", "tree_unflatten", "vmap",
]  # fmt: skip

_steps = importlib.import_module("toytorch._C._functorch")
_add_batch_dim, _remove_batch_dim = _steps._add_batch_dim, _steps._remove_batch_dim
is_batchedtensor = _steps.is_batchedtensor


def _get_name(func: Any) -> str:
    """What messages call a function."""
    return getattr(func, "__name__", repr(func))


def _maybe_remove_batch_dim(
    name: str, batched_output: Any, vmap_level: int, batch_size: int, out_dim: int | None
) -> Any:
    """The whole batch of a result; where `out_dim` is None, a result that has none."""
    if out_dim is not None:
        if not isinstance(batched_output, Tensor):
            raise ValueError(
                f"vmap({name}, ...): `{name}` must only return Tensors, got type "
                f"{type(batched_output)}. Did you mean to set out_dims= to None for output?"
            )
        return _remove_batch_dim(batched_output, vmap_level, batch_size, out_dim)
    if is_batchedtensor(batched_output):
        raise ValueError(
            f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None"
        )
    return batched_output
