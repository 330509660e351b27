"""The exponential distribution."""

from __future__ import annotations

import toytorch as torch
from toytorch.core.tensor import Tensor
from toytorch.distributions import constraints
from toytorch.distributions.exp_family import ExponentialFamily
from toytorch.distributions.utils import Shape, Value, broadcast_all, by_formula

__all__ = ["Exponential"]


class Exponential(ExponentialFamily):
    """Times between events that come at a `rate` λ: p(x) = λe^(-λx).

    Raises ValueError for rates that are not positive. Like `torch.distributions.Exponential`.

    >>> Exponential(torch.tensor([2.0])).mean
    tensor([0.5000])
    """

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0
    _batched = {"rate": 0}

    def __init__(self, rate: Value, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.size(), validate_args=validate_args)

    mean = by_formula("1/λ.", lambda self: self.rate.reciprocal())
    mode = by_formula("0.", lambda self: torch.zeros_like(self.rate))
    stddev = by_formula("1/λ.", lambda self: self.rate.reciprocal())
    variance = by_formula("1/λ².", lambda self: self.rate.pow(-2))

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """Standard exponential numbers over λ."""
        drawn = self.rate.new_empty(self._extended_shape(sample_shape)).exponential_()
        return drawn / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        """log λ - λx."""
        self._check_sample(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value: Tensor) -> Tensor:
        """1 - e^(-λx)."""
        self._check_sample(value)
        return 1 - torch.exp(-self.rate * value)

    def icdf(self, value: Tensor) -> Tensor:
        """-log(1 - u)/λ."""
        return -torch.log1p(-value) / self.rate

    def entropy(self) -> Tensor:
        """1 - log λ."""
        return 1.0 - torch.log(self.rate)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (-self.rate,)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return -torch.log(-x)
