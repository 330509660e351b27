"""The F distribution."""

from __future__ import annotations

import math

import toytorch as torch
from toytorch.core.tensor import Tensor
from toytorch.distributions import constraints
from toytorch.distributions.distribution import Distribution
from toytorch.distributions.gamma import Gamma
from toytorch.distributions.utils import Shape, Value, broadcast_all

__all__ = ["FisherSnedecor"]


class FisherSnedecor(Distribution):
    """The ratio of two χ² numbers, each over its degrees of freedom, `df1` and `df2`.

    Raises ValueError for degrees that are not positive. Like `torch.distributions.FisherSnedecor`.

    >>> FisherSnedecor(torch.tensor([1.0]), torch.tensor([4.0])).mean
    tensor([2.])
    """

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True
    _batched = {"df1": 0, "df2": 0, "_gamma1": 0, "_gamma2": 0}

    def __init__(self, df1: Value, df2: Value, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = broadcast_all(df1, df2)
        self._gamma1 = Gamma(self.df1 * 0.5, self.df1)
        self._gamma2 = Gamma(self.df2 * 0.5, self.df2)
        super().__init__(self.df1.size(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """n/(n - 2) with n = df2 > 2, else NaN."""
        df2 = self.df2.masked_fill(self.df2 <= 2, math.nan)
        return df2 / (df2 - 2)

    @property
    def mode(self) -> Tensor:
        """(m - 2)n/(m(n + 2)) with m = df1 > 2, else NaN."""
        mode = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return mode.masked_fill(self.df1 <= 2, math.nan)

    @property
    def variance(self) -> Tensor:
        """2n²(m + n - 2)/(m(n - 2)²(n - 4)) with n > 4, else NaN."""
        df1, df2 = self.df1, self.df2.masked_fill(self.df2 <= 4, math.nan)
        return 2 * df2.pow(2) * (df1 + df2 - 2) / (df1 * (df2 - 2).pow(2) * (df2 - 4))

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """A ratio of gamma numbers."""
        above, below = self._gamma1.rsample(sample_shape), self._gamma2.rsample(sample_shape)
        tiny = torch.finfo(below.dtype).tiny
        return (above / below.clamp(min=tiny)).clamp(min=tiny)

    def log_prob(self, value: Tensor) -> Tensor:
        """log of (m/n)ᵐᐟ² xᵐᐟ²⁻¹(1 + mx/n)^(-(m + n)/2)/B(m/2, n/2)."""
        self._check_sample(value)
        a, b, ratio = self.df1 * 0.5, self.df2 * 0.5, self.df1 / self.df2
        normalizer = (a + b).lgamma() - a.lgamma() - b.lgamma()
        power = a * ratio.log() + (a - 1) * torch.log(value)
        return normalizer + power - (a + b) * torch.log1p(ratio * value)
