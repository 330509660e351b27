"""The stand-in's `cupy.cuda`: one device, on which all work is done at once.

Names and arguments are CuPy's (cupy/cuda/stream.pyx, graph.pyx, memory.pyx of 14.2); what is not
used by toytorch is not here, so that using it fails.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from tests.cuda.stand_in_array import MemoryPointer, UnownedMemory

ERRORS = {
    2: ("cudaErrorMemoryAllocation", "out of memory"),
    35: (
        "cudaErrorInsufficientDriver",
        "CUDA driver version is insufficient for CUDA runtime version",
    ),
    100: ("cudaErrorNoDevice", "no CUDA-capable device is detected"),
    101: ("cudaErrorInvalidDevice", "invalid device ordinal"),
    700: ("cudaErrorIllegalAddress", "an illegal memory access was encountered"),
}


class CUDARuntimeError(RuntimeError):
    """`cupy.cuda.runtime.CUDARuntimeError`."""

    def __init__(self, status: int) -> None:
        self.status = status
        super().__init__(": ".join(ERRORS[status]))


class OutOfMemoryError(MemoryError):
    """`cupy.cuda.memory.OutOfMemoryError`."""

    def __init__(self, size: int, total: int, limit: int = 0) -> None:
        super().__init__(
            f"Out of memory allocating {size:,} bytes (allocated so far: {total:,} bytes)."
        )


class Device:
    """`cupy.cuda.Device`: there is one."""

    def __init__(self, device: Any = None) -> None:
        self.id = 0 if device is None else int(device)

    def __enter__(self) -> Device:
        self.use()
        return self

    def __exit__(self, *args: object) -> None:
        pass

    def use(self) -> None:
        if self.id:
            raise CUDARuntimeError(101)

    def synchronize(self) -> None:
        pass


class Stream:
    """`cupy.cuda.Stream`."""

    null: Stream
    now: Stream
    device_id = -1

    def __init__(
        self, null: bool = False, non_blocking: bool = False, ptds: bool = False,
        priority: int | None = None,
    ) -> None:  # fmt: skip
        self.ptr = 0 if null else id(self)
        self.priority = priority or 0
        if not null:
            self.device_id = 0
        self.captures = False

    def use(self) -> Stream:
        Stream.now = self
        return self

    @property
    def done(self) -> bool:
        return True

    def synchronize(self) -> None:
        pass

    def record(self, event: Event | None = None) -> Event:
        event = event or Event()
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        assert isinstance(event, Event)

    def launch_host_func(self, callback: Callable[[Any], Any], arg: Any) -> None:
        callback(arg)

    def begin_capture(self, mode: int | None = None) -> None:
        self.captures = True

    def end_capture(self) -> Graph:
        assert self.captures
        self.captures = False
        return Graph()


Stream.null = Stream.now = Stream(null=True)


class Graph:
    """`cupy.cuda.Graph`: of nothing, since work was done while it was captured."""

    def launch(self, stream: Stream | None = None) -> None:
        assert stream is None or isinstance(stream, Stream)


class Event:
    """`cupy.cuda.Event`."""

    def __init__(
        self, block: bool = False, disable_timing: bool = False, interprocess: bool = False
    ) -> None:
        self.timing, self.at = not disable_timing, 0.0

    @property
    def done(self) -> bool:
        return True

    def record(self, stream: Stream | None = None) -> None:
        self.at = time.perf_counter()

    def synchronize(self) -> None:
        pass


def get_elapsed_time(start_event: Event, end_event: Event) -> float:
    """Milliseconds."""
    assert start_event.timing and end_event.timing
    return 1e3 * (end_event.at - start_event.at)


def get_current_stream(device_id: int = -1) -> Stream:
    return Stream.now


class Pool:
    """`cupy.cuda.MemoryPool`, which holds nothing."""

    limit = 0

    def used_bytes(self) -> int:
        return 0

    def total_bytes(self) -> int:
        return 0

    def free_all_blocks(self, stream: Stream | None = None) -> None:
        pass

    def set_limit(self, size: int | None = None, fraction: float | None = None) -> None:
        Pool.limit = int((fraction or 0) * MEMORY) if size is None else size

    def get_limit(self) -> int:
        return Pool.limit


class PinnedMemoryPointer(bytearray):
    """`cupy.cuda.PinnedMemoryPointer`: a buffer, made by its size in bytes."""


MEMORY = 1 << 34


def properties(device: int) -> dict[str, Any]:
    """`cupy.cuda.runtime.getDeviceProperties`, as far as toytorch asks."""
    return {
        "name": b"stand-in for CuPy", "major": 9, "minor": 0, "multiProcessorCount": 132,
        "maxThreadsPerBlock": 1024, "maxThreadsPerMultiProcessor": 2048, "warpSize": 32,
        "totalGlobalMem": MEMORY, "regsPerMultiprocessor": 65536, "sharedMemPerBlock": 49152,
        "sharedMemPerBlockOptin": 232448, "sharedMemPerMultiprocessor": 233472,
        "l2CacheSize": 52428800, "clockRate": 1980000, "integrated": 0, "isMultiGpuBoard": 0,
    }  # fmt: skip


def made() -> Any:
    """The module."""
    runtime = SimpleNamespace(
        CUDARuntimeError=CUDARuntimeError,
        deviceCanAccessPeer=lambda device, peer: 0,
        driverGetVersion=lambda: 12090,
        getDeviceCount=lambda: 1,
        getDeviceProperties=properties,
        memGetInfo=lambda: (MEMORY, MEMORY),
        runtimeGetVersion=lambda: 12090,
    )
    return SimpleNamespace(
        Device=Device,
        Event=Event,
        MemoryPointer=MemoryPointer,
        Stream=Stream,
        UnownedMemory=UnownedMemory,
        PinnedMemoryPointer=PinnedMemoryPointer,
        alloc_pinned_memory=PinnedMemoryPointer,
        get_current_stream=get_current_stream,
        get_elapsed_time=get_elapsed_time,
        memory=SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
        runtime=runtime,
    )
