"""Weibull's distribution."""

from __future__ import annotations

import toytorch as torch
from toytorch.core.tensor import Tensor
from toytorch.distributions import constraints
from toytorch.distributions.exponential import Exponential
from toytorch.distributions.transformed_distribution import TransformedDistribution
from toytorch.distributions.transforms import AffineTransform, PowerTransform
from toytorch.distributions.utils import Value, broadcast_all, euler_constant

__all__ = ["Weibull"]


class Weibull(TransformedDistribution):
    """Times to failure: P(X > x) = exp(-(x/s)ᵏ), s = `scale`, k = `concentration`.

    Raises ValueError for parameters that are not positive. Like `torch.distributions.Weibull`.

    >>> Weibull(torch.tensor([2.0]), torch.tensor([1.0])).mean
    tensor([2.])
    """

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive
    _batched = {"scale": 0, "concentration": 0, "concentration_reciprocal": 0}

    def __init__(
        self, scale: Value, concentration: Value, validate_args: bool | None = None
    ) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self.concentration_reciprocal = self.concentration.reciprocal()
        base = Exponential(torch.ones_like(self.scale), validate_args=validate_args)
        steps = [
            PowerTransform(exponent=self.concentration_reciprocal),
            AffineTransform(loc=0, scale=self.scale),
        ]  # s·e^(1/k) of exponential numbers e
        super().__init__(base, steps, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """sΓ(1 + 1/k)."""
        return self.scale * torch.exp(torch.lgamma(1 + self.concentration_reciprocal))

    @property
    def mode(self) -> Tensor:
        """s((k - 1)/k)^(1/k)."""
        k = self.concentration
        return self.scale * ((k - 1) / k) ** k.reciprocal()

    @property
    def variance(self) -> Tensor:
        """s²(Γ(1 + 2/k) - Γ(1 + 1/k)²)."""
        first = torch.lgamma(1 + self.concentration_reciprocal)
        second = torch.lgamma(1 + 2 * self.concentration_reciprocal)
        return self.scale.pow(2) * (torch.exp(second) - torch.exp(2 * first))

    def entropy(self) -> Tensor:
        """γ(1 - 1/k) + log(s/k) + 1."""
        inverse = self.concentration_reciprocal
        return euler_constant * (1 - inverse) + torch.log(self.scale * inverse) + 1
