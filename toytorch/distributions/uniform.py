"""The uniform distribution."""

from __future__ import annotations

import math

import toytorch as torch
from toytorch.core.tensor import Tensor
from toytorch.distributions import constraints
from toytorch.distributions.distribution import Distribution
from toytorch.distributions.utils import Shape, Value, broadcast_all, by_formula

__all__ = ["Uniform"]


class Uniform(Distribution):
    """Numbers in [a, b) with the density 1/(b - a), a = `low`, b = `high`.

    Raises ValueError unless a < b. Like `torch.distributions.Uniform`.

    >>> Uniform(torch.tensor([0.0]), torch.tensor([2.0])).log_prob(torch.tensor([1.0])).exp()
    tensor([0.5000])
    """

    has_rsample = True
    _batched = {"low": 0, "high": 0}

    def __init__(self, low: Value, high: Value, validate_args: bool | None = None) -> None:
        self.low, self.high = broadcast_all(low, high)
        super().__init__(self.low.size(), validate_args=validate_args)

    @property
    def arg_constraints(self) -> dict[str, constraints.Constraint]:
        """Each bound is on its side of the other."""
        return {"low": constraints.less_than(self.high), "high": constraints.greater_than(self.low)}

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> constraints.Constraint:
        """From a to b."""
        return constraints.interval(self.low, self.high)

    mean = by_formula("(a + b)/2.", lambda self: (self.high + self.low) / 2)
    mode = by_formula("NaN: every number is as likely.", lambda self: math.nan * self.high)
    stddev = by_formula("(b - a)/√12.", lambda self: (self.high - self.low) / 12**0.5)
    variance = by_formula("(b - a)²/12.", lambda self: (self.high - self.low).pow(2) / 12)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """a + u(b - a)."""
        shape, of = self._extended_shape(sample_shape), self.low
        u = torch.rand(shape, dtype=of.dtype, device=of.device)
        return self.low + u * (self.high - self.low)

    def log_prob(self, value: Tensor) -> Tensor:
        """-log(b - a) inside, -∞ outside."""
        self._check_sample(value)
        inside = self.low.le(value).type_as(self.low).mul(self.high.gt(value).type_as(self.low))
        return torch.log(inside) - torch.log(self.high - self.low)

    def cdf(self, value: Tensor) -> Tensor:
        """(x - a)/(b - a), between 0 and 1."""
        self._check_sample(value)
        return ((value - self.low) / (self.high - self.low)).clamp(min=0, max=1)

    def icdf(self, value: Tensor) -> Tensor:
        """a + u(b - a)."""
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Tensor:
        """log(b - a)."""
        return torch.log(self.high - self.low)
