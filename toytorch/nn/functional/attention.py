"""Attention: one head, or many with their projections."""

from __future__ import annotations

import math
from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.facts import warned
from toytorch.facts.hints import DType
from toytorch.nn.functional.activation import softmax
from toytorch.nn.functional.drop import dropout
from toytorch.nn.functional.lookup import linear
from toytorch.ops.creation.create import zeros_like
from toytorch.ops.linalg.matmul import baddbmm, bmm
from toytorch.ops.nn.attention import scaled_dot_product_attention
from toytorch.ops.nn.pad import constant_pad_nd
from toytorch.ops.shaping.rearrange import cat

__all__ = ["multi_head_attention_forward", "scaled_dot_product_attention"]


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise AssertionError(message)


def _mha_shape_check(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    key_padding_mask: Tensor | None,
    attn_mask: Tensor | None,
    num_heads: int,
) -> bool:
    """Whether there is a batch dimension; refuses what does not fit."""
    n = query.ndim
    if n not in (2, 3):
        raise AssertionError(
            f"query should be unbatched 2D or batched 3D tensor but received {n}-D query tensor"
        )
    kind = "batched" if n == 3 else "unbatched"
    _require(
        key.ndim == n and value.ndim == n,
        f"For {kind} ({n}-D) `query`, expected `key` and `value` to be {n}-D but found "
        f"{key.ndim}-D and {value.ndim}-D tensors respectively",
    )
    _require(
        key_padding_mask is None or key_padding_mask.ndim == n - 1,
        f"For {kind} ({n}-D) `query`, expected `key_padding_mask` to be `None` or {n - 1}-D "
        f"but found {getattr(key_padding_mask, 'ndim', 0)}-D tensor instead",
    )
    _require(
        attn_mask is None or attn_mask.ndim in (2, 3),
        f"For {kind} ({n}-D) `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found "
        f"{getattr(attn_mask, 'ndim', 0)}-D tensor instead",
    )
    if n == 2 and attn_mask is not None and attn_mask.ndim == 3:
        wanted = (num_heads, query.shape[0], key.shape[0])
        _require(
            tuple(attn_mask.shape) == wanted,
            f"Expected `attn_mask` shape to be {wanted} but got {attn_mask.shape}",
        )
    return n == 3


def _none_or_dtype(input: Tensor | None) -> DType | None:
    """The type of a tensor that may be missing."""
    if input is not None and not isinstance(input, Tensor):
        raise RuntimeError("input to _none_or_dtype() must be None or torch.Tensor")
    return None if input is None else input.dtype


def _canonical_mask(
    mask: Tensor | None,
    mask_name: str,
    other_type: DType | None,
    other_name: str,
    target_type: DType,
    check_other: bool = True,
) -> Any:
    """A mask as numbers to add to scores: -inf where a boolean one holds."""
    if mask is None:
        return None
    if mask.dtype.name != "bool" and not mask.is_floating_point():
        raise AssertionError(f"only bool and floating types of {mask_name} are supported")
    if check_other and other_type is not None and mask.dtype is not other_type:
        warned.at_call(
            f"Support for mismatched {mask_name} and {other_name} is deprecated. Use same type for "
            "both instead."
        )
    if mask.is_floating_point():
        return mask
    return zeros_like(mask, dtype=target_type).masked_fill_(mask, -math.inf)


def _canonical_masks(padding: Tensor | None, mask: Tensor | None, like: Tensor, *names: str) -> Any:
    """Both masks as numbers; `names` are the padding's and the other one's."""
    return (
        _canonical_mask(padding, names[0], _none_or_dtype(mask), names[1], like.dtype),
        _canonical_mask(mask, names[1], None, "", like.dtype, False),
    )


def _masks(
    padding: Any, mask: Any, kind: DType, is_causal: bool, need_weights: bool
) -> tuple[Any, Any, bool]:
    """Both masks as numbers, and whether the causal one alone is asked for, which needs no numbers."""
    padding = _canonical_mask(padding, "key_padding_mask", _none_or_dtype(mask), "attn_mask", kind)
    if is_causal and mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module "
            "method `generate_square_subsequent_mask` to create this mask."
        )
    only_causal = is_causal and padding is None and not need_weights
    mask = None if only_causal else mask
    return padding, _canonical_mask(mask, "attn_mask", None, "", kind, False), only_causal


def _head_size(width: int, expected: int, heads: int) -> int:
    """How wide one of the heads is; refuses a width that is not the expected one, or not divisible."""
    _require(width == expected, f"was expecting embedding dimension of {expected}, but got {width}")
    size = width // heads
    _require(size * heads == width, f"embed_dim {width} not divisible by num_heads {heads}")
    return size


def _check_biases(bias_k: Any, bias_v: Any, static_k: Any, static_v: Any) -> None:
    """Refuses one bias without the other, and biases of keys and values that are given."""
    _require(bias_v is not None, "bias_k is set but bias_v is None")
    _require(bias_k is not None, "bias_v is set but bias_k is None")
    _require(static_k is None, "bias cannot be added to static key.")
    _require(static_v is None, "bias cannot be added to static value.")


def _in_projection_packed(
    q: Tensor, k: Tensor, v: Tensor, w: Tensor, b: Tensor | None = None
) -> tuple[Tensor, ...]:
    """Queries, keys and values by one stacked weight (3E, E); one product where they are one tensor."""
    if q is k and k is v:
        return tuple(linear(q, w, b).chunk(3, -1))
    biases = (None,) * 3 if b is None else b.chunk(3)
    return tuple(linear(x, *each) for x, *each in zip((q, k, v), w.chunk(3), biases))


def _fits(t: Tensor, shape: tuple[int, ...], name: str) -> None:
    _require(tuple(t.shape) == shape, f"expecting {name} shape of {shape}, but got {t.shape}")


def _in_projection(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    w_q: Tensor,
    w_k: Tensor,
    w_v: Tensor,
    b_q: Tensor | None = None,
    b_k: Tensor | None = None,
    b_v: Tensor | None = None,
) -> tuple[Tensor, ...]:
    """Queries, keys and values, each by a weight of its own (E, width of its input)."""
    width, named = (
        q.shape[-1],
        (("query", w_q, b_q, q), ("key", w_k, b_k, k), ("value", w_v, b_v, v)),
    )
    for name, weight, _, x in named:
        _fits(weight, (width, x.shape[-1]), f"{name} weights")
    for name, _, bias, _ in named:
        if bias is not None:
            _fits(bias, (width,), f"{name} bias")
    return tuple(linear(x, weight, bias) for _, weight, bias, x in named)


def _projected(
    query: Tensor, key: Tensor, value: Tensor, weight: Any, weights: Any, bias: Any
) -> tuple[Tensor, ...]:
    """Queries, keys and values by one stacked weight, or by three."""
    if weights is None:
        _require(
            key.shape == value.shape,
            f"key shape {key.shape} does not match value shape {value.shape}",
        )
        _require(weight is not None, "use_separate_proj_weight is False but in_proj_weight is None")
        return _in_projection_packed(query, key, value, weight, bias)
    _require(
        key.shape[:2] == value.shape[:2],
        f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}",
    )
    for name, w in zip("qkv", weights):
        _require(w is not None, f"use_separate_proj_weight is True but {name}_proj_weight is None")
    return _in_projection(query, key, value, *weights, *(() if bias is None else bias.chunk(3)))


def _heads(x: Tensor, given: Any, count: int, size: int, name: str) -> Tensor:
    """(S, B, E) as (B·heads, S, E/heads), unless given in this form."""
    if given is None:
        return x.reshape([x.shape[0], count, size]).transpose(0, 1)
    _require(
        given.shape[0] == count, f"expecting {name}.size(0) of {count}, but got {given.shape[0]}"
    )
    _require(
        given.shape[2] == size, f"expecting {name}.size(2) of {size}, but got {given.shape[2]}"
    )
    return given


def _one_more(mask: Tensor | None) -> Any:
    """A mask with a last column for a key that is always seen."""
    return None if mask is None else constant_pad_nd.function(mask, (0, 1), 0)


def _merged(
    attn_mask: Tensor | None, padding: Tensor | None, batch: int, heads: int, source: int
) -> Any:
    """Both masks as one that can be added to scores (B·heads, L, S)."""
    if padding is None:
        return attn_mask
    for d, size in enumerate((batch, source)):
        if padding.shape[d] != size:
            raise AssertionError(
                f"Expected key_padded_mask.shape[{d}] to be {size}, but got {padding.shape[d]}"
            )
    wide = padding.reshape([batch, 1, 1, source]).expand([-1, heads, -1, -1])
    wide = wide.reshape([batch * heads, 1, source])
    return wide if attn_mask is None else attn_mask + wide


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Attention with several heads (Vaswani et al. 2017): the result and the weights.

    query (L, B, E), key and value (S, B, E), or all without B; the result is as the query, the
    weights (B, L, S), or (B, heads, L, S) without the average over heads.
    """
    batched = _mha_shape_check(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        same = query is key and key is value
        query = query.unsqueeze(1)
        key, value = (query, query) if same else (key.unsqueeze(1), value.unsqueeze(1))
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    length, batch, width = query.shape
    count = batch * num_heads
    padding, mask, only_causal = _masks(
        key_padding_mask, attn_mask, query.dtype, is_causal, need_weights
    )
    size = _head_size(width, embed_dim_to_check, num_heads)
    separate = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else None
    q, k, v = _projected(query, key, value, in_proj_weight, separate, in_proj_bias)
    mask = _fitted(mask, length, key.shape[0], count)
    if bias_k is not None or bias_v is not None:
        _check_biases(bias_k, bias_v, static_k, static_v)
        k, v = (
            cat.function([x, b.repeat(1, batch, 1)])  # type: ignore[union-attr]  # both are there, see above
            for x, b in ((k, bias_k), (v, bias_v))
        )
        mask, padding = _one_more(mask), _one_more(padding)
    q = _heads(q, None, count, size, "q")
    k = _heads(k, static_k, count, size, "static_k")
    v = _heads(v, static_v, count, size, "static_v")
    if add_zero_attn:
        zeros = k.new_zeros([count, 1, size])
        k, v = cat.function([k, zeros], 1), cat.function([v, zeros], 1)
        mask, padding = _one_more(mask), _one_more(padding)
    mask = _merged(mask, padding, batch, num_heads, k.shape[1])
    chance = dropout_p if training else 0.0
    if need_weights:
        made, weights = _weighted(q, k, v, mask, chance)
    else:
        made = _unweighted(q, k, v, mask, chance, only_causal, batch, num_heads)
    made = linear(
        made.transpose(0, 1).reshape([length * batch, width]), out_proj_weight, out_proj_bias
    )
    made = made.reshape([length, batch, out_proj_weight.shape[0]])
    if not need_weights:
        return (made if batched else made.squeeze(1)), None
    weights = weights.reshape([batch, num_heads, length, k.shape[1]])
    weights = weights.mean(1) if average_attn_weights else weights
    return (made, weights) if batched else (made.squeeze(1), weights.squeeze(0))


def _fitted(mask: Tensor | None, length: int, source: int, count: int) -> Any:
    """A mask (1, L, S) or (B·heads, L, S)."""
    if mask is None:
        return None
    wanted = (length, source) if mask.ndim == 2 else (count, length, source)
    if tuple(mask.shape) != wanted:
        raise RuntimeError(
            f"The shape of the {mask.ndim}D attn_mask is {mask.shape}, but should be {wanted}."
        )
    return mask.unsqueeze(0) if mask.ndim == 2 else mask


def _unweighted(
    q: Tensor, k: Tensor, v: Tensor, mask: Any, chance: float, causal: bool, batch: int, heads: int
) -> Any:
    """Attention without its weights, over (B·heads, L, E)."""
    if mask is not None:
        if mask.shape[0] == 1:
            mask = mask.unsqueeze(0)
        else:
            mask = mask.reshape([batch, heads, mask.shape[1], k.shape[1]])
    q4, k4, v4 = (x.reshape([batch, heads, *x.shape[1:]]) for x in (q, k, v))
    return scaled_dot_product_attention(q4, k4, v4, mask, chance, causal).reshape(q.shape)


def _weighted(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, chance: float
) -> tuple[Any, Any]:
    """Attention with its weights, over (B·heads, L, E)."""
    scaled, transposed = q * math.sqrt(1 / q.shape[-1]), k.transpose(1, 2)
    if mask is None:
        scores = bmm.function(scaled, transposed)
    else:
        scores = baddbmm.function(mask, scaled, transposed)
    weights = softmax(scores, -1)
    weights = dropout(weights, chance) if chance > 0 else weights
    return bmm.function(weights, v), weights
