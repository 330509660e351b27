"""Attention in which a function of one's own changes each score, like PyTorch's `flex_attention`.

The functions are called once, with indices that broadcast to (batch, heads, queries, keys), where
PyTorch calls them under `vmap`: what they compute of each element is the same. All scores are kept.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from toytorch.core.tensor import Tensor
from toytorch.facts import dtype as types
from toytorch.facts import warned
from toytorch.nn.attention.block_mask import (
    BlockMask,
    Mod,
    and_masks,
    create_block_mask,
    create_mask,
    noop_mask,
    or_masks,
    places,
    sliced_mask_mod,
)

__all__ = [
    "AuxOutput", "AuxRequest", "BlockMask", "FlexKernelOptions", "and_masks", "create_block_mask",
    "create_mask", "flex_attention", "noop_mask", "or_masks",
]  # fmt: skip
FlexKernelOptions = dict[str, Any]
_DEFAULT_SPARSE_BLOCK_SIZE = 128
_mask_mod_signature = _score_mod_signature = Mod  # of b, h, q, kv; of the score and these


class AuxRequest(NamedTuple):
    """What is wanted beside the result."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """What was wanted beside the result, or None: log-sum-exp and maximum of scores, (B, H, L)."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


def _check(query: Tensor, key: Tensor, value: Tensor, mask: BlockMask | None, gqa: bool) -> None:
    if not query.dim() == key.dim() == value.dim() == 4:
        raise NotImplementedError("NYI: query, key, and value must be 4D tensors")
    heads, shared = query.shape[1], key.shape[1]
    if not gqa and heads != shared:
        raise ValueError(
            "Expect query and key/value to have the same number of heads but got "
            f"Hq={heads} and Hkv={shared}. Try setting enable_gqa=True for GQA."
        )
    if heads % shared:
        raise ValueError(
            "Expect number of query heads to be a multiple of kv heads for GQA but got "
            f"Hq={heads} and Hkv={shared}."
        )
    if mask is None:
        if query.shape[0] != key.shape[0]:
            raise ValueError(
                "Expect query and key/value to have the same batch size, or non-none block_mask, "
                f"but got block_mask=None, Bq={query.shape[0]}, and Bkv={key.shape[0]}."
            )
        return
    if mask.mask_mod is sliced_mask_mod:
        sliced_mask_mod()
    lengths = query.shape[2], key.shape[2]
    if lengths != tuple(mask.shape[-2:]):
        larger = any(n > m for n, m in zip(lengths, mask.shape[-2:]))
        raise ValueError(
            f"block_mask was created for block_mask.shape={mask.shape} but got q_len={lengths[0]} "
            f"and kv_len={lengths[1]}. As the block mask was created for a "
            + (
                "smaller length than you're using it for, you likely need to create a new block mask."
                if larger
                else "larger length than you're using it for, you can either 1. create a new block "
                "mask with the correct length, or 2. 'adjust' the existing block mask to the correct "
                "length by calling block_mask._adjust(q_len, kv_len)."
            )
        )


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: Mod | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: Any = None,
    *,
    return_aux: AuxRequest | None = None,
) -> Any:
    """softmax(score_mod(q·kᵀ·scale, b, h, q_idx, kv_idx))·v, only where `block_mask` lets it.

    query (B, Hq, L, E), key (B, Hkv, S, E), value (B, Hkv, S, Ev); the result is (B, Hq, L, Ev). Rows
    that see nothing are 0. Raises ValueError for sizes that do not fit each other or the mask.

    >>> x = torch.eye(2).view(1, 1, 2, 2)
    >>> mask = create_block_mask(lambda b, h, q, kv: q >= kv, 1, 1, 2, 2)
    >>> flex_attention(x, x, x, lambda score, b, h, q, kv: score - (q - kv), mask)[0, 0, 0]
    tensor([1., 0.])
    """
    _check(query, key, value, block_mask, enable_gqa)
    if return_lse and return_aux is not None:
        raise ValueError(
            "Cannot specify both return_lse and return_aux. return_lse is deprecated, please use "
            "return_aux=AuxRequest(lse=True) instead."
        )
    if return_lse:
        warned.at_call(
            "return_lse is deprecated and will be removed in v2.10. Please use "
            "return_aux=AuxRequest(lse=True) instead.",
            FutureWarning,
        )
    shared = query.shape[1] // key.shape[1]
    if shared > 1:
        key, value = (t.repeat_interleave(shared, 1) for t in (key, value))
    kind = types.float64 if query.dtype is types.float64 else types.float32
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = (query @ key.transpose(-2, -1)).to(kind) * factor
    batch, heads, queries, keys = scores.shape
    where = places(batch, heads, queries, keys, query.device)
    if score_mod is not None:
        scores = score_mod(scores, *where).expand(scores.shape)
    if block_mask is not None:
        scores = scores.masked_fill(~block_mask.mask_mod(*where), -math.inf)
    blind = scores.isneginf().all(-1, keepdim=True)
    weights = scores.masked_fill(blind, 0.0).softmax(-1).masked_fill(blind, 0.0)
    made = weights.to(query.dtype) @ value
    if return_aux is not None:
        largest = scores.amax(-1) if return_aux.max_scores else None
        return made, AuxOutput(scores.logsumexp(-1) if return_aux.lse else None, largest)
    return (made, scores.logsumexp(-1)) if return_lse else made
