"""What optimizers of other libraries ask before they update many tensors in one call."""

from __future__ import annotations

from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.facts.device import device
from toytorch.facts.dtype import dtype

Lists = list[list[Tensor | None]]


def _group_tensors_by_device_and_dtype(
    tensorlistlist: Lists, with_indices: bool = False
) -> dict[tuple[device, dtype], tuple[Lists, list[int]]]:
    """Lists of equal length, divided by device and type of the first list's tensors.

    The second of each pair has the places in the lists, if they are asked for.

    >>> x, y = torch.ones(1), torch.ones(1).double()
    >>> list(_group_tensors_by_device_and_dtype([[x, y, x]], with_indices=True).values())[0][1]
    [0, 2]
    """
    groups: dict[tuple[Any, dtype], tuple[Lists, list[int]]] = {}
    for place, tensor in enumerate(tensorlistlist[0]):
        if tensor is None:
            raise RuntimeError("the tensors of the first list must not be None")
        lists, places = groups.setdefault(
            (tensor.device, tensor.dtype), ([[] for _ in tensorlistlist], [])
        )
        for made, given in zip(lists, tensorlistlist):
            made.append(given[place] if given else None)
        if with_indices:
            places.append(place)
    return groups


def _get_foreach_kernels_supported_devices() -> list[str]:
    """Kinds of devices on which `_foreach_add_` and the like are one launch."""
    return ["cuda", "xpu"]


def _get_fused_kernels_supported_devices() -> list[str]:
    """Kinds of devices on which an optimizer's step is one launch."""
    return ["mps", "cuda", "xpu", "hpu", "cpu"]


def _device_has_foreach_support(device: device) -> bool:
    """Whether many tensors on a device are better updated in one call."""
    return device.type in (*_get_foreach_kernels_supported_devices(), "cpu")


def _has_foreach_support(tensors: list[Tensor], device: device) -> bool:
    """Whether these tensors are better updated in one call."""
    return _device_has_foreach_support(device) and all(
        t is None or type(t) is Tensor for t in tensors
    )
