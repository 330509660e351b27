"""The half of a normal distribution."""

from __future__ import annotations

import math

import toytorch as torch
from toytorch.core.tensor import Tensor
from toytorch.distributions import constraints
from toytorch.distributions.normal import Normal
from toytorch.distributions.transformed_distribution import TransformedDistribution
from toytorch.distributions.transforms import AbsTransform
from toytorch.distributions.utils import Value

__all__ = ["HalfNormal"]


class HalfNormal(TransformedDistribution):
    """The absolute value of a normal number around 0: p(x) = √(2/π)/s · exp(-x²/2s²), s = `scale`.

    Raises ValueError for scales that are not positive. Like `torch.distributions.HalfNormal`.

    >>> HalfNormal(torch.tensor([1.0])).mean
    tensor([0.7979])
    """

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    base_dist: Normal
    _batched = {}

    def __init__(self, scale: Value, validate_args: bool | None = None) -> None:
        base = Normal(0, scale, validate_args=False)
        super().__init__(base, AbsTransform(), validate_args=validate_args)

    @property
    def scale(self) -> Tensor:
        """s, which is not the standard deviation."""
        return self.base_dist.scale

    @property
    def mean(self) -> Tensor:
        """s√(2/π)."""
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def mode(self) -> Tensor:
        """0."""
        return torch.zeros_like(self.scale)

    @property
    def variance(self) -> Tensor:
        """s²(1 - 2/π)."""
        return self.scale.pow(2) * (1 - 2 / math.pi)

    def log_prob(self, value: Tensor) -> Tensor:
        """log 2 more than the whole one's; -∞ below 0."""
        self._check_sample(value)
        whole = self.base_dist.log_prob(value) + math.log(2)
        return torch.where(value >= 0, whole, -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        """2F(x) - 1, of the whole one's F."""
        self._check_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, prob: Tensor) -> Tensor:
        """F⁻¹((u + 1)/2)."""
        return self.base_dist.icdf((prob + 1) / 2)

    def entropy(self) -> Tensor:
        """log 2 less than the whole one's."""
        return self.base_dist.entropy() - math.log(2)
