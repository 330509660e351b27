"""The continuous Bernoulli distribution."""

from __future__ import annotations

import math

import toytorch as torch
from toytorch.core.tensor import Tensor
from toytorch.distributions import constraints
from toytorch.distributions.by_chance import ByChance, need_one
from toytorch.distributions.exp_family import ExponentialFamily
from toytorch.distributions.utils import (
    Shape,
    Value,
    broadcast_all,
    by_formula,
    clamp_probs,
    lazy_property,
    logits_to_probs,
)
from toytorch.nn.functional import binary_cross_entropy_with_logits

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(ByChance, ExponentialFamily):
    """Numbers in [0, 1] with the density C(p)·pˣ(1 - p)¹⁻ˣ (Loaiza-Ganem and Cunningham 2019).

    What the loss of an autoencoder takes pixels for, with the factor C that makes it a density.
    C = 2·artanh(1 - 2p)/(1 - 2p) is 0/0 at p = 1/2: between the two chances `lims` its Taylor series
    stands in. Raises ValueError as `Bernoulli` does. Like `torch.distributions.ContinuousBernoulli`.

    >>> ContinuousBernoulli(torch.tensor([0.5])).log_prob(torch.tensor([0.2]))
    tensor([0.])
    """

    support = constraints.unit_interval
    _mean_carrier_measure = 0
    has_rsample = True
    _batched = ByChance._batched
    _same = ("_lims",)

    def __init__(
        self,
        probs: Value | None = None,
        logits: Value | None = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        need_one(probs, logits)
        if probs is not None:
            (chances,) = broadcast_all(probs)
            if validate_args is not None and not constraints.unit_interval.check(chances).all():
                raise ValueError("The parameter probs has invalid values")
            probs = clamp_probs(chances)
        self._lims = lims
        super().__init__(probs, logits, validate_args)

    @lazy_property
    def probs(self) -> Tensor:
        """The chances p, away from 0 and 1."""
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    # -- around p = 1/2 ----------------------------------------------------------------------------

    def _outside_unstable_region(self) -> Tensor:
        low, high = self._lims
        return (self.probs <= low) | (self.probs > high)

    def _cut_probs(self) -> Tensor:
        """p, and the lower limit in place of what lies between them."""
        low = self._lims[0] * torch.ones_like(self.probs)
        return torch.where(self._outside_unstable_region(), self.probs, low)

    def _log_odds(self) -> Tensor:
        """log(1 - p) - log p outside of the limits."""
        p = self._cut_probs()
        return torch.log1p(-p) - torch.log(p)

    def _cont_bern_log_norm(self) -> Tensor:
        """log C."""
        p = self._cut_probs()
        below = torch.where(p <= 0.5, p, torch.zeros_like(p))
        above = torch.where(p >= 0.5, p, torch.ones_like(p))
        gap = torch.where(p <= 0.5, torch.log1p(-2.0 * below), torch.log(2.0 * above - 1.0))
        exact = torch.log(torch.abs(self._log_odds())) - gap
        x = torch.pow(self.probs - 0.5, 2)
        taylor = math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x
        return torch.where(self._outside_unstable_region(), exact, taylor)

    # -- what it answers ---------------------------------------------------------------------------

    @property
    def mean(self) -> Tensor:
        """p/(2p - 1) + 1/(log(1 - p) - log p)."""
        p = self._cut_probs()
        exact = p / (2.0 * p - 1.0) + 1.0 / self._log_odds()
        x = self.probs - 0.5
        taylor = 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * torch.pow(x, 2)) * x
        return torch.where(self._outside_unstable_region(), exact, taylor)

    stddev = by_formula("The root of the variance.", lambda self: torch.sqrt(self.variance))

    @property
    def variance(self) -> Tensor:
        """p(p - 1)/(1 - 2p)² + 1/(log(1 - p) - log p)²."""
        p = self._cut_probs()
        exact = p * (p - 1.0) / torch.pow(1.0 - 2.0 * p, 2) + 1.0 / torch.pow(self._log_odds(), 2)
        x = torch.pow(self.probs - 0.5, 2)
        taylor = 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x
        return torch.where(self._outside_unstable_region(), exact, taylor)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """The inverse distribution function of uniform numbers."""
        shape, of = self._extended_shape(sample_shape), self.probs
        return self.icdf(torch.rand(shape, dtype=of.dtype, device=of.device))

    def log_prob(self, value: Tensor) -> Tensor:
        """x log p + (1 - x) log(1 - p) + log C."""
        self._check_sample(value)
        logits, value = broadcast_all(self.logits, value)
        loss = binary_cross_entropy_with_logits(logits, value, reduction="none")
        return -loss + self._cont_bern_log_norm()

    def cdf(self, value: Tensor) -> Tensor:
        """(pˣ(1 - p)¹⁻ˣ + p - 1)/(2p - 1)."""
        self._check_sample(value)
        p = self._cut_probs()
        inside = torch.pow(p, value) * torch.pow(1.0 - p, 1.0 - value) + p - 1.0
        inside = inside / (2.0 * p - 1.0)
        inside = torch.where(self._outside_unstable_region(), inside, value)
        at_one = torch.where(value >= 1.0, torch.ones_like(value), inside)
        return torch.where(value <= 0.0, torch.zeros_like(value), at_one)

    def icdf(self, value: Tensor) -> Tensor:
        """(log(1 - p + u(2p - 1)) - log(1 - p))/(log p - log(1 - p))."""
        p = self._cut_probs()
        inner = torch.log1p(-p + value * (2.0 * p - 1.0)) - torch.log1p(-p)
        exact = inner / (torch.log(p) - torch.log1p(-p))
        return torch.where(self._outside_unstable_region(), exact, value)

    def entropy(self) -> Tensor:
        """-E[log p(x)], which is linear in the mean."""
        fail, success = torch.log1p(-self.probs), torch.log(self.probs)
        return self.mean * (fail - success) - self._cont_bern_log_norm() - fail

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.logits,)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        """log((eˣ - 1)/x), or its series."""
        low, high = self._lims
        outside = (x <= low - 0.5) | (x > high - 0.5)
        cut = torch.where(outside, x, (low - 0.5) * torch.ones_like(x))
        exact = torch.log(torch.abs(torch.special.expm1(cut))) - torch.log(torch.abs(cut))
        taylor = 0.5 * x + torch.pow(x, 2) / 24.0 - torch.pow(x, 4) / 2880.0
        return torch.where(outside, exact, taylor)
