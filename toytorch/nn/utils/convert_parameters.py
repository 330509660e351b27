"""All parameters as one vector, and back."""

from __future__ import annotations

from typing import Any

from toytorch.core.op import registry
from toytorch.core.tensor import Tensor
from toytorch.facts.hints import Device


def _same_device(p: Tensor, device: Device) -> Any:
    if device is not None and p.device != device:
        raise TypeError(
            "Found two parameters on different devices, this is currently not supported."
        )
    return p.device


def parameters_to_vector(parameters: Any) -> Tensor:
    """The elements of all parameters, one parameter after the other.

    >>> parameters_to_vector([torch.ones(2), torch.zeros(1, 2)])
    tensor([1., 1., 0., 0.])
    """
    device, parts = None, []
    for p in parameters:
        device = _same_device(p, device)
        parts.append(p.view(-1))
    return registry["cat"].function(parts)


def vector_to_parameters(vec: Tensor, parameters: Any) -> None:
    """Makes the parts of a vector the values of parameters."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec).__name__}")
    device, at = None, 0
    for p in parameters:
        device = _same_device(p, device)
        p.data = vec[at : at + p.numel()].reshape(p.shape).data
        at += p.numel()
