"""The normal distribution."""

from __future__ import annotations

import math

import toytorch as torch
from toytorch.core.tensor import Tensor
from toytorch.distributions.around import LocationScale
from toytorch.distributions.exp_family import ExponentialFamily
from toytorch.distributions.utils import Shape, _standard_normal, by_formula
from toytorch.facts.parts import of_part

__all__ = ["Normal"]


class Normal(LocationScale, ExponentialFamily):
    """The bell: p(x) = exp(-(x - m)²/2s²)/(s√2π), m = `loc`, s = `scale`.

    Raises ValueError for scales that are not positive. Like `torch.distributions.Normal`.

    >>> Normal(torch.tensor([0.0]), torch.tensor([1.0])).log_prob(torch.tensor([1.0]))
    tensor([-1.4189])
    """

    _mean_carrier_measure = 0
    _batched = {"loc": 0, "scale": 0}

    stddev = of_part("scale", "s.")

    variance = by_formula("s².", lambda self: self.stddev.pow(2))

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        """Normal numbers around m."""
        shape = self._extended_shape(sample_shape)
        with torch.no_grad():
            return torch.normal(self.loc.expand(shape), self.scale.expand(shape))

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """m + s·(standard normal numbers)."""
        shape, of = self._extended_shape(sample_shape), self.loc
        return of + _standard_normal(shape, dtype=of.dtype, device=of.device) * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        """-(x - m)²/2s² - log s - log √2π."""
        self._check_sample(value)
        square = (value - self.loc) ** 2
        return -square / (2 * self.scale**2) - self.scale.log() - math.log(math.sqrt(2 * math.pi))

    def cdf(self, value: Tensor) -> Tensor:
        """(1 + erf((x - m)/s√2))/2."""
        self._check_sample(value)
        z = (value - self.loc) * self.scale.reciprocal() / math.sqrt(2)
        return 0.5 * (1 + torch.erf(z))

    def icdf(self, value: Tensor) -> Tensor:
        """m + s√2·erf⁻¹(2u - 1)."""
        return self.loc + self.scale * torch.erfinv(2 * value - 1) * math.sqrt(2)

    def entropy(self) -> Tensor:
        """(1 + log 2π)/2 + log s."""
        return 0.5 + 0.5 * math.log(2 * math.pi) + torch.log(self.scale)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        square = self.scale.pow(2)
        return (self.loc / square, -0.5 * square.reciprocal())

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        return -0.25 * x.pow(2) / y + 0.5 * torch.log(-math.pi / y)
