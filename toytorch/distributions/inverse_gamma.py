"""The inverse gamma distribution."""

from __future__ import annotations

import math

import toytorch as torch
from toytorch.core.tensor import Tensor
from toytorch.distributions import constraints
from toytorch.distributions.gamma import Gamma
from toytorch.distributions.transformed_distribution import TransformedDistribution
from toytorch.distributions.transforms import PowerTransform
from toytorch.distributions.utils import Value, by_formula
from toytorch.facts.parts import of_part

__all__ = ["InverseGamma"]


class InverseGamma(TransformedDistribution):
    """1/x of gamma numbers x: p(y) = bᵃy⁻ᵃ⁻¹e^(-b/y)/Γ(a), a = `concentration`, b = `rate`.

    Raises ValueError for parameters that are not positive. Like `torch.distributions.InverseGamma`.

    >>> InverseGamma(torch.tensor([3.0]), torch.tensor([2.0])).mean
    tensor([1.])
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True
    base_dist: Gamma
    _batched = {}

    concentration = of_part("base_dist.concentration", "a.")
    rate = of_part("base_dist.rate", "b.")

    def __init__(
        self, concentration: Value, rate: Value, validate_args: bool | None = None
    ) -> None:
        base = Gamma(concentration, rate, validate_args=validate_args)
        inverse = PowerTransform(-base.rate.new_ones(()))
        super().__init__(base, inverse, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """b/(a - 1) with a > 1, else ∞."""
        a = self.concentration
        return torch.where(a > 1, self.rate / (a - 1), math.inf)

    mode = by_formula("b/(a + 1).", lambda self: self.rate / (self.concentration + 1))

    @property
    def variance(self) -> Tensor:
        """b²/((a - 1)²(a - 2)) with a > 2, else ∞."""
        a = self.concentration
        found = self.rate.square() / ((a - 1).square() * (a - 2))
        return torch.where(a > 2, found, math.inf)

    def entropy(self) -> Tensor:
        """a + log b + log Γ(a) - (1 + a)ψ(a)."""
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()
