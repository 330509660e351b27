"""The negative binomial distribution."""

from __future__ import annotations

import toytorch as torch
from toytorch.core.tensor import Tensor
from toytorch.distributions import constraints
from toytorch.distributions.by_chance import ByChance
from toytorch.distributions.distribution import Distribution
from toytorch.distributions.gamma import Gamma
from toytorch.distributions.utils import Shape, Value, by_formula, lazy_property
from toytorch.nn.functional import logsigmoid

__all__ = ["NegativeBinomial"]


class NegativeBinomial(ByChance):
    """Successes before the r-th failure: P(k) = Γ(r + k)/(k!Γ(r)) (1 - p)ʳpᵏ, r = `total_count`.

    p is the chance of a success; r need not be whole. Raises ValueError for r below 0, chances
    outside of [0, 1), and unless one of `probs` and `logits` is given. Like
    `torch.distributions.NegativeBinomial`.

    >>> NegativeBinomial(2, torch.tensor([0.5])).mean
    tensor([2.])
    """

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer
    _batched = {"total_count": 0, **ByChance._batched}

    def __init__(
        self,
        total_count: Value,
        probs: Value | None = None,
        logits: Value | None = None,
        validate_args: bool | None = None,
    ) -> None:
        (count,) = self._given(probs, logits, total_count)
        self.total_count = count.type_as(self._param)
        Distribution.__init__(self, self._param.size(), validate_args=validate_args)

    mean = by_formula("rp/(1 - p).", lambda self: self.total_count * torch.exp(self.logits))

    @property
    def mode(self) -> Tensor:
        """(r - 1)p/(1 - p), rounded down, or 0."""
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    variance = by_formula("rp/(1 - p)².", lambda self: self.mean / torch.sigmoid(-self.logits))

    @lazy_property
    def _gamma(self) -> Gamma:
        """The rates: the distribution is a mixture of Poisson's over them."""
        rate = torch.exp(-self.logits)
        return Gamma(concentration=self.total_count, rate=rate, validate_args=False)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        """Poisson numbers of gamma rates."""
        with torch.no_grad():
            return torch.poisson(self._gamma.sample(sample_shape=sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        """r log(1 - p) + k log p + log Γ(r + k) - log k! - log Γ(r)."""
        self._check_sample(value)
        r = self.total_count
        powers = r * logsigmoid(-self.logits) + value * logsigmoid(self.logits)
        normalizer = -torch.lgamma(r + value) + torch.lgamma(1.0 + value) + torch.lgamma(r)
        return powers - normalizer.masked_fill(r + value == 0.0, 0.0)
