"""Activations along a dimension."""

from __future__ import annotations

from toytorch.core.tensor import Tensor
from toytorch.facts.parts import shows
from toytorch.nn import functional as F
from toytorch.nn.modules.module import Module


class Along(Module):
    """An activation along one dimension."""

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    extra_repr = shows("dim")


class Softmax(Along):
    """eˣ/Σeˣ along a dimension.

    >>> Softmax(dim=0)(torch.tensor([0., 0.]))
    tensor([0.5000, 0.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, self.dim, _stacklevel=5)


class Softmin(Along):
    """softmax of -x."""

    def forward(self, input: Tensor) -> Tensor:
        return F.softmin(input, self.dim, _stacklevel=5)

    extra_repr = shows("dim")


class LogSoftmax(Along):
    """log of softmax along a dimension."""

    def forward(self, input: Tensor) -> Tensor:
        return F.log_softmax(input, self.dim, _stacklevel=5)


class Softmax2d(Module):
    """softmax over the channels of images (B, C, H, W) or (C, H, W)."""

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.ndim}D instead")
        return F.softmax(input, -3, _stacklevel=5)


class GLU(Module):
    """One half times the sigmoid of the other; Dauphin et al. 2017."""

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.glu(input, self.dim)

    extra_repr = shows("dim")
