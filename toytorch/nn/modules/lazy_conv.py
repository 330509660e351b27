"""Convolutions that take their input channels from their first input."""

from __future__ import annotations

from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.facts.hints import Device, DType, Ints, Sizes
from toytorch.nn.modules import conv
from toytorch.nn.modules.lazy import LazyModuleMixin
from toytorch.nn.parameter import UninitializedParameter


class _LazyConv(LazyModuleMixin):
    """What the lazy forms share; stands before the convolution in the list of base classes."""

    dims: int
    in_channels: int
    out_channels: int
    transposed: bool
    groups: int
    kernel_size: Sizes
    weight: Any
    bias: Any

    def __init__(
        self,
        out_channels: int,
        kernel_size: Ints,
        stride: Ints = 1,
        padding: Ints = 0,
        *rest: Any,
        bias: bool = True,
        device: Device = None,
        dtype: DType | None = None,
        **options: Any,
    ) -> None:
        if len(rest) > 2:  # bias was given by position
            bias, rest = rest[2], (*rest[:2], False, *rest[3:])
        else:
            options["bias"] = False
        super().__init__(
            0, 0, kernel_size, stride, padding, *rest, device=device, dtype=dtype, **options
        )
        self.out_channels = out_channels
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draws starting values, once there are parameters."""
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()  # type: ignore[misc]  # the class beside it has it

    def initialize_parameters(self, input: Tensor, *args: object, **kwargs: object) -> None:
        """Shapes weight and bias."""
        if not self.has_uninitialized_params():
            return
        n, name = self.dims, type(self).__name__
        if input.dim() not in (n + 1, n + 2):
            raise RuntimeError(
                f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to "
                f"{name}, but got input of size: {input.shape}"
            )
        self.in_channels = input.shape[-n - 1]
        if self.in_channels % self.groups:
            raise ValueError("in_channels must be divisible by groups")
        if self.transposed:
            channels = (self.in_channels, self.out_channels // self.groups)
        else:
            channels = (self.out_channels, self.in_channels // self.groups)
        self.weight.materialize((*channels, *self.kernel_size))
        if self.bias is not None:
            self.bias.materialize((self.out_channels,))
        self.reset_parameters()


class LazyConv1d(_LazyConv, conv.Conv1d, cls_to_become=conv.Conv1d):
    """A Conv1d that takes in_channels from its first input."""


class LazyConv2d(_LazyConv, conv.Conv2d, cls_to_become=conv.Conv2d):
    """A Conv2d that takes in_channels from its first input."""


class LazyConv3d(_LazyConv, conv.Conv3d, cls_to_become=conv.Conv3d):
    """A Conv3d that takes in_channels from its first input."""


class LazyConvTranspose1d(_LazyConv, conv.ConvTranspose1d, cls_to_become=conv.ConvTranspose1d):
    """A ConvTranspose1d that takes in_channels from its first input."""


class LazyConvTranspose2d(_LazyConv, conv.ConvTranspose2d, cls_to_become=conv.ConvTranspose2d):
    """A ConvTranspose2d that takes in_channels from its first input."""


class LazyConvTranspose3d(_LazyConv, conv.ConvTranspose3d, cls_to_become=conv.ConvTranspose3d):
    """A ConvTranspose3d that takes in_channels from its first input."""
