"""Python's multiprocessing under the name of `torch.multiprocessing`, and `spawn`.

A forked process sees the memory of tensors in shared memory (`Tensor.share_memory_`) and may write
there; what is sent through queues is copied.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing import *  # all of it, under this name
from typing import Any

STRATEGIES = frozenset(["file_descriptor", "file_system"])
_strategy = "file_descriptor"


def get_all_sharing_strategies() -> frozenset[str]:
    """The names that `set_sharing_strategy` takes."""
    return STRATEGIES


def get_sharing_strategy() -> str:
    """What `set_sharing_strategy` was told."""
    return _strategy


def set_sharing_strategy(new_strategy: str) -> None:
    """Keeps the name: shared memory here has neither files nor descriptors."""
    global _strategy
    assert new_strategy in STRATEGIES
    _strategy = new_strategy


class ProcessRaisedException(Exception):
    """A process that `spawn` started ended with an error."""


def spawn(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> Any:
    """Runs fn(rank, *args) in `nprocs` processes; waits for them, or gives them back.

    Raises ProcessRaisedException if one of them does not end well.
    """
    context = multiprocessing.get_context(start_method)
    found = [
        context.Process(target=fn, args=(rank, *args), daemon=daemon)  # type: ignore[attr-defined]  # every context has it
        for rank in range(nprocs)
    ]
    for process in found:
        process.start()
    if not join:
        return found
    for process in found:
        process.join()
    for rank, process in enumerate(found):
        if process.exitcode:
            raise ProcessRaisedException(
                f"process {rank} terminated with exit code {process.exitcode}"
            )
    return None
