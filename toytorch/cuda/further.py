"""Names of `torch.cuda` that few programs use, imported once one is asked for."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Any

from toytorch.core.storages import LEGACY, legacy_storage
from toytorch.cuda.devices import backend, get_device_properties, index_of, runtime
from toytorch.cuda.memory import mem_get_info
from toytorch.facts.hints import Device
from toytorch.facts.trace import AcceleratorError

MODES = ("default", "warn", "error")


def set_sync_debug_mode(debug_mode: int | str) -> None:
    """What an op does that makes the host wait, such as `item`: nothing ("default" or 0), a warning
    ("warn" or 1), or RuntimeError ("error" or 2). Simulated devices keep to it.

    >>> with torch.cuda.simulate():
    ...     torch.cuda.set_sync_debug_mode("error")
    ...     torch.ones(3, device="cuda").sum().item()
    Traceback (most recent call last):
    RuntimeError: called a synchronizing CUDA operation
    """
    here = runtime()
    if isinstance(debug_mode, str) and debug_mode not in MODES:
        raise RuntimeError(
            "invalid value of debug_mode, expected one of `default`, `warn`, `error`"
        )
    mode = MODES.index(debug_mode) if isinstance(debug_mode, str) else debug_mode
    if mode not in (0, 1, 2):
        raise RuntimeError("invalid value of debug_mode, expected one of 0,1,2")
    here.sync_debug_mode = mode


def get_sync_debug_mode() -> int:
    """What `set_sync_debug_mode` was told: 0, 1 or 2."""
    return int(runtime().sync_debug_mode)


# -- CUDA's runtime library -----------------------------------------------------------------------


class cudaStatus:
    """Codes of CUDA's calls."""

    SUCCESS = 0
    ERROR_NOT_READY = 34


class DeferredCudaCallError(Exception):
    """A call that waited for CUDA's start has failed."""


class Runtime:
    """The part of CUDA's runtime library that programs call: codes are 0 where all is well."""

    class cudaError(IntEnum):
        """Codes of calls."""

        success = 0

    def cudaProfilerStart(self) -> int:
        """NVIDIA's profilers would begin to record."""
        return 0

    def cudaProfilerStop(self) -> int:
        """They would end."""
        return 0

    def cudaMemGetInfo(self, device: int) -> tuple[int, int]:
        """Free and all memory of a device, in bytes."""
        return mem_get_info(device)

    def cudaGetErrorString(self, code: int) -> str:
        """A code in words."""
        return "no error" if code == 0 else f"error {int(code)}"


def cudart() -> Runtime:
    """CUDA's runtime library; AssertionError where there is no device."""
    backend()
    return Runtime()


def check_error(res: int) -> None:
    """Raises `torch.cuda.CudaError` for a code that is not 0."""
    if res != 0:
        raise AcceleratorError(f"{Runtime().cudaGetErrorString(res)} ({int(res)})")


def current_solver_handle() -> int:
    """The handle of the library for linear systems; 0, as none is kept."""
    backend()
    return 0


# -- what NVIDIA's management library measures ----------------------------------------------------


def _measured(device: Device, read: str, *more: object) -> Any:
    """A figure of a card from nvidia-ml-py; ModuleNotFoundError without that package."""
    try:
        library = importlib.import_module("pynvml")
    except ImportError as error:
        raise ModuleNotFoundError(
            "nvidia-ml-py does not seem to be installed or it can't be imported."
        ) from error
    library.nvmlInit()
    handle = library.nvmlDeviceGetHandleByIndex(index_of(device))
    return getattr(library, read)(handle, *more)


def utilization(device: Device = None) -> int:
    """Percent of the time in which a card was at work."""
    return int(_measured(device, "nvmlDeviceGetUtilizationRates").gpu)


def temperature(device: Device = None) -> int:
    """Degrees Celsius of a card."""
    return int(_measured(device, "nvmlDeviceGetTemperature", 0))


def power_draw(device: Device = None) -> int:
    """Milliwatts that a card takes."""
    return int(_measured(device, "nvmlDeviceGetPowerUsage"))


def clock_rate(device: Device = None) -> int:
    """Megahertz of a card's multiprocessors; of a simulated device, those of its card."""
    if getattr(backend(), "module", "") == "simulator":
        return int(getattr(get_device_properties(device), "clock_rate", 0)) // 1000
    return int(_measured(device, "nvmlDeviceGetClockInfo", 1))


# -- memory ---------------------------------------------------------------------------------------


def host_memory_stats_as_nested_dict() -> dict[str, Any]:
    """Figures of pinned memory: the host's own allocator gives it, which keeps none."""
    return {}


def reset_accumulated_host_memory_stats() -> None:
    """Figures of pinned memory begin again: there are none."""


def reset_peak_host_memory_stats() -> None:
    """Peaks of pinned memory begin again: there are none."""


def caching_allocator_enable(value: bool = True) -> None:
    """Whether freed memory is kept for later requests; here it always is."""


@contextmanager
def caching_allocator_disabled() -> Iterator[None]:
    """A context without the cache; here freed memory is always kept for later requests."""
    yield


class MemPool:
    """Memory of its own, for what is made in `use_mem_pool(pool)`; simulated devices have it.

    Like `torch.cuda.MemPool`, without allocators from libraries.
    """

    def __init__(
        self, allocator: Any = None, use_on_oom: bool = False, no_split: bool = False
    ) -> None:
        if allocator is not None:
            raise RuntimeError("a pool with an allocator of its own needs a card and a library")
        self.allocator, self._number = None, runtime().new_pool()

    @property
    def id(self) -> tuple[int, int]:
        """Its number, as snapshots name it."""
        return 0, self._number

    def snapshot(self, include_traces: bool = True) -> list[dict[str, Any]]:
        """Its segments."""
        segments: list[dict[str, Any]] = runtime().snapshot()["segments"]
        return [s for s in segments if s["segment_pool_id"] == self.id]


@contextmanager
def use_mem_pool(pool: MemPool, device: Device = None) -> Iterator[None]:
    """A context in which new memory comes from a pool.

    >>> with torch.cuda.simulate():
    ...     pool = torch.cuda.MemPool()
    ...     with torch.cuda.use_mem_pool(pool):
    ...         x = torch.ones(1000, device="cuda")
    ...     [segment["total_size"] >> 20 for segment in pool.snapshot()]
    [2]
    """
    before = runtime().use_pool(pool.id[1])
    try:
        yield
    finally:
        runtime().use_pool(before)


class CUDAPluggableAllocator:
    """An allocator from a library written in C; refused, since memory of cards comes from CuPy's."""

    def __init__(self, path_to_so_file: str, alloc_fn_name: str, free_fn_name: str) -> None:
        # PyTorch loads C functions here; CuPy has its own way to do so, which the message names.
        raise NotImplementedError(
            "allocators from a library are not supported; on a card, give CuPy one with "
            "cupy.cuda.set_allocator before the first tensor is made"
        )


def change_current_allocator(allocator: Any) -> None:
    """Refused, as `CUDAPluggableAllocator` is."""
    # There is nothing to change to, as no allocator can be made above.
    raise NotImplementedError(
        "the allocator cannot be changed; on a card, use cupy.cuda.set_allocator before the first "
        "tensor is made"
    )


class GreenContext:
    """Part of a card's multiprocessors as a context of its own; this package has none."""

    @staticmethod
    def create(
        *,
        num_sms: int | None = None,
        workqueue_scope: str | None = None,
        workqueue_concurrency_limit: int | None = None,
        device_id: int | None = None,
    ) -> GreenContext:
        """RuntimeError."""
        raise RuntimeError("PyTorch was not built with Green Context support!")

    @staticmethod
    def max_workqueue_concurrency(device_id: int | None = None) -> int:
        """RuntimeError."""
        raise RuntimeError("PyTorch was not built with Green Context support!")


STORAGES = {kind.__name__: legacy_storage(kind.dtype, "cuda") for kind in LEGACY}
globals().update(STORAGES)

__all__ = [
    *STORAGES, "CUDAPluggableAllocator", "DeferredCudaCallError", "GreenContext", "MemPool",
    "caching_allocator_disabled", "caching_allocator_enable", "change_current_allocator",
    "check_error", "clock_rate", "cudaStatus", "cudart", "current_solver_handle",
    "get_sync_debug_mode", "host_memory_stats_as_nested_dict", "power_draw",
    "reset_accumulated_host_memory_stats", "reset_peak_host_memory_stats", "set_sync_debug_mode",
    "temperature", "use_mem_pool", "utilization",
]  # fmt: skip
