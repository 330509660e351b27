"""Borders: zeros, a constant, the image mirrored, its edge repeated, or its other side."""

from __future__ import annotations

from toytorch.core.tensor import Tensor
from toytorch.facts.hints import Ints, Sizes
from toytorch.facts.parts import Stated, shows
from toytorch.nn import functional as F
from toytorch.nn.modules.module import Module
from toytorch.nn.modules.utils import _ntuple

__all__ = [
    "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d",
    "ConstantPad3d", "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d",
    "ReplicationPad2d", "ReplicationPad3d", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
]  # fmt: skip


class _PadNd(Stated, Module):
    """A border of (before, after) pairs, from the last dimension backwards."""

    mode = "constant"
    dims = 0
    padding: Sizes

    def __init__(self, padding: Ints) -> None:
        super().__init__()
        self.padding = _ntuple(2 * self.dims)(padding)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self.mode)

    extra_repr = shows("=padding")


class _ConstantPadNd(_PadNd):
    """A border of one value."""

    def __init__(self, padding: Ints, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    extra_repr = shows("padding value")


class ConstantPad1d(_ConstantPadNd, dims=1):
    """A border of one value around (B, C, L)."""


class ConstantPad2d(_ConstantPadNd, dims=2):
    """A border of one value around (B, C, H, W)."""


class ConstantPad3d(_ConstantPadNd, dims=3):
    """A border of one value around (B, C, D, H, W)."""


class _ZeroPadNd(_ConstantPadNd):
    """A border of zeros."""

    def __init__(self, padding: Ints) -> None:
        super().__init__(padding, 0.0)

    extra_repr = shows("=padding")


class ZeroPad1d(_ZeroPadNd, ConstantPad1d):
    """A border of zeros around (B, C, L)."""


class ZeroPad2d(_ZeroPadNd, ConstantPad2d):
    """A border of zeros around (B, C, H, W).

    >>> ZeroPad2d((1, 0, 0, 1))(torch.ones(1, 1, 1, 1))
    tensor([[[[0., 1.],
              [0., 0.]]]])
    """


class ZeroPad3d(_ZeroPadNd, ConstantPad3d):
    """A border of zeros around (B, C, D, H, W)."""


class _ReflectionPadNd(_PadNd):
    mode = "reflect"


class ReflectionPad1d(_ReflectionPadNd, dims=1):
    """(B, C, L) mirrored at its ends."""


class ReflectionPad2d(_ReflectionPadNd, dims=2):
    """(B, C, H, W) mirrored at its edges."""


class ReflectionPad3d(_ReflectionPadNd, dims=3):
    """(B, C, D, H, W) mirrored at its faces."""


class _ReplicationPadNd(_PadNd):
    mode = "replicate"


class ReplicationPad1d(_ReplicationPadNd, dims=1):
    """(B, C, L) with its ends repeated."""


class ReplicationPad2d(_ReplicationPadNd, dims=2):
    """(B, C, H, W) with its edges repeated."""


class ReplicationPad3d(_ReplicationPadNd, dims=3):
    """(B, C, D, H, W) with its faces repeated."""


class _CircularPadNd(_PadNd):
    mode = "circular"

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim not in (self.dims + 1, self.dims + 2):
            raise ValueError(
                f"expected {self.dims + 1}D or {self.dims + 2}D input (got {input.ndim}D input)"
            )

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        return F.pad(input, self.padding, "circular")


class CircularPad1d(_CircularPadNd, dims=1):
    """(B, C, L) as if its ends met."""


class CircularPad2d(_CircularPadNd, dims=2):
    """(B, C, H, W) as if opposite edges met."""


class CircularPad3d(_CircularPadNd, dims=3):
    """(B, C, D, H, W) as if opposite faces met."""
