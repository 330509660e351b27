"""Modules made without drawing starting values, and weights of convolutions in another order of
memory."""

from __future__ import annotations

import inspect
from typing import Any

from toytorch.facts.device import memory_format as memory_format_class
from toytorch.nn.modules.conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d
from toytorch.nn.modules.module import Module


def skip_init(module_cls: Any, *args: object, **kwargs: object) -> Any:
    """A module whose parameters hold whatever was in memory, to be loaded or set later."""
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    device = kwargs.pop("device", "cpu")
    return module_cls(*args, device="meta", **kwargs).to_empty(device=device)


def _converted(module: Any, kinds: tuple[type, ...], memory_format: memory_format_class) -> Any:
    for part in module.modules():
        if isinstance(part, kinds):
            conv: Any = part
            conv.weight.data = conv.weight.detach().clone(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module: object, memory_format: memory_format_class) -> Any:
    """The module, with the weights of its two-dimensional convolutions in another order of memory.

    >>> net = torch.nn.Conv2d(2, 2, 3)
    >>> net = convert_conv2d_weight_memory_format(net, torch.channels_last)
    >>> net.weight.is_contiguous(memory_format=torch.channels_last)
    True
    """
    return _converted(module, (Conv2d, ConvTranspose2d), memory_format)


def convert_conv3d_weight_memory_format(module: object, memory_format: memory_format_class) -> Any:
    """The module, with the weights of its three-dimensional convolutions in another order."""
    return _converted(module, (Conv3d, ConvTranspose3d), memory_format)
