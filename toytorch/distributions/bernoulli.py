"""Bernoulli's distribution."""

from __future__ import annotations

import math

import toytorch as torch
from toytorch.core.tensor import Tensor
from toytorch.distributions import constraints
from toytorch.distributions.by_chance import ByChance
from toytorch.distributions.exp_family import ExponentialFamily
from toytorch.distributions.utils import Shape, _whole_numbers, broadcast_all, by_formula
from toytorch.facts.parts import of_part
from toytorch.nn.functional import binary_cross_entropy_with_logits

__all__ = ["Bernoulli"]


class Bernoulli(ByChance, ExponentialFamily):
    """1 with chance p, else 0: P(x) = pˣ(1 - p)¹⁻ˣ.

    Give `probs` = p or `logits` = log p/(1 - p). Raises ValueError for both or none of them, and for
    chances outside of [0, 1]. Like `torch.distributions.Bernoulli`.

    >>> Bernoulli(torch.tensor([0.25, 1.0])).log_prob(torch.tensor([0., 1.]))
    tensor([-2.8768e-01, -1.1921e-07])
    """

    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0
    _batched = ByChance._batched

    mean = of_part("probs", "p.")

    @property
    def mode(self) -> Tensor:
        """0 or 1; NaN where both have the same chance."""
        likely = (self.probs >= 0.5).to(self.probs)
        likely[self.probs == 0.5] = math.nan
        return likely

    variance = by_formula("p(1 - p).", lambda self: self.probs * (1 - self.probs))

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        """Zeros and ones."""
        with torch.no_grad():
            return torch.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        """x log p + (1 - x) log(1 - p), from the logits."""
        self._check_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Tensor:
        """-p log p - (1 - p) log(1 - p)."""
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """0 and 1."""
        p = self._param
        return _whole_numbers(2, self._batch_shape, expand, p.dtype, p.device)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (torch.logit(self.probs),)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return torch.log1p(torch.exp(x))
