"""Halves of distributions around 0: their absolute values."""

from __future__ import annotations

import math
from typing import Any

import toytorch as torch
from toytorch.core.tensor import Tensor
from toytorch.distributions import constraints
from toytorch.distributions.transformed_distribution import TransformedDistribution
from toytorch.distributions.transforms import AbsTransform
from toytorch.distributions.utils import Value, by_formula
from toytorch.facts.parts import of_part


class Half(TransformedDistribution):
    """|x| of numbers x from a family that is symmetric around 0; `whole` is that family."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    whole: Any
    _batched = {}

    scale = of_part(
        "base_dist.scale", "s of the whole one; with normal numbers not the standard deviation."
    )

    def __init__(self, scale: Value, validate_args: bool | None = None) -> None:
        base = self.whole(0, scale, validate_args=False)
        super().__init__(base, AbsTransform(), validate_args=validate_args)

    mode = by_formula("0.", lambda self: torch.zeros_like(self.scale))

    def log_prob(self, value: Tensor) -> Tensor:
        """log 2 more than the whole one's; -∞ below 0."""
        self._check_sample(value)
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
