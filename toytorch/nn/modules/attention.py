"""Attention with several heads."""

from __future__ import annotations

from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.facts.hints import Device, DType
from toytorch.nn import functional as F
from toytorch.nn import init
from toytorch.nn.modules.linear import NonDynamicallyQuantizableLinear
from toytorch.nn.modules.module import Module
from toytorch.nn.parameter import Parameter
from toytorch.ops.creation.create import empty


class MultiheadAttention(Module):
    """concat(head₁ … headₙ)·Wₒ, where headᵢ = softmax(q·kᵀ/√d)·v; Vaswani et al. 2017.

    query (L, B, E), key (S, B, kdim) and value (S, B, vdim), with batch_first (B, L, E) …, or all
    without B. The result is shaped as the query; the weights are (B, L, S).

    >>> attend = MultiheadAttention(4, 2)
    >>> x = torch.ones(5, 3, 4)
    >>> [t.shape for t in attend(x, x, x)]
    [torch.Size([5, 3, 4]), torch.Size([3, 5, 5])]
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Device = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                "embed_dim and num_heads must be greater than 0, got "
                f"embed_dim={embed_dim} and num_heads={num_heads} instead"
            )
        self.embed_dim, self.num_heads, self.dropout = embed_dim, num_heads, dropout
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == self.vdim == embed_dim
        self.batch_first, self.add_zero_attn = batch_first, add_zero_attn
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")
        make: dict[str, Any] = {"device": device, "dtype": dtype}
        same = self._qkv_same_embed_dim
        for name, present, rows, width in (
            ("in_proj_weight", same, 3 * embed_dim, embed_dim),
            ("q_proj_weight", not same, embed_dim, embed_dim),
            ("k_proj_weight", not same, embed_dim, self.kdim),
            ("v_proj_weight", not same, embed_dim, self.vdim),
        ):
            self.register_parameter(
                name, Parameter(empty((rows, width), **make)) if present else None
            )
        if not same:  # the order of PyTorch's state
            self._parameters["in_proj_weight"] = self._parameters.pop("in_proj_weight")
        self.register_parameter(
            "in_proj_bias", Parameter(empty(3 * embed_dim, **make)) if bias else None
        )
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias, **make)
        for name in ("bias_k", "bias_v"):
            self.register_parameter(
                name, Parameter(empty((1, 1, embed_dim), **make)) if add_bias_kv else None
            )
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for name in ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight"):
            if getattr(self, name) is not None:
                init.xavier_uniform_(getattr(self, name))
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)
        for b in (self.bias_k, self.bias_v):
            if b is not None:
                init.xavier_normal_(b)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """The result, and the weights where they are wanted.

        key_padding_mask (B, S) hides keys, attn_mask (L, S) or (B·heads, L, S) hides pairs: where
        it is True, or by what it adds to the scores.
        """
        if query.is_nested or key.is_nested or value.is_nested:
            return self._of_nested(query, key, value, need_weights), None
        transposed = self.batch_first and query.ndim == 3
        if transposed:  # one tensor given three times stays one
            seen: dict[int, Tensor] = {}
            query, key, value = (
                seen.setdefault(id(t), t.transpose(0, 1)) for t in (query, key, value)
            )
        made, weights = F.multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight,
            self.in_proj_bias, self.bias_k, self.bias_v, self.add_zero_attn, self.dropout,
            self.out_proj.weight, self.out_proj.bias, self.training, key_padding_mask,
            need_weights, attn_mask, not self._qkv_same_embed_dim, self.q_proj_weight,
            self.k_proj_weight, self.v_proj_weight, average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )  # fmt: skip
        return (made.transpose(0, 1) if transposed else made), weights

    def _of_nested(self, query: Any, key: Any, value: Any, need_weights: bool) -> Any:
        """Each part of a nested tensor attends to itself."""
        why = ""
        if query is not key or key is not value:
            why = "non-self attention was used (query, key, and value are not the same Tensor)"
        elif not self.batch_first:
            why = "batch_first was not True"
        elif need_weights and self.training:
            why = "training is enabled"
        if why:
            raise AssertionError(
                "MultiheadAttention does not support NestedTensor outside of its fast path. The "
                f"fast path was not hit because {why}"
            )
        made = [self(p, p, p, need_weights=False)[0] for p in query.unbind()]
        return query.with_parts(made)
