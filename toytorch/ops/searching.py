"""Distinct elements, and places in sorted sequences."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from toytorch.core.dispatch import NUMBERS
from toytorch.core.size import wrap_dim
from toytorch.core.tensor import Tensor, wrap
from toytorch.ops import create, sort
from toytorch.ops.define import public


@public("unique", method=True)
def unique(input: Tensor, sorted: builtins.bool = True, return_inverse: builtins.bool = False,
           return_counts: builtins.bool = False, dim: int | None = None) -> Any:
    """The distinct elements in order, and how to build the input from them.

    >>> unique(create.tensor([3, 1, 3]))
    tensor([1, 3])
    """
    if dim is not None:
        dim = wrap_dim(dim, input.ndim)
    found = np.unique(input._array, return_inverse=True, return_counts=True, axis=dim)
    values, inverse, counts = (wrap(np.asarray(a)) for a in found)
    inverse = inverse.reshape(input.shape) if dim is None else inverse.reshape(-1)
    results = [values, *([inverse] if return_inverse else []), *([counts] if return_counts else [])]
    return results[0] if len(results) == 1 else tuple(results)


@public("searchsorted", tensor_first=False)
def searchsorted(sorted_sequence: Tensor, input: Any, *, out_int32: builtins.bool = False,
                 right: builtins.bool = False, side: str | None = None, sorter: Any = None,
                 out: Any = None) -> Tensor:
    """Where values would go in a sorted sequence."""
    if side not in (None, "left", "right"):
        raise RuntimeError("torch.searchsorted(): side can only be 'left' or 'right' but got "
                           f"{side}")
    if sorter is not None:
        sorted_sequence = sorted_sequence.gather(-1, sorter)
    values = input if isinstance(input, Tensor) else create.tensor(input)
    return sort.searchsorted.function(  # type: ignore[no-any-return]
        sorted_sequence, values, right=right or side == "right", out_int32=out_int32, out=out)


@public("bucketize", tensor_first=False)
def bucketize(input: Any, boundaries: Tensor, *, out_int32: builtins.bool = False,
              right: builtins.bool = False, out: Any = None) -> Tensor:
    """The bucket of each value."""
    if not isinstance(input, (Tensor, *NUMBERS)):
        raise TypeError("bucketize(): argument 'input' (position 1) must be Tensor, not "
                        f"{type(input).__name__}")
    return searchsorted(boundaries, input, out_int32=out_int32, right=right, out=out)
