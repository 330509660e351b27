"""The accelerator of this machine, whichever it is: a GPU, or none. Like `torch.accelerator`."""

from __future__ import annotations

from typing import Any

from toytorch import cpu, cuda
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
    return cuda.current_device()


def set_device_index(device: Device, /) -> None:
    """Makes another the one that new tensors go to."""
    cuda.set_device(device)


def get_device_module(device: Device = None) -> Any:
    """The package of a kind of device, `torch.cuda` or `torch.cpu`: of the accelerator's, unless
    one is named. Like `torch.get_device_module`.

    >>> get_device_module("cpu").__name__
    'toytorch.cpu'
    """
    kind = device_class(device).type if device is not None else "cuda" if is_available() else "cpu"
    return cuda if kind == "cuda" else cpu


def synchronize(device: Device = None, /) -> None:
    """Returns when all its work is done."""
    cuda.synchronize(device)
