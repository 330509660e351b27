"""The CPU under the names that devices have: it is there, and nothing on it has to be awaited."""

from __future__ import annotations

from toytorch.cpu import amp
from toytorch.facts.hints import Device

__all__ = ["amp", "current_device", "device_count", "is_available", "synchronize"]


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
