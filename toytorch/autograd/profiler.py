"""The names of `torch.autograd.profiler`.

They live in `toytorch.profiler`, a layer above this one, and are looked up there when asked for.
"""

from __future__ import annotations

import importlib
from typing import Any

DEFINED_IN = {
    "profile": "simple", "record_function": "records", "emit_nvtx": "records",
    "EventList": "events", "FunctionEvent": "events", "FunctionEventAvg": "events",
    "DeviceType": "events", "ProfilerActivity": "session", "kineto_available": "session",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in DEFINED_IN:
        raise AttributeError(f"module 'torch.autograd.profiler' has no attribute '{name}'")
    return getattr(importlib.import_module(f"toytorch.profiler.{DEFINED_IN[name]}"), name)
