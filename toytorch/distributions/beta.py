"""The beta distribution."""

from __future__ import annotations

import toytorch as torch
from toytorch.core.tensor import Tensor
from toytorch.distributions import constraints
from toytorch.distributions.dirichlet import Dirichlet
from toytorch.distributions.exp_family import ExponentialFamily
from toytorch.distributions.utils import NUMBERS, Shape, Value, broadcast_all, by_formula

__all__ = ["Beta"]


class Beta(ExponentialFamily):
    """Numbers in [0, 1] with the density xᵃ⁻¹(1 - x)ᵇ⁻¹/B(a, b), where a is `concentration1`.

    They are the first of two numbers of Dirichlet's distribution. Raises ValueError for
    concentrations that are not positive. Like `torch.distributions.Beta`.

    >>> Beta(torch.tensor([2.0]), torch.tensor([1.0])).mean
    tensor([0.6667])
    """

    arg_constraints = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval
    has_rsample = True
    _batched = {"_dirichlet": 0}

    def __init__(
        self, concentration1: Value, concentration0: Value, validate_args: bool | None = None
    ) -> None:
        if isinstance(concentration1, NUMBERS) and isinstance(concentration0, NUMBERS):
            both = torch.tensor([float(concentration1), float(concentration0)])
        else:
            both = torch.stack(broadcast_all(concentration1, concentration0), -1)
        self._dirichlet = Dirichlet(both, validate_args=validate_args)
        super().__init__(self._dirichlet._batch_shape, validate_args=validate_args)

    concentration1 = by_formula("a.", lambda self: self._dirichlet.concentration[..., 0])
    concentration0 = by_formula("b.", lambda self: self._dirichlet.concentration[..., 1])

    @property
    def mean(self) -> Tensor:
        """a/(a + b)."""
        return self.concentration1 / (self.concentration1 + self.concentration0)

    mode = by_formula("(a - 1)/(a + b - 2).", lambda self: self._dirichlet.mode[..., 0])

    @property
    def variance(self) -> Tensor:
        """ab/((a + b)²(a + b + 1))."""
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """Numbers in (0, 1)."""
        return self._dirichlet.rsample(sample_shape).select(-1, 0)

    def log_prob(self, value: Tensor) -> Tensor:
        """(a - 1) log x + (b - 1) log(1 - x) - log B(a, b)."""
        self._check_sample(value)
        return self._dirichlet.log_prob(torch.stack([value, 1.0 - value], -1))

    def entropy(self) -> Tensor:
        """That of Dirichlet's distribution."""
        return self._dirichlet.entropy()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.concentration1, self.concentration0)

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.lgamma(x) + torch.lgamma(y) - torch.lgamma(x + y)
