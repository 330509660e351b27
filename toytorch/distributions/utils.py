"""What distributions share: parameters broadcast together, chances and their logits, triangles."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import WRAPPER_ASSIGNMENTS
from typing import Any, TypeAlias

import toytorch as torch
from toytorch.core.tensor import Tensor
from toytorch.facts.hints import Device, DType, Shape

Value: TypeAlias = Tensor | float  # of a parameter

euler_constant = 0.57721566490153286060  # γ, the mean of the standard Gumbel distribution
NUMBERS = (int, float, bool)

__all__ = [
    "broadcast_all", "clamp_probs", "lazy_property", "logits_to_probs", "probs_to_logits",
    "tril_matrix_to_vec", "vec_to_tril_matrix",
]  # fmt: skip


def is_tensor_like(value: object) -> bool:
    """Whether it is a tensor, or an object that answers to functions of tensors."""
    return isinstance(value, Tensor) or hasattr(type(value), "__torch_function__")


def broadcast_all(*values: Value) -> tuple[Tensor, ...]:
    """Tensors of one shape. Numbers take the type and the place of the first tensor, or the default.

    >>> broadcast_all(1.0, torch.zeros(2))
    (tensor([1., 1.]), tensor([0., 0.]))
    """
    if not all(is_tensor_like(v) or isinstance(v, NUMBERS) for v in values):
        raise ValueError(
            "Input arguments must all be instances of Number, "
            "torch.Tensor or objects implementing __torch_function__."
        )
    first = next((v for v in values if isinstance(v, Tensor)), None)
    dtype = torch.get_default_dtype() if first is None else first.dtype
    device = None if first is None else first.device
    tensors = [
        v if is_tensor_like(v) else torch.tensor(v, dtype=dtype, device=device) for v in values
    ]
    return tuple(torch.broadcast_tensors(*tensors))


def _standard_normal(shape: Shape, dtype: DType | None, device: Device) -> Tensor:
    return torch.empty(shape, dtype=dtype, device=device).normal_()


def _sum_rightmost(value: Tensor, dim: int) -> Tensor:
    """The sum over the last `dim` dimensions."""
    return value if dim == 0 else value.reshape(value.shape[:-dim] + (-1,)).sum(-1)


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Chances from log-odds (binary), or from the logs of weights along the last dimension."""
    return torch.sigmoid(logits) if is_binary else torch.softmax(logits, -1)


def clamp_probs(probs: Tensor) -> Tensor:
    """Chances kept away from 0 and 1 by the rounding of their type."""
    eps = torch.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """The inverse of `logits_to_probs`; chances of 0 and 1 give large finite numbers."""
    p = clamp_probs(probs)
    return torch.log(p) - torch.log1p(-p) if is_binary else torch.log(p)


def _whole_numbers(
    count: int, batch_shape: Shape, expand: bool, dtype: DType, device: Device
) -> Tensor:
    """0 … count - 1 along a new first dimension, for every member of a batch."""
    values = torch.arange(count, dtype=dtype, device=device)
    values = values.view((-1,) + (1,) * len(batch_shape))
    return values.expand((-1, *batch_shape)) if expand else values


class lazy_property:
    """An attribute that is computed when it is first read, with gradients, and kept."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        vars(self).update({name: getattr(wrapped, name) for name in WRAPPER_ASSIGNMENTS})

    def __get__(self, instance: object, obj_type: type | None = None) -> Any:
        if instance is None:
            return self
        with torch.enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


def by_formula(doc: str, formula: Callable[[Any], Any]) -> Any:
    """A property that is a formula of the object: such as a moment, of parameters."""
    return property(formula, doc=doc)


def _below(size: int, diag: int, device: Device) -> Tensor:
    """Where a matrix lies on or below a diagonal."""
    at = torch.arange(size, device=device)
    return at < at.view(-1, 1) + (diag + 1)


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The elements of matrices (..., D, D) on and below a diagonal, row after row.

    >>> tril_matrix_to_vec(torch.tensor([[1., 0.], [2., 3.]]))
    tensor([1., 2., 3.])
    """
    n = mat.shape[-1]
    if diag < -n or diag >= n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    return mat[..., _below(n, diag, mat.device)]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Matrices (..., D, D) with these elements on and below a diagonal, and zeros above.

    >>> vec_to_tril_matrix(torch.tensor([1., 2., 3.]))
    tensor([[1., 0.],
            [2., 3.]])
    """
    # D elements more a row: the length is a quadratic in D, solved for D.
    b, count = 1 + 2 * diag, vec.shape[-1]
    n = (-b + math.sqrt(b * b + 8 * count + 4 * abs(diag) * (diag + 1))) / 2
    if round(n) - n > torch.finfo(vec.dtype).eps:
        raise ValueError(
            f"The size of last dimension is {count} which cannot be expressed as "
            "the lower triangular part of a square D x D matrix."
        )
    mat: Tensor = vec.new_zeros(vec.shape[:-1] + (round(n), round(n)))
    mat[..., _below(round(n), diag, vec.device)] = vec
    return mat
