"""Convolutions over one, two and three dimensions."""

from __future__ import annotations

import math
from typing import Any

from toytorch.core.public_modules import finder
from toytorch.core.tensor import Tensor
from toytorch.facts.hints import Device, DType, Ints, Shape, Sizes
from toytorch.facts.parts import Stated, shows
from toytorch.nn import functional as F
from toytorch.nn import init
from toytorch.nn.modules.module import Module
from toytorch.nn.modules.utils import _ntuple, _reverse_repeat_tuple
from toytorch.nn.parameter import Parameter
from toytorch.ops.creation.create import empty

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]

PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Stated, Module):
    """What all convolutions share: sizes, a weight and a bias.

    The weight is (out, in/groups, *kernel_size), or (in, out/groups, *kernel_size) where it is
    transposed; it starts uniform in ±1/√(in/groups·kernel size).
    """

    dims = 0
    function: Any = None
    in_channels: int
    out_channels: int
    kernel_size: Sizes
    stride: Sizes
    padding: Any
    dilation: Sizes
    transposed: bool
    output_padding: Sizes
    groups: int
    padding_mode: str
    weight: Any

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes,
        padding: Shape | str,
        dilation: Sizes,
        transposed: bool,
        output_padding: Sizes,
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Device = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups:
            raise ValueError("out_channels must be divisible by groups")
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(
                    f"Invalid padding string {padding!r}, should be one of {{'valid', 'same'}}"
                )
            if padding == "same" and any(s != 1 for s in stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
        if padding_mode not in PADDING_MODES:
            raise ValueError(
                f"padding_mode must be one of {set(PADDING_MODES)}, but got "
                f"padding_mode='{padding_mode}'"
            )
        self.in_channels, self.out_channels = in_channels, out_channels
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding
        self.dilation, self.transposed, self.output_padding = dilation, transposed, output_padding
        self.groups, self.padding_mode = groups, padding_mode
        self._reversed_padding_repeated_twice = self._border()
        if transposed:
            channels = (in_channels, out_channels // groups)
        else:
            channels = (out_channels, in_channels // groups)
        self.weight = Parameter(empty((*channels, *kernel_size), device=device, dtype=dtype))
        made = Parameter(empty(out_channels, device=device, dtype=dtype)) if bias else None
        self.register_parameter("bias", made)
        self.reset_parameters()

    def _border(self) -> Sizes:
        """The padding as `F.pad` takes it: (before, after) from the last dimension backwards."""
        if not isinstance(self.padding, str):
            return _reverse_repeat_tuple(self.padding, 2)
        border: list[int] = []
        for d, k in zip(reversed(self.dilation), reversed(self.kernel_size)):
            total = d * (k - 1) if self.padding == "same" else 0
            border += [total // 2, total - total // 2]
        return tuple(border)

    def reset_parameters(self) -> None:
        """Draws new starting values."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            bound = 1 / math.sqrt(fan_in) if fan_in else 0
            init.uniform_(self.bias, -bound, bound)

    extra_repr = shows(
        "=in_channels =out_channels kernel_size stride padding dilation output_padding groups bias? "
        "padding_mode",
        padding=0, dilation=1, output_padding=0, groups=1, bias=True, padding_mode="zeros",
    )  # fmt: skip


class _Conv(_ConvNd):
    """A convolution over `dims` dimensions."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Ints,
        stride: Ints = 1,
        padding: Ints | str = 0,
        dilation: Ints = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Device = None,
        dtype: DType | None = None,
    ) -> None:
        each = _ntuple(self.dims)
        border = padding if isinstance(padding, str) else each(padding)
        window = each(kernel_size), each(stride), border, each(dilation), False, each(0)
        more = groups, bias, padding_mode, device, dtype
        super().__init__(in_channels, out_channels, *window, *more)

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        convolve, padding = type(self).function, self.padding
        if self.padding_mode != "zeros":
            input = F.pad(input, self._reversed_padding_repeated_twice, self.padding_mode)
            padding = 0
        return convolve(input, weight, bias, self.stride, padding, self.dilation, self.groups)

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)


class Conv1d(_Conv, function=F.conv1d, dims=1):
    """A convolution of (B, C, L): out(b, o) = bias(o) + Σᵢ weight(o, i) ⋆ input(b, i).

    >>> Conv1d(2, 4, 3, padding=1)
    Conv1d(2, 4, kernel_size=(3,), stride=(1,), padding=(1,))
    """


class Conv2d(_Conv, function=F.conv2d, dims=2):
    """A convolution of (B, C, H, W): out(b, o) = bias(o) + Σᵢ weight(o, i) ⋆ input(b, i).

    >>> Conv2d(3, 8, 5, padding="same")(torch.zeros(1, 3, 10, 10)).shape
    torch.Size([1, 8, 10, 10])
    """


class Conv3d(_Conv, function=F.conv3d, dims=3):
    """A convolution of (B, C, D, H, W): out(b, o) = bias(o) + Σᵢ weight(o, i) ⋆ input(b, i)."""


class _ConvTransposeNd(_ConvNd):
    """The gradient of a convolution with respect to its input, as a layer of its own."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Ints,
        stride: Ints = 1,
        padding: Ints = 0,
        output_padding: Ints = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Ints = 1,
        padding_mode: str = "zeros",
        device: Device = None,
        dtype: DType | None = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        each = _ntuple(self.dims)
        window = each(kernel_size), each(stride), each(padding), each(dilation)
        more: Any = True, each(output_padding), groups, bias, padding_mode, device, dtype
        super().__init__(in_channels, out_channels, *window, *more)

    def forward(self, input: Tensor, output_size: Any = None) -> Tensor:
        """The result; of the sizes that a stride may come from, `output_size` chooses one."""
        convolve = type(self).function
        extra = self._output_padding(input, output_size)
        return convolve(
            input, self.weight, self.bias, self.stride, self.padding, extra, self.groups,
            self.dilation,
        )  # fmt: skip

    def _output_padding(self, input: Tensor, output_size: Any) -> Sizes:
        if output_size is None:
            return self.output_padding
        n, lead = self.dims, input.ndim - self.dims
        sizes = list(output_size)
        sizes = sizes[lead:] if len(sizes) == n + lead else sizes
        if len(sizes) != n:
            raise ValueError(
                f"ConvTranspose{n}D: for {input.ndim}D input, output_size must have "
                f"{n} or {n + lead} elements (got {len(sizes)})"
            )
        smallest = [
            (i - 1) * s - 2 * p + d * (k - 1) + 1
            for i, s, p, d, k in zip(
                input.shape[lead:], self.stride, self.padding, self.dilation, self.kernel_size
            )
        ]
        largest = [m + s - 1 for m, s in zip(smallest, self.stride)]
        if any(not low <= size <= high for low, size, high in zip(smallest, sizes, largest)):
            raise ValueError(
                f"requested an output size of {output_size}, but valid sizes range from "
                f"{smallest} to {largest} (for an input of {input.size()[2:]})"
            )
        return tuple(size - low for size, low in zip(sizes, smallest))


class ConvTranspose1d(_ConvTransposeNd, function=F.conv_transpose1d, dims=1):
    """A transposed convolution of (B, C, L); Zeiler et al. 2010."""


class ConvTranspose2d(_ConvTransposeNd, function=F.conv_transpose2d, dims=2):
    """A transposed convolution of (B, C, H, W); Zeiler et al. 2010.

    >>> ConvTranspose2d(1, 1, 3, stride=2)(torch.zeros(1, 1, 4, 4), output_size=(10, 9)).shape
    torch.Size([1, 1, 10, 9])
    """


class ConvTranspose3d(_ConvTransposeNd, function=F.conv_transpose3d, dims=3):
    """A transposed convolution of (B, C, D, H, W); Zeiler et al. 2010."""


__getattr__ = finder(__name__)
