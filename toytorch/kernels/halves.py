"""What PyTorch's kernels for the CPU round on the way, where numbers have 16 bits.

Most ops are computed in float32 and rounded once. Those here keep something in the half type in
between: a sum that goes on in it, a logarithm (the weights of attention are in `half_attention`). The
functions take the half type and arrays of float32, as the kernels of the records do, and give arrays
of their final types; None where the usual way is PyTorch's, too. Sums in an order are those of one
thread.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from toytorch.facts.hints import Array, Sizes
from toytorch.kernels.convert import cast

LEVELS, STEP = 8, 16  # of the sums of `cascade`


def rounded(a: Any, half: np.dtype[Any]) -> Any:
    """Numbers as the half type has them, in float32."""
    made = cast(a, half)
    return a.astype(half).astype(np.float32) if made is None else wide(made)


def wide(a: Array) -> Any:
    """Numbers of the half type in float32."""
    made = cast(a, np.dtype(np.float32))
    return a.astype(np.float32) if made is None else made


def log_softmax(half: np.dtype[Any], a: Array, dim: int, dtype: None) -> Any:
    """Along the last dimension, where the sum of the exponentials is rounded and its logarithm."""
    if not a.ndim or not a.size or dim not in (-1, a.ndim - 1):
        return None
    z = a - a.max(-1, keepdims=True)
    total = rounded(np.exp(z).sum(-1, keepdims=True), half)
    z -= rounded(np.log(total), half)
    return z.astype(half, "C")


def logsumexp(half: np.dtype[Any], a: Array, dim: Any, keepdim: bool) -> Any:
    """Each of its steps rounded."""
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    over = tuple(d % a.ndim for d in dims) if a.ndim else ()
    if not a.size or not over or any(not -a.ndim <= d < a.ndim for d in dims):
        return None
    top = a.max(over, keepdims=True)
    top = np.where(np.isfinite(top), top, np.float32(0))
    e = rounded(np.exp(rounded(a - top, half)), half)
    total = rounded(np.log(rounded(e.sum(over, keepdims=True), half)), half) + top
    return (total if keepdim else total.squeeze(over)).astype(half)


def pow(half: np.dtype[Any], a: Any, b: Any) -> Any:
    """a³ and a⁻² are products in bfloat16; in float16 a root is no square root: that of -∞ is ∞."""
    if half.name == "float16" and not np.ndim(b) and b in (0.5, -0.5):
        size = np.power(np.abs(a), b)
        return np.where(np.isneginf(a) | (a >= 0), size, np.float32(np.nan)).astype(half)
    if half.name != "bfloat16" or np.ndim(b) or b not in (3, -2):
        return None
    square = rounded(a * a, half)
    return square * a if b == 3 else 1 / square


# -- sums -----------------------------------------------------------------------------------------


def in_order(rows: Array, half: np.dtype[Any]) -> Any:
    """The sum of rows, one after the other, each time rounded."""
    total = np.zeros(rows.shape[1:], np.float32)
    for row in rows:
        total = rounded(total + row, half)
    return total


def cascade(values: Array, half: np.dtype[Any]) -> Any:
    """The sum of numbers as `nll_loss` makes it: the first alone, then sixteen at a time, their sums
    sixteen at a time, and so on; what is left over of each level is added up in the end."""
    left = []
    for _ in range(LEVELS - 1):
        full = max(len(values) - 1, 0) // STEP
        left.append(in_order(values[1 + full * STEP :], half))
        groups = values[1 : 1 + full * STEP].reshape(full, STEP)
        values = np.r_[values[:1], in_order(groups.T, half)]
    left.append(in_order(values, half))
    return in_order(np.array(left, np.float32), half)


def nll_loss(
    half: np.dtype[Any],
    logs: Array,
    target: Array,
    weight: Array | None,
    ignore: int,
    reduction: str,
) -> Any:
    """The mean or the sum of -w[t]·x[t], added up in the half type."""
    flat, classes = target.reshape(-1), logs.shape[1]
    known = flat != ignore
    safe = np.where(known, flat, 0)
    if reduction == "none" or not flat.size or not classes:
        return None
    if safe.min() < 0 or safe.max() >= classes:
        return None
    rows = np.moveaxis(logs, 1, -1).reshape(-1, classes)
    picked = rows[np.arange(flat.size), safe]
    if weight is not None:
        picked = rounded(picked * weight[safe], half)
    total = cascade(np.where(known, 0 - picked, 0).astype(np.float32), half)
    if reduction == "mean":
        with np.errstate(all="ignore"):  # nothing but what is ignored: 0/0
            if weight is None:
                total = total / rounded(np.float32(np.count_nonzero(known)), half)
            else:
                total = total / cascade(np.where(known, weight[safe], np.float32(0)), half)
    return np.asarray(total).astype(half)


def nll_loss_backward(
    half: np.dtype[Any],
    g: Array,
    shape: Any,
    target: Array,
    weight: Array | None,
    ignore: int,
    reduction: str,
) -> Any:
    """-g/Σw, rounded, times w[t] at the places of the classes."""
    flat, classes = target.reshape(-1), shape[1]
    if weight is None or not flat.size or not classes:
        return None
    known = flat != ignore
    safe = np.where(known, flat, 0)
    scale = np.where(known, weight[safe], np.float32(0))
    share = g.reshape(-1) if reduction == "none" else g
    if reduction == "mean":
        with np.errstate(all="ignore"):
            share = rounded(share / cascade(scale, half), half)
    full = np.zeros((flat.size, classes), half)
    full[np.arange(flat.size), safe] = np.where(known, -share * scale, np.float32(0))
    return np.moveaxis(full.reshape(shape[0], *shape[2:], classes), -1, 1)


def embedding_dense_backward(
    half: np.dtype[Any], g: Array, indices: Array, count: int, padding_idx: int, by_frequency: bool
) -> Any:
    """The sums of the rows with the same number, row after row."""
    if by_frequency:
        return None
    flat = indices.reshape(-1)
    rows = g.reshape(flat.size, g.shape[-1])
    if padding_idx >= 0:
        kept = flat != padding_idx
        flat, rows = flat[kept], rows[kept]
    made = np.zeros((count, g.shape[-1]), np.float32)
    order = np.argsort(flat, kind="stable")
    numbers = flat[order]
    first = np.flatnonzero(np.r_[True, numbers[1:] != numbers[:-1]]) if len(flat) else order
    rank = np.arange(len(flat)) - np.repeat(first, np.diff(np.r_[first, len(flat)]))
    by_rank = np.argsort(rank, kind="stable")
    ends = np.cumsum(np.bincount(rank)) if len(flat) else order
    for group in np.split(by_rank, ends[:-1]):  # the first of each number, then the second, …
        places = numbers[group]
        made[places] = rounded(made[places] + rows[order[group]], half)
    return made.astype(half)


# -- norms ----------------------------------------------------------------------------------------


def batch_norm(
    half: np.dtype[Any],
    a: Array,
    w: Array | None,
    b: Array | None,
    running_mean: Array | None,
    running_var: Array | None,
    momentum: float,
    eps: float,
) -> tuple[Any, ...]:
    """(result, mean, rstd) of batch norm, whose mean and rstd are rounded before x is brought to
    them. The running statistics are arrays of the half type, which are moved in place."""
    over, column = (0, *range(2, a.ndim)), (-1, *(1,) * (a.ndim - 2))
    count = np.float32(a.size // a.shape[1])
    mean = a.mean(over)
    total = np.square(a - mean.reshape(column)).sum(over)
    variance = total / count
    if half.name == "bfloat16":
        total = rounded(total, half)
        variance = rounded(total / count, half)
    rstd = rounded(1 / np.sqrt(variance + np.float32(eps)), half)
    m = rounded(mean, half)
    made = (a - m.reshape(column)) * (rstd if w is None else rstd * w).reshape(column)
    if b is not None:
        made += b.reshape(column)
    if running_mean is not None and running_var is not None:
        spread = total / rounded(np.maximum(count - 1, 1), half)
        _move(half, running_mean, running_var, mean, spread, momentum)
    return made.astype(half), mean.astype(half), rstd.astype(half)


def _move(
    half: np.dtype[Any],
    running_mean: Array,
    running_var: Array,
    mean: Array,
    variance: Array,
    momentum: float,
) -> None:
    """running ← (1 - momentum)·running + momentum·value, in bfloat16 step by step."""
    new, old = np.float32(momentum), np.float32(1 - momentum)
    if half.name == "bfloat16":
        new, old = rounded(new, half), rounded(old, half)
        mean = rounded(new * rounded(mean, half), half) + rounded(
            old * running_mean.astype(np.float32), half
        )
        variance = new * rounded(variance, half)
        variance += rounded(old * running_var.astype(np.float32), half)
    else:
        mean = new * mean + old * running_mean.astype(np.float32)
        variance = new * variance + old * running_var.astype(np.float32)
    running_mean[...], running_var[...] = mean.astype(half), variance.astype(half)


def batch_backward(g: Array, a: Array, w: Array | None, mean: Array, rstd: Array) -> Any:
    """The gradients (of x, of the weight, of the bias) of batch norm, or None."""
    half = a.dtype
    if not a.size or any(v is not None and v.dtype != half for v in (g, w, mean, rstd)):
        return None
    over, column = (0, *range(2, a.ndim)), (-1, *(1,) * (a.ndim - 2))
    count = np.float32(a.size // a.shape[1])
    g, a, m, r = (v.astype(np.float32) for v in (g, a, mean, rstd))
    d = a - m.reshape(column)
    total, crossed = g.sum(over), (g * d).sum(over)
    scale = r if w is None else r * w.astype(np.float32)
    dx = g - (total / count).reshape(column) - d * (crossed * r * r / count).reshape(column)
    dx *= scale.reshape(column)
    return tuple(v.astype(half) for v in (dx, crossed * r, total))


def layer_input(g: Array, a: Array, w: Array | None, mean: Array, rstd: Array) -> Any:
    """The gradient of x of layer norm, whose mean and rstd were rounded; in a tuple, or None."""
    half, shape = a.dtype, a.shape
    if any(v is not None and v.dtype != half for v in (g, w, mean, rstd)):
        return None
    n = a.size // max(mean.size, 1)
    g, a, m, r = (v.astype(np.float32).reshape(mean.size, -1) for v in (g, a, mean, rstd))
    share = g if w is None else g * w.astype(np.float32).reshape(-1)
    total = share.sum(1, keepdims=True)
    slope = (total * m - (share * a).sum(1, keepdims=True)) * r * r * r / np.float32(n)
    made = r * share + slope * a + (-slope * m - total * r / np.float32(n))
    return (made.astype(half).reshape(shape),)


def layer_weight(g: Array, a: Array, shape: Sizes, mean: Array, rstd: Array) -> Any:
    """The gradients of weight and bias of layer norm, added up row after row; or None."""
    half = a.dtype
    if any(v.dtype != half for v in (g, mean, rstd)):
        return None
    g, a, m, r = (v.astype(np.float32).reshape(mean.size, -1) for v in (g, a, mean, rstd))
    sums = in_order(g * (r * a - r * m), half), in_order(g, half)
    return tuple(v.astype(half).reshape(shape) for v in sums)
