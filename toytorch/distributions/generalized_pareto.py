"""The generalised Pareto distribution."""

from __future__ import annotations

import math

import toytorch as torch
from toytorch.core.tensor import Tensor
from toytorch.distributions import constraints
from toytorch.distributions.distribution import Distribution
from toytorch.distributions.utils import Shape, Value, broadcast_all
from toytorch.facts.parts import of_part

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """How far values exceed a high threshold: P(X > x) = (1 + cz)^(-1/c), z = (x - m)/s.

    m is `loc`, s `scale`, c `concentration`; where c is 0 the chance is e⁻ᶻ, and where it is below 0
    values end at m - s/c. Raises ValueError for scales that are not positive. Like
    `torch.distributions.GeneralizedPareto`.

    >>> one = torch.tensor([1.0])
    >>> GeneralizedPareto(0 * one, one, one).cdf(one)
    tensor([0.5000])
    """

    arg_constraints = {
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }
    has_rsample = True
    _batched = {"loc": 0, "scale": 0, "concentration": 0}

    def __init__(
        self, loc: Value, scale: Value, concentration: Value, validate_args: bool | None = None
    ) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.size(), validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> constraints.Constraint:
        """From m on, up to m - s/c where c < 0."""
        end = self.loc - self.scale / self.concentration
        return constraints.interval(self.loc, torch.where(self.concentration < 0, end, math.inf))

    def _shape(self) -> tuple[Tensor, Tensor]:
        """Where c is 0, and c with 1 in these places."""
        c = self.concentration
        zero = torch.isclose(c, torch.zeros_like(c))
        return zero, torch.where(zero, torch.ones_like(c), c)

    def _z(self, x: Tensor) -> Tensor:
        return (x - self.loc) / self.scale

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """The inverse distribution function of uniform numbers."""
        shape = self._extended_shape(sample_shape)
        return self.icdf(torch.rand(shape, dtype=self.loc.dtype, device=self.loc.device))

    def log_prob(self, value: Tensor) -> Tensor:
        """-log s - (1 + 1/c) log(1 + cz)."""
        self._check_sample(value)
        z, (zero, c) = self._z(value), self._shape()
        power = 1 / c + torch.ones_like(z)
        bent = torch.where(power == 0, power, power * torch.log1p(c * z))  # 0·∞ at the end
        return -self.scale.log() - torch.where(zero, z, bent)

    def log_survival_function(self, value: Tensor) -> Tensor:
        """log P(X > x)."""
        self._check_sample(value)
        z, (zero, c) = self._z(value), self._shape()
        return torch.where(zero, -z, -torch.log1p(c * z) / c)

    def log_cdf(self, value: Tensor) -> Tensor:
        """log P(X ≤ x)."""
        return torch.log1p(-torch.exp(self.log_survival_function(value)))

    def cdf(self, value: Tensor) -> Tensor:
        """1 - (1 + cz)^(-1/c)."""
        return torch.exp(self.log_cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        """m + s((1 - u)⁻ᶜ - 1)/c."""
        zero, c = self._shape()
        log_rest = torch.log1p(-value)
        bent = self.loc + self.scale / c * torch.expm1(-c * log_rest)
        return torch.where(zero, self.loc - self.scale * log_rest, bent)

    @property
    def mean(self) -> Tensor:
        """m + s/(1 - c) with c < 1, else NaN."""
        has = self.concentration < 1
        c = torch.where(has, self.concentration, 0.5)
        return torch.where(has, self.loc + self.scale / (1 - c), math.nan)

    @property
    def variance(self) -> Tensor:
        """s²/((1 - c)²(1 - 2c)) with c < 1/2, else NaN."""
        has = self.concentration < 0.5
        c = torch.where(has, self.concentration, 0.25)
        return torch.where(has, self.scale**2 / ((1 - c) ** 2 * (1 - 2 * c)), math.nan)

    mode = of_part("loc", "m.")

    def entropy(self) -> Tensor:
        """log s + c + 1."""
        return torch.log(self.scale) + self.concentration + 1
