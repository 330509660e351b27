"""Cauchy's distribution."""

from __future__ import annotations

import math

import toytorch as torch
from toytorch.core.tensor import Tensor
from toytorch.distributions.around import LocationScale
from toytorch.distributions.utils import Shape, by_formula

__all__ = ["Cauchy"]


class Cauchy(LocationScale):
    """The ratio of two normal numbers: p(x) = 1/(πs(1 + ((x - m)/s)²)), m = `loc`, s = `scale`.

    It has no mean. Raises ValueError for scales that are not positive. Like
    `torch.distributions.Cauchy`.

    >>> Cauchy(torch.tensor([0.0]), torch.tensor([1.0])).cdf(torch.tensor([1.0]))
    tensor([0.7500])
    """

    _batched = {"loc": 0, "scale": 0}

    mean = by_formula("NaN: there is none.", lambda self: self._all(math.nan))
    variance = by_formula("∞.", lambda self: self._all(math.inf))

    def _all(self, number: float) -> Tensor:
        shape, of = self._extended_shape(), self.loc
        return torch.full(shape, number, dtype=of.dtype, device=of.device)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """m + s·tan of a uniform angle."""
        drawn = self.loc.new_empty(self._extended_shape(sample_shape)).cauchy_()
        return self.loc + drawn * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        """-log π - log s - log(1 + ((x - m)/s)²)."""
        self._check_sample(value)
        z = (value - self.loc) / self.scale
        return -math.log(math.pi) - self.scale.log() - (z**2).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        """arctan((x - m)/s)/π + 1/2."""
        self._check_sample(value)
        return torch.atan((value - self.loc) / self.scale) / math.pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        """m + s·tan(π(u - 1/2))."""
        return torch.tan(math.pi * (value - 0.5)) * self.scale + self.loc

    def entropy(self) -> Tensor:
        """log 4πs."""
        return math.log(4 * math.pi) + self.scale.log()
