"""Images in another size."""

from __future__ import annotations

from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.facts.hints import Ints
from toytorch.nn import functional as F
from toytorch.nn.modules.module import Module


class Upsample(Module):
    """(B, C, …) in another size, given directly or as a factor.

    mode: "nearest", "linear", "bilinear", "bicubic" or "trilinear".

    >>> Upsample(scale_factor=2)
    Upsample(scale_factor=2.0, mode='nearest')
    """

    def __init__(
        self,
        size: Ints | None = None,
        scale_factor: float | None = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.name, self.size, self.mode = type(self).__name__, size, mode
        if isinstance(scale_factor, tuple):
            self.scale_factor: Any = tuple(map(float, scale_factor))
        else:
            self.scale_factor = float(scale_factor) if scale_factor else None
        self.align_corners, self.recompute_scale_factor = align_corners, recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.interpolate(
            input, self.size, self.scale_factor, self.mode, self.align_corners,
            self.recompute_scale_factor,
        )  # fmt: skip

    def extra_repr(self) -> str:
        if self.scale_factor is None:
            size = f"size={self.size!r}"
        else:
            size = f"scale_factor={self.scale_factor!r}"
        return f"{size}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """(B, C, H, W) enlarged by repeating pixels."""

    def __init__(self, size: Ints | None = None, scale_factor: float | None = None) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """(B, C, H, W) enlarged by bilinear interpolation, corners aligned."""

    def __init__(self, size: Ints | None = None, scale_factor: float | None = None) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)
