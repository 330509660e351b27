"""Causal masks that say where their triangle lies, like `torch.nn.attention.bias`."""

from __future__ import annotations

import enum
from typing import Any

from toytorch.core import subclasses
from toytorch.core.tensor import Tensor, like_class
from toytorch.facts import warned
from toytorch.facts.dtype import bool as bool_type
from toytorch.facts.hints import Args, Device, Fn, Kwargs
from toytorch.nn import functional as F
from toytorch.ops.creation.create import empty, ones

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(enum.IntEnum):
    """Whether the triangle begins in the upper left corner, or ends in the lower right one."""

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


class CausalBias(Tensor):
    """A causal mask for `scaled_dot_product_attention`, which is made when it is needed."""

    variant: CausalVariant
    seq_len_q: int
    seq_len_kv: int

    def __new__(cls, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> Any:
        subclasses.appeared()  # functions ask from when there is the first one
        return like_class(cls, empty(0))

    def __init__(self, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> None:
        assert isinstance(variant, CausalVariant), (
            f"variant must be a CausalVariant, got {type(variant).__name__}"
        )
        self.variant, self.seq_len_q, self.seq_len_kv = variant, seq_len_q, seq_len_kv
        if seq_len_q > seq_len_kv and variant is CausalVariant.LOWER_RIGHT:
            warned.at_call(
                "Lower right causal bias will produce NaNs in the output when seq_len_q > seq_len_kv!"
            )

    def _materialize(self, device: Device = None) -> Tensor:
        """The mask: True where a query may look."""
        below = 0
        if self.variant is CausalVariant.LOWER_RIGHT:
            below = self.seq_len_kv - self.seq_len_q
        full = ones(self.seq_len_q, self.seq_len_kv, dtype=bool_type, device=device)
        return full.tril(below)

    @classmethod
    def __torch_function__(
        cls, func: Fn, types: object, args: Args = (), kwargs: Kwargs | None = None
    ) -> Any:
        if func.__name__ == "scaled_dot_product_attention":
            return attend(*args, **(kwargs or {}))
        return subclasses.torch_function(cls, func, types, args, kwargs)

    def __repr__(self) -> str:
        return repr(self._materialize())


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: CausalBias,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Attention with such a mask."""
    if is_causal:
        raise ValueError("CausalBias should not be used with causal=True")
    square = attn_mask.seq_len_q == attn_mask.seq_len_kv
    plain = square or attn_mask.variant is CausalVariant.UPPER_LEFT
    mask = None if plain else attn_mask._materialize(query.device)
    return F.scaled_dot_product_attention(
        query, key, value, mask, dropout_p, plain, scale=scale, enable_gqa=enable_gqa
    )


def causal_upper_left(*size: int) -> CausalBias:
    """A mask whose triangle begins in the upper left corner.

    >>> causal_upper_left(2, 3)
    tensor([[ True, False, False],
            [ True,  True, False]])
    """
    assert len(size) == 2, "causal_upper_left only supports 2D tensors"
    return CausalBias(CausalVariant.UPPER_LEFT, *size)


def causal_lower_right(*size: int) -> CausalBias:
    """A mask whose triangle ends in the lower right corner.

    >>> causal_lower_right(2, 3)
    tensor([[ True,  True, False],
            [ True,  True,  True]])
    """
    assert len(size) == 2, "causal_lower_right only supports 2D tensors"
    return CausalBias(CausalVariant.LOWER_RIGHT, *size)
