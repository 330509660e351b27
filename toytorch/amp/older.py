"""Older names of autocast's settings, one for each kind of device; without PyTorch's warnings."""

from __future__ import annotations

from toytorch.amp.casting import (
    get_autocast_dtype,
    is_autocast_enabled,
    set_autocast_dtype,
    set_autocast_enabled,
)
from toytorch.facts.dtype import dtype


def get_autocast_cpu_dtype() -> dtype:
    """`get_autocast_dtype("cpu")`."""
    return get_autocast_dtype("cpu")


def get_autocast_gpu_dtype() -> dtype:
    """`get_autocast_dtype("cuda")`."""
    return get_autocast_dtype("cuda")


def is_autocast_cpu_enabled() -> bool:
    """`is_autocast_enabled("cpu")`."""
    return is_autocast_enabled("cpu")


def set_autocast_cpu_enabled(enabled: bool, /) -> None:
    """`set_autocast_enabled("cpu", enabled)`."""
    set_autocast_enabled("cpu", enabled)


def set_autocast_cpu_dtype(dtype: dtype, /) -> None:
    """`set_autocast_dtype("cpu", dtype)`."""
    set_autocast_dtype("cpu", dtype)


def set_autocast_gpu_dtype(dtype: dtype, /) -> None:
    """`set_autocast_dtype("cuda", dtype)`."""
    set_autocast_dtype("cuda", dtype)
