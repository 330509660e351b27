"""NVIDIA GPUs through CuPy, under the names of `torch.cuda`; importing this needs neither."""

from __future__ import annotations

from typing import Any

from toytorch.backends import base
from toytorch.core.random import manual_seed, state_of
from toytorch.facts.device import device as device_class
from toytorch.facts.hints import Device

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


def set_device(device: Device) -> None:
    """Makes a GPU the one that new tensors go to."""
    where = device_class(device)
    _need().xp.cuda.Device(where.index).use()


def get_device_name(device: Device = None) -> str:
    """The name of a GPU."""
    index = device_class("cuda" if device is None else device).index or 0
    name = _need().xp.cuda.runtime.getDeviceProperties(index)["name"]
    return name.decode() if isinstance(name, bytes) else str(name)


def synchronize(device: Device = None) -> None:
    """Returns when all work on a GPU is done."""
    with _need().on(device_class("cuda" if device is None else device)):
        _backend.synchronize()


def memory_allocated(device: Device = None) -> int:
    """Bytes in use by tensors."""
    if not is_available():
        return 0  # programs print it whether there is a GPU or not
    return int(_backend.xp.get_default_memory_pool().used_bytes())


def memory_reserved(device: Device = None) -> int:
    """Bytes that the caching allocator holds."""
    if not is_available():
        return 0
    return int(_backend.xp.get_default_memory_pool().total_bytes())


def empty_cache() -> None:
    """Gives memory that no tensor uses back to the driver."""
    if is_available():
        _backend.xp.get_default_memory_pool().free_all_blocks()


def is_initialized() -> bool:
    """Whether a GPU has been used: without one, never."""
    return is_available()


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether GPUs can compute with bfloat16: CuPy has no such type."""
    return False


def get_device_capability(device: Device = None) -> tuple[int, int]:
    """The compute capability of a GPU."""
    index = device_class("cuda" if device is None else device).index or 0
    found = _need().xp.cuda.runtime.getDeviceProperties(index)
    return int(found["major"]), int(found["minor"])


def get_arch_list() -> list[str]:
    """The architectures that kernels were compiled for beforehand: none, all are made in use."""
    return []


def get_rng_state(device: Device = "cuda") -> Any:
    """The state of a GPU's generator."""
    _need()
    return state_of(device_class(device)).get_state()


def set_rng_state(new_state: Any, device: Device = "cuda") -> None:
    """Sets the state of a GPU's generator."""
    _need()
    state_of(device_class(device)).set_state(new_state)


def get_rng_state_all() -> list[Any]:
    """The states of all GPUs' generators."""
    return [get_rng_state(f"cuda:{i}") for i in range(device_count())]


def set_rng_state_all(new_states: Any) -> None:
    """Sets the states of all GPUs' generators."""
    for i, new_state in enumerate(new_states):
        set_rng_state(new_state, f"cuda:{i}")


def manual_seed_all(seed: int) -> None:
    """Seeds the generators of all GPUs."""
    manual_seed(seed)


from toytorch.cuda import amp  # noqa: E402  # the package itself has to be there
from toytorch.cuda.raw_kernel import CompileError, KernelError, kernel  # noqa: E402
from toytorch.facts.trace import RaceError  # noqa: E402

__all__ = [
    "CompileError",
    "KernelError",
    "RaceError",
    "amp",
    "current_device",
    "device_count",
    "empty_cache",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_rng_state",
    "get_rng_state_all",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "kernel",
    "manual_seed",
    "manual_seed_all",
    "memory_allocated",
    "memory_reserved",
    "set_device",
    "set_rng_state",
    "set_rng_state_all",
    "synchronize",
]
