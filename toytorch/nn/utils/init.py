"""Modules made without drawing starting values."""

from __future__ import annotations

import inspect
from typing import Any

from toytorch.nn.modules.module import Module


def skip_init(module_cls: Any, *args: object, **kwargs: object) -> Any:
    """A module whose parameters hold whatever was in memory, to be loaded or set later."""
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    device = kwargs.pop("device", "cpu")
    return module_cls(*args, **kwargs).to_empty(device=device)
