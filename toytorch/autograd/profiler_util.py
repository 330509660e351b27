"""The names of `torch.autograd.profiler_util`, which live in `toytorch.profiler`."""

from __future__ import annotations

from typing import Any

from toytorch.autograd import profiler


def __getattr__(name: str) -> Any:
    return getattr(profiler, name)
