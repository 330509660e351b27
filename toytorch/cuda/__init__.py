"""NVIDIA GPUs through CuPy, under the names of `torch.cuda`; importing this needs neither."""

from __future__ import annotations

from typing import Any

from toytorch.backends import base
from toytorch.core.device import device as device_class
from toytorch.core.random import manual_seed

_backend: Any = base.of_kind("cuda")


def is_available() -> bool:
    """Whether there is a GPU that can be used."""
    return bool(_backend.is_available())


def device_count() -> int:
    """How many GPUs there are; 0 where none can be used."""
    return int(_backend.device_count())


def _need() -> Any:
    return base.of_device(device_class("cuda"))


def current_device() -> int:
    """The number of the GPU that new tensors go to."""
    return int(_need().xp.cuda.Device().id)


def set_device(device: Any) -> None:
    """Makes a GPU the one that new tensors go to."""
    where = device_class(device)
    _need().xp.cuda.Device(where.index).use()


def get_device_name(device: Any = None) -> str:
    """The name of a GPU."""
    index = device_class("cuda" if device is None else device).index or 0
    name = _need().xp.cuda.runtime.getDeviceProperties(index)["name"]
    return name.decode() if isinstance(name, bytes) else str(name)


def synchronize(device: Any = None) -> None:
    """Returns when all work on a GPU is done."""
    with _need().on(device_class("cuda" if device is None else device)):
        _backend.synchronize()


def memory_allocated(device: Any = None) -> int:
    """Bytes in use by tensors."""
    return int(_need().xp.get_default_memory_pool().used_bytes())


def memory_reserved(device: Any = None) -> int:
    """Bytes that the caching allocator holds."""
    return int(_need().xp.get_default_memory_pool().total_bytes())


def empty_cache() -> None:
    """Gives memory that no tensor uses back to the driver."""
    if is_available():
        _backend.xp.get_default_memory_pool().free_all_blocks()


def manual_seed_all(seed: int) -> None:
    """Seeds the generators of all GPUs."""
    manual_seed(seed)


__all__ = ["current_device", "device_count", "empty_cache", "get_device_name", "is_available",
           "manual_seed", "manual_seed_all", "memory_allocated", "memory_reserved", "set_device",
           "synchronize"]
