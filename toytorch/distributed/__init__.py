"""Several processes: the questions that programs ask before they use them.

There are no process groups yet, so `is_available()` is False, as in a PyTorch built without them.
"""

from __future__ import annotations

import os
from typing import Any, NoReturn


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
    raise ValueError("Default process group has not been initialized, please make sure to call "
                     "init_process_group.")


def init_process_group(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises RuntimeError: process groups are not available."""
    raise RuntimeError("torch.distributed.init_process_group: process groups are not available in "
                       "toytorch; torch.distributed.is_available() says so")


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(f"torch.distributed has no attribute '{name}': process groups are not "
                         "available in toytorch")
