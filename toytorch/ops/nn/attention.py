"""Attention, and the parts of it that PyTorch has as ops."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from toytorch.backends.base import of_array
from toytorch.backends.cuda import attention_ways
from toytorch.backends.generic import attempt
from toytorch.backends.sparse import TABLES
from toytorch.core.memory_order import kept
from toytorch.core.tensor import Tensor, beside
from toytorch.facts import state
from toytorch.facts.composed import cast_to
from toytorch.facts.dtype import IN_C, bfloat16, float16, float32, float64
from toytorch.facts.hints import Array, ArrayModule, DType
from toytorch.facts.size import wrap_dim
from toytorch.ops.at_once import taken
from toytorch.ops.define import asks, internal, public, reduction, tensor_first
from toytorch.ops.indexing.by_index import where
from toytorch.ops.nn.dropout import dropout
from toytorch.ops.nn.windows import sizes_text


def _safe_softmax(xp: ArrayModule, a: Array, dim: int, dtype: DType | None) -> Any:
    d = wrap_dim(dim, a.ndim)
    a = a if dtype is None else a.astype(dtype.numpy)
    if a.dtype.kind in "iub":
        raise NotImplementedError('"softmax_lastdim_kernel_impl" not implemented for integers')
    if not a.ndim or not a.size:
        return xp.ones_like(a)
    top = xp.max(a, axis=d, keepdims=True)
    e = xp.exp(a - xp.where(top == -xp.inf, 0, top))
    total = xp.sum(e, axis=d, keepdims=True)
    return xp.divide(e, xp.where(total == 0, 1, total), out=e)


def _softmax_share(g: Tensor, result: Tensor, dim: int) -> Any:
    weighted = g * result
    return weighted - result * weighted.sum(dim, True)


safe_softmax = reduction(
    "_safe_softmax(Tensor self, int dim, dtype? dtype=None) -> Tensor",
    _safe_softmax,
    d_self=_softmax_share,
    one_backward=True,
    names="same",
    doc="softmax, and 0 where a row is -inf throughout.",
)


@public("_softmax_backward_data", "aten._softmax_backward_data")
def softmax_backward_data(
    grad_output: Tensor, output: Tensor, dim: int, input_dtype: DType
) -> Tensor:
    """The gradient of softmax, from that of its result."""
    share = _softmax_share(grad_output, output, dim)
    return share.to(input_dtype).contiguous()


def additive_mask(mask: Tensor, like: Tensor) -> Tensor:
    """A mask to be added to scores: 0 where a boolean mask holds, -inf elsewhere."""
    if mask.dtype.name != "bool":
        return mask
    zero = like.new_zeros(())
    return where.function(mask, zero, zero - math.inf)


def _check(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None) -> None:
    if not query.dtype == key.dtype == value.dtype:
        raise RuntimeError(
            "Expected query, key, and value to have the same dtype, but got "
            f"query.dtype: {IN_C[query.dtype.name]} key.dtype: {IN_C[key.dtype.name]} and "
            f"value.dtype: {IN_C[value.dtype.name]} instead."
        )
    if min(query.ndim, key.ndim, value.ndim) < 2:
        raise RuntimeError(
            "Expected query, key, and value to all be  at least 2 dimensional, but "
            f"got query.dim(): {query.ndim} key.dim(): {key.ndim} and value.dim(): "
            f"{value.ndim} instead."
        )
    if attn_mask is None:
        return
    if (
        attn_mask.dtype.name != "bool"
        and attn_mask.dtype is not query.dtype
        and attn_mask.dtype.name != "float32"
    ):
        raise RuntimeError(
            "Expected attn_mask dtype to be bool or float or to match query dtype, "
            f"but got attn_mask.dtype: {attn_mask.dtype.legacy} and  query.dtype: "
            f"{query.dtype.legacy} instead."
        )


def _weights(
    xp: ArrayModule, q: Array, k: Array, is_causal: bool, mask: Array | None, scale: float
) -> tuple[Any, Any]:
    """softmax of the whole scores, and the logarithms of its sums; 0 where all keys are masked."""
    scores = (q * scale) @ k.swapaxes(2, 3)
    if is_causal:
        scores = xp.where(xp.tril(xp.ones(scores.shape[2:], bool)), scores, -xp.inf)
    if mask is not None:
        scores = scores + mask
    top = scores.max(axis=-1, keepdims=True)
    top = xp.where(top == -xp.inf, 0, top)
    weights = xp.exp(scores - top)
    total = weights.sum(axis=-1, keepdims=True)
    safe = xp.where(total == 0, 1, total)
    return weights / safe, xp.where(total == 0, 0, top + xp.log(safe))[..., 0]


def _flash(
    xp: ArrayModule,
    q: Array,
    k: Array,
    v: Array,
    dropout_p: float,
    is_causal: bool,
    mask: Array | None,
    scale: float | None,
) -> Any:
    scale = 1 / math.sqrt(max(q.shape[-1], 1)) if scale is None else scale
    if 0 in q.shape or 0 in k.shape:  # a traced call, since the function takes another way
        return xp.zeros(q.shape, q.dtype), xp.zeros(q.shape[:3], q.dtype)
    if mask is not None:
        mask = xp.broadcast_to(mask, (*q.shape[:3], k.shape[2]))
    made = attempt(xp, "attention", q, k, v, mask, is_causal, scale)
    if made is not None:
        return kept(made[0], q), made[1]
    weights, sums = _weights(xp, q, k, is_causal, mask, scale)
    return (weights @ v).astype(q.dtype), sums.astype(q.dtype)


def _flash_backward(
    xp: ArrayModule,
    g: Array,
    q: Array,
    k: Array,
    v: Array,
    made: Array,
    sums: Array,
    dropout_p: float,
    is_causal: bool,
    mask: Array | None,
    scale: float | None,
) -> Any:
    scale = 1 / math.sqrt(max(q.shape[-1], 1)) if scale is None else scale
    if mask is not None:
        mask = xp.broadcast_to(mask, (*q.shape[:3], k.shape[2]))
    found = attempt(xp, "attention_backward", g, q, k, v, made, sums, mask, is_causal, scale)
    if found is not None:
        return found
    weights, _ = _weights(xp, q, k, is_causal, mask, scale)
    into = g @ v.swapaxes(2, 3)
    inner = weights * (into - (into * weights).sum(axis=-1, keepdims=True))
    shares = inner @ k * scale, inner.swapaxes(2, 3) @ q * scale, weights.swapaxes(2, 3) @ g
    return tuple(share.astype(q.dtype, copy=False) for share in shares)


flash_backward = internal(
    "_scaled_dot_product_flash_attention_for_cpu_backward(Tensor grad_out, Tensor query, "
    "Tensor key, Tensor value, Tensor out, Tensor logsumexp, float dropout_p, bool is_causal, *, "
    "Tensor? attn_mask=None, float? scale=None) -> (Tensor, Tensor, Tensor)",
    _flash_backward,
    results=(False, False, False),
    halves="halves attention_backward",
    doc="The gradients of q, k and v, block by block; those of these go by `attention_shares`.",
)


def attention_shares(
    g: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    is_causal: bool,
    mask: Tensor | None,
    scale: float | None,
) -> list[Any]:
    """The same gradients from the whole scores, which can be differentiated again."""
    scale = 1 / math.sqrt(max(query.shape[-1], 1)) if scale is None else scale
    scores = (query * scale) @ key.transpose(-2, -1)
    if is_causal:
        later = ~np.tril(np.ones((query.shape[-2], key.shape[-2]), bool))
        scores = scores.masked_fill(beside(scores, later), -math.inf)
    if mask is not None:
        scores = scores + mask
    weights = safe_softmax.function(scores, -1)
    into = g @ value.transpose(-2, -1)
    inner = weights * (into - (into * weights).sum([-1], True))
    return [
        inner @ key * scale,
        inner.transpose(-2, -1) @ query * scale,
        weights.transpose(-2, -1) @ g,
    ]


def _gradient(k: int) -> Any:
    """One of the three gradients, which are made together."""

    def gradient(
        gs: Sequence[Tensor],
        query: Tensor,
        key: Tensor,
        value: Tensor,
        dropout_p: float,
        is_causal: bool,
        attn_mask: Tensor | None,
        scale: float | None,
        result0: Tensor,
        result1: Tensor,
        work: dict[Any, Any],
    ) -> Any:
        if "made" not in work:
            given = query, key, value
            if state.local.grad:
                made = attention_shares(gs[0], *given, is_causal, attn_mask, scale)
            else:
                saved = *given, result0, result1, dropout_p, is_causal
                more = {"attn_mask": attn_mask, "scale": scale}
                made = list(flash_backward.function(gs[0], *saved, **more))
            work["made"] = made
        return taken(work["made"], k)

    return gradient


flash_attention = internal(
    "_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, "
    "float dropout_p=0.0, bool is_causal=False, *, Tensor? attn_mask=None, float? scale=None) "
    "-> (Tensor output, Tensor logsumexp)",
    _flash,
    results=(True, False),
    d_query=_gradient(0),
    d_key=_gradient(1),
    d_value=_gradient(2),
    halves="halves attention",
    doc="softmax(q·kᵀ·scale + mask)·v of (B, H, L, E), and the logarithms of softmax's sums; Dao et al. 2022.",
)


def _fits_flash(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout_p: float
) -> bool:
    """Whether PyTorch has one op for these operands on a CPU."""
    shapes = query.shape, key.shape, value.shape
    if dropout_p or not (query.ndim == key.ndim == value.ndim == 4):
        return False
    if any(0 in s for s in shapes) or len({(*s[:2], s[3]) for s in shapes}) > 1:
        return False
    if key.shape[2] != value.shape[2] or not attention_ways.flash:
        return False
    for t in (query, key, value):
        if t._array.__class__ is not np.ndarray or t.stride(3) != 1:
            return False
        if t.dtype not in (float32, float64, float16, bfloat16):
            return False
    if mask is None:
        return True
    if mask.ndim < 2 and not mask.requires_grad:
        wrap_dim(-2, mask.ndim)  # PyTorch asks for this size, and so refuses what has none
    seen = query.shape[2], key.shape[2]
    return (
        not mask.requires_grad
        and mask.ndim in (2, 4)
        and all(m in (1, n) for m, n in zip(mask.shape[-2:], seen))
        and all(m in (1, n) for m, n in zip(mask.shape[:-2], query.shape))
    )


def on_card(q: Array) -> bool:
    """Whether there is a kernel of attention for an array that is not NumPy's."""
    return q.__class__ not in TABLES and "attention" in of_array(q).kernels


def _usual(query: Tensor, key: Tensor, value: Tensor) -> bool:
    """`_fits_flash` for the usual call, of arrays that are alike in all that it asks."""
    q, k, v = query._array, key._array, value._array
    return bool(
        q.__class__ is k.__class__ is v.__class__
        and (q.__class__ is np.ndarray or on_card(q))
        and q.ndim == 4
        and q.shape == k.shape == v.shape
        and q.dtype is k.dtype is v.dtype
        and q.dtype.char in "fd"
        and q.strides[3] == k.strides[3] == v.strides[3] == q.itemsize
        and q.size
        and query._dtype is key._dtype is value._dtype
        and attention_ways.flash
    )


@tensor_first
@cast_to("half")
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """softmax(q·kᵀ·scale + mask)·v; q (…, L, E), k (…, S, E), v (…, S, F); Vaswani et al. 2017.

    The scale is 1/√E if not given. A boolean mask says where to look; is_causal hides what comes
    later. With enable_gqa several heads of q share one of k and v.
    """
    if attn_mask is None and not dropout_p and _usual(query, key, value):
        return flash_attention.function(query, key, value, 0.0, is_causal, scale=scale)[0]
    if (
        min(query.ndim, key.ndim, value.ndim) > 1
        and query.dtype is key.dtype is value.dtype
        and 0 in (*query.shape[:-1], key.shape[-2], value.shape[-1])
    ):
        return nothing_seen(query, key, value)
    _check(query, key, value, attn_mask)
    if enable_gqa:
        wrap_dim(-3, query.ndim)  # where heads lie
        times = query.shape[-3] // max(key.shape[-3], 1), query.shape[-3] // max(value.shape[-3], 1)
        if key.shape[-3] * times[0] != query.shape[-3]:
            raise RuntimeError(
                "Number of heads in key and value must divide the number of heads "
                f"in query, got {sizes_text(key.shape)} and "
                f"{sizes_text(query.shape)}"
            )
        key, value = (t.repeat_interleave(n, -3) for t, n in zip((key, value), times))
    if _fits_flash(query, key, value, attn_mask, dropout_p):
        mask = None if attn_mask is None else additive_mask(attn_mask, query).to(query.dtype)
        return flash_attention.function(
            query, key, value, 0.0, is_causal, attn_mask=mask, scale=scale
        )[0]
    if is_causal and attn_mask is not None:
        raise RuntimeError(
            "_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True"
        )
    scale = 1 / math.sqrt(max(query.shape[-1], 1)) if scale is None else scale
    kind = query.dtype
    if kind.itemsize == 2:  # one rounding, at the end
        query, key, value = query.to(float32), key.to(float32), value.to(float32)
    scores = (query * scale) @ key.transpose(-2, -1)
    if is_causal:
        seen = np.tril(np.ones((query.shape[-2], key.shape[-2]), bool))
        attn_mask = beside(scores, seen)
    if attn_mask is not None:
        scores = scores + additive_mask(attn_mask, scores)
    weights = safe_softmax.function(scores, -1)
    if dropout_p > 0:
        weights = dropout(weights, dropout_p, True)
    made = weights.to(value.dtype) @ value
    return made.to(kind) if kind.itemsize == 2 else made


def nothing_seen(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Zeros, where there is nothing to attend to or nobody who does; nothing else is asked."""
    made = query.new_zeros((*query.shape[:-1], value.shape[-1]))
    if not any(t.requires_grad for t in (query, key, value)):
        return made
    return made + (query.sum() + key.sum() + value.sum()) * 0


@public("bilinear")
@asks
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x₁ᵀ·W·x₂ + b for each of W's matrices: (…, I), (…, J), (O, I, J) to (…, O)."""
    if input1.ndim != input2.ndim:
        raise RuntimeError(
            f"bilinear(): input dimensions do not match: got {input1.ndim} and {input2.ndim}"
        )
    last = weight if bias is None else bias
    if not input1.dtype is input2.dtype is weight.dtype is last.dtype:
        named = (("input1", input1), ("input2", input2), ("weight", weight), ("bias", bias))
        kinds = (f"{what}: {IN_C[t.dtype.name]}" for what, t in named if t is not None)
        raise RuntimeError(f"All tensors must have the same dtype, got {', '.join(kinds)}")
    for d in range(input1.ndim - 1):
        if input1.shape[d] != input2.shape[d]:
            raise RuntimeError(
                f"bilinear(): input batch dimensions do not match at dim {d}: got "
                f"{input1.shape[d]} and {input2.shape[d]}"
            )
    for k, x in ((1, input1), (2, input2)):
        if x.shape[-1] != weight.shape[k]:
            raise RuntimeError(
                f"bilinear(): input{k} size does not match weight size: got "
                f"{x.shape[-1]} but expected {weight.shape[k]}"
            )
    if bias is not None and bias.shape[0] != weight.shape[0]:
        raise RuntimeError(
            "bilinear(): bias size does not match weight size: got "
            f"{bias.shape[0]} but expected {weight.shape[0]}"
        )
    outputs, i, j = weight.shape
    rows = math.prod(input1.shape[:-1])
    half = input1.reshape([rows, i]) @ weight.permute(1, 0, 2).reshape([i, outputs * j])
    made = (half.reshape([rows, outputs, j]) * input2.reshape([rows, 1, j])).sum(-1)
    made = made.reshape([*input1.shape[:-1], outputs]).to(input1.dtype)
    return made if bias is None else made + bias
