"""Pixels moved to channels and back."""

from __future__ import annotations

from toytorch.core.tensor import Tensor
from toytorch.nn import functional as F
from toytorch.nn.modules.module import Module


class PixelShuffle(Module):
    """(…, C·r², H, W) as (…, C, H·r, W·r); Shi et al. 2016."""

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """(…, C, H·r, W·r) as (…, C·r², H, W)."""

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}"
