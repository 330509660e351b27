"""Python's multiprocessing under the name of `torch.multiprocessing`, and `spawn`.

Tensors in shared memory (`Tensor.share_memory_`) stay the same memory in every process, forked,
sent through a queue or given to a new process; any other tensor that is sent is copied.
"""

from __future__ import annotations

import multiprocessing
from multiprocessing import *  # all of it, under this name

import toytorch.core.shared_blocks  # what multiprocessing does with tensors
from toytorch.multiprocessing.spawn import (
    ProcessContext,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)

STRATEGIES = {"file_descriptor", "file_system"}
_strategy = "file_descriptor"


def get_all_sharing_strategies() -> set[str]:
    """The names that `set_sharing_strategy` takes."""
    return STRATEGIES


def get_sharing_strategy() -> str:
    """What `set_sharing_strategy` was told."""
    return _strategy


def set_sharing_strategy(new_strategy: str) -> None:
    """Keeps the name: shared memory is always sent by its descriptor."""
    global _strategy
    if new_strategy not in STRATEGIES:
        raise AssertionError(
            f"invalid sharing strategy {new_strategy!r}, expected one of {STRATEGIES}"
        )
    _strategy = new_strategy
