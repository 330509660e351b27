"""The binomial distribution."""

from __future__ import annotations

import toytorch as torch
from toytorch.core.tensor import Tensor
from toytorch.distributions import constraints
from toytorch.distributions.by_chance import ByChance
from toytorch.distributions.distribution import Distribution
from toytorch.distributions.utils import Shape, Value, _whole_numbers, by_formula

__all__ = ["Binomial"]


class Binomial(ByChance):
    """How many of n trials succeed: P(k) = n!/(k!(n - k)!) pᵏ(1 - p)ⁿ⁻ᵏ, with n = `total_count`.

    Raises ValueError for counts that are not whole, chances outside of [0, 1], and unless one of
    `probs` and `logits` is given; NotImplementedError where numbers of trials differ and all values
    are asked for. Like `torch.distributions.Binomial`.

    >>> Binomial(2, torch.tensor([0.5])).log_prob(torch.tensor([1.0])).exp()
    tensor([0.5000])
    """

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True
    _batched = {"total_count": 0, **ByChance._batched}

    def __init__(
        self,
        total_count: Value = 1,
        probs: Value | None = None,
        logits: Value | None = None,
        validate_args: bool | None = None,
    ) -> None:
        (count,) = self._given(probs, logits, total_count)
        self.total_count = count.type_as(self._param)
        Distribution.__init__(self, self._param.size(), validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:
        """0 … n."""
        return constraints.integer_interval(0, self.total_count)

    mean = by_formula("np.", lambda self: self.total_count * self.probs)

    @property
    def mode(self) -> Tensor:
        """(n + 1)p, rounded down."""
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self) -> Tensor:
        """np(1 - p)."""
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        """Numbers of successes."""
        shape = self._extended_shape(sample_shape)
        with torch.no_grad():
            return torch.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        """k·logit - n log(1 + eˡᵒᵍⁱᵗ) + log n! - log k! - log (n - k)!."""
        self._check_sample(value)
        n = self.total_count
        # log(1 + eᶻ) is max(z, 0) + log(1 + e⁻ᶻ), whose first term has the slope 1/2 at 0.
        above = (self.logits.clamp(min=0) + self.logits - self.logits.clamp(max=0)) / 2
        normalizer = n * above + n * torch.log1p(torch.exp(-torch.abs(self.logits)))
        normalizer = normalizer - torch.lgamma(n + 1)
        chosen = torch.lgamma(value + 1)
        left = torch.lgamma(n - value + 1)
        return value * self.logits - chosen - left - normalizer

    def entropy(self) -> Tensor:
        """The sum over all values."""
        self._one_count("entropy")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(torch.exp(log_prob) * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """0 … n, which must be the same number everywhere."""
        count, p = self._one_count("enumerate_support"), self._param
        return _whole_numbers(1 + count, self._batch_shape, expand, p.dtype, p.device)

    def _one_count(self, asking: str) -> int:
        count = int(self.total_count.max())
        if not self.total_count.min() == count:
            raise NotImplementedError(f"Inhomogeneous total count not supported by `{asking}`.")
        return count
