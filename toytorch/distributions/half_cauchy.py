"""The half of Cauchy's distribution."""

from __future__ import annotations

import math

import toytorch as torch
from toytorch.core.tensor import Tensor
from toytorch.distributions import constraints
from toytorch.distributions.cauchy import Cauchy
from toytorch.distributions.transformed_distribution import TransformedDistribution
from toytorch.distributions.transforms import AbsTransform
from toytorch.distributions.utils import Value

__all__ = ["HalfCauchy"]


class HalfCauchy(TransformedDistribution):
    """The absolute value of a Cauchy number around 0: p(x) = 2/(πs(1 + (x/s)²)), s = `scale`.

    Raises ValueError for scales that are not positive. Like `torch.distributions.HalfCauchy`.

    >>> HalfCauchy(torch.tensor([1.0])).cdf(torch.tensor([1.0]))
    tensor([0.5000])
    """

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    base_dist: Cauchy
    _batched = {}

    def __init__(self, scale: Value, validate_args: bool | None = None) -> None:
        base = Cauchy(0, scale, validate_args=False)
        super().__init__(base, AbsTransform(), validate_args=validate_args)

    @property
    def scale(self) -> Tensor:
        """s."""
        return self.base_dist.scale

    @property
    def mean(self) -> Tensor:
        """∞."""
        return self.base_dist.variance

    @property
    def mode(self) -> Tensor:
        """0."""
        return torch.zeros_like(self.scale)

    @property
    def variance(self) -> Tensor:
        """∞."""
        return self.base_dist.variance

    def log_prob(self, value: Tensor) -> Tensor:
        """log 2 more than the whole one's; -∞ below 0."""
        self._check_sample(value)
        value = torch.as_tensor(value, dtype=self.scale.dtype, device=self.scale.device)
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
