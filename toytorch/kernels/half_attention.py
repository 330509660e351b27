"""Attention of numbers of 16 bits, rounded where PyTorch's flash attention rounds: the weights, before
the values are multiplied by them, and the sums of gradients. It goes over some heads and queries at a
time, whose scores stay in the cache.

Arrays are float32, as in `halves`; results are of the half type that is named.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from toytorch.facts.hints import Array
from toytorch.kernels.attention import blocks, swapped, transposed
from toytorch.kernels.batched_product import product
from toytorch.kernels.halves import rounded, wide
from toytorch.loops import Program, run
from toytorch.loops.runtime import jit

KEYS = 512  # that flash attention looks at together
QUERIES = (768, 256), (192, 64), (0, 32)  # from how many queries on, how many go together
LOWEST = float(np.finfo(np.float32).min)


@functools.cache
def weights_of(half: np.dtype[Any]) -> Program:
    """From scores and the largest of those before: e^(x - the largest), that, and their sum."""
    return Program.parse(f"""x[i,j] float32, t[i] float32, low -> y[i,j] {half.name}, m[i], s[i]
        h = fmax[j](x)
        m = where(h > t, h, t)
        e = exp(x - where(m < low, 0, m))
        s = sum[j](e)
        y = e""")


def product_of(a: Array, b: Array) -> Any:
    """The products of stacks of matrices, by whatever is faster."""
    made = product(a, b)
    return a @ b if made is None else made


def _scores(
    q: Array, k: Array, mask: Array | None, causal: bool, scale: float, at: tuple[slice, slice]
) -> Any:
    """q·kᵀ·scale of some queries and keys, and what the mask adds."""
    rows, columns = at
    made = product_of(q[:, :, rows], transposed(k[:, :, columns]))
    made *= np.float32(scale)
    if mask is not None:
        made += mask[:, :, rows, columns]
    if causal:
        later = np.arange(k.shape[2])[columns] > np.arange(q.shape[2])[rows, None]
        made[..., later] = -np.inf
    return made


def _given(q: Array, k: Array, mask: Array | None, scale: float | None) -> tuple[Any, Any, float]:
    """The mask for all scores, the blocks of keys, and the scale."""
    scale = 1 / math.sqrt(max(q.shape[-1], 1)) if scale is None else scale
    if mask is not None:
        mask = np.broadcast_to(mask, (*q.shape[:3], k.shape[2]))
    return mask, [slice(i, i + KEYS) for i in range(0, k.shape[2], KEYS)], scale


def forward(
    half: np.dtype[Any],
    q: Array,
    k: Array,
    v: Array,
    dropout_p: float,
    causal: bool,
    mask: Array | None,
    scale: float | None,
) -> Any:
    """Attention whose weights are rounded before the values are multiplied by them, block of keys
    by block of keys; and the logarithms of softmax's sums, in float32."""
    if 0 in q.shape or 0 in k.shape:
        return None
    mask, columns, scale = _given(q, k, mask, scale)
    out, sums = np.empty_like(q, half), np.empty(q.shape[:3], np.float32)
    for block in blocks((*q.shape[:3], min(KEYS, k.shape[2])), 4, False):
        heads, queries = block[:2], block.queries
        parts = tuple(None if a is None else a[heads] for a in (q, k, v, mask))
        made, sums[(*heads, queries)] = _attended(half, parts, causal, scale, queries, columns)
        out[(*heads, queries)] = made
    return out, sums


def _attended(
    half: np.dtype[Any],
    given: tuple[Any, ...],
    causal: bool,
    scale: float,
    rows: slice,
    blocks: list[slice],
) -> tuple[Array, Array]:
    """`forward` of some queries, in float32."""
    q, k, v, mask = given
    made = np.zeros(q[:, :, rows].shape, np.float32)
    top = np.full((*made.shape[:3], 1), -np.inf, np.float32)
    total = np.zeros_like(top)
    for columns in blocks:
        x = _scores(q, k, mask, causal, scale, (rows, columns))
        higher, more = np.empty_like(top), np.empty_like(top)
        weights = np.empty(x.shape, half)
        if jit.works():
            a, into = (b.reshape(-1, b.shape[-1]) for b in (x, weights))
            results = into, higher.reshape(-1), more.reshape(-1)
            run(weights_of(half), *results, a, top.reshape(-1), LOWEST)
        else:
            higher = np.maximum(top, x.max(-1, keepdims=True))
            np.exp(x - np.where(higher == -np.inf, np.float32(0), higher), out=x)
            more, weights = x.sum(-1, keepdims=True), x.astype(half)
        fade = np.exp(top - np.where(higher == -np.inf, np.float32(0), higher))
        total = total * fade + more
        made = made * fade + product_of(wide(weights), v[:, :, columns])
        top = higher
    empty = total == 0
    total[empty] = 1
    top[empty] = 0
    return made / total, np.where(empty, np.float32(0), top + np.log(total))[..., 0]


def backward(
    half: np.dtype[Any],
    g: Array,
    q: Array,
    k: Array,
    v: Array,
    made: Array,
    sums: Array,
    dropout_p: float,
    causal: bool,
    mask: Array | None,
    scale: float | None,
) -> Any:
    """The gradients of q, k and v, which are added up in the half type, a block of queries and keys
    at a time."""
    mask, columns, scale = _given(q, k, mask, scale)
    size = next(size for fewest, size in QUERIES if q.shape[2] >= fewest)
    results = [np.empty(swapped(a.shape), half).swapaxes(1, 2) for a in (q, k, v)]
    together = min(size, q.shape[2]) * min(KEYS, k.shape[2])
    for batch, heads, _, _ in blocks((*q.shape[:2], 1, together), 4, False):
        whole = (g, q, k, v, made, sums, mask)
        parts = tuple(None if a is None else a[batch, heads] for a in whole)
        for result, part in zip(results, _gradients(half, parts, causal, scale, size, columns)):
            result[batch, heads] = part
    return tuple(results)


def _gradients(
    half: np.dtype[Any],
    given: tuple[Any, ...],
    causal: bool,
    scale: float,
    size: int,
    blocks: list[slice],
) -> tuple[Array, ...]:
    """`backward` of some heads, in float32."""
    g, q, k, v, made, sums, mask = given
    share = (g * made).sum(-1, keepdims=True)
    dq, dk, dv = (np.zeros(a.shape, np.float32) for a in (q, k, v))
    factor = np.float32(scale)
    for rows in (slice(i, i + size) for i in range(0, q.shape[2], size)):
        for columns in blocks:
            if causal and columns.start >= rows.stop:
                continue
            x = _scores(q, k, mask, causal, scale, (rows, columns))
            np.exp(np.subtract(x, sums[:, :, rows, None], out=x), out=x)
            into, keys = g[:, :, rows], k[:, :, columns]
            weights = rounded(x, half).swapaxes(2, 3)
            more = product_of(weights, into)
            dv[:, :, columns] = rounded(dv[:, :, columns] + more, half)
            x *= product_of(into, transposed(v[:, :, columns])) - share[:, :, rows]
            x = rounded(x, half)
            dq[:, :, rows] = rounded(dq[:, :, rows] + factor * product_of(x, keys), half)
            more = factor * product_of(x.swapaxes(2, 3), q[:, :, rows])
            dk[:, :, columns] = rounded(dk[:, :, columns] + more, half)
    return dq, dk, dv
