"""Streams, events, memory figures and graphs of NVIDIA's cards, through CuPy.

CuPy's memory pool keeps freed blocks as PyTorch's allocator does, but counts less: of its figures
there are bytes in use and bytes held; peaks are those that `toytorch.cuda` saw when it asked.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


class CupyRuntime:
    """What programs ask of cards; see `toytorch.backends.runtime`."""

    def __init__(self, module: Callable[[], Any]) -> None:
        self._module = module
        self._streams = threading.local()  # the stream each thread chose, by device
        self._peaks: dict[int, dict[str, int]] = {}

    sync_debug_mode = 0  # which CuPy does not ask for

    def new_pool(self) -> int:
        raise RuntimeError("memory pools of their own are there on simulated devices only")

    def use_pool(self, number: int) -> int:
        return number

    @property
    def cuda(self) -> Any:
        """The module `cupy.cuda`."""
        return self._module().cuda

    def current_device(self) -> int:
        return int(self.cuda.Device().id)

    def set_device(self, device: int) -> None:
        self.cuda.Device(device).use()

    def properties(self, device: int) -> dict[str, Any]:
        found = self.cuda.runtime.getDeviceProperties(device)
        name = found["name"]
        return {
            "name": name.decode() if isinstance(name, bytes) else str(name),
            "major": int(found["major"]),
            "minor": int(found["minor"]),
            "total_memory": int(found["totalGlobalMem"]),
            "multi_processor_count": int(found["multiProcessorCount"]),
            "warp_size": int(found["warpSize"]),
            "max_threads_per_multi_processor": int(found["maxThreadsPerMultiProcessor"]),
            "max_threads_per_block": int(found["maxThreadsPerBlock"]),
            "regs_per_multiprocessor": int(found["regsPerMultiprocessor"]),
            "shared_memory_per_block": int(found["sharedMemPerBlock"]),
            "shared_memory_per_block_optin": int(found["sharedMemPerBlockOptin"]),
            "shared_memory_per_multiprocessor": int(found["sharedMemPerMultiprocessor"]),
            "L2_cache_size": int(found["l2CacheSize"]),
            "clock_rate": int(found["clockRate"]),
            "is_integrated": int(found["integrated"]),
            "is_multi_gpu_board": int(found["isMultiGpuBoard"]),
        }

    def can_reach(self, device: int, peer: int) -> bool:
        return bool(self.cuda.runtime.deviceCanAccessPeer(device, peer))

    def synchronize(self, device: int) -> None:
        self.cuda.Device(device).synchronize()

    # -- streams and events -------------------------------------------------------------------

    def new_stream(self, device: int, priority: int) -> Any:
        with self.cuda.Device(device):
            return self.cuda.Stream(non_blocking=True, priority=priority)

    def default_stream(self, device: int) -> Any:
        return self.cuda.Stream.null

    def current_stream(self, device: int) -> Any:
        return self.cuda.get_current_stream(device)

    def set_stream(self, stream: Any) -> None:
        stream.use()

    def device_of_stream(self, stream: Any) -> int:
        found = int(stream.device_id)
        return self.current_device() if found < 0 else found

    def handle_of(self, stream: Any) -> int:
        return int(stream.ptr)

    def stream_done(self, stream: Any) -> bool:
        return bool(stream.done)

    def synchronize_stream(self, stream: Any) -> None:
        stream.synchronize()

    def new_event(self, timing: bool, blocking: bool) -> Any:
        return self.cuda.Event(block=blocking, disable_timing=not timing)

    def record(self, event: Any, stream: Any) -> None:
        event.record(stream)

    def wait(self, stream: Any, event: Any) -> None:
        stream.wait_event(event)

    def event_done(self, event: Any) -> bool:
        return bool(event.done)

    def synchronize_event(self, event: Any) -> None:
        event.synchronize()

    def elapsed(self, first: Any, second: Any) -> float:
        return float(self.cuda.get_elapsed_time(first, second))

    def record_stream(self, array: Any, stream: Any) -> None:
        # CuPy's pool gives a block to work on the same stream only; what it must not do is free it
        # while another one reads it. The array is kept until that stream has come so far.
        stream.launch_host_func(_let_go, array)

    # -- memory -------------------------------------------------------------------------------

    def memory_stats(self, device: int) -> dict[str, Any]:
        pool = self._module().get_default_memory_pool()
        with self.cuda.Device(device):
            now = {
                "allocated_bytes": int(pool.used_bytes()),
                "reserved_bytes": int(pool.total_bytes()),
            }
        peaks = self._peaks.setdefault(device, dict(now))
        made: dict[str, Any] = {}
        for name, value in now.items():
            peaks[name] = max(peaks[name], value)
            made[name] = {"all": {"current": value, "peak": peaks[name]}}
        return made

    def memory_info(self, device: int) -> tuple[int, int]:
        with self.cuda.Device(device):
            free, total = self.cuda.runtime.memGetInfo()
        return int(free), int(total)

    def reset_peaks(self, device: int) -> None:
        self._peaks.pop(device, None)

    def reset_accumulated(self, device: int) -> None:
        """CuPy's pool counts nothing that adds up."""

    def empty_cache(self) -> None:
        self._module().get_default_memory_pool().free_all_blocks()

    def limit_memory(self, device: int, share: float) -> None:
        with self.cuda.Device(device):
            self._module().get_default_memory_pool().set_limit(fraction=share)

    def memory_share(self, device: int) -> float:
        with self.cuda.Device(device):
            limit = self._module().get_default_memory_pool().get_limit()
        return limit / self.memory_info(device)[1] if limit else 1.0

    def snapshot(self) -> dict[str, Any]:
        raise RuntimeError("CuPy's memory pool keeps no record; simulated devices do")

    def record_memory(self, enabled: bool) -> None:
        if enabled:
            raise RuntimeError("CuPy's memory pool keeps no record; simulated devices do")

    # -- graphs -------------------------------------------------------------------------------

    def begin_capture(self, stream: Any, pool: Any) -> Any:
        stream.begin_capture()
        self._streams.capturing = stream
        return stream

    def end_capture(self, capture: Any) -> Any:
        self._streams.capturing = None
        return capture.end_capture()

    def replay(self, graph: Any) -> None:
        graph.launch(self.cuda.get_current_stream())

    def capturing(self) -> bool:
        return getattr(self._streams, "capturing", None) is not None


def _let_go(array: Any) -> None:
    """Called by CUDA once a stream has come this far: the array it was given is held no longer."""
