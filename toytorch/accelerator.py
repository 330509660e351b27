"""The accelerator of this machine, whichever it is: a GPU, or none. Like `torch.accelerator`."""

from __future__ import annotations

from toytorch import cuda
from toytorch.facts.device import device
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
    return cuda.current_device()


def set_device_index(device: Device, /) -> None:
    """Makes another the one that new tensors go to."""
    cuda.set_device(device)


def synchronize(device: Device = None, /) -> None:
    """Returns when all its work is done."""
    cuda.synchronize(device)
