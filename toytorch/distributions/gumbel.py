"""Gumbel's distribution."""

from __future__ import annotations

import math

import toytorch as torch
from toytorch.core.tensor import Tensor
from toytorch.distributions import constraints
from toytorch.distributions.transformed_distribution import TransformedDistribution
from toytorch.distributions.transforms import AffineTransform, ExpTransform
from toytorch.distributions.uniform import Uniform
from toytorch.distributions.utils import Value, broadcast_all, by_formula, euler_constant
from toytorch.facts.parts import of_part

__all__ = ["Gumbel"]


class Gumbel(TransformedDistribution):
    """The largest of many numbers: P(X ≤ x) = exp(-e⁻ᶻ), z = (x - m)/s, m = `loc`, s = `scale`.

    Raises ValueError for scales that are not positive. Like `torch.distributions.Gumbel`.

    >>> Gumbel(torch.tensor([0.0]), torch.tensor([1.0])).mean
    tensor([0.5772])
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    _batched = {"loc": 0, "scale": 0}

    def __init__(self, loc: Value, scale: Value, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        limits = torch.finfo(self.loc.dtype)
        low, high = (torch.full_like(self.loc, n) for n in (limits.tiny, 1 - limits.eps))
        base = Uniform(low, high, validate_args=validate_args)
        steps = [
            ExpTransform().inv,
            AffineTransform(loc=0, scale=-torch.ones_like(self.scale)),
            ExpTransform().inv,
            AffineTransform(loc=loc, scale=-self.scale),
        ]  # m - s·log(-log u)
        super().__init__(base, steps, validate_args=validate_args)

    def log_prob(self, value: Tensor) -> Tensor:
        """-z - e⁻ᶻ - log s."""
        self._check_sample(value)
        y = (self.loc - value) / self.scale
        return (y - y.exp()) - self.scale.log()

    @property
    def mean(self) -> Tensor:
        """m + sγ, with Euler's constant γ."""
        return self.loc + self.scale * euler_constant

    mode = of_part("loc", "m.")

    stddev = by_formula("πs/√6.", lambda self: (math.pi / math.sqrt(6)) * self.scale)
    variance = by_formula("π²s²/6.", lambda self: self.stddev.pow(2))

    def entropy(self) -> Tensor:
        """log s + 1 + γ."""
        return self.scale.log() + (1 + euler_constant)
