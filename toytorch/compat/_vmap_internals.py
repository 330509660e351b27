"""`torch._vmap_internals`: the older place of vmap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from toytorch.func import vmap

__all__ = ["vmap"]


def _vmap(
    func: Callable[..., Any],
    in_dims: int | Sequence[int | None] = 0,
    out_dims: int = 0,
    allow_none_pass_through: bool = False,
) -> Callable[..., Any]:
    """`torch.vmap`; results that are None may pass."""
    return vmap(func, in_dims, out_dims)
