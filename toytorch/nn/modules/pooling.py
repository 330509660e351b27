"""Pooling: windows of images taken together by their maximum or mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.facts.hints import Ints, OutputSize, Shape
from toytorch.facts.parts import Stated, shows
from toytorch.nn import functional as F
from toytorch.nn.modules.module import Module
from toytorch.nn.modules.utils import _ntuple

__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d", "AdaptiveMaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d",
    "FractionalMaxPool2d", "FractionalMaxPool3d", "LPPool1d", "LPPool2d", "LPPool3d", "MaxPool1d",
    "MaxPool2d", "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d",
]  # fmt: skip


class _Pool(Stated, Module):
    """A module that calls one function, for images of so many `dims` where that decides its sizes."""

    function: Any = None
    dims = 0


# -- maxima ---------------------------------------------------------------------------------------


class _MaxPoolNd(_Pool):
    extra_repr = shows("kernel_size stride padding dilation ceil_mode")

    def __init__(
        self,
        kernel_size: Ints,
        stride: Ints | None = None,
        padding: Ints = 0,
        dilation: Ints = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size, self.padding, self.dilation = kernel_size, padding, dilation
        self.stride = kernel_size if stride is None else stride
        self.return_indices, self.ceil_mode = return_indices, ceil_mode

    def forward(self, input: Tensor) -> Any:
        return type(self).function(
            input, self.kernel_size, self.stride, self.padding, self.dilation,
            ceil_mode=self.ceil_mode, return_indices=self.return_indices,
        )  # fmt: skip


class MaxPool1d(_MaxPoolNd, function=F.max_pool1d):
    """Maxima of windows of (B, C, L)."""


class MaxPool2d(_MaxPoolNd, function=F.max_pool2d):
    """Maxima of windows of (B, C, H, W).

    >>> MaxPool2d(2)(torch.arange(4.).reshape(1, 1, 2, 2))
    tensor([[[[3.]]]])
    """


class MaxPool3d(_MaxPoolNd, function=F.max_pool3d):
    """Maxima of windows of (B, C, D, H, W)."""


class _MaxUnpoolNd(_Pool):
    extra_repr = shows("kernel_size stride padding")

    def __init__(self, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0) -> None:
        super().__init__()
        each = _ntuple(self.dims)
        self.kernel_size, self.padding = each(kernel_size), each(padding)
        self.stride = each(kernel_size if stride is None else stride)

    def forward(self, input: Tensor, indices: Tensor, output_size: Shape | None = None) -> Tensor:
        return type(self).function(
            input, indices, self.kernel_size, self.stride, self.padding, output_size
        )


class MaxUnpool1d(_MaxUnpoolNd, function=F.max_unpool1d, dims=1):
    """Puts maxima (B, C, L) back where MaxPool1d found them, zeros elsewhere."""


class MaxUnpool2d(_MaxUnpoolNd, function=F.max_unpool2d, dims=2):
    """Puts maxima (B, C, H, W) back where MaxPool2d found them, zeros elsewhere."""


class MaxUnpool3d(_MaxUnpoolNd, function=F.max_unpool3d, dims=3):
    """Puts maxima (B, C, D, H, W) back where MaxPool3d found them, zeros elsewhere."""


class _FractionalMaxPoolNd(_Pool):
    def __init__(
        self,
        kernel_size: Ints,
        output_size: Any = None,
        output_ratio: Sequence[float] | None = None,
        return_indices: bool = False,
        _random_samples: Any = None,
    ) -> None:
        super().__init__()
        each, name = _ntuple(self.dims), type(self).__name__
        if (output_size is None) == (output_ratio is None):
            raise ValueError(
                f"{name} requires specifying either an output size, or a pooling ratio"
                if output_size is None
                else "only one of output_size and output_ratio may be specified"
            )
        self.kernel_size, self.return_indices = each(kernel_size), return_indices
        self.output_size = None if output_size is None else each(output_size)
        self.output_ratio = None if output_ratio is None else each(output_ratio)
        if self.output_ratio is not None and not all(0 < r < 1 for r in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")
        self.register_buffer("_random_samples", _random_samples)

    def forward(self, input: Tensor) -> Any:
        return type(self).function(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices,
            _random_samples=self._random_samples,
        )  # fmt: skip


class FractionalMaxPool2d(_FractionalMaxPoolNd, function=F.fractional_max_pool2d, dims=2):
    """Maxima of windows of (B, C, H, W) with pseudo-random steps; Graham 2014."""


class FractionalMaxPool3d(_FractionalMaxPoolNd, function=F.fractional_max_pool3d, dims=3):
    """Maxima of windows of (B, C, D, H, W) with pseudo-random steps; Graham 2014."""


# -- means ----------------------------------------------------------------------------------------


class _AvgPoolNd(_Pool):
    extra_repr = shows("kernel_size stride padding")


class AvgPool1d(_AvgPoolNd):
    """Means of windows of (B, C, L)."""

    def __init__(
        self,
        kernel_size: Ints,
        stride: Ints | None = None,
        padding: Ints = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        each = _ntuple(1)
        self.kernel_size, self.padding = each(kernel_size), each(padding)
        self.stride = each(kernel_size if stride is None else stride)
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool1d(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode,
            self.count_include_pad,
        )  # fmt: skip


class _WidePool(_AvgPoolNd):
    """Means of windows with a divisor of one's own."""

    def __init__(
        self,
        kernel_size: Ints,
        stride: Ints | None = None,
        padding: Ints = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size, self.padding = kernel_size, padding
        self.stride = kernel_size if stride is None else stride
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        return type(self).function(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode,
            self.count_include_pad, self.divisor_override,
        )  # fmt: skip


class AvgPool2d(_WidePool, function=F.avg_pool2d):
    """Means of windows of (B, C, H, W)."""


class AvgPool3d(_WidePool, function=F.avg_pool3d):
    """Means of windows of (B, C, D, H, W)."""


class _LPPoolNd(_Pool):
    extra_repr = shows("norm_type kernel_size stride ceil_mode")

    def __init__(
        self,
        norm_type: float,
        kernel_size: Ints,
        stride: Ints | None = None,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.norm_type, self.kernel_size = norm_type, kernel_size
        self.stride, self.ceil_mode = stride, ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        return type(self).function(
            input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode
        )


class LPPool1d(_LPPoolNd, function=F.lp_pool1d):
    """(Σ xᵖ)^{1/p} of windows of (B, C, L)."""


class LPPool2d(_LPPoolNd, function=F.lp_pool2d):
    """(Σ xᵖ)^{1/p} of windows of (B, C, H, W)."""


class LPPool3d(_LPPoolNd, function=F.lp_pool3d):
    """(Σ xᵖ)^{1/p} of windows of (B, C, D, H, W)."""


# -- to a given size ------------------------------------------------------------------------------


class _AdaptiveMaxPoolNd(_Pool):
    extra_repr = shows("output_size")

    def __init__(self, output_size: Ints, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size, self.return_indices = output_size, return_indices

    def forward(self, input: Tensor) -> Any:
        return type(self).function(input, self.output_size, self.return_indices)


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd, function=F.adaptive_max_pool1d):
    """Maxima of as many windows of (B, C, L) as asked for."""


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd, function=F.adaptive_max_pool2d):
    """Maxima of as many windows of (B, C, H, W) as asked for."""


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd, function=F.adaptive_max_pool3d):
    """Maxima of as many windows of (B, C, D, H, W) as asked for."""


class _AdaptiveAvgPoolNd(_Pool):
    extra_repr = shows("output_size")

    def __init__(self, output_size: OutputSize) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        return type(self).function(input, self.output_size)


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd, function=F.adaptive_avg_pool1d):
    """Means of as many windows of (B, C, L) as asked for."""


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd, function=F.adaptive_avg_pool2d):
    """Means of as many windows of (B, C, H, W) as asked for; None keeps a size.

    >>> AdaptiveAvgPool2d((1, None))(torch.ones(1, 3, 5, 7)).shape
    torch.Size([1, 3, 1, 7])
    """


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd, function=F.adaptive_avg_pool3d):
    """Means of as many windows of (B, C, D, H, W) as asked for; None keeps a size."""
