"""Large kernels on several threads.

Compiled code runs without the GIL, so Python's own threads will do. Handing work to them costs some
50 µs, which is why `entry` asks for it only where there is more than about 0.3 ms of work.
"""

from __future__ import annotations

import ctypes
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from toytorch.backends import threads
from toytorch.backends.loops import machine
from toytorch.backends.loops.entry import CONTEXT

_lock = threading.Lock()
_pool: ThreadPoolExecutor | None = None
_owner = 0  # the process that made the pool: a forked child has none of its threads
_count = 0


def thread_count() -> int:
    """How many threads kernels use: as many as BLAS, unless set_thread_count said otherwise."""
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


threads.listeners.append(note_threads)


def run(kernel: Any, args: tuple[Any, ...]) -> None:
    """Runs a kernel on the threads, each with a part of its range."""
    nest, compiled = kernel.nest, kernel.compiled
    slots = 64 + 8 * (len(args) + 1) * (len(nest.axes) + 1)
    table = (ctypes.c_int64 * slots)()
    table[0] = machine.context().ctypes.data
    objects = (ctypes.c_void_p * len(args))(*map(id, args))
    if compiled.read(objects, table) != 1:
        raise ValueError("the arrays do not fit the kernel")
    total, count = table[1], thread_count()
    step = -(-total // count)
    if step > 64 and nest.tile == 1:
        step = -(-step // 64) * 64  # no two threads write to one line of the cache
    parts = [(lo, min(lo + step, total)) for lo in range(0, total, max(step, 1))]
    if len(parts) <= 1:
        compiled.run(table, 0, total)
        return
    others = [executor().submit(compiled.run, table, *part) for part in parts[1:]]
    compiled.run(table, *parts[0])
    for other in others:
        other.result()


def executor() -> ThreadPoolExecutor:
    """The threads, made at first need and again in a forked process."""
    global _pool, _owner
    with _lock:
        if _pool is None or _owner != os.getpid():
            _pool = ThreadPoolExecutor(max(thread_count(), os.cpu_count() or 1),
                                       thread_name_prefix="toytorch")
            _owner = os.getpid()
        return _pool
