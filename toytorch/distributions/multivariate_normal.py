"""Normal vectors."""

from __future__ import annotations

import math
from collections.abc import Callable

import toytorch as torch
from toytorch.core.tensor import Tensor
from toytorch.distributions import constraints
from toytorch.distributions.around import Around
from toytorch.distributions.utils import Shape, _standard_normal, lazy_property

__all__ = ["MultivariateNormal"]


def _batch_mv(bmat: Tensor, bvec: Tensor) -> Tensor:
    """Products of matrices (..., n, m) and vectors (..., m)."""
    return torch.matmul(bmat, bvec.unsqueeze(-1)).squeeze(-1)


def _batch_mahalanobis(bL: Tensor, bx: Tensor) -> Tensor:
    """xᵀ(LLᵀ)⁻¹x = |L⁻¹x|², where x may have more batch dimensions, or larger ones, than L.

    The vectors that share a factor become the columns of one right-hand side.
    """
    n, batch = bx.size(-1), bx.shape[:-1]
    outer = len(batch) - (bL.dim() - 2)
    shape = list(batch[:outer])  # each dimension beside L's is split into (how often, L's)
    for own, all_of_them in zip(bL.shape[:-2], batch[outer:]):
        shape += [all_of_them // own, own]
    often, owns = range(outer, len(shape), 2), range(outer + 1, len(shape), 2)
    order = [*range(outer), *often, *owns]
    split = bx.reshape([*shape, n]).permute([*order, len(shape)])
    factors = bL.reshape(-1, n, n)  # (f, n, n)
    columns = split.reshape(-1, len(factors), n).permute(1, 2, 0)  # (f, n, all others)
    squares = torch.linalg.solve_triangular(factors, columns, upper=False).pow(2).sum(-2).t()
    back = sorted(range(len(order)), key=order.__getitem__)
    return squares.reshape(split.shape[:-1]).permute(back).reshape(batch)


def _precision_to_scale_tril(P: Tensor) -> Tensor:
    """The Cholesky factor of P⁻¹, without P⁻¹: that of P from its last row up, inverted."""
    flipped = torch.linalg.cholesky(torch.flip(P, (-2, -1)))
    inverse = torch.transpose(torch.flip(flipped, (-2, -1)), -2, -1)
    one = torch.eye(P.shape[-1], dtype=P.dtype, device=P.device)
    return torch.linalg.solve_triangular(inverse, one, upper=False)


def log_diagonal(tril: Tensor) -> Tensor:
    """The log of the determinant of a triangular matrix: half that of LLᵀ."""
    return tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)


class MultivariateNormal(Around):
    """Normal vectors (D,): p(x) = exp(-(x - m)ᵀΣ⁻¹(x - m)/2)/√((2π)ᴰ det Σ), m = `loc`.

    Give one of Σ (`covariance_matrix`), Σ⁻¹ (`precision_matrix`) and L with Σ = LLᵀ (`scale_tril`,
    which all else is computed with). Raises ValueError for none or several of them, matrices that
    are not positive definite, and too few dimensions. Like `torch.distributions.MultivariateNormal`.

    >>> MultivariateNormal(torch.zeros(2), torch.eye(2)).log_prob(torch.zeros(2))
    tensor(-1.8379)
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True
    _batched = {"loc": 1, "covariance_matrix": 2, "precision_matrix": 2, "scale_tril": 2}
    _same = ("_unbroadcasted_scale_tril",)

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        name, matrix = one_matrix(covariance_matrix, precision_matrix, scale_tril, ValueError)
        if matrix.dim() < 2:
            raise ValueError(
                f"{name + ' matrix' if name == 'scale_tril' else name} must be at least "
                "two-dimensional, with optional leading batch dimensions"
            )
        batch = torch.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        vars(self)[name] = matrix.expand(batch + (-1, -1))
        self.loc = loc.expand(batch + (-1,))
        super().__init__(batch, self.loc.shape[-1:], validate_args=validate_args)
        self._unbroadcasted_scale_tril = FACTOR[name](matrix)

    def _square(self, matrix: Tensor) -> Tensor:
        """A matrix for each member of the batch."""
        return matrix.expand(self._batch_shape + self._event_shape + self._event_shape)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """L."""
        return self._square(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """LLᵀ."""
        L = self._unbroadcasted_scale_tril
        return self._square(torch.matmul(L, L.mT))

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """(LLᵀ)⁻¹."""
        return self._square(torch.cholesky_inverse(self._unbroadcasted_scale_tril))

    @property
    def variance(self) -> Tensor:
        """The diagonal of Σ."""
        squares = self._unbroadcasted_scale_tril.pow(2).sum(-1)
        return squares.expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """m + L·(standard normal numbers)."""
        shape, of = self._extended_shape(sample_shape), self.loc
        eps = _standard_normal(shape, dtype=of.dtype, device=of.device)
        return of + _batch_mv(self._unbroadcasted_scale_tril, eps)

    def log_prob(self, value: Tensor) -> Tensor:
        """-(D log 2π + |L⁻¹(x - m)|²)/2 - log det L."""
        self._check_sample(value)
        distance = _batch_mahalanobis(self._unbroadcasted_scale_tril, value - self.loc)
        exponent = -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + distance)
        return exponent - log_diagonal(self._unbroadcasted_scale_tril)

    def entropy(self) -> Tensor:
        """D(1 + log 2π)/2 + log det L."""
        whole = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi))
        each = whole + log_diagonal(self._unbroadcasted_scale_tril)
        return each.expand(self._batch_shape) if self._batch_shape else each


FACTOR: dict[str, Callable[[Tensor], Tensor]] = {  # L from what was given
    "scale_tril": lambda matrix: matrix,
    "covariance_matrix": lambda matrix: torch.linalg.cholesky(matrix),
    "precision_matrix": _precision_to_scale_tril,
}


def one_matrix(
    covariance_matrix: Tensor | None,
    precision_matrix: Tensor | None,
    scale_tril: Tensor | None,
    error: type[Exception],
) -> tuple[str, Tensor]:
    """The one of three that was given, and its name."""
    named = {
        "covariance_matrix": covariance_matrix,
        "precision_matrix": precision_matrix,
        "scale_tril": scale_tril,
    }
    given = [(name, matrix) for name, matrix in named.items() if matrix is not None]
    if len(given) != 1:
        raise error(
            "Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified."
        )
    return given[0]
