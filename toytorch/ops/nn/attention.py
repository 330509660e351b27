"""Attention, and the parts of it that PyTorch has as ops."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from toytorch.core.tensor import Tensor, beside
from toytorch.facts.hints import Array, ArrayModule, DType
from toytorch.facts.size import wrap_dim
from toytorch.ops.define import public, reduction, tensor_first
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
    function=False,
    method=False,
    out=False,
    d_self=_softmax_share,
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


def _check(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None, is_causal: bool
) -> None:
    if not query.dtype == key.dtype == value.dtype:
        raise RuntimeError(
            "Expected query, key, and value to have the same dtype, but got "
            f"query.dtype: {query.dtype.legacy} key.dtype: {key.dtype.legacy} and "
            f"value.dtype: {value.dtype.legacy} instead."
        )
    if min(query.ndim, key.ndim, value.ndim) < 2:
        raise RuntimeError(
            "Expected query, key, and value to all be  at least 2 dimensional, but "
            f"got query.dim(): {query.ndim} key.dim(): {key.ndim} and value.dim(): "
            f"{value.ndim} instead."
        )
    if attn_mask is None:
        return
    if is_causal:
        raise RuntimeError(
            "_scaled_dot_product_attention: Explicit attn_mask should not be set "
            "when is_causal=True"
        )
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


@tensor_first
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
    _check(query, key, value, attn_mask, is_causal)
    if enable_gqa:
        times = query.shape[-3] // max(key.shape[-3], 1), query.shape[-3] // max(value.shape[-3], 1)
        if key.shape[-3] * times[0] != query.shape[-3]:
            raise RuntimeError(
                "Number of heads in key and value must divide the number of heads "
                f"in query, got {sizes_text(key.shape)} and "
                f"{sizes_text(query.shape)}"
            )
        key, value = (t.repeat_interleave(n, -3) for t, n in zip((key, value), times))
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = (query * scale) @ key.transpose(-2, -1)
    if is_causal:
        seen = np.tril(np.ones((query.shape[-2], key.shape[-2]), bool))
        attn_mask = beside(scores, seen)
    if attn_mask is not None:
        scores = scores + additive_mask(attn_mask, scores)
    weights = safe_softmax.function(scores, -1)
    if dropout_p > 0:
        weights = dropout(weights, dropout_p, True)
    return weights.to(value.dtype) @ value


@public("bilinear")
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x₁ᵀ·W·x₂ + b for each of W's matrices: (…, I), (…, J), (O, I, J) to (…, O)."""
    if input1.ndim != input2.ndim:
        raise RuntimeError(
            f"bilinear(): input dimensions do not match: got {input1.ndim} and {input2.ndim}"
        )
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
    half = input1.reshape([-1, i]) @ weight.permute(1, 0, 2).reshape([i, outputs * j])
    made = (half.reshape([-1, outputs, j]) * input2.reshape([-1, 1, j])).sum(-1)
    made = made.reshape([*input1.shape[:-1], outputs]).to(input1.dtype)
    return made if bias is None else made + bias
