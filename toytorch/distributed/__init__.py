"""Several processes: the questions that programs ask before they use them.

There are no process groups yet, so `is_available()` is False, as in a PyTorch built without them.
"""

from __future__ import annotations

import enum
import os
from collections.abc import Callable
from typing import Any, NoReturn

from toytorch.compat._absent import attribute
from toytorch.facts.composed import called

__path__.append(f"{__path__[0]}/../compat/distributed")  # modules that need no second process


class RedOpType(enum.Enum):
    """How several processes' numbers become one."""

    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, PREMUL_SUM = range(9)


class ReduceOp:
    """The kinds of reduction by name, which programs have as default arguments."""

    RedOpType = RedOpType
    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, PREMUL_SUM = RedOpType


def is_available() -> bool:
    """Whether process groups can be made.

    >>> is_available()
    False
    """
    return False


def is_initialized() -> bool:
    """Whether there is a process group."""
    return False


def is_torchelastic_launched() -> bool:
    """Whether a launcher started this process."""
    return os.environ.get("TORCHELASTIC_RUN_ID") is not None


def get_rank(group: Any = None) -> int:
    """Raises ValueError: there is no process group."""
    _without_group()


def get_world_size(group: Any = None) -> int:
    """Raises ValueError: there is no process group."""
    _without_group()


def _without_group() -> NoReturn:
    raise ValueError(
        "Default process group has not been initialized, please make sure to call "
        "init_process_group."
    )


def _refused(name: str) -> Callable[..., NoReturn]:
    """A function that programs import, and call only where process groups are available."""

    def function(*args: object, **kwargs: object) -> NoReturn:
        raise RuntimeError(
            f"torch.distributed.{name}: process groups are not available in "
            "toytorch; torch.distributed.is_available() says so"
        )

    return called(name, "Raises RuntimeError: process groups are not available.", function)


for _name in (
    "init_process_group", "destroy_process_group", "new_group", "get_backend", "barrier",
    "all_reduce", "reduce", "broadcast", "all_gather", "gather", "scatter", "reduce_scatter",
    "all_to_all", "send", "recv", "isend", "irecv", "all_gather_object", "broadcast_object_list",
):  # fmt: skip
    globals()[_name] = _refused(_name)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return attribute("torch.distributed", name)
