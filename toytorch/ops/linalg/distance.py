"""How far apart vectors are."""

from __future__ import annotations

from _thread import get_ident
from typing import Any

import numpy as np

from toytorch.backends.generic import attempt
from toytorch.core.tensor import Tensor, beside, wrap_result
from toytorch.facts import state
from toytorch.facts.hints import Array, ArrayModule
from toytorch.facts.size import broadcast_pair
from toytorch.loops.runtime.jit import SMALLEST
from toytorch.ops.define import in_own_type, public, takes_words
from toytorch.ops.linalg import norms
from toytorch.ops.queries import result_type


def unrecorded_cosine(x1: Tensor, x2: Tensor, dim: int, eps: float) -> Tensor | None:
    """`cosine_similarity` of few numbers where nobody records or watches its steps, the same ones on
    arrays; None for what takes more."""
    a, b, mode = x1._array, x2._array, state.fast_path
    if (
        a.__class__ is not np.ndarray
        or b.__class__ is not np.ndarray
        or x1.dtype is not x2.dtype
        or not x1.dtype.plain
        or a.shape != b.shape
        or not 0 < a.size < SMALLEST
        or dim.__class__ is not int
        or not -a.ndim <= dim < a.ndim
        or eps.__class__ is not float
        or not abs(eps) < 1e30
        or not (a.flags.c_contiguous and b.flags.c_contiguous)
    ):
        return None
    if x1._requires_grad or x2._requires_grad if mode is None else mode != get_ident():
        return None
    units, least = [], a.dtype.type(eps)
    for x in (a, b):
        if x.shape[dim] == 1:  # whose square may be no number
            size = np.abs(x)
        else:
            size = np.sqrt(np.add.reduce(x * x, axis=dim, keepdims=True))
        more = np.maximum(size, least) - size
        more[np.isnan(more)] = 0
        units.append(x / (size + more))
    return wrap_result(np.add.reduce(units[0] * units[1], axis=dim))


@public("cosine_similarity")
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """x₁·x₂/(max(‖x₁‖, eps)·max(‖x₂‖, eps)) along a dimension."""
    made = unrecorded_cosine(x1, x2, dim, eps)
    if made is not None:
        return made
    common = result_type(x1, x2)
    if not common.is_floating_point:
        raise RuntimeError(
            f"expected common dtype to be floating point, yet common dtype is {common.legacy}"
        )
    x1, x2 = (x.to(common) if x.dtype.rank < 2 else x for x in (x1, x2))
    shape = broadcast_pair(tuple(x1.shape), tuple(x2.shape))
    units = []
    for x in (x1.expand(shape), x2.expand(shape)):
        size = x.norm(2, dim, keepdim=True)
        bare = size.detach()  # gradients pass as if it were not held
        units.append(x / (size + (bare.clamp_min(eps) - bare).nan_to_num(0)))  # ∞ - ∞ counts as 0
    return (units[0] * units[1]).sum(dim)


@public("pairwise_distance")
@takes_words()
def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """‖x₁ - x₂ + eps‖ₚ along the last dimension."""
    return (x1 - x2 + float(eps)).norm(p, -1, keepdim=keepdim)


# -- between all pairs of rows of one matrix ------------------------------------------------------


def _pdist(xp: ArrayModule, a: Array, p: float) -> Any:
    if a.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {a.ndim}D")
    if a.dtype.kind != "f" and a.dtype.name != "bfloat16":
        raise RuntimeError("pdist only supports floating-point dtypes")
    if p < 0:
        raise RuntimeError("pdist only supports non-negative p values")
    if a.dtype.itemsize == 2 and (len(a) < 2 or not a.shape[1]):  # nothing to compute
        return xp.zeros(len(a) * (len(a) - 1) // 2, a.dtype)
    if a.dtype.itemsize == 2:
        name = {"float16": "Half"}.get(a.dtype.name, "BFloat16")
        raise NotImplementedError(f"\"pdist\" not implemented for '{name}'")
    made = attempt(xp, "distances_within", a, p)
    if made is not None:
        return made
    n = a.shape[0]
    made = xp.empty(n * (n - 1) // 2, a.dtype)
    start = 0
    for i in range(n - 1):
        made[start : start + n - 1 - i] = norms.pairs(xp, a[i : i + 1], a[i + 1 :], p)[0]
        start += n - 1 - i
    return made


def _pdist_gradient(g: Tensor, self: Tensor, p: float, result: Tensor) -> Any:
    """Each pair pulls at both of its rows: a symmetric matrix of weights."""
    n = self.shape[0]
    if p == 2:
        w = squared.function(norms.share_or_zero.function(g, result), n)
        return norms.by_weights(w, self, self)
    return norms.row_shares(squared.function(g, n), self, self, p, squared.function(result, n))


pdist = in_own_type(
    "pdist(Tensor self, float p=2) -> Tensor",
    _pdist,
    forms="function",
    one_backward=True,
    d_self=_pdist_gradient,
    fresh=True,
    doc="The p-norms between all pairs of rows of (N, D): (N·(N - 1)/2).",
)


def _squared(xp: ArrayModule, a: Array, n: int) -> Any:
    made = attempt(xp, "square_of_pairs", a, n)
    if made is not None:
        return made
    made = xp.zeros((n, n), a.dtype)
    start = 0
    for i in range(n - 1):
        row = a[start : start + n - 1 - i]
        made[i, i + 1 :] = row
        made[i + 1 :, i] = row
        start += n - 1 - i
    return made


def _squared_gradient(g: Tensor) -> Any:
    rows, columns = (beside(g, i) for i in np.triu_indices(g.shape[0], 1))
    return (g + g.mT)[rows, columns]


squared = in_own_type(
    "_square_of_pairs(Tensor self, int n) -> Tensor",
    _squared,
    d_self=_squared_gradient,
    fresh=True,
    doc="The symmetric matrix of numbers for all pairs i < j, with zeros on its diagonal.",
)
