"""Convolutions, and images as columns of windows."""

from __future__ import annotations

from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.facts.hints import Ints
from toytorch.ops.nn import fold as columns
from toytorch.ops.nn.conv import (
    conv1d,
    conv2d,
    conv3d,
    conv_tbc,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
)
from toytorch.ops.nn.windows import spread_over

__all__ = [
    "conv1d", "conv2d", "conv3d", "conv_tbc", "conv_transpose1d", "conv_transpose2d",
    "conv_transpose3d", "fold", "unfold",
]  # fmt: skip


def _pairs(**sizes: Ints) -> list[Any]:
    """Sizes for height and width, each given as one for both or as two."""
    return [spread_over(value, 2, what) for what, value in sizes.items()]


def unfold(
    input: Tensor, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1
) -> Tensor:
    """All windows of images (B, C, H, W), as columns (B, C·KH·KW, P)."""
    sizes = _pairs(kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride)
    return columns.im2col.function(input, *sizes)


def fold(
    input: Tensor,
    output_size: Ints,
    kernel_size: Ints,
    dilation: Ints = 1,
    padding: Ints = 0,
    stride: Ints = 1,
) -> Tensor:
    """Columns (B, C·KH·KW, P) added where their windows lie in images (B, C, H, W)."""
    sizes = _pairs(
        output_size=output_size,
        kernel_size=kernel_size,
        dilation=dilation,
        padding=padding,
        stride=stride,
    )
    return columns.col2im.function(input, *sizes)
