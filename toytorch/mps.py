"""Apple's GPUs, which toytorch does not compute on: the questions that programs ask, like `torch.mps`.

>>> is_available(), device_count()
(False, 0)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn


def is_available() -> bool:
    """Whether there is one: no."""
    return False


def device_count() -> int:
    """How many there are: none."""
    return 0


def manual_seed(seed: int) -> None:
    """Seeds the generators of all there are."""


def _lacking(name: str, asked: str) -> Callable[..., NoReturn]:
    def function(*args: object, **kwargs: object) -> NoReturn:
        raise RuntimeError(f"Cannot execute {asked}() without MPS backend.")

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "Raises RuntimeError: there is no such device. The CPU computes the same."
    return function


for _name, _asked in {
    "synchronize": "deviceSynchronize",
    "empty_cache": "emptyCache",
    "seed": "getDefaultGenerator",
    "get_rng_state": "getDefaultGenerator",
    "set_rng_state": "getDefaultGenerator",
    "current_allocated_memory": "getCurrentAllocatedMemory",
    "driver_allocated_memory": "getDriverAllocatedMemory",
    "recommended_max_memory": "getRecommendedMaxMemory",
    "set_per_process_memory_fraction": "setMemoryFraction",
}.items():
    globals()[_name] = _lacking(_name, _asked)
