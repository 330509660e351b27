"""Attention of jagged nested tensors: each part attends to itself alone."""

from __future__ import annotations

from typing import Any

import toytorch as torch
from toytorch.facts.hints import Fn
from toytorch.nested.jagged import NestedTensor, nested_view_from_values_offsets_lengths


def refuse(query: Any, key: Any, value: Any, attn_mask: object) -> None:
    """What PyTorch says of operands that do not go together."""
    three = query, key, value
    if not all(isinstance(t, NestedTensor) for t in three):
        raise ValueError(
            "Expected query, key, and value to be nested tensors, but got query.is_nested: "
            f"{query.is_nested}, key.is_nested: {key.is_nested}, and value.is_nested: "
            f"{value.is_nested} instead."
        )
    if len({t.dtype for t in three}) > 1:
        raise ValueError(
            "Expected query, key, and value to have the same dtype, but got query.dtype: "
            f"{query.dtype}, key.dtype: {key.dtype}, and value.dtype: {value.dtype} instead."
        )
    if min(t.dim() for t in three) < 3:
        raise ValueError(
            "Expected query, key, and value to all be at least 3 dimensional, but got query.dim: "
            f"{query.dim()}, key.dim: {key.dim()} and value.dim: {value.dim()} instead."
        )
    if len({t._ragged_idx for t in three}) > 1:
        raise ValueError(
            "Expected query, key, and value to all be ragged on the same dimension, but got ragged "
            f"dims {query._ragged_idx}, {key._ragged_idx}, and {value._ragged_idx}, respectively."
        )
    if attn_mask is not None:
        raise ValueError("Masks are not yet supported!")


def jagged_attention(
    func: Fn,
    query: Any,
    key: Any,
    value: Any,
    attn_mask: object = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> NestedTensor:
    """softmax(q kᵀ · scale) v for each part of tensors of shape (B, heads, j, D)."""
    refuse(query, key, value, attn_mask)
    options = {"dropout_p": dropout_p, "is_causal": is_causal, "scale": scale}
    known = query._maybe_min_seqlen, query._maybe_max_seqlen
    if query.dim() > 3 and query._ragged_idx == 1:  # ragged in what is a batch to attention
        found = func(query._values, key._values, value._values, **options)
        return nested_view_from_values_offsets_lengths(
            found, query._offsets, query._lengths, 1, *known
        )
    parts = [
        func(q.unsqueeze(0), k.unsqueeze(0), v.unsqueeze(0), **options, enable_gqa=enable_gqa)
        for q, k, v in zip(query.unbind(), key.unbind(), value.unbind())
    ]
    # rows first in memory, (Σ s, heads, D), as the input was before its heads were moved forward
    rows = torch.cat([p.squeeze(0).transpose(0, 1) for p in parts])
    offsets = query._offsets
    if query._lengths is not None:
        offsets = torch.nn.functional.pad(query._lengths.cumsum(0), (1, 0))
    return nested_view_from_values_offsets_lengths(rows, offsets, None, 1, *known).transpose(1, 2)
