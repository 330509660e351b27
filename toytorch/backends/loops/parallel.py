"""Large kernels on several threads.

Compiled code runs without the GIL, so Python's own threads will do. `entry` asks for them where
there is more than some 100 µs of work.
"""

from __future__ import annotations

import ctypes
import os
import threading
from typing import Any

from toytorch.backends import threads
from toytorch.backends.loops import machine
from toytorch.backends.loops.entry import CONTEXT
from toytorch.backends.loops.team import Team

PARTS = 4  # of the range for each thread: a thread that comes late takes fewer

_lock = threading.Lock()
_team: Team | None = None
_count = 0


def thread_count() -> int:
    """How many threads kernels use: as many as BLAS, or what was set last."""
    return _count or max(1, threads.of_blas())


def set_thread_count(count: int) -> None:
    """Sets how many threads kernels use."""
    global _count
    if count < 1:
        raise ValueError(f"the number of threads has to be positive, got {count}")
    _count = count
    note_threads()


def note_threads() -> None:
    """Tells compiled code whether to ask for threads."""
    if machine.works.cache_info().currsize and machine.works():  # only where there may be kernels
        machine.context()[CONTEXT.index("one_thread")] = thread_count() == 1


threads.listeners.append(set_thread_count)


def run(kernel: Any, args: tuple[Any, ...]) -> None:
    """Runs a kernel on the threads, which share its range in parts."""
    nest, compiled = kernel.nest, kernel.compiled
    table = (ctypes.c_int64 * (64 + 8 * (len(args) + 1) * (len(nest.axes) + 1)))()
    table[0] = machine.context().ctypes.data
    objects = (ctypes.c_void_p * len(args))(*map(id, args))
    if compiled.read(objects, table) != 1:
        raise ValueError("the arrays do not fit the kernel")
    total, count = table[1], thread_count()
    step = -(-total // (PARTS * count))
    if step > 64 and nest.tile == 1:
        step = -(-step // 64) * 64  # no two threads write to one line of the cache
    if step >= total:
        compiled.run(table, 0, total)
        return
    if not team(count).run(compiled.address, ctypes.addressof(table), total, step):
        compiled.run(table, 0, total)


def team(threads: int) -> Team:
    """The threads, made at first need and again in a forked process."""
    global _team
    with _lock:
        if _team is None or _team.process != os.getpid() or _team.threads < threads:
            _team = Team(threads)
        return _team
