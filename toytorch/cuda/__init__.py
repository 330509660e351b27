"""Devices under the names of `torch.cuda`: NVIDIA's cards through CuPy, or simulated ones.

Importing this needs neither. `simulate()` gives devices to whoever has no card.
"""

from __future__ import annotations

import importlib
from typing import Any

from toytorch.core.random import Generator
from toytorch.cuda import amp, comm, nvtx
from toytorch.cuda.devices import (
    can_device_access_peer,
    current_blas_handle,
    current_device,
    device,
    device_count,
    device_of,
    get_arch_list,
    get_device_capability,
    get_device_name,
    get_device_properties,
    get_gencode_flags,
    init,
    ipc_collect,
    is_available,
    is_bf16_supported,
    is_initialized,
    is_tf32_supported,
    set_device,
    synchronize,
)
from toytorch.cuda.graphs import (
    CUDAGraph,
    graph,
    graph_pool_handle,
    is_current_stream_capturing,
    make_graphed_callables,
)
from toytorch.cuda.legacy import TENSORS
from toytorch.cuda.memory import (
    caching_allocator_alloc,
    caching_allocator_delete,
    device_memory_used,
    empty_cache,
    get_allocator_backend,
    get_per_process_memory_fraction,
    host_memory_stats,
    list_gpu_processes,
    max_memory_allocated,
    max_memory_cached,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_cached,
    memory_reserved,
    memory_snapshot,
    memory_stats,
    memory_stats_as_nested_dict,
    memory_summary,
    memory_usage,
    reset_accumulated_memory_stats,
    reset_max_memory_allocated,
    reset_max_memory_cached,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
)
from toytorch.cuda.random import (
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from toytorch.cuda.raw_kernel import CompileError, KernelError, kernel
from toytorch.cuda.simulation import (
    RaceError,
    RaceWarning,
    Simulation,
    is_simulated,
    races,
    simulate,
    timeline,
)
from toytorch.cuda.streams import (
    Event,
    ExternalStream,
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    get_stream_from_external,
    set_stream,
    stream,
)
from toytorch.facts.trace import AcceleratorError, OutOfMemoryError

CudaError = AcceleratorError
default_generators: tuple[Generator, ...] = ()
has_half = has_magma = True
globals().update(TENSORS)


def __getattr__(name: str) -> Any:
    """What few programs use, imported once it is asked for."""
    if name in ("profiler", "nccl"):
        return importlib.import_module(f"toytorch.cuda.{name}")
    if not name.startswith("_"):
        further = importlib.import_module("toytorch.cuda.further")
        if name in further.__all__:
            return getattr(further, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "AcceleratorError",
    "CUDAGraph",
    "CompileError",
    "CudaError",
    "Event",
    "ExternalStream",
    "KernelError",
    "OutOfMemoryError",
    "RaceError",
    "RaceWarning",
    "Simulation",
    "Stream",
    "StreamContext",
    "amp",
    "caching_allocator_alloc",
    "caching_allocator_delete",
    "can_device_access_peer",
    "comm",
    "current_blas_handle",
    "current_device",
    "current_stream",
    "default_generators",
    "default_stream",
    "device",
    "device_count",
    "device_memory_used",
    "device_of",
    "empty_cache",
    "get_allocator_backend",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_gencode_flags",
    "get_per_process_memory_fraction",
    "get_rng_state",
    "get_rng_state_all",
    "get_stream_from_external",
    "graph",
    "graph_pool_handle",
    "has_half",
    "has_magma",
    "host_memory_stats",
    "init",
    "initial_seed",
    "ipc_collect",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_initialized",
    "is_simulated",
    "is_tf32_supported",
    "kernel",
    "list_gpu_processes",
    "make_graphed_callables",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "memory_usage",
    "nvtx",
    "races",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_per_process_memory_fraction",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "simulate",
    "stream",
    "synchronize",
    "timeline",
]
