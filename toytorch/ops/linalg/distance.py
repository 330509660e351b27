"""How far apart vectors are."""

from __future__ import annotations

from typing import Any

import numpy as np

from toytorch.core.tensor import Tensor, beside
from toytorch.facts.size import broadcast_pair
from toytorch.ops.define import public, takes_words
from toytorch.ops.queries import result_type


@public("cosine_similarity")
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """x₁·x₂/(max(‖x₁‖, eps)·max(‖x₂‖, eps)) along a dimension."""
    if not (x1.is_floating_point() or x2.is_floating_point()):
        raise RuntimeError(
            "expected common dtype to be floating point, yet common dtype is "
            f"{x1.dtype.name.capitalize()}"
        )
    common = result_type(x1, x2)
    x1, x2 = x1.to(common), x2.to(common)
    shape = broadcast_pair(tuple(x1.shape), tuple(x2.shape))
    units = [
        x / x.norm(2, dim, keepdim=True).clamp_min(eps)
        for x in (x1.expand(shape), x2.expand(shape))
    ]
    return (units[0] * units[1]).sum(dim)


@public("pairwise_distance")
@takes_words()
def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """‖x₁ - x₂ + eps‖ₚ along the last dimension."""
    return (x1 - x2 + eps).norm(p, -1, keepdim=keepdim)


@public("pdist")
@takes_words()
def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """The p-norms between all pairs of rows of (N, D): (N·(N - 1)/2)."""
    if input.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input.ndim}D")
    if not input.is_floating_point():
        raise RuntimeError("pdist only supports floating-point dtypes")
    if p < 0:
        raise RuntimeError("pdist only supports non-negative p values")
    first, second = (beside(input, i) for i in np.triu_indices(input.shape[0], 1))
    apart: Any = input.index_select(0, first) - input.index_select(0, second)
    return apart.norm(p, -1)
