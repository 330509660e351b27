"""The CPU under the names that devices have: it is there, and nothing on it has to be awaited."""

from __future__ import annotations

import functools
import os
import platform
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from toytorch.cpu import amp
from toytorch.facts.hints import Device
from toytorch.facts.package import show as _show
from toytorch.loops import processor


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


# Features that PyTorch calls otherwise than LLVM, beside the characters between words.
OTHERWISE = {"fma": "fma3", "fullfp16": "fp16_arith", "dotprod": "dot"}
SHOWN = re.compile(
    r"(sse.*|avx.*|amx_.*|fma[34]|f16c|bmi2?|popcnt|lzcnt|aes|sha|clflush(opt)?|clwb|neon|sve2?|bf16"
    r"|i8mm|fp16_arith|dot|sme2?)"
)


@functools.cache
def get_capabilities() -> Mapping[str, Any]:
    """What the processor has beyond the least: {"avx2": True, …}, its "architecture", name and caches.

    >>> get_capabilities()["architecture"] == platform.machine().lower()
    True
    """
    l1, l2 = processor.caches()
    found: dict[str, Any] = {
        "architecture": platform.machine().lower(), "cpu_name": processor.host()[0],
        "num_logical_cores": os.cpu_count(), "l1d_cache_size": l1, "l2_cache_size": l2,
    }  # fmt: skip
    for feature, there in processor.host()[1].items():
        name = OTHERWISE.get(feature, feature).replace("-", "_").replace(".", "_")
        name = re.sub(r"^avx512(?=[a-z])", "avx512_", name)
        name = re.sub(r"^avx(?=vnni)", "avx_", name)
        if SHOWN.fullmatch(name):
            found[name] = there
    return MappingProxyType(found)


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
