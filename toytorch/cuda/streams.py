"""Streams, which are queues of work, and events, which are marks in them."""

from __future__ import annotations

from typing import Any

from toytorch.cuda.devices import device as device_context
from toytorch.cuda.devices import index_of, runtime
from toytorch.facts.device import device as device_class
from toytorch.facts.hints import Device
from toytorch.facts.parts import of_part

__all__ = [
    "Event", "ExternalStream", "Stream", "StreamContext", "current_stream", "default_stream",
    "get_stream_from_external", "set_stream", "stream",
]  # fmt: skip


class Stream:
    """A queue of work on a device: its pieces run one after the other, and beside other streams'.

    `priority` is 0, or negative for a stream whose kernels go first. Like `torch.cuda.Stream`.
    """

    def __init__(
        self, device: Device = None, priority: int = 0, *, _handle: Any = None, **more: Any
    ) -> None:
        if more:
            raise TypeError(f"Stream() got an unexpected keyword argument {next(iter(more))!r}")
        found = runtime("torch.cuda.Stream requires CUDA support")
        self._handle = found.new_stream(index_of(device), priority) if _handle is None else _handle
        self._priority = priority

    @property
    def device(self) -> device_class:
        """Where it is."""
        return device_class("cuda", runtime().device_of_stream(self._handle))

    @property
    def device_index(self) -> int:
        """The number of the device."""
        return int(runtime().device_of_stream(self._handle))

    @property
    def cuda_stream(self) -> int:
        """CUDA's handle."""
        return int(runtime().handle_of(self._handle))

    stream_id = cuda_stream

    priority = of_part("_priority", "0, or negative where it goes first.")

    @staticmethod
    def priority_range() -> tuple[int, int]:
        """The lowest and the highest priority."""
        return 0, -5

    def wait_event(self, event: Event) -> None:
        """Work given to this stream from now on waits for an event; the host does not."""
        if event._handle is not None:
            runtime().wait(self._handle, event._handle)

    def wait_stream(self, stream: Stream) -> None:
        """Work given to this stream from now on waits for all that another has been given."""
        self.wait_event(stream.record_event())

    def record_event(self, event: Event | None = None) -> Event:
        """Marks the end of what it has been given so far; a new event where none is given."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def query(self) -> bool:
        """Whether all that it was given is done."""
        return bool(runtime().stream_done(self._handle))

    def synchronize(self) -> None:
        """Returns when all that it was given is done."""
        runtime().synchronize_stream(self._handle)

    def __enter__(self) -> Stream:
        self._context = StreamContext(self)
        self._context.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self._context.__exit__(*exc)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self._handle is other._handle

    def __hash__(self) -> int:
        return hash((self.device_index, self.cuda_stream))

    def __repr__(self) -> str:
        return f"<torch.cuda.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>"


class ExternalStream(Stream):
    """A stream that another library made, by its handle; simulated devices have their own only."""

    def __init__(self, stream_ptr: int, device: Device = None) -> None:
        found, index = runtime(), index_of(device)
        for handle in getattr(found, "streams_of", lambda index: [])(index):
            if found.handle_of(handle) == stream_ptr:
                super().__init__(device, _handle=handle)
                return
        raise RuntimeError(f"device cuda:{index} has no stream with the handle {stream_ptr:#x}")


class Event:
    """A mark in a stream, to wait for and to measure with.

    enable_timing  whether `elapsed_time` may be asked
    blocking       whether `synchronize` lets other threads run meanwhile

    Like `torch.cuda.Event`.
    """

    def __init__(
        self,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
        external: bool = False,
    ) -> None:
        if interprocess:
            raise RuntimeError("events of several processes are not supported")
        self._timing, self._blocking = bool(enable_timing), bool(blocking)
        runtime("Tried to instantiate dummy base class Event")
        self._handle: Any = None
        self._device: int | None = None

    def record(self, stream: Stream | None = None) -> None:
        """Marks the end of what a stream (the current one) has been given so far."""
        stream = current_stream() if stream is None else stream
        if self._device not in (None, stream.device_index):
            raise RuntimeError(
                f"Event device {self._device} does not match recording stream's device "
                f"{stream.device_index}."
            )
        if self._handle is None:
            self._handle = runtime().new_event(self._timing, self._blocking)
            self._device = stream.device_index
        runtime().record(self._handle, stream._handle)

    def wait(self, stream: Stream | None = None) -> None:
        """Work given to a stream (the current one) from now on waits for this event."""
        (current_stream() if stream is None else stream).wait_event(self)

    def query(self) -> bool:
        """Whether all before the mark is done; True where it was never recorded."""
        return self._handle is None or bool(runtime().event_done(self._handle))

    def synchronize(self) -> None:
        """Returns when all before the mark is done."""
        if self._handle is not None:
            runtime().synchronize_event(self._handle)

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this mark to another; both have to be recorded and reached."""
        if not (self._timing and end_event._timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self._handle is None or end_event._handle is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        if not (self.query() and end_event.query()):
            raise RuntimeError("CUDA error: device not ready")
        return float(runtime().elapsed(self._handle, end_event._handle))

    @property
    def cuda_event(self) -> int:
        """CUDA's handle; 0 before it is recorded."""
        return 0 if self._handle is None else id(self._handle)

    @property
    def device(self) -> device_class | None:
        """Where it was recorded."""
        return None if self._device is None else device_class("cuda", self._device)

    def __repr__(self) -> str:
        if self._handle is None:
            return "<torch.cuda.Event uninitialized>"
        return f"<torch.cuda.Event {self.cuda_event:#x}>"


class StreamContext:
    """A context in which work goes to a stream, and to its device; None changes nothing."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is None:
            return
        self._place = device_context(self.stream.device_index)
        self._place.__enter__()
        self._before = current_stream(self.stream.device_index)
        runtime().set_stream(self.stream._handle)

    def __exit__(self, *exc: object) -> None:
        if self.stream is None:
            return
        runtime().set_stream(self._before._handle)
        self._place.__exit__(*exc)


def stream(stream: Stream | None) -> StreamContext:
    """A context in which work goes to a stream; None changes nothing.

    >>> with torch.cuda.stream(None):
    ...     torch.ones(1)
    tensor([1.])
    """
    return StreamContext(stream)


def current_stream(device: Device = None) -> Stream:
    """The stream that work on a device goes to."""
    return Stream(_handle=runtime().current_stream(index_of(device)))


def default_stream(device: Device = None) -> Stream:
    """The stream of whoever chose none."""
    return Stream(_handle=runtime().default_stream(index_of(device)))


def set_stream(stream: Stream | None) -> None:
    """Makes a stream the one that work goes to; None changes nothing."""
    if stream is not None:
        runtime().set_stream(stream._handle)


def get_stream_from_external(data_ptr: int, device: Device = None) -> ExternalStream:
    """A stream that another library made, by its handle."""
    return ExternalStream(data_ptr, device)
