"""Tensors sent to several devices and gathered from them. Like `torch.cuda.comm`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.cuda.devices import index_of
from toytorch.facts import warned
from toytorch.facts.device import device as device_class
from toytorch.facts.hints import Device
from toytorch.ops.shaping.rearrange import cat


def _on(device: Device) -> device_class:
    """A device with its number; the CPU for -1."""
    if device == -1 or (device is not None and device_class(device).type == "cpu"):
        return device_class("cpu")
    return device_class("cuda", index_of(device))


def broadcast(
    tensor: Tensor, devices: Sequence[Device] | None = None, *, out: Sequence[Tensor] | None = None
) -> tuple[Tensor, ...]:
    """A copy of a tensor on each device, or in each tensor of `out`; the first is the tensor itself
    where it is there already."""
    if (devices is None) == (out is None):
        raise RuntimeError(
            "Exactly one of 'devices' and 'out' must be specified, but got "
            f"devices={devices} and out={out}"
        )
    if out is not None:
        return tuple(o.copy_(tensor, True) for o in out)
    return tuple(tensor.to(_on(d), non_blocking=True) for d in devices or ())


def broadcast_coalesced(
    tensors: Sequence[Tensor], devices: Sequence[Device], buffer_size: int = 10485760
) -> list[list[Tensor]]:
    """Copies of several tensors on each device, by device. Tensors of one type are sent together,
    about `buffer_size` bytes at a time, as many small copies would each have to start."""
    made: list[list[Any]] = [[None] * len(tensors) for _ in devices]
    for bucket in _buckets(tensors, buffer_size):
        flat = _flat([tensors[i] for i in bucket])
        for k, device in enumerate(devices):
            if tensors[bucket[0]].device == _on(device):
                parts = [tensors[i] for i in bucket]
            else:
                parts = _parts(
                    flat.to(_on(device), non_blocking=True), [tensors[i] for i in bucket]
                )
            for i, part in zip(bucket, parts):
                made[k][i] = part
    return made


def reduce_add(inputs: Sequence[Tensor], destination: Device = None) -> Tensor:
    """The sum of tensors of one shape on several devices, on one of them."""
    where = _on(destination)
    if len({tuple(t.shape) for t in inputs}) > 1:
        shapes = ", ".join("x".join(map(str, t.shape)) for t in inputs)
        raise ValueError(f"input tensors have different shapes: {shapes}")
    if any(not t.is_cuda for t in inputs):
        raise AssertionError("reduce_add expects all inputs to be on GPUs")
    total, *others = sorted(inputs, key=lambda t: t.device != where)
    if total.device != where:
        raise RuntimeError(
            "reduce_add expects destination to be on the same GPU with one of the tensors"
        )
    for other in others:
        total = total + other.to(where, non_blocking=True)
    return total


def reduce_add_coalesced(
    inputs: Sequence[Sequence[Tensor]], destination: Device = None, buffer_size: int = 10485760
) -> tuple[Tensor, ...]:
    """`reduce_add` of several tensors, given by device; those of one type are sent together."""
    first = inputs[0]
    made: list[Any] = [None] * len(first)
    for bucket in _buckets(first, buffer_size):
        total = reduce_add([_flat([own[i] for i in bucket]) for own in inputs], destination)
        for i, part in zip(bucket, _parts(total, [first[i] for i in bucket])):
            made[i] = part
    return tuple(made)


def scatter(
    tensor: Tensor,
    devices: Sequence[Device] | None = None,
    chunk_sizes: Sequence[int] | None = None,
    dim: int = 0,
    streams: Sequence[Any] | None = None,
    *,
    out: Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]:
    """The parts of a tensor along `dim`, each on one device (or in a tensor of `out`)."""
    if out is not None:
        if devices is not None or chunk_sizes is not None:
            raise RuntimeError(
                "'devices' and 'chunk_sizes' must not be specified when 'out' is specified"
            )
        sizes = [o.shape[dim] for o in out]
        return tuple(o.copy_(p) for o, p in zip(out, tensor.split(sizes, dim)))
    places = [_on(d) for d in devices or ()]
    if not places:
        raise ValueError("Expected at least one device to scatter to")
    parts: Any = (
        tensor.chunk(len(places), dim) if chunk_sizes is None else tensor.split(chunk_sizes, dim)
    )
    return tuple(part.to(place, non_blocking=True) for part, place in zip(parts, places))


def gather(
    tensors: Sequence[Tensor],
    dim: int = 0,
    destination: Device = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Tensors of several devices side by side along `dim`, on one device (-1: the CPU)."""
    if out is not None:
        if destination is not None:
            raise RuntimeError("'destination' must not be specified when 'out' is specified")
        return out.copy_(gather(tensors, dim, out.device))
    if destination == -1:
        warned.at_call(
            "Using -1 to represent CPU tensor is deprecated. Please use a device object or string "
            'instead, e.g., "cpu".',
            FutureWarning,
        )
    where = _on(destination)
    return cat.function([t.to(where, non_blocking=where.type == "cuda") for t in tensors], dim)


def _buckets(tensors: Sequence[Tensor], limit: int) -> list[list[int]]:
    """The places of tensors that are sent together: of one type, and not much more than `limit`
    bytes."""
    made: list[list[int]] = []
    open_ones: dict[Any, list[int]] = {}
    for i, t in enumerate(tensors):
        bucket = open_ones.get(t.dtype)
        if bucket is None or sum(tensors[k].nbytes for k in bucket) + t.nbytes > limit:
            bucket = open_ones[t.dtype] = []
            made.append(bucket)
        bucket.append(i)
    return made


def _flat(tensors: Sequence[Tensor]) -> Tensor:
    return cat.function([t.detach().reshape(-1) for t in tensors], 0)


def _parts(flat: Tensor, like: Sequence[Tensor]) -> list[Tensor]:
    pieces = flat.split([t.numel() for t in like])
    return [p.view(t.shape) for p, t in zip(pieces, like)]


__all__ = [
    "broadcast", "broadcast_coalesced", "gather", "reduce_add", "reduce_add_coalesced", "scatter",
]  # fmt: skip
