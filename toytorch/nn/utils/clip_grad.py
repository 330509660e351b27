"""Gradients held within limits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from toytorch.autograd.modes import no_grad
from toytorch.core.op import registry
from toytorch.core.tensor import Tensor
from toytorch.facts import warned
from toytorch.ops.creation.from_data import tensor


def _grads(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    parameters = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    return [p.grad for p in parameters if p.grad is not None]


def get_total_norm(
    tensors: Sequence[Tensor],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The norm of the norms of tensors: that of all their elements together."""
    tensors = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    if not tensors:
        return tensor(0.0)
    norm, stack = registry["linalg_vector_norm"].function, registry["stack"].function
    first = tensors[0].device
    total: Tensor = norm(
        stack([norm(t, float(norm_type)).to(first) for t in tensors], 0), float(norm_type)
    )
    if error_if_nonfinite and not bool(total.isfinite()):
        raise RuntimeError(
            f"The total norm of order {float(norm_type)} for gradients from `parameters` is "
            "non-finite, so it cannot be clipped. To disable this error and scale the gradients by "
            "the non-finite norm anyway, set `error_if_nonfinite=False`"
        )
    return total


def clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    total_norm: Tensor,
    foreach: bool | None = None,
) -> None:
    """Multiplies gradients by max_norm/total_norm where that is less than 1, in place."""
    with no_grad():
        factor = ((total_norm + 1e-6).reciprocal() * float(max_norm)).clamp(max=1.0)
        for g in _grads(parameters):
            g.mul_(factor.to(g.device))


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Holds the norm of all gradients together at max_norm, in place; gives the norm before.

    Pascanu, Mikolov and Bengio 2013.

    >>> p = torch.zeros(2, requires_grad=True); p.grad = torch.tensor([3., 4.])
    >>> clip_grad_norm_([p], max_norm=1.0), p.grad
    (tensor(5.), tensor([0.6000, 0.8000]))
    """
    parameters = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    with no_grad():
        total = get_total_norm(_grads(parameters), norm_type, error_if_nonfinite)
        clip_grads_with_norm_(parameters, max_norm, total)
    return total


def clip_grad_value_(parameters: Any, clip_value: float, foreach: bool | None = None) -> None:
    """Holds every element of all gradients in [-clip_value, clip_value], in place."""
    with no_grad():
        for g in _grads(parameters):
            g.clamp_(min=-float(clip_value), max=float(clip_value))


def clip_grad_norm(
    parameters: Any,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The older name of `clip_grad_norm_`."""
    warned.at_call(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of "
        "`torch.nn.utils.clip_grad_norm_`.",
        FutureWarning,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)
