"""The accelerator of this machine, whichever it is: a GPU, or none. Like `torch.accelerator`."""

from __future__ import annotations

from typing import Any

from toytorch import cpu, cuda
from toytorch.facts import dtype as types
from toytorch.facts.composed import called
from toytorch.facts.device import device
from toytorch.facts.device import device as device_class
from toytorch.facts.hints import Device


def is_available() -> bool:
    """Whether there is one that can be used."""
    return cuda.is_available()


def device_count() -> int:
    """How many there are."""
    return cuda.device_count()


def current_accelerator(check_available: bool = False) -> device | None:
    """The kind of device it is, None where there is none."""
    return device("cuda") if cuda.is_available() else None


def current_device_index() -> int:
    """The number of the one that new tensors go to."""
    _there()
    return cuda.current_device()


def _there() -> None:
    """Refuses where there is no accelerator."""
    if not cuda.is_available():
        raise RuntimeError("Cannot access accelerator device when none is available.")


def _of_device(name: str, doc: str, of: str = "") -> Any:
    """A function of a device that `torch.cuda` has, by its name there."""

    def function(device: Device = None, /) -> Any:
        _there()
        return getattr(cuda, of or name)(device)

    return called(name, doc, function)


def set_device_index(device: Device, /) -> None:
    """Makes another the one that new tensors go to."""
    _there()
    cuda.set_device(device)


current_device_idx, set_device_idx = current_device_index, set_device_index  # older names


def get_device_capability(device: Device = None, /) -> dict[str, Any]:
    """What a device computes with: the types that it has, under "supported_dtypes"."""
    _there()
    return {"supported_dtypes": set(types.ALL)}


def get_device_module(device: Device = None) -> Any:
    """The package of a kind of device, `torch.cuda` or `torch.cpu`: of the accelerator's, unless
    one is named. Like `torch.get_device_module`.

    >>> get_device_module("cpu").__name__
    'toytorch.cpu'
    """
    kind = device_class(device).type if device is not None else "cuda" if is_available() else "cpu"
    return cuda if kind == "cuda" else cpu


synchronize = _of_device("synchronize", "Returns when all its work is done.")


class Graph(cuda.CUDAGraph):
    """A recorded sequence of launches, as a context that records on the current stream. Like
    `torch.accelerator.Graph`.

    >>> with torch.cuda.simulate():
    ...     x, graph = torch.zeros(2, device="cuda"), torch.accelerator.Graph()
    ...     with torch.cuda.stream(torch.cuda.Stream()), graph:
    ...         x += 1
    ...     graph.replay()
    ...     x.tolist()
    [1.0, 1.0]
    """

    def __new__(cls, *args: Any, **options: Any) -> Graph:
        _there()
        return super().__new__(cls)

    def __init__(
        self, keep_graph: bool = False, *, pool: Any = None, capture_error_mode: str = "default"
    ) -> None:
        super().__init__(keep_graph)
        self._pool, self._mode = pool, capture_error_mode

    def __enter__(self) -> Graph:
        cuda.synchronize()
        mode = "global" if self._mode == "default" else self._mode
        self.capture_begin(self._pool, capture_error_mode=mode)
        return self

    def __exit__(self, *error: object) -> None:
        self.capture_end()


# -- memory ----------------------------------------------------------------------------------------


def empty_host_cache() -> None:
    """Gives back pinned memory that no tensor uses: the host's own allocator keeps none."""
    _there()


def empty_cache() -> None:
    """Gives back memory that no tensor uses."""
    _there()
    cuda.empty_cache()


memory_stats = _of_device("memory_stats", "What the allocator counts, by dotted names.")
memory_allocated = _of_device("memory_allocated", "Bytes that tensors use.")
max_memory_allocated = _of_device("max_memory_allocated", "The most bytes that tensors have used.")
memory_reserved = _of_device("memory_reserved", "Bytes that the allocator holds.")
max_memory_reserved = _of_device("max_memory_reserved", "The most bytes that it has held.")
reset_accumulated_memory_stats = _of_device(
    "reset_accumulated_memory_stats", "Starts the counts of allocations anew."
)
reset_peak_memory_stats = _of_device("reset_peak_memory_stats", "Starts the largest figures anew.")
get_memory_info = _of_device(
    "get_memory_info", "(bytes that are free, bytes of the device).", "mem_get_info"
)
current_stream = _of_device("current_stream", "The stream that work goes to.")


def set_stream(stream: Any) -> None:
    """Sends work to another stream."""
    _there()
    cuda.set_stream(stream)


class device_index:
    """A context in which the accelerator of a number is the current one; None leaves it."""

    def __init__(self, device: int | None, /) -> None:
        self.index, self.before = device, 0

    def __enter__(self) -> None:
        if self.index is not None:
            self.before = current_device_index()
            set_device_index(self.index)

    def __exit__(self, *error: object) -> None:
        if self.index is not None:
            set_device_index(self.before)
