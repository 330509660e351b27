"""Copies, parts and sums across devices, with their derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toytorch.autograd.function import Function, FunctionCtx
from toytorch.core.tensor import Tensor
from toytorch.cuda import comm
from toytorch.facts.device import device as device_class
from toytorch.facts.hints import Shape


class Broadcast(Function):
    """Copies of tensors on each device; the gradient is the sum of the copies' gradients."""

    @staticmethod
    def forward(ctx: FunctionCtx, devices: Sequence[Any], *inputs: Tensor) -> Any:
        ctx.devices, ctx.count = devices, len(inputs)
        made = comm.broadcast_coalesced(inputs, devices)
        return tuple(t for own in made for t in own)

    @staticmethod
    def backward(ctx: FunctionCtx, *grads: Tensor) -> Any:
        own = [grads[i : i + ctx.count] for i in range(0, len(grads), ctx.count)]
        return (None, *comm.reduce_add_coalesced(own, ctx.devices[0]))


class Scatter(Function):
    """Parts of a tensor, one on each device; the gradient is that of the parts side by side."""

    @staticmethod
    def forward(
        ctx: FunctionCtx, devices: Sequence[Any], sizes: Shape | None, dim: int, input: Tensor
    ) -> Any:
        ctx.dim, ctx.device = dim, input.device
        return comm.scatter(input, devices, sizes, dim)

    @staticmethod
    def backward(ctx: FunctionCtx, *grads: Tensor) -> Any:
        return None, None, None, comm.gather(grads, ctx.dim, ctx.device)


class Gather(Function):
    """Tensors of several devices side by side on one; the gradient is divided among them."""

    @staticmethod
    def forward(ctx: FunctionCtx, device: Any, dim: int, *inputs: Tensor) -> Any:
        ctx.dim, ctx.devices = dim, [t.device for t in inputs]
        ctx.flat = all(not t.ndim for t in inputs) and dim == 0
        if ctx.flat:  # numbers become a vector, as PyTorch has it, with a warning
            inputs = tuple(t.view(1) for t in inputs)
        ctx.sizes = [t.shape[dim] for t in inputs]
        return comm.gather(inputs, dim, device)

    @staticmethod
    def backward(ctx: FunctionCtx, grad: Tensor) -> Any:
        parts: Any = comm.scatter(grad, ctx.devices, ctx.sizes, ctx.dim)
        if ctx.flat:
            parts = [part[0] for part in parts]
        return None, None, *parts


def broadcast(tensors: Sequence[Tensor], devices: Sequence[Any]) -> list[list[Tensor]]:
    """Copies of tensors on each device, by device, through which gradients flow back."""
    flat = Broadcast.apply(list(devices), *tensors)
    count = len(tensors)
    return [list(flat[i : i + count]) for i in range(0, len(flat), count)]


def place(device: object) -> device_class:
    """A device given by number, name or itself."""
    return device_class("cuda", device) if isinstance(device, int) else device_class(device)
