"""The CPU under the names that devices have: it is there, and nothing on it has to be awaited."""

from __future__ import annotations

from toytorch.cpu import amp
from toytorch.facts.hints import Device
from toytorch.facts.package import show as _show


def is_available() -> bool:
    """Whether there is a CPU."""
    return True


def device_count() -> int:
    """One: all cores are one device."""
    return 1


def current_device() -> str:
    """Its name.

    >>> current_device()
    'cpu'
    """
    return "cpu"


def synchronize(device: Device = None) -> None:
    """Does nothing: work on the CPU is done when a call returns."""


def is_initialized() -> bool:
    """Whether it is ready: always."""
    return True


def set_device(device: Device) -> None:
    """Does nothing: there is one."""


class Stream:
    """The one order in which work on the CPU is done."""

    def __init__(self, priority: int = -1) -> None: ...

    def wait_stream(self, stream: object) -> None:
        """Does nothing: all is done when a call returns."""

    def synchronize(self) -> None:
        """Does nothing: all is done when a call returns."""


class StreamContext:
    """A context that changes nothing."""

    def __init__(self, stream: Stream | None) -> None: ...

    def __enter__(self) -> None: ...

    def __exit__(self, *error: object) -> None: ...


def stream(stream: Stream | None) -> StreamContext:
    """A context that changes nothing."""
    return StreamContext(stream)


def current_stream(device: Device = None) -> Stream:
    """The order in which work is done."""
    return Stream()


_show(globals(), "amp")
