"""Poisson's distribution."""

from __future__ import annotations

import toytorch as torch
from toytorch.core.tensor import Tensor
from toytorch.distributions import constraints
from toytorch.distributions.exp_family import ExponentialFamily
from toytorch.distributions.utils import Shape, Value, broadcast_all, by_formula
from toytorch.facts.parts import of_part

__all__ = ["Poisson"]


class Poisson(ExponentialFamily):
    """How many events there are where `rate` = λ are expected: P(k) = λᵏe^(-λ)/k!.

    Raises ValueError for rates below 0. Like `torch.distributions.Poisson`.

    >>> Poisson(torch.tensor([2.0])).log_prob(torch.tensor([0.0]))
    tensor([-2.])
    """

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer
    _batched = {"rate": 0}

    def __init__(self, rate: Value, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.size(), validate_args=validate_args)

    mean = of_part("rate", "λ.")

    mode = by_formula("λ, rounded down.", lambda self: self.rate.floor())

    variance = of_part("rate", "λ.")

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        """Counts."""
        with torch.no_grad():
            return torch.poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        """k log λ - λ - log k!."""
        self._check_sample(value)
        rate, value = broadcast_all(self.rate, value)
        return value.xlogy(rate) - rate - (value + 1).lgamma()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (torch.log(self.rate),)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return torch.exp(x)
