"""`torch._tensor`, where PyTorch keeps the class Tensor."""

from toytorch.core.tensor import Tensor

__all__ = ["Tensor"]
