"""Transforms of vectors and matrices: other shapes, points of a simplex, Cholesky factors."""

from __future__ import annotations

import math
from typing import Any

import toytorch as torch
from toytorch.core.tensor import Tensor
from toytorch.distributions import constraints
from toytorch.distributions.constraints import Constraint
from toytorch.distributions.transforms.base import Transform
from toytorch.distributions.transforms.elementwise import Plain, _clipped_sigmoid
from toytorch.distributions.utils import Shape, tril_matrix_to_vec, vec_to_tril_matrix
from toytorch.facts.size import Size
from toytorch.nn.functional import logsigmoid, pad, softplus


def need_dims(shape: Size, dims: int) -> None:
    """Refuses shapes of fewer dimensions."""
    if len(shape) < dims:
        raise ValueError("Too few dimensions on input")


class ReshapeTransform(Transform):
    """The same numbers in another shape. Like `torch.distributions.ReshapeTransform`.

    Raises ValueError if the shapes do not have as many numbers.

    >>> ReshapeTransform((4,), (2, 2))(torch.zeros(3, 4)).shape
    torch.Size([3, 2, 2])
    """

    bijective = True

    def __init__(self, in_shape: Shape, out_shape: Shape, cache_size: int = 0) -> None:
        self.in_shape = torch.Size(in_shape)
        self.out_shape = torch.Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError("in_shape, out_shape have different numbers of elements")
        super().__init__(cache_size=cache_size)

    def _options(self) -> dict[str, Any]:
        return {"in_shape": self.in_shape, "out_shape": self.out_shape}

    @constraints.dependent_property
    def domain(self) -> Constraint:
        """Numbers in the one shape."""
        return constraints.independent(constraints.real, len(self.in_shape))

    @constraints.dependent_property
    def codomain(self) -> Constraint:
        """Numbers in the other shape."""
        return constraints.independent(constraints.real, len(self.out_shape))

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape(x.shape[: x.dim() - len(self.in_shape)] + self.out_shape)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape(y.shape[: y.dim() - len(self.out_shape)] + self.in_shape)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """0."""
        return x.new_zeros(x.shape[: x.dim() - len(self.in_shape)])

    def forward_shape(self, shape: Size) -> Size:
        """The last dimensions exchanged."""
        return exchanged(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Size) -> Size:
        """The last dimensions exchanged."""
        return exchanged(shape, self.out_shape, self.in_shape)


def exchanged(shape: Size, old: Size, new: Size) -> Size:
    """A shape that ends on other dimensions than before."""
    need_dims(shape, len(old))
    cut = len(shape) - len(old)
    if shape[cut:] != old:
        raise ValueError(f"Shape mismatch: expected {shape[cut:]} but got {old}")
    return shape[:cut] + new


class SoftmaxTransform(Plain):
    """y = softmax x, which is the same for x + c. Like `torch.distributions.SoftmaxTransform`.

    >>> SoftmaxTransform()(torch.zeros(2))
    tensor([0.5000, 0.5000])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x: Tensor) -> Tensor:
        weights = (x - x.max(-1, True)[0]).exp()
        return weights / weights.sum(-1, True)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def forward_shape(self, shape: Size) -> Size:
        """The same."""
        need_dims(shape, 1)
        return shape

    inverse_shape = forward_shape


class StickBreakingTransform(Plain):
    """A stick of length 1 broken at K numbers: piece k is the share sigmoid(xₖ - log(K - k)) of what
    is left, and K + 1 pieces come of it. One to one. Like
    `torch.distributions.StickBreakingTransform`.

    >>> StickBreakingTransform()(torch.zeros(2))
    tensor([0.3333, 0.3333, 0.3333])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    @staticmethod
    def _left(like: Tensor, count: int) -> Tensor:
        """count, count - 1, … 1: how many pieces are to come; as many as `like` has numbers."""
        return count + 1 - like.new_ones(like.shape[-1]).cumsum(-1)

    def _call(self, x: Tensor) -> Tensor:
        share = _clipped_sigmoid(x - self._left(x, x.shape[-1]).log())
        rest = (1 - share).cumprod(-1)
        return pad(share, [0, 1], value=1) * pad(rest, [1, 0], value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        pieces = y[..., :-1]
        left = self._left(pieces, y.shape[-1] - 1)
        rest = torch.clamp(1 - pieces.cumsum(-1), min=torch.finfo(y.dtype).tiny)
        return pieces.log() - rest.log() + left.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Σ log yₖ(1 - shareₖ)."""
        x = x - self._left(x, x.shape[-1]).log()
        return (-x + logsigmoid(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Size) -> Size:
        """One more."""
        need_dims(shape, 1)
        return shape[:-1] + (shape[-1] + 1,)

    def inverse_shape(self, shape: Size) -> Size:
        """One fewer."""
        need_dims(shape, 1)
        return shape[:-1] + (shape[-1] - 1,)


class LowerCholeskyTransform(Plain):
    """Lower triangles whose diagonal is eˣ. Like `torch.distributions.LowerCholeskyTransform`.

    >>> LowerCholeskyTransform()(torch.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(Plain):
    """LLᵀ of such triangles L. Like `torch.distributions.PositiveDefiniteTransform`.

    >>> PositiveDefiniteTransform()(torch.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(torch.linalg.cholesky(y))


class CorrCholeskyTransform(Transform):
    """Cholesky factors of correlations (D, D) from D(D - 1)/2 numbers.

    The numbers' tanh are shares, as of a broken stick: of the squares in each row, which add up to
    1. Raises ValueError for other counts of numbers. Like
    `torch.distributions.CorrCholeskyTransform`.

    >>> CorrCholeskyTransform()(torch.zeros(1))
    tensor([[1., 0.],
            [0., 1.]])
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        eps = torch.finfo(x.dtype).eps
        share = vec_to_tril_matrix(torch.tanh(x).clamp(min=-1 + eps, max=1 - eps), diag=-1)
        rest = (1 - share**2).sqrt().cumprod(-1)
        share = share + torch.eye(share.shape[-1], dtype=share.dtype, device=share.device)
        return share * pad(rest[..., :-1], [1, 0], value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        rest = pad((1 - torch.cumsum(y * y, dim=-1))[..., :-1], [1, 0], value=1)
        share = tril_matrix_to_vec(y, diag=-1) / tril_matrix_to_vec(rest, diag=-1).sqrt()
        return (share.log1p() - share.neg().log1p()) / 2

    def log_abs_det_jacobian(
        self, x: Tensor, y: Tensor, intermediates: Tensor | None = None
    ) -> Tensor:
        """Half the logs of what is left in the rows, and the logs of the slopes of tanh."""
        rest = tril_matrix_to_vec(1 - (y * y).cumsum(dim=-1), diag=-2)
        slopes = -2 * (x + softplus(-2 * x) - math.log(2.0)).sum(dim=-1)
        return 0.5 * rest.log().sum(-1) + slopes

    def forward_shape(self, shape: Size) -> Size:
        """(D, D) for D(D - 1)/2."""
        need_dims(shape, 1)
        count = shape[-1]
        size = round((0.25 + 2 * count) ** 0.5 + 0.5)
        if size * (size - 1) // 2 != count:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return shape[:-1] + (size, size)

    def inverse_shape(self, shape: Size) -> Size:
        """D(D - 1)/2 for (D, D)."""
        need_dims(shape, 2)
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        return shape[:-2] + (shape[-1] * (shape[-1] - 1) // 2,)
