"""Attention as one call, by the names under which PyTorch's transformer layers ask for it."""

from __future__ import annotations

import math

from toytorch.core.tensor import Tensor
from toytorch.facts import dtype as dtypes

MASK_SHAPES = {0: "(L, L)", 1: "(B, L)"}


def full_mask(mask: Tensor, self: Tensor, mask_type: int | None) -> Tensor:
    """A mask of the scores' shape: of one for all heads and images (0), of keys (1), or of all (2)."""
    kind = 2 if mask_type is None else mask_type
    if mask.dtype is not dtypes.bool:
        raise RuntimeError("Mask should be a boolean tensor")
    if mask.shape == self.shape:  # whatever the kind
        return mask
    if self.ndim == 4 and kind in MASK_SHAPES:
        batch, _, rows, length = self.shape
        if tuple(mask.shape) == ((rows, length) if kind == 0 else (batch, length)):
            return mask[None, None] if kind == 0 else mask[:, None, None]
        raise RuntimeError(f"For mask_type == {kind} mask shape should be {MASK_SHAPES[kind]}")
    raise RuntimeError("For mask_type == 2 mask shape should match input shape")


def _masked_softmax(
    self: Tensor, mask: Tensor, dim: int | None = None, mask_type: int | None = None
) -> Tensor:
    """softmax over the places where `mask` is False; the others are 0.

    `self` is (B, heads, L, L), the mask (L, L) for mask_type 0, (B, L) for 1, else of the same
    shape; a row that is masked throughout is NaN. RuntimeError for a mask of another shape.

    >>> _masked_softmax(torch.zeros(1, 3), torch.tensor([[False, False, True]]))
    tensor([[0.5000, 0.5000, 0.0000]])
    """
    if self.dtype.rank < 2:
        name = self.dtype.legacy
        raise NotImplementedError(f"\"masked_softmax\" not implemented for '{name}'")
    hidden = full_mask(mask, self, mask_type)
    return self.masked_fill(hidden, -math.inf).softmax(-1 if dim is None else dim)


def _transform_bias_rescale_qkv(
    qkv: Tensor, qkv_bias: Tensor, num_heads: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries / √d, keys and values of each head, (B, heads, T, d), of their joint projection
    (B, T, 3·heads·d) before its bias is added."""
    batch, length, width = qkv.shape
    embed = width // 3
    if embed % num_heads:
        raise RuntimeError(
            "Expected D % num_head == 0 to be true, but got false.  (Could this error message be "
            "improved?  If so, please report an enhancement request to PyTorch.)"
        )
    size = embed // num_heads
    parts = (qkv + qkv_bias).reshape(batch, length, 3, num_heads, size).permute(2, 0, 3, 1, 4)
    q, k, v = (parts[i].contiguous() for i in range(3))
    return q / math.sqrt(size), k, v


def _native_multi_head_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim: int,
    num_head: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    mask: Tensor | None = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> tuple[Tensor, Tensor | None]:
    """Multi-head attention of (B, T, D) tensors, and its weights where they are wanted.

    The projection of query, key and value is one matrix (3·D, D). Masks as in `_masked_softmax`.
    """
    check(query, key, value, embed_dim, num_head, qkv_weight, qkv_bias)
    weights, biases = qkv_weight.split(embed_dim), qkv_bias.split(embed_dim)
    batch, length, _ = query.shape
    size = embed_dim // num_head
    q, k, v = (
        (t.matmul(w.t()) + b).reshape(batch, length, num_head, size).transpose(1, 2)
        for t, w, b in zip((query, key, value), weights, biases)
    )
    scores = (q / math.sqrt(size)).matmul(k.transpose(-2, -1))
    shares = scores.softmax(-1) if mask is None else _masked_softmax(scores, mask, -1, mask_type)
    mixed = shares.matmul(v).transpose(1, 2).reshape(batch, length, embed_dim)
    result = mixed.matmul(proj_weight.t()) + proj_bias
    if not need_weights:
        return result, None
    return result, shares.sum(1) / num_head if average_attn_weights else shares


def check(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim: int,
    num_head: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
) -> None:
    """Refuses what does not fit together."""
    width = query.shape[-1]
    for wrong, said in (
        (query.ndim != 3, f"expected 3-D `query`, got {query.ndim}-D tensor"),
        (
            embed_dim != width,
            f"passed-in embed_dim {embed_dim} didn't match last dim of query {width}",
        ),
        (key.ndim != 3, f"expected 3-D `key`, got {key.ndim}-D tensor"),
        (value.ndim != 3, f"expected 3-D `value`, got {value.ndim}-D tensor"),
        (
            not query.shape == key.shape == value.shape,
            "expected `query`/`key`/`value` shapes to match",
        ),
        (qkv_weight.ndim != 2, f"expected 2-D `qkv_weight`, got {qkv_weight.ndim}-D tensor"),
        (width * 3 != qkv_weight.shape[0], "expected `qkv_weight` first dim to be 3x embed_dim"),
        (width != qkv_weight.shape[-1], "expected `qkv_weight` second dim to be embed_Dim"),
        (qkv_bias.ndim != 1, f"expected 1-D `qkv_bias`, got {qkv_bias.ndim}-D tensor"),
        (
            qkv_bias.shape[0] != 3 * width,
            "expected `qkv_bias` first dim and first dim of query to be equal",
        ),
        (width % num_head != 0, "`embed_dim` must divide evenly by `num_heads`"),
    ):
        if wrong:
            raise RuntimeError(said)
