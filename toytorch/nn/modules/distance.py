"""How far apart vectors are."""

from __future__ import annotations

from toytorch.core.tensor import Tensor
from toytorch.nn import functional as F
from toytorch.nn.modules.module import Module


class PairwiseDistance(Module):
    """‖x₁ - x₂ + ε‖ₚ over the last dimension."""

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class CosineSimilarity(Module):
    """x₁·x₂/max(‖x₁‖‖x₂‖, ε) along a dimension."""

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim, self.eps = dim, eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.cosine_similarity(x1, x2, self.dim, self.eps)
