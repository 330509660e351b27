"""Norms of each sample by itself: over layers, groups of channels, neighbouring channels."""

from __future__ import annotations

from typing import Any

import numpy as np

from toytorch.core.tensor import Tensor, wrap
from toytorch.facts.hints import Device, DType, Ints
from toytorch.facts.parts import shows
from toytorch.facts.size import WHOLE
from toytorch.nn import functional as F
from toytorch.nn import init
from toytorch.nn.modules.module import Module
from toytorch.nn.parameter import Parameter
from toytorch.ops.creation.create import empty

__all__ = ["CrossMapLRN2d", "GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]


class _Affine(Module):
    """A weight of 1 and a bias of 0, each of which may be absent."""

    weight: Any
    bias: Any

    def _make_parameters(
        self, shape: Ints, weight: bool, bias: bool, device: Device, dtype: DType | None
    ) -> None:
        for name, present in (("weight", weight), ("bias", weight and bias)):
            made = Parameter(empty(shape, device=device, dtype=dtype)) if present else None
            self.register_parameter(name, made)

    def reset_parameters(self) -> None:
        """Weight 1, bias 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)


class LayerNorm(_Affine):
    """(x - mean)/√(var + ε)·weight + bias over the last dimensions; Ba, Kiros and Hinton 2016.

    >>> LayerNorm(4)
    LayerNorm((4,), eps=1e-05, elementwise_affine=True, bias=True)
    """

    def __init__(
        self,
        normalized_shape: Ints,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Device = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = (
            (normalized_shape,) if isinstance(normalized_shape, WHOLE) else tuple(normalized_shape)
        )
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self._make_parameters(self.normalized_shape, elementwise_affine, bias, device, dtype)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    extra_repr = shows("=normalized_shape eps elementwise_affine bias?")


class RMSNorm(Module):
    """x/√(mean(x²) + ε)·weight over the last dimensions; Zhang and Sennrich 2019."""

    def __init__(
        self,
        normalized_shape: int,
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Device = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = (
            (normalized_shape,) if isinstance(normalized_shape, WHOLE) else tuple(normalized_shape)
        )
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self.register_parameter(
            "weight",
            Parameter(empty(self.normalized_shape, device=device, dtype=dtype))
            if elementwise_affine
            else None,
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Weight 1."""
        if self.elementwise_affine:
            init.ones_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    extra_repr = shows("=normalized_shape eps elementwise_affine")


class GroupNorm(_Affine):
    """Normalisation over groups of channels; Wu and He 2018."""

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Device = None,
        dtype: DType | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups:
            raise ValueError(
                f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})"
            )
        self.num_groups, self.num_channels = num_groups, num_channels
        self.eps, self.affine = eps, affine
        self._make_parameters(num_channels, affine, bias, device, dtype)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    extra_repr = shows("=num_groups =num_channels eps affine bias?")


class LocalResponseNorm(Module):
    """x/(k + α·mean of x² over neighbouring channels)^β; Krizhevsky et al. 2012."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    extra_repr = shows("=size alpha beta k")


class CrossMapLRN2d(LocalResponseNorm):
    """Local response norm of images (B, C, H, W) with the windows of Torch 7.

    Around channel c it takes 2·((size - 1)//2) + 1 channels, and channel 0 always.
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__(size, alpha, beta, k)

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.ndim}D instead.")
        c, reach = np.arange(input.shape[1]), (self.size - 1) // 2
        near = abs(c[:, None] - c) <= reach
        near[:, 0] |= c > 0
        window = wrap(near.astype(input._array.dtype)).to(input.device)
        sums = window.matmul((input * input).flatten(2)).reshape(input.shape)
        return input * (sums * (self.alpha / self.size) + self.k).pow(-self.beta)
