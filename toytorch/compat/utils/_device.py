"""`torch.utils._device`: a device for the tensors that a function makes, as a decorator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toytorch.autograd.modes import Mode
from toytorch.facts.device import device as device_class


class _On(Mode):
    """A device as a decorator of functions and generators."""

    def __init__(self, place: device_class) -> None:
        self.place = place

    def __enter__(self) -> None:
        self.place.__enter__()

    def __exit__(self, *exc: Any) -> None:
        self.place.__exit__(*exc)

    def clone(self) -> Mode:
        return _On(self.place)


def set_device(device: Any) -> Callable[[Any], Any]:
    """Decorates a function, inside of which new tensors are made on the device.

    Like `torch.utils._device.set_device`; RuntimeError for a class.

    >>> @set_device("meta")
    ... def make():
    ...     return torch.empty(3)
    >>> make().device
    device(type='meta')
    """

    def decorate(function: Any) -> Any:
        if isinstance(function, type):
            raise RuntimeError(
                "Cannot decorate classes; it is ambiguous whether or not only the constructor or "
                "all methods should have the context manager applied; additionally, decorating a "
                "class at definition-site will prevent use of the identifier as a conventional "
                "type.  To specify which methods to decorate, decorate each of them individually."
            )
        return _On(device_class(device))(function)

    return decorate
