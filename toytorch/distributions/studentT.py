"""Student's t-distribution."""

from __future__ import annotations

import math

import toytorch as torch
from toytorch.core.tensor import Tensor
from toytorch.distributions import constraints
from toytorch.distributions.around import Around
from toytorch.distributions.chi2 import Chi2
from toytorch.distributions.utils import Shape, Value, _standard_normal, broadcast_all

__all__ = ["StudentT"]


class StudentT(Around):
    """A normal number over the root of a χ² number: p(x) ∝ (1 + z²/k)^(-(k + 1)/2), z = (x - m)/s.

    k is `df`, m `loc`, s `scale`. Raises ValueError for k and s that are not positive. Like
    `torch.distributions.StudentT`.

    >>> StudentT(torch.tensor([4.0])).variance
    tensor([2.])
    """

    arg_constraints = {
        "df": constraints.positive,
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.real
    has_rsample = True
    _batched = {"df": 0, "loc": 0, "scale": 0, "_chi2": 0}

    def __init__(
        self, df: Value, loc: Value = 0.0, scale: Value = 1.0, validate_args: bool | None = None
    ) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df)
        super().__init__(self.df.size(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """m with k > 1, else NaN."""
        return self.loc.masked_fill(self.df <= 1, math.nan)

    @property
    def variance(self) -> Tensor:
        """s²k/(k - 2) with k > 2, ∞ with k > 1, else NaN."""
        has = self.df > 2
        k = torch.where(has, self.df, 3.0)
        found = torch.where(has, self.scale.pow(2) * k / (k - 2), math.inf)
        return found.masked_fill(self.df <= 1, math.nan)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """m + s·(normal)/√(χ²/k)."""
        shape, of = self._extended_shape(sample_shape), self.df
        normal = _standard_normal(shape, dtype=of.dtype, device=of.device)
        square = self._chi2.rsample(sample_shape)
        return self.loc + self.scale * (normal * torch.rsqrt(square / self.df))

    def log_prob(self, value: Tensor) -> Tensor:
        """-(k + 1)/2 · log(1 + z²/k) - log(s√k B(1/2, k/2))."""
        self._check_sample(value)
        k, z = self.df, (value - self.loc) / self.scale
        normalizer = (
            self.scale.log()
            + 0.5 * k.log()
            + 0.5 * math.log(math.pi)
            + torch.lgamma(0.5 * k)
            - torch.lgamma(0.5 * (k + 1.0))
        )
        return -0.5 * (k + 1.0) * torch.log1p(z**2.0 / k) - normalizer

    def entropy(self) -> Tensor:
        """log s + (k + 1)/2 · (ψ((k + 1)/2) - ψ(k/2)) + log(√k B(1/2, k/2))."""
        k, more = self.df, 0.5 * (self.df + 1)
        log_beta = torch.lgamma(0.5 * k) + math.lgamma(0.5) - torch.lgamma(more)
        slopes = more * (torch.digamma(more) - torch.digamma(0.5 * k))
        return self.scale.log() + slopes + 0.5 * k.log() + log_beta
