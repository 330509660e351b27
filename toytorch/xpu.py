"""Intel's GPUs, which toytorch does not compute on: the questions that programs ask, like `torch.xpu`.

>>> is_available(), device_count(), memory_allocated()
(False, 0, 0)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn


def is_available() -> bool:
    """Whether there is one: no."""
    return False


is_initialized = is_available


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether one has bfloat16: there is none."""
    return False


def device_count() -> int:
    """How many there are: none."""
    return 0


def memory_allocated(device: object = None) -> int:
    """Bytes in use: none."""
    return 0


max_memory_allocated = memory_reserved = max_memory_reserved = memory_allocated


def manual_seed(seed: int) -> None:
    """Seeds the generator of one, where there is one."""


def seed() -> None:
    """Seeds the generators with a number of the system, where there are any."""


manual_seed_all, seed_all = manual_seed, seed


def empty_cache() -> None:
    """Gives back memory that is not in use: there is none."""


def _lacking(name: str) -> Callable[..., NoReturn]:
    def function(*args: object, **kwargs: object) -> NoReturn:
        raise AssertionError("Torch not compiled with XPU enabled")

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "Raises AssertionError: there is no such device. The CPU computes the same."
    return function


LACKING = (
    "synchronize current_device set_device current_stream get_device_name get_rng_state init "
    "get_device_properties get_device_capability set_rng_state mem_get_info memory_stats"
)
for _name in LACKING.split():
    globals()[_name] = _lacking(_name)
