"""What `toytorch.cuda` asks of a backend beyond arrays: streams, events, memory figures, graphs.

Handles of streams and events are whatever the backend makes of them; `toytorch.cuda` only hands
them back.
"""

from __future__ import annotations

from typing import Any, Protocol

from toytorch.facts.hints import Array


class Runtime(Protocol):
    """The devices of one kind, as programs steer them. Devices are given by number."""

    # What ops do that make the host wait: nothing (0), a warning (1), an error (2).
    sync_debug_mode: int

    def new_pool(self) -> int:
        """The number of memory that only who names it gets."""

    def use_pool(self, number: int) -> int:
        """New memory comes from a pool from now on; from which it came before."""

    def current_device(self) -> int:
        """The device that new tensors of this thread go to."""

    def set_device(self, device: int) -> None:
        """Makes it another."""

    def properties(self, device: int) -> dict[str, Any]:
        """Its figures, by the names of `torch.cuda.get_device_properties`."""

    def can_reach(self, device: int, peer: int) -> bool:
        """Whether kernels of one may address the memory of the other."""

    def synchronize(self, device: int) -> None:
        """Returns when all work of a device is done."""

    # -- streams and events -------------------------------------------------------------------

    def new_stream(self, device: int, priority: int) -> Any:
        """A further queue."""

    def default_stream(self, device: int) -> Any:
        """The queue of whoever chose none."""

    def current_stream(self, device: int) -> Any:
        """The queue that this thread's work goes to."""

    def set_stream(self, stream: object) -> None:
        """Makes it another."""

    def device_of_stream(self, stream: object) -> int:
        """Whose queue it is."""

    def handle_of(self, stream: object) -> int:
        """CUDA's number for it."""

    def stream_done(self, stream: object) -> bool:
        """Whether all that it was given is done."""

    def synchronize_stream(self, stream: object) -> None:
        """Returns when it is."""

    def new_event(self, timing: bool, blocking: bool) -> Any:
        """A mark that streams can record and wait for."""

    def record(self, event: object, stream: object) -> None:
        """Marks the end of what a stream has been given."""

    def wait(self, stream: object, event: object) -> None:
        """Work given to a stream from now on waits for a mark."""

    def event_done(self, event: object) -> bool:
        """Whether the mark was reached."""

    def synchronize_event(self, event: object) -> None:
        """Returns when it is."""

    def elapsed(self, first: object, second: object) -> float:
        """Milliseconds between two marks."""

    def record_stream(self, array: Array, stream: object) -> None:
        """Keeps an array's memory from being used again before a stream is done with it."""

    # -- memory -------------------------------------------------------------------------------

    def memory_stats(self, device: int) -> dict[str, Any]:
        """The allocator's figures, nested as in `torch.cuda.memory_stats_as_nested_dict`."""

    def memory_info(self, device: int) -> tuple[int, int]:
        """Bytes that are free, and all."""

    def reset_peaks(self, device: int) -> None:
        """Peaks start from what is in use now."""

    def reset_accumulated(self, device: int) -> None:
        """Sums of what came and went start from nothing."""

    def empty_cache(self) -> None:
        """Gives memory that no tensor uses back to the driver."""

    def limit_memory(self, device: int, share: float) -> None:
        """Lets this process use a share of a device's memory."""

    def memory_share(self, device: int) -> float:
        """The share that it may use."""

    def snapshot(self) -> dict[str, Any]:
        """Segments, blocks and the trace of all devices, as `torch.cuda.memory._snapshot()`."""

    def record_memory(self, enabled: bool) -> None:
        """Switches the trace on or off; on, it starts anew."""

    # -- graphs -------------------------------------------------------------------------------

    def begin_capture(self, stream: object, pool: int | None) -> Any:
        """A graph that takes in what is given to a stream from now on."""

    def end_capture(self, capture: object) -> Any:
        """What can be replayed."""

    def replay(self, graph: object) -> None:
        """Does all of a graph again, on the current stream."""

    def capturing(self) -> bool:
        """Whether a graph is being made."""
