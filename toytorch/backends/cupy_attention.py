"""Attention on NVIDIA's cards: products of matrices, and one kernel for all that is between them.

The scores of all queries and keys are in memory once; scale, mask and softmax take one pass over
them, and so do the gradients of these.
"""

from __future__ import annotations

from typing import Any

from toytorch.backends.cupy_products import multiply
from toytorch.backends.cupy_rows import launch, real
from toytorch.facts.hints import Array, ArrayModule
from toytorch.loops import Recipe

# A row that sees no key: its weights are 0, and so is the logarithm of their sum.
WEIGHTS = """
    m = max[j](z)
    top = m if m > -inf else 0
    e = exp(z - top)
    s = sum[j](e)
    total = s if s > 0 else 1
    y = e / total
    l = top + log(total) if s > 0 else 0"""
SOFTMAX = Recipe("x[b,i,j], scale -> y[b,i,j], l[b,i]\n    z = x * scale" + WEIGHTS)
CAUSAL = Recipe(
    "x[b,i,j], scale -> y[b,i,j], l[b,i]\n    z = x * scale if index(j) <= index(i) else -inf"
    + WEIGHTS
)
MASKED = Recipe(
    "x[b,i,j], mask[b,i,j], scale -> y[b,i,j], l[b,i]\n    z = x * scale + mask" + WEIGHTS
)
SHARES = Recipe("""y[b,i,j], d[b,i,j], scale -> x[b,i,j]
    w = sum[j](y * d)
    x = y * (d - w) * scale""")


def stack(xp: ArrayModule, a: Array) -> Any:
    """(B, H, L, E) as (B·H, L, E)."""
    return xp.ascontiguousarray(a).reshape(-1, *a.shape[2:])


def product(xp: ArrayModule, a: Array, b: Array) -> Any:
    """The products of two stacks."""
    made = multiply(xp, a, b)
    return xp.matmul(a, b) if made is None else made


def weights(
    xp: ArrayModule, q: Array, k: Array, mask: Array | None, is_causal: bool, scale: float
) -> tuple[Any, Any]:
    """softmax of the scores (B·H, L, S) of stacks, and the logarithms of its sums."""
    scores = product(xp, q, k.swapaxes(1, 2))
    made, sums = xp.empty(scores.shape, q.dtype), xp.empty(scores.shape[:2], q.dtype)
    type = q.dtype.name
    if mask is not None:
        seen = xp.ascontiguousarray(mask).reshape(scores.shape)
        launch(xp, MASKED, type, made, sums, scores, seen, scale)
    else:
        launch(xp, CAUSAL if is_causal else SOFTMAX, type, made, sums, scores, scale)
    return made, sums


def attention(
    xp: ArrayModule, q: Array, k: Array, v: Array, mask: Array | None, is_causal: bool, scale: float
) -> Any:
    """(softmax(q·kᵀ·scale + mask)·v, the logarithms of softmax's sums) of (B, H, L, E); or None."""
    if not real(q, k, v, mask):
        return None
    made, sums = weights(xp, stack(xp, q), stack(xp, k), mask, is_causal, scale)
    out = product(xp, made, stack(xp, v))
    return out.reshape(*q.shape[:3], v.shape[3]), sums.reshape(q.shape[:3])


def attention_backward(
    xp: ArrayModule, g: Array, q: Array, k: Array, v: Array, made: Array, sums: Array,
    mask: Array | None, is_causal: bool, scale: float,
) -> Any:  # fmt: skip
    """The gradients of q, k and v, or None."""
    if not real(g, q, k, v, mask):
        return None
    shapes = q.shape, k.shape, v.shape
    g, q, k, v = (stack(xp, a) for a in (g, q, k, v))
    seen, _ = weights(xp, q, k, mask, is_causal, scale)
    into = product(xp, g, v.swapaxes(1, 2))
    inner = xp.empty(into.shape, into.dtype)
    launch(xp, SHARES, q.dtype.name, inner, seen, into, scale)
    turned = inner.swapaxes(1, 2)
    shares = product(xp, inner, k), product(xp, turned, q), product(xp, seen.swapaxes(1, 2), g)
    return tuple(share.reshape(shape) for share, shape in zip(shares, shapes))
