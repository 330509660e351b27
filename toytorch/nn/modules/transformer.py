"""The transformer: attention and feed-forward layers, for sequences to sequences."""

from __future__ import annotations

import copy
import math
from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.facts import state, warned
from toytorch.facts.hints import Device, DType, Fn
from toytorch.nn import functional as F
from toytorch.nn import init
from toytorch.nn.functional.attention import _canonical_masks
from toytorch.nn.modules.activation import GELU, ReLU
from toytorch.nn.modules.attention import MultiheadAttention
from toytorch.nn.modules.container import ModuleList
from toytorch.nn.modules.dropout import Dropout
from toytorch.nn.modules.linear import Linear
from toytorch.nn.modules.module import Module
from toytorch.nn.modules.normalization import LayerNorm
from toytorch.ops.creation.create import full

ACTIVATIONS = {"relu": F.relu, "gelu": F.gelu}


def _get_activation_fn(activation: str) -> Any:
    """The function of a name."""
    if activation not in ACTIVATIONS:
        raise RuntimeError(f"activation should be relu/gelu, not {activation}")
    return ACTIVATIONS[activation]


def _get_clones(module: Module, N: int) -> ModuleList:
    """N copies of a module."""
    return ModuleList([copy.deepcopy(module) for _ in range(N)])


def causal_mask(size: int, device: Device = None, dtype: DType | None = None) -> Tensor:
    """-∞ above the diagonal, 0 elsewhere: no position sees those after it."""
    made = full((size, size), -math.inf, device=device, dtype=dtype or Tensor().dtype)
    return made.triu(1)


def is_causal_mask(mask: Tensor | None, said: bool | None, length: int) -> bool:
    """Whether a mask is the causal one: as was said, or by looking at it."""
    if said is not None or mask is None:
        return bool(said)
    like: Any = causal_mask(length, mask.device, mask.dtype if mask.is_floating_point() else None)
    like = like if mask.is_floating_point() else like.ne(0)
    return mask.shape == like.shape and bool(mask.eq(like).all())


class _Layer(Module):
    """What both kinds of layer share: self-attention, and two linear maps around an activation."""

    _norms = 2
    _cross = False  # whether it attends to another sequence, too
    norm_first: bool

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Fn = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Device = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        make: dict[str, Any] = {"device": device, "dtype": dtype}
        for name in ("self_attn", "multihead_attn")[: 1 + self._cross]:
            attention = MultiheadAttention(
                d_model, nhead, dropout, bias, batch_first=batch_first, **make
            )
            setattr(self, name, attention)
        self.linear1 = Linear(d_model, dim_feedforward, bias, **make)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, **make)
        self.norm_first = norm_first
        for i in range(1, self._norms + 1):
            setattr(self, f"norm{i}", LayerNorm(d_model, layer_norm_eps, bias=bias, **make))
        for i in range(1, self._norms + 1):
            setattr(self, f"dropout{i}", Dropout(dropout))
        made: Any = activation
        self.activation = made = _get_activation_fn(made) if isinstance(made, str) else made
        if not self._cross:
            known = {F.relu: 1, ReLU: 1, F.gelu: 2, GELU: 2}  # what PyTorch has one kernel for
            self.activation_relu_or_gelu = known.get(made, known.get(type(made), 0))

    def _sa_block(
        self, x: Tensor, mask: Tensor | None, padding: Tensor | None, causal: bool = False
    ) -> Tensor:
        made = self.self_attn(
            x, x, x, attn_mask=mask, key_padding_mask=padding, need_weights=False, is_causal=causal
        )[0]
        return self.dropout1(made)

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


class TransformerEncoderLayer(_Layer):
    """x ← norm(x + attention(x)), x ← norm(x + W₂·act(W₁·x)); Vaswani et al. 2017.

    norm_first: x ← x + attention(norm(x)), which trains more easily; Xiong et al. 2020.
    """

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        padding, mask = _canonical_masks(
            src_key_padding_mask, src_mask, src, "src_key_padding_mask", "src_mask"
        )
        x, masks = src, (mask, padding, is_causal)
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), *masks)
            return x + self.dropout2(self._ff_block(self.norm2(x)))
        x = self.norm1(x + self._sa_block(x, *masks))
        return self.norm2(x + self.dropout2(self._ff_block(x)))


class TransformerDecoderLayer(_Layer):
    """An encoder layer with attention to the encoder's result between its two parts."""

    _norms, _cross = 3, True

    def _mha_block(
        self, x: Tensor, memory: Tensor, mask: Any, padding: Any, causal: bool
    ) -> Tensor:
        made = self.multihead_attn(
            x, memory, memory, attn_mask=mask, key_padding_mask=padding, need_weights=False,
            is_causal=causal,
        )[0]  # fmt: skip
        return self.dropout2(made)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        x, own = tgt, (tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        other = (memory, memory_mask, memory_key_padding_mask, memory_is_causal)
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), *own)
            x = x + self._mha_block(self.norm2(x), *other)
            return x + self.dropout3(self._ff_block(self.norm3(x)))
        x = self.norm1(x + self._sa_block(x, *own))
        x = self.norm2(x + self._mha_block(x, *other))
        return self.norm3(x + self.dropout3(self._ff_block(x)))


class _Stack(Module):
    """Copies of one layer, and a norm after the last."""

    def __init__(self, layer: Module, num_layers: int, norm: Module | None) -> None:
        super().__init__()
        self.layers = ModuleList(copy.deepcopy(layer) for _ in range(num_layers))
        self.num_layers, self.norm = num_layers, norm

    def _length(self, x: Tensor) -> int:
        batch_first = self.layers[0].self_attn.batch_first
        return int(x.shape[0 if x.ndim == 2 or not batch_first else 1])

    def _normed(self, x: Tensor) -> Tensor:
        return x if self.norm is None else self.norm(x)


def keeps_padding(layer: Module) -> str:
    """What keeps PyTorch from evaluating an encoder of such layers without the padding; empty if
    nothing does."""
    if not isinstance(layer, TransformerEncoderLayer):
        return " was not TransformerEncoderLayer"
    attention = layer.self_attn
    if layer.norm_first:
        return ".norm_first was True"
    if not attention.batch_first:
        return (
            ".self_attn.batch_first was not True(use batch_first for better inference performance)"
        )
    if attention.in_proj_bias is None:
        return ".self_attn was passed bias=False"
    if not layer.activation_relu_or_gelu:
        return ".activation_relu_or_gelu was not True"
    if layer.norm1.eps != layer.norm2.eps:
        return ".norm1.eps was not equal to encoder_layer.norm2.eps"
    return ".self_attn.num_heads is odd" if attention.num_heads % 2 else ""


class TransformerEncoder(_Stack):
    """A stack of encoder layers."""

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__(encoder_layer, num_layers, norm)
        self.enable_nested_tensor, self.mask_check = enable_nested_tensor, mask_check
        why_not = keeps_padding(encoder_layer)
        self.use_nested_tensor = enable_nested_tensor and not why_not
        if enable_nested_tensor and why_not:
            warned.at_call(
                "enable_nested_tensor is True, but self.use_nested_tensor is False because "
                f"encoder_layer{why_not}"
            )

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        padding, mask = _canonical_masks(
            src_key_padding_mask, mask, src, "src_key_padding_mask", "mask"
        )
        causal = is_causal_mask(mask, is_causal, self._length(src))
        clears = self._clears(src, src_key_padding_mask) and mask is None
        for layer in self.layers:
            src = layer(src, src_mask=mask, is_causal=causal, src_key_padding_mask=padding)
        if clears and src_key_padding_mask is not None:
            src = src.masked_fill(src_key_padding_mask.ne(0).unsqueeze(-1), 0)
        return self._normed(src)

    def _clears(self, src: Tensor, padding: Tensor | None) -> bool:
        """Whether padded positions come out of the layers as zeros.

        PyTorch evaluates such a batch without its padding, as a nested tensor, and fills the places
        up again; a program that averages over positions sees that. Not where operations are
        watched: its compiler does not do it either, since it asks where the padding lies.
        """
        layer = self.layers[0]
        if (
            padding is None
            or not self.use_nested_tensor
            or layer.training
            or src.ndim != 3
            or (state.fast_path is state.SLOW and state.watched_or_asked())
        ):
            return False
        if self.mask_check and padding.shape != src.shape[:2]:
            raise RuntimeError("Mask size should match input size")
        asked = [src, *layer.parameters()]
        if state.local.grad and any(t.requires_grad for t in asked):
            return False
        padded = padding.ne(0)
        return not (self.mask_check and bool((padded[:, :-1] & ~padded[:, 1:]).any()))


class TransformerDecoder(_Stack):
    """A stack of decoder layers."""

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__(decoder_layer, num_layers, norm)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        causal = is_causal_mask(tgt_mask, tgt_is_causal, self._length(tgt))
        for layer in self.layers:
            tgt = layer(
                tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=causal,
                memory_is_causal=memory_is_causal,
            )  # fmt: skip
        return self._normed(tgt)


class Transformer(Module):
    """An encoder and a decoder; Vaswani et al. 2017.

    >>> model = Transformer(8, 2, 1, 1, 16)
    >>> model(torch.ones(5, 3, 8), torch.ones(4, 3, 8)).shape
    torch.Size([4, 3, 8])
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Fn = F.relu,
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Device = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        make: dict[str, Any] = {"device": device, "dtype": dtype}
        options = (
            d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first,
            norm_first, bias,
        )  # fmt: skip

        def stack(kind: Any, layer: Any, count: int) -> Any:
            norm = LayerNorm(d_model, layer_norm_eps, bias=bias, **make)
            return kind(layer(*options, **make), count, norm)

        if custom_encoder is None:
            custom_encoder = stack(TransformerEncoder, TransformerEncoderLayer, num_encoder_layers)
        if custom_decoder is None:
            custom_decoder = stack(TransformerDecoder, TransformerDecoderLayer, num_decoder_layers)
        self.encoder, self.decoder = custom_encoder, custom_decoder
        self._reset_parameters()
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def _reset_parameters(self) -> None:
        for p in self.parameters():
            if p.ndim > 1:
                init.xavier_uniform_(p)

    @staticmethod
    def generate_square_subsequent_mask(
        sz: int, device: Device = None, dtype: DType | None = None
    ) -> Tensor:
        """-∞ above the diagonal, 0 elsewhere."""
        return causal_mask(sz, device, dtype)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        batch = 0 if self.batch_first else 1
        if src.ndim == 3 and src.shape[batch] != tgt.shape[batch]:
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(
            src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal
        )
        return self.decoder(
            tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )  # fmt: skip
