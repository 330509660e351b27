"""Which devices there are, and which one work goes to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toytorch.backends import base
from toytorch.core.tensor import Tensor
from toytorch.facts.device import device as device_class
from toytorch.facts.hints import Device

__all__ = [
    "can_device_access_peer", "current_blas_handle", "current_device", "device", "device_count",
    "device_of", "get_arch_list", "get_device_capability", "get_device_name",
    "get_device_properties", "get_gencode_flags", "init", "ipc_collect", "is_available",
    "is_bf16_supported", "is_initialized", "is_tf32_supported", "set_device", "synchronize",
]  # fmt: skip


def backend() -> Any:
    """The backend of cuda devices; AssertionError, with what to do, where there is none."""
    return base.of_device(device_class("cuda"))


def runtime(refusal: str = "") -> Any:
    """What steers its devices; a RuntimeError of the given words, and what to do, where there are
    none."""
    if refusal and not is_available():
        raise RuntimeError(f"{refusal}: {base.way_out(base.of_kind('cuda'))}")
    return backend().runtime


def is_available() -> bool:
    """Whether there is a device that can be used: a card, or a simulated one."""
    return bool(base.of_kind("cuda").is_available())


def device_count() -> int:
    """How many devices there are; 0 where none can be used."""
    return int(base.of_kind("cuda").device_count())


def index_of(device: Device) -> int:
    """The number of a device; the current one where none is named.

    Raises ValueError for a device of another kind, and RuntimeError for a number too high.
    """
    if device is None:
        return int(runtime().current_device())
    where = device_class(device)
    if where.type != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {where}")
    if where.index is None:
        return int(runtime().current_device())
    if not 0 <= where.index < max(device_count(), 1):
        backend().on(where).__enter__()  # which raises, in the words of the backend
    return where.index


def current_device() -> int:
    """The number of the device that new tensors go to."""
    return int(runtime().current_device())


def set_device(device: Device) -> None:
    """Makes a device the one that new tensors go to; a negative number changes nothing."""
    if isinstance(device, int) and device < 0:
        return
    runtime().set_device(index_of(device))


class device:
    """A context in which another device is the current one.

    `device` is a number, a name or a `torch.device`; a negative number changes nothing. Like
    `torch.cuda.device`.
    """

    def __init__(self, device: Any) -> None:
        self.idx = -1 if device is None else device if isinstance(device, int) else index_of(device)
        self.prev_idx = -1

    def __enter__(self) -> None:
        if self.idx >= 0:
            runtime("PyTorch was compiled without CUDA support")
            self.prev_idx = current_device()
            set_device(self.idx)

    def __exit__(self, *exc: object) -> None:
        if self.idx >= 0:
            set_device(self.prev_idx)


class device_of(device):
    """`device` with the place of a tensor; what is on the CPU changes nothing."""

    def __init__(self, obj: Tensor) -> None:
        super().__init__(obj.device.index if obj.is_cuda else -1)


class DeviceProperties:
    """The figures of a device, as attributes. Like `_CudaDeviceProperties`."""

    def __init__(self, figures: dict[str, Any]) -> None:
        self.__dict__.update(figures)

    def __repr__(self) -> str:
        return (
            f"_CudaDeviceProperties(name='{self.name}', major={self.major}, minor={self.minor}, "
            f"total_memory={self.total_memory >> 20}MB, "
            f"multi_processor_count={self.multi_processor_count}, "
            f"L2_cache_size={self.L2_cache_size >> 20}MB)"
        )

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int
    L2_cache_size: int


def get_device_properties(device: Device = None) -> DeviceProperties:
    """Name, capability, memory and multiprocessors of a device."""
    return DeviceProperties(runtime().properties(index_of(device)))


def get_device_name(device: Device = None) -> str:
    """The name of a device."""
    return str(runtime().properties(index_of(device))["name"])


def get_device_capability(device: Device = None) -> tuple[int, int]:
    """The compute capability of a device, major and minor."""
    figures = runtime().properties(index_of(device))
    return figures["major"], figures["minor"]


def can_device_access_peer(device: Device, peer_device: Device) -> bool:
    """Whether a device can reach the memory of another without the host."""
    return bool(runtime().can_reach(index_of(device), index_of(peer_device)))


def synchronize(device: Device = None) -> None:
    """Returns when all work on a device is done."""
    runtime().synchronize(index_of(device))


def is_initialized() -> bool:
    """Whether a device has been used: without one, never."""
    return is_available()


def _lazy_call(callable: Callable[[], object], **kwargs: object) -> None:
    """Calls a function if a device is in use; PyTorch waits for that, here a program calls anew."""
    if is_initialized():
        callable()


def init() -> None:
    """Starts what a device needs; AssertionError where there is none."""
    backend()


def get_arch_list() -> list[str]:
    """The architectures that kernels were compiled for beforehand: none, all are made in use."""
    return []


def get_gencode_flags() -> str:
    """The compiler's flags for them."""
    return ""


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the current device computes with bfloat16: from capability 8.0 on, or by emulation."""
    if not is_available():
        return False
    return including_emulation or get_device_capability()[0] >= 8


def is_tf32_supported() -> bool:
    """Whether its tensor cores round float32 to TF32: from capability 8.0 on."""
    return is_available() and get_device_capability()[0] >= 8


def ipc_collect() -> None:
    """Frees memory of other processes: there is none here, as tensors are shared by the host."""
    backend()


def current_blas_handle() -> int:
    """The handle of the library for products; 0, as none is kept."""
    backend()
    return 0
