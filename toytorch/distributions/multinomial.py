"""The multinomial distribution."""

from __future__ import annotations

import math

import toytorch as torch
from toytorch.core.tensor import Tensor
from toytorch.distributions import constraints
from toytorch.distributions.binomial import Binomial
from toytorch.distributions.over_categorical import OverCategorical
from toytorch.distributions.utils import Shape, broadcast_all, by_formula

__all__ = ["Multinomial"]


class Multinomial(OverCategorical):
    """How often each of K categories comes up in n = `total_count` draws: n!/Πxₖ! · Πpₖ^xₖ.

    n is one number for the whole batch; NotImplementedError if it is none. Raises ValueError unless
    one of `probs` (weights) and `logits` is given. Like `torch.distributions.Multinomial`.

    >>> Multinomial(2, torch.ones(2)).log_prob(torch.tensor([1.0, 1.0])).exp()
    tensor(0.5000)
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    total_count: int
    _batched = {"_categorical": 0}
    _same = ("total_count", "_binomial")

    def __init__(
        self,
        total_count: int = 1,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        shapes = self._choose(probs, logits)
        self._binomial = Binomial(total_count=total_count, probs=self.probs)
        super().__init__(*shapes, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> constraints.Constraint:
        """Counts that add up to n at most."""
        return constraints.multinomial(self.total_count)

    mean = by_formula("np.", lambda self: self.probs * self.total_count)

    @property
    def variance(self) -> Tensor:
        """np(1 - p)."""
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        """Counts of n choices."""
        drawn = self._categorical.sample((self.total_count, *sample_shape)).movedim(0, -1)
        counts = drawn.new_zeros(self._extended_shape(sample_shape))
        counts.scatter_add_(-1, drawn, torch.ones_like(drawn))
        return counts.type_as(self.probs)

    def entropy(self) -> Tensor:
        """n·H(p) - log n! + Σₖ E[log xₖ!], with binomial xₖ."""
        n = torch.tensor(self.total_count)
        known = n * self._categorical.entropy() - torch.lgamma(n + 1)
        counts = self._binomial.enumerate_support(expand=False)[1:]
        chances = torch.exp(self._binomial.log_prob(counts))
        return known + (chances * torch.lgamma(counts + 1)).sum([0, -1])

    def log_prob(self, value: Tensor) -> Tensor:
        """log n! - Σ log xₖ! + Σ xₖ log pₖ."""
        self._check_sample(value)
        logits, value = broadcast_all(self.logits, value)
        arrangements = torch.lgamma(value.sum(-1) + 1) - torch.lgamma(value + 1).sum(-1)
        logits = logits.masked_fill((value == 0) & (logits == -math.inf), 0)  # 0·log 0 is 0
        return arrangements + (logits * value).sum(-1)
