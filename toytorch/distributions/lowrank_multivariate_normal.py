"""Normal vectors whose covariance is of low rank and a diagonal."""

from __future__ import annotations

import math

import toytorch as torch
from toytorch.core.tensor import Tensor
from toytorch.distributions import constraints
from toytorch.distributions.around import Around
from toytorch.distributions.multivariate_normal import _batch_mahalanobis, _batch_mv
from toytorch.distributions.utils import Shape, _standard_normal, lazy_property

__all__ = ["LowRankMultivariateNormal"]


def _batch_capacitance_tril(W: Tensor, D: Tensor) -> Tensor:
    """The Cholesky factor of I + WᵀD⁻¹W, which is as small as W is narrow."""
    small = torch.matmul(W.mT / D.unsqueeze(-2), W).contiguous()
    return torch.linalg.cholesky(_plus_one(small))


def _plus_one(matrix: Tensor) -> Tensor:
    """A matrix with the identity added in place."""
    n = matrix.size(-1)
    matrix.view(-1, n * n)[:, :: n + 1] += 1
    return matrix


def _batch_lowrank_logdet(W: Tensor, D: Tensor, capacitance_tril: Tensor) -> Tensor:
    """log det(WWᵀ + D) = log det(I + WᵀD⁻¹W) + log det D."""
    small = capacitance_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    return 2 * small + D.log().sum(-1)


def _batch_lowrank_mahalanobis(W: Tensor, D: Tensor, x: Tensor, capacitance_tril: Tensor) -> Tensor:
    """xᵀ(WWᵀ + D)⁻¹x by Woodbury's identity."""
    inner = _batch_mv(W.mT / D.unsqueeze(-2), x)
    return (x.pow(2) / D).sum(-1) - _batch_mahalanobis(capacitance_tril, inner)


class LowRankMultivariateNormal(Around):
    """Normal vectors (D,) of the covariance WWᵀ + diag(d), W = `cov_factor` (D, m), d = `cov_diag`.

    Densities cost O(Dm² + m³) instead of O(D³). Raises ValueError for shapes that do not fit and
    diagonals that are not positive. Like `torch.distributions.LowRankMultivariateNormal`.

    >>> one = torch.ones(2)
    >>> LowRankMultivariateNormal(0 * one, one[:, None], one).covariance_matrix
    tensor([[2., 1.],
            [1., 2.]])
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True
    _batched = {"loc": 1, "cov_factor": 2, "cov_diag": 1}
    _same = ("_unbroadcasted_cov_factor", "_unbroadcasted_cov_diag", "_capacitance_tril")

    def __init__(
        self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        event_shape = loc.shape[-1:]
        if cov_factor.dim() < 2:
            raise ValueError(
                "cov_factor must be at least two-dimensional, with optional leading batch dimensions"
            )
        if cov_factor.shape[-2:-1] != event_shape:
            raise ValueError(
                f"cov_factor must be a batch of matrices with shape {event_shape[0]} x m"
            )
        if cov_diag.shape[-1:] != event_shape:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {event_shape}")
        try:
            wide_loc, self.cov_factor, wide_diag = torch.broadcast_tensors(
                loc.unsqueeze(-1), cov_factor, cov_diag.unsqueeze(-1)
            )
        except RuntimeError as error:
            raise ValueError(
                f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, "
                f"cov_diag {cov_diag.shape}"
            ) from error
        self.loc, self.cov_diag = wide_loc[..., 0], wide_diag[..., 0]
        self._unbroadcasted_cov_factor = cov_factor
        self._unbroadcasted_cov_diag = cov_diag
        self._capacitance_tril = _batch_capacitance_tril(cov_factor, cov_diag)
        super().__init__(self.loc.shape[:-1], event_shape, validate_args=validate_args)

    @property
    def _factors(self) -> tuple[Tensor, Tensor]:
        """W and d as they were given."""
        return self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag

    def _square(self, matrix: Tensor) -> Tensor:
        """A matrix for each member of the batch."""
        return matrix.expand(self._batch_shape + self._event_shape + self._event_shape)

    @lazy_property
    def variance(self) -> Tensor:
        """The diagonal of the covariance."""
        W, d = self._factors
        return (W.pow(2).sum(-1) + d).expand(self._batch_shape + self._event_shape)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of the covariance: √d times that of I + d^(-1/2)WWᵀd^(-1/2)."""
        W, d = self._factors
        root = d.sqrt().unsqueeze(-1)
        scaled = W / root
        inner = _plus_one(torch.matmul(scaled, scaled.mT).contiguous())
        return self._square(root * torch.linalg.cholesky(inner))

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """WWᵀ + diag(d)."""
        W, d = self._factors
        return self._square(torch.matmul(W, W.mT) + torch.diag_embed(d))

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance, by Woodbury's identity."""
        W, d = self._factors
        A = torch.linalg.solve_triangular(
            self._capacitance_tril, W.mT / d.unsqueeze(-2), upper=False
        )
        return self._square(torch.diag_embed(d.reciprocal()) - A.mT @ A)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """loc + W·(m normal numbers) + √d·(D normal numbers)."""
        shape, of = self._extended_shape(sample_shape), self.loc
        W, d = self._factors
        few = _standard_normal(shape[:-1] + W.shape[-1:], dtype=of.dtype, device=of.device)
        many = _standard_normal(shape, dtype=of.dtype, device=of.device)
        return of + _batch_mv(W, few) + d.sqrt() * many

    def log_prob(self, value: Tensor) -> Tensor:
        """-(D log 2π + log det Σ + (x - m)ᵀΣ⁻¹(x - m))/2."""
        self._check_sample(value)
        factors = (*self._factors, self._capacitance_tril)
        W, d, tril = factors
        distance = _batch_lowrank_mahalanobis(W, d, value - self.loc, tril)
        log_det = _batch_lowrank_logdet(*factors)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + log_det + distance)

    def entropy(self) -> Tensor:
        """(D(1 + log 2π) + log det Σ)/2."""
        log_det = _batch_lowrank_logdet(*self._factors, self._capacitance_tril)
        each = 0.5 * (self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + log_det)
        return each.expand(self._batch_shape) if self._batch_shape else each
