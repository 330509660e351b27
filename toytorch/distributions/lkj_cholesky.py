"""Correlations by their Cholesky factors."""

from __future__ import annotations

import math

import toytorch as torch
from toytorch.core.tensor import Tensor
from toytorch.distributions import constraints
from toytorch.distributions.beta import Beta
from toytorch.distributions.distribution import Distribution
from toytorch.distributions.utils import Shape, Value, broadcast_all

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Cholesky factors L (D, D) of correlations M = LLᵀ with p(M) ∝ det(M)ⁿ⁻¹, n = `concentration`.

    n = 1 is the uniform distribution of correlations; more prefers weak ones. Rows are drawn one
    after the other, as points on hemispheres (the onion method of Lewandowski, Kurowicka and Joe
    2009). Raises ValueError for less than two dimensions and concentrations that are not positive.
    Like `torch.distributions.LKJCholesky`.

    >>> LKJCholesky(2).log_prob(torch.eye(2)).exp()
    tensor(0.5000)
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky
    _batched = {"concentration": 0, "_beta": 1}
    _same = ("dim",)

    def __init__(
        self, dim: int, concentration: Value = 1.0, validate_args: bool | None = None
    ) -> None:
        if dim < 2:
            raise ValueError(
                f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}."
            )
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        # The squared length of row k below the diagonal is a beta number.
        n = self.concentration
        offset = torch.arange(dim - 1, dtype=n.dtype, device=n.device)
        offset = torch.cat([offset.new_zeros((1,)), offset])
        last = n + 0.5 * (dim - 2)
        self._beta = Beta(offset + 0.5, last.unsqueeze(-1) - 0.5 * offset)
        super().__init__(n.size(), torch.Size((dim, dim)), validate_args)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        """Rows of random directions, with what is left to length 1 on the diagonal."""
        squares = self._beta.sample(sample_shape).unsqueeze(-1)
        shape = self._extended_shape(sample_shape)
        normal = torch.randn(shape, dtype=squares.dtype, device=squares.device).tril(-1)
        direction = normal / normal.norm(dim=-1, keepdim=True)
        direction[..., 0, :].fill_(0.0)  # the first row has none
        rows = torch.sqrt(squares) * direction
        tiny = torch.finfo(rows.dtype).tiny
        diagonal = torch.clamp(1 - torch.sum(rows**2, dim=-1), min=tiny).sqrt()
        rows += torch.diag_embed(diagonal)
        return rows

    def log_prob(self, value: Tensor) -> Tensor:
        """Σ (2n - 2 + D - k) log L[k, k] over k = 2 … D, less the log of the normaliser."""
        self._check_sample(value)
        n, below = self.concentration, self.dim - 1
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        order = torch.arange(2, self.dim + 1, device=n.device)
        order = 2 * (n - 1).unsqueeze(-1) + self.dim - order
        kernel = torch.sum(order * diagonal.log(), dim=-1)
        alpha = n + 0.5 * below
        normalizer = torch.mvlgamma(alpha - 0.5, below) - torch.lgamma(alpha) * below
        return kernel - (0.5 * below * math.log(math.pi) + normalizer)
