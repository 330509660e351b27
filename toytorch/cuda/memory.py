"""What the caching allocator holds, and the record it keeps. Like `torch.cuda.memory`."""

from __future__ import annotations

import os
import pickle
import tempfile
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np

from toytorch.backends import base
from toytorch.backends.runtime import Runtime
from toytorch.cuda.devices import index_of, is_available, runtime
from toytorch.facts import warned
from toytorch.facts.composed import called
from toytorch.facts.device import device as device_class
from toytorch.facts.hints import Device
from toytorch.facts.trace import OutOfMemoryError


def _asked(device: Device) -> tuple[Runtime, int] | None:
    """Whom to ask about a device; None where there is no device."""
    return (runtime(), index_of(device)) if is_available() else None


def memory_stats_as_nested_dict(device: Device = None) -> dict[str, Any]:
    """The figures of `memory_stats` as dictionaries in dictionaries; empty without a device."""
    asked = _asked(device)
    return {} if asked is None else asked[0].memory_stats(asked[1])


def memory_stats(device: Device = None) -> dict[str, Any]:
    """The allocator's figures: "allocated_bytes.all.current" and its kin.

    `{allocation,segment,active,inactive_split}` and the bytes `{allocated,reserved,active,
    inactive_split,requested}_bytes`, each of `{all,small_pool,large_pool}` and each
    `{current,peak,allocated,freed}`; `num_alloc_retries`, `num_ooms`. Empty without a device.
    """
    found: list[tuple[str, Any]] = []

    def collect(prefix: str, value: object) -> None:
        if isinstance(value, dict):
            for key, part in value.items():
                collect(f"{prefix}.{key}" if prefix else key, part)
        else:
            found.append((prefix, value))

    collect("", memory_stats_as_nested_dict(device))
    return OrderedDict(sorted(found))


def _figure(name: str, key: str, doc: str) -> Callable[..., int]:
    def figure(device: Device = None) -> int:
        return int(memory_stats(device).get(key, 0))

    return called(name, f"{doc}; 0 without a device.", figure)


memory_allocated = _figure(
    "memory_allocated", "allocated_bytes.all.current", "Bytes in use by tensors"
)
max_memory_allocated = _figure(
    "max_memory_allocated",
    "allocated_bytes.all.peak",
    "The most of them since the peaks were reset",
)
memory_reserved = _figure(
    "memory_reserved", "reserved_bytes.all.current", "Bytes that the caching allocator holds"
)
max_memory_reserved = _figure(
    "max_memory_reserved", "reserved_bytes.all.peak", "The most of them since the peaks were reset"
)


def reset_peak_memory_stats(device: Device = None) -> None:
    """Peaks start from what is in use now."""
    asked = _asked(device)
    if asked is not None:
        asked[0].reset_peaks(asked[1])


def reset_accumulated_memory_stats(device: Device = None) -> None:
    """Sums of what came and went start from nothing."""
    asked = _asked(device)
    if asked is not None:
        asked[0].reset_accumulated(asked[1])


RENAMED = "torch.cuda.{} has been renamed to torch.cuda.{}"
WIDER = "torch.cuda.{} now calls torch.cuda.{}, which resets /all/ peak memory stats."


def _older(name: str, new: Callable[..., Any], said: str) -> Callable[..., Any]:
    def function(device: Device = None) -> Any:
        warned.at_call(said.format(name, new.__name__), FutureWarning)
        return new(device)

    return called(name, f"The older name of `{new.__name__}`.", function)


memory_cached = _older("memory_cached", memory_reserved, RENAMED)
max_memory_cached = _older("max_memory_cached", max_memory_reserved, RENAMED)
reset_max_memory_allocated = _older("reset_max_memory_allocated", reset_peak_memory_stats, WIDER)
reset_max_memory_cached = _older("reset_max_memory_cached", reset_peak_memory_stats, WIDER)


def empty_cache() -> None:
    """Gives memory that no tensor uses back to the driver."""
    if is_available():
        runtime().empty_cache()


def mem_get_info(device: Device = None) -> tuple[int, int]:
    """Bytes of a device that are free, and all."""
    return runtime().memory_info(index_of(device))


def device_memory_used(device: Device = None) -> int:
    """Bytes of a device that are in use by anybody."""
    free, total = mem_get_info(device)
    return total - free


def set_per_process_memory_fraction(fraction: float, device: Device = None) -> None:
    """Lets this process use a share of a device's memory, from 0 to 1."""
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if not 0 <= fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    runtime().limit_memory(index_of(device), fraction)


def get_per_process_memory_fraction(device: Device = None) -> float:
    """The share of a device's memory that this process may use."""
    return float(runtime().memory_share(index_of(device)))


def memory_snapshot(mempool_id: Any = None, include_traces: bool = True) -> list[dict[str, Any]]:
    """The allocator's segments with their blocks, on all devices; those of one pool, if its number
    is given."""
    segments: list[dict[str, Any]] = runtime().snapshot()["segments"]
    if mempool_id is not None:
        segments = [s for s in segments if s.get("segment_pool_id") == tuple(mempool_id)]
    return segments


def _snapshot(device: Device = None) -> dict[str, Any]:
    """Segments, blocks, and the trace of what was allocated and freed; see `viz.memory_map`."""
    return runtime().snapshot()


def _record_memory_history(enabled: str | bool | None = "all", **more: object) -> None:
    """Switches the trace on or off; simulated devices keep one from the start."""
    runtime().record_memory(bool(enabled))


def _dump_snapshot(filename: str = "dump_snapshot.pickle") -> None:
    """Writes `_snapshot()` to a file that PyTorch's viewer reads too."""
    folder = os.path.dirname(os.path.abspath(filename))
    handle, temporary = tempfile.mkstemp(dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            pickle.dump(_snapshot(), file)
        os.replace(temporary, filename)
    except BaseException:
        os.unlink(temporary)
        raise


UNITS = ("B  ", "KiB", "MiB", "GiB", "TiB", "PiB")
FIGURES = (
    ("allocated_bytes", "Allocated memory", True),
    ("active_bytes", "Active memory", True),
    ("requested_bytes", "Requested memory", True),
    ("reserved_bytes", "GPU reserved memory", True),
    ("inactive_split_bytes", "Non-releasable memory", True),
    ("allocation", "Allocations", False),
    ("active", "Active allocs", False),
    ("segment", "GPU reserved segments", False),
    ("inactive_split", "Non-releasable allocs", False),
)
POOLS = (
    ("all", ""),
    ("large_pool", "      from large pool"),
    ("small_pool", "      from small pool"),
)
COLUMNS = ("current", "peak", "allocated", "freed")
LINE = "|" + "=" * 75 + "|"
THIN = "|" + "-" * 75 + "|"


def _in_unit(value: int, bytes: bool) -> str:
    """A number for the summary: bytes in a unit that keeps it short."""
    unit = 0
    limit = 768 * 1024 if bytes else 750 * 1000
    step = 1024 if bytes else 1000
    while value >= limit and unit < len(UNITS) - 1:
        value //= step
        unit += 1
    ending = UNITS[unit] if bytes else (" ", "K", "M", "G", "T", "P")[unit]
    return f"{value:6d} {ending}" if bytes else f"{value:7d} {ending} "


def memory_summary(device: Device = None, abbreviated: bool = False) -> str:
    """The allocator's figures as a table; of both pools together if `abbreviated`."""
    index = index_of(device) if is_available() else 0
    stats = memory_stats(device)
    ooms, retries = stats.get("num_ooms", 0), stats.get("num_alloc_retries", 0)
    rows = [
        LINE,
        f"|{f'PyTorch CUDA memory summary, device ID {index}':^75}|",
        THIN,
        f"|{f'            CUDA OOMs: {ooms:<12d} |        cudaMalloc retries: {retries:<9d} ':<75}|",
        LINE,
        "|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |",
    ]
    for name, title, in_bytes in FIGURES:
        rows.append(THIN)
        for pool, words in POOLS:
            if pool != "all" and abbreviated:
                continue
            cells = [
                _in_unit(stats.get(f"{name}.{pool}.{column}", 0), in_bytes) for column in COLUMNS
            ]
            rows.append(f"| {words or title:<22}| " + " | ".join(cells) + " |")
    rows.append(LINE)
    return "\n".join(rows) + "\n"


def list_gpu_processes(device: Device = None) -> str:
    """What else runs on a device; a simulated one has nobody else."""
    return f"GPU:{index_of(device)}\nno processes are running"


def memory_usage(device: Device = None) -> int:
    """The share of time in which the memory was read or written, in percent, by the driver."""
    raise ModuleNotFoundError("nvidia-ml-py does not seem to be installed or it can't be imported.")


def host_memory_stats(device: Device = None) -> dict[str, Any]:
    """Figures of pinned memory: the host's own allocator gives it, which keeps none."""
    return OrderedDict()


def get_allocator_backend() -> str:
    """Which allocator serves: "native" is the caching one."""
    return "native"


def caching_allocator_alloc(size: int, device: Device = None, stream: object = None) -> int:
    """The address of so many bytes of the device, which stay until `caching_allocator_delete`."""
    if size < 0:
        raise RuntimeError(f"cannot allocate {size} bytes")
    place = device_class("cuda", index_of(device))
    where = base.of_device(place)
    with where.on(place):
        array = where.xp.empty((size,), np.uint8)
    address = where.data_ptr(array)
    _held[address] = array
    return int(address)


def caching_allocator_delete(mem_ptr: int) -> None:
    """Gives back what `caching_allocator_alloc` gave."""
    if _held.pop(mem_ptr, None) is None:
        raise RuntimeError(f"invalid device pointer: {mem_ptr:#x}")


_held: dict[int, Any] = {}  # memory by address


def __getattr__(name: str) -> Any:
    """What few programs use, imported once it is asked for."""
    from toytorch.cuda import further  # which imports this file

    if name in further.__all__ and not name.startswith("_"):
        return getattr(further, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "OutOfMemoryError", "caching_allocator_alloc", "caching_allocator_delete", "device_memory_used",
    "empty_cache", "get_allocator_backend", "get_per_process_memory_fraction", "host_memory_stats",
    "list_gpu_processes", "max_memory_allocated", "max_memory_cached", "max_memory_reserved",
    "mem_get_info", "memory_allocated", "memory_cached", "memory_reserved", "memory_snapshot",
    "memory_stats", "memory_stats_as_nested_dict", "memory_summary", "memory_usage",
    "reset_accumulated_memory_stats", "reset_max_memory_allocated", "reset_max_memory_cached",
    "reset_peak_memory_stats", "set_per_process_memory_fraction",
]  # fmt: skip
