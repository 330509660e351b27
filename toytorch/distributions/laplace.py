"""Laplace's distribution."""

from __future__ import annotations

import math

import toytorch as torch
from toytorch.core.tensor import Tensor
from toytorch.distributions.around import LocationScale
from toytorch.distributions.utils import Shape, by_formula

__all__ = ["Laplace"]


class Laplace(LocationScale):
    """Two exponential tails: p(x) = exp(-|x - m|/s)/2s, m = `loc`, s = `scale`.

    Raises ValueError for scales that are not positive. Like `torch.distributions.Laplace`.

    >>> Laplace(torch.tensor([0.0]), torch.tensor([1.0])).variance
    tensor([2.])
    """

    _batched = {"loc": 0, "scale": 0}

    stddev = by_formula("s√2.", lambda self: math.sqrt(2) * self.scale)
    variance = by_formula("2s².", lambda self: 2 * self.scale.pow(2))

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """m - s·sign(u)·log(1 - |u|) of uniform u in (-1, 1)."""
        shape, eps = self._extended_shape(sample_shape), torch.finfo(self.loc.dtype).eps
        u = self.loc.new_empty(shape).uniform_(eps - 1, 1)
        return self.loc - self.scale * u.sign() * torch.log1p(-u.abs())

    def log_prob(self, value: Tensor) -> Tensor:
        """-log 2s - |x - m|/s."""
        self._check_sample(value)
        return -torch.log(2 * self.scale) - torch.abs(value - self.loc) / self.scale

    def cdf(self, value: Tensor) -> Tensor:
        """1/2 + sign(x - m)(1 - exp(-|x - m|/s))/2."""
        self._check_sample(value)
        off = value - self.loc
        return 0.5 - 0.5 * off.sign() * torch.expm1(-off.abs() / self.scale)

    def icdf(self, value: Tensor) -> Tensor:
        """m - s·sign(v)·log(1 - 2|v|) with v = u - 1/2."""
        off = value - 0.5
        return self.loc - self.scale * off.sign() * torch.log1p(-2 * off.abs())

    def entropy(self) -> Tensor:
        """1 + log 2s."""
        return 1 + torch.log(2 * self.scale)
