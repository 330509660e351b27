"""`torch.Stream` and `torch.Event`: those of any kind of device; on a CPU, where calls do not queue.

>>> torch.Stream(), torch.Stream().query()
(torch.Stream device_type=cpu, device_index=-1, stream_id=0, True)
"""

from __future__ import annotations

from typing import Any, NoReturn

from toytorch.facts.device import device as device_class
from toytorch.facts.hints import Device

__all__ = ["Event", "Stream"]


def place(device: Device) -> device_class:
    """The device that is meant; the CPU for None."""
    return device_class("cpu" if device is None else device)


class OnHost:
    """What a stream and an event of the CPU have in common: nothing is ever waited for."""

    __slots__ = ("device",)
    device: device_class
    device_index = -1
    device_type = 0

    def query(self) -> bool:
        """Whether all work is done: always."""
        return True

    def synchronize(self) -> None:
        """Waits for nothing."""

    def refuse_events(self, *more: object) -> NoReturn:
        """Raises RuntimeError."""
        raise RuntimeError(f"{self.device.type} backend doesn't support events.")


class Stream(OnHost):
    """A queue of work on a device; for a GPU, a `torch.cuda.Stream`."""

    __slots__ = ()
    stream_id = 0

    def __new__(cls, device: Device = None, *, priority: int = 0) -> Any:
        where = place(device)
        if where.type == "cuda":
            from toytorch.cuda import Stream as CudaStream  # loaded when first asked for

            return CudaStream(where, priority)
        made = super().__new__(cls)
        made.device = where
        return made

    record_event = wait_stream = OnHost.refuse_events

    def wait_event(self, event: Event) -> None:
        """Waits for nothing."""

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *error: object) -> None:
        """Nothing was changed."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self.device == other.device

    def __hash__(self) -> int:
        return hash(self.device)

    def __repr__(self) -> str:
        kind = self.device.type
        return f"torch.Stream device_type={kind}, device_index=-1, stream_id=0"


class Event(OnHost):
    """A place in a stream; for a GPU, a `torch.cuda.Event`."""

    __slots__ = ("enable_timing",)
    enable_timing: bool
    event_id = 0

    def __new__(
        cls,
        device: Device = None,
        *,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
    ) -> Any:
        where = place(device)
        if where.type == "cuda":
            from toytorch.cuda import Event as CudaEvent  # loaded when first asked for

            return CudaEvent(enable_timing, blocking, interprocess)
        made = super().__new__(cls)
        made.device, made.enable_timing = where, enable_timing
        return made

    record = wait = OnHost.refuse_events

    def elapsed_time(self, end_event: Event) -> NoReturn:
        """Raises ValueError for events without times, RuntimeError for others."""
        if not (self.enable_timing and end_event.enable_timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        self.refuse_events()

    def __repr__(self) -> str:
        kind = self.device.type
        return f"torch.Event device_type={kind}, device_index=-1, event_flag=0, event_id=0"
