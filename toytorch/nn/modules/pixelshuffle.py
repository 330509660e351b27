"""Pixels moved to channels and back."""

from __future__ import annotations

from toytorch.core.tensor import Tensor
from toytorch.facts.parts import shows
from toytorch.nn import functional as F
from toytorch.nn.modules.module import Module


class PixelShuffle(Module):
    """(…, C·r², H, W) as (…, C, H·r, W·r); Shi et al. 2016."""

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_shuffle(input, self.upscale_factor)

    extra_repr = shows("upscale_factor")


class PixelUnshuffle(Module):
    """(…, C, H·r, W·r) as (…, C·r², H, W)."""

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_unshuffle(input, self.downscale_factor)

    extra_repr = shows("downscale_factor")
