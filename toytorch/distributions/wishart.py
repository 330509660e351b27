"""Random covariances."""

from __future__ import annotations

import math

import toytorch as torch
from toytorch.core.tensor import Tensor
from toytorch.distributions import constraints
from toytorch.distributions.chi2 import Chi2
from toytorch.distributions.exp_family import ExponentialFamily
from toytorch.distributions.multivariate_normal import FACTOR, log_diagonal, one_matrix
from toytorch.distributions.utils import NUMBERS, Shape, Value, by_formula, lazy_property
from toytorch.facts import warned

__all__ = ["Wishart"]

LOG_2 = math.log(2)


def _mvdigamma(x: Tensor, p: int) -> Tensor:
    """The derivative of the log of the multivariate gamma function."""
    assert x.gt((p - 1) / 2).all(), "Wrong domain for multivariate digamma function."
    halves = torch.arange(p, dtype=x.dtype, device=x.device).div(2)
    return torch.digamma(x.unsqueeze(-1) - halves.expand(x.shape + (-1,))).sum(-1)


class Wishart(ExponentialFamily):
    """Σ xxᵀ of n normal vectors of covariance V: p(X) ∝ |X|^((n - D - 1)/2) exp(-tr(V⁻¹X)/2).

    n is `df`, which need not be whole but above D - 1. Give one of V (`covariance_matrix`), V⁻¹
    (`precision_matrix`) and L with V = LLᵀ (`scale_tril`): AssertionError otherwise, ValueError for
    n that is too small and matrices that are not positive definite. Warns where n < D, since samples
    are nearly singular then. Like `torch.distributions.Wishart`.

    >>> Wishart(torch.tensor(2.0), torch.eye(2)).mean
    tensor([[2., 0.],
            [0., 2.]])
    """

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0
    _batched = {
        "_unbroadcasted_scale_tril": 2, "df": 0, "covariance_matrix": 2, "precision_matrix": 2,
        "scale_tril": 2, "_dist_chi2": 1,
    }  # fmt: skip

    @property
    def arg_constraints(self) -> dict[str, constraints.Constraint]:
        """The region of n depends on D."""
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self.event_shape[-1] - 1),
        }

    def __init__(
        self,
        df: Value,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        name, matrix = one_matrix(covariance_matrix, precision_matrix, scale_tril, AssertionError)
        if matrix.dim() < 2:
            raise ValueError(
                "scale_tril must be at least two-dimensional, with optional leading batch "
                "dimensions"
            )
        if isinstance(df, NUMBERS):
            batch = torch.Size(matrix.shape[:-2])
            self.df = torch.tensor(df, dtype=matrix.dtype, device=matrix.device)
        else:
            batch = torch.broadcast_shapes(matrix.shape[:-2], df.shape)
            self.df = df.expand(batch)
        event, size = matrix.shape[-2:], matrix.shape[-1]
        if self.df.le(size - 1).any():
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {size - 1}.")
        vars(self)[name] = matrix.expand(batch + (-1, -1))
        if self.df.lt(size).any():
            warned.at_call(
                "Low df values detected. Singular samples are highly likely to occur for "
                "ndim - 1 < df < ndim."
            )
        super().__init__(batch, event, validate_args=validate_args)
        self._unbroadcasted_scale_tril = L = FACTOR[name](matrix)
        fewer = torch.arange(size, dtype=L.dtype, device=L.device)
        self._dist_chi2 = Chi2(self.df.unsqueeze(-1) - fewer.expand(batch + (-1,)))

    def _wide(self, matrix: Tensor) -> Tensor:
        return matrix.expand(self._batch_shape + self._event_shape)

    @property
    def _batch_dims(self) -> list[int]:
        return [-(d + 1) for d in range(len(self._batch_shape))]

    @lazy_property
    def scale_tril(self) -> Tensor:
        """L."""
        return self._wide(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """V = LLᵀ."""
        L = self._unbroadcasted_scale_tril
        return self._wide(L @ L.transpose(-2, -1))

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """V⁻¹."""
        L = self._unbroadcasted_scale_tril
        one = torch.eye(self._event_shape[-1], device=L.device, dtype=L.dtype)
        return self._wide(torch.cholesky_solve(one, L))

    def _times(self, factor: Tensor, matrix: Tensor) -> Tensor:
        return factor.view(self._batch_shape + (1, 1)) * matrix

    mean = by_formula("nV.", lambda self: self._times(self.df, self.covariance_matrix))

    @property
    def mode(self) -> Tensor:
        """(n - D - 1)V, NaN where n is too small."""
        factor = self.df - self._event_shape[-1] - 1
        return self._times(factor.masked_fill(factor <= 0, math.nan), self.covariance_matrix)

    @property
    def variance(self) -> Tensor:
        """n(Vᵢⱼ² + VᵢᵢVⱼⱼ)."""
        V = self.covariance_matrix
        diagonal = V.diagonal(dim1=-2, dim2=-1)
        outer = torch.einsum("...i,...j->...ij", diagonal, diagonal)
        return self._times(self.df, V.pow(2) + outer)

    def _bartlett_sampling(self, sample_shape: Shape = ()) -> Tensor:
        """LAAᵀLᵀ: A has roots of χ² numbers on the diagonal and normal ones below (Bartlett 1933)."""
        p = self._event_shape[-1]
        roots = self._dist_chi2.rsample(sample_shape).sqrt()
        noise = roots.clamp(min=torch.finfo(roots.dtype).eps).diag_embed(dim1=-2, dim2=-1)
        i, j = torch.tril_indices(p, p, offset=-1)
        count = torch.Size(sample_shape) + self._batch_shape + (p * (p - 1) // 2,)
        noise[..., i, j] = torch.randn(count, dtype=noise.dtype, device=noise.device)
        root = self._unbroadcasted_scale_tril @ noise
        return root @ root.transpose(-2, -1)

    def rsample(self, sample_shape: Shape = (), max_try_correction: int | None = None) -> Tensor:
        """Positive definite matrices; singular ones are drawn again, 10 times at most.

        At first it is the others that are drawn again, with a warning: PyTorch's test is the wrong
        way round, and draws that are to be equal must go its way.
        """
        sample = self._bartlett_sampling(sample_shape)
        again = self._any_of_batch(self.support.check(sample))
        if again.any():
            warned.at_call("Singular sample detected.")
            for _ in range(10 if max_try_correction is None else max_try_correction):
                drawn = self._bartlett_sampling(again[again].shape)
                sample[again] = drawn
                again[again.clone()] = self._any_of_batch(~self.support.check(drawn))
                if not again.any():
                    break
        return sample

    def _any_of_batch(self, each: Tensor) -> Tensor:
        """What is true of a member of the batch in each draw."""
        return each.amax(self._batch_dims) if self._batch_shape else each

    def log_prob(self, value: Tensor) -> Tensor:
        """(n - D - 1)/2 log|X| - tr(V⁻¹X)/2 - n(D log 2 + log|V|)/2 - log Γ_D(n/2)."""
        self._check_sample(value)
        n, p, L = self.df, self._event_shape[-1], self._unbroadcasted_scale_tril
        normalizer = n * (p * LOG_2 / 2 + log_diagonal(L)) + torch.mvlgamma(n / 2, p=p)
        power = (n - p - 1) / 2 * torch.linalg.slogdet(value).logabsdet
        trace = torch.cholesky_solve(value, L).diagonal(dim1=-2, dim2=-1).sum(dim=-1)
        return power - trace / 2 - normalizer

    def entropy(self) -> Tensor:
        """(D + 1)(D log 2 + log|V|)/2 + log Γ_D(n/2) - (n - D - 1)/2 ψ_D(n/2) + nD/2."""
        n, p = self.df, self._event_shape[-1]
        volume = (p + 1) * (p * LOG_2 / 2 + log_diagonal(self._unbroadcasted_scale_tril))
        slope = (n - p - 1) / 2 * _mvdigamma(n / 2, p=p)
        return volume + torch.mvlgamma(n / 2, p=p) - slope + n * p / 2

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (-self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2)

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        p = self._event_shape[-1]
        half = y + (p + 1) / 2
        volume = -torch.linalg.slogdet(-2 * x).logabsdet + LOG_2 * p
        return half * volume + torch.mvlgamma(half, p=p)
