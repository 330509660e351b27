"""Large kernels on several threads: how many there are, and the pool that shares the work."""

from __future__ import annotations

import os
import threading

from toytorch.loops.runtime import blas, jit
from toytorch.loops.runtime.entry_point import CONTEXT
from toytorch.loops.runtime.thread_pool import ThreadPool

_lock = threading.Lock()
_pools: dict[int, ThreadPool] = {}  # by the number of threads; their memory is never given back
_count = 0


def thread_count() -> int:
    """How many threads kernels use: as many as BLAS, or what was set last."""
    return _count or max(1, blas.threads())


def set_thread_count(count: int) -> None:
    """Sets how many threads kernels use."""
    global _count
    if count < 1:
        raise ValueError(f"the number of threads has to be positive, got {count}")
    _count = count
    note_threads()


def note_threads() -> None:
    """Tells compiled code how many threads there are; the pool is made when it is asked for."""
    if jit.works.cache_info().currsize and jit.works():  # only where there may be kernels
        count = thread_count()
        tell(count, _pools.get(count))


def tell(count: int, pool: ThreadPool | None) -> None:
    """Writes down for compiled code how many threads there are, and where jobs are posted."""
    words = jit.context()
    words[CONTEXT.index("queue")] = 0  # first of all: where there is none, nothing is posted
    words[CONTEXT.index("post")] = pool.post if pool else 0
    words[CONTEXT.index("threads")] = count
    words[CONTEXT.index("queue")] = pool.queue if pool else 0


blas.listeners.append(set_thread_count)


def thread_pool() -> ThreadPool:
    """The pool for the present number of threads, made at first need."""
    with _lock:
        count = thread_count()
        if count not in _pools:
            _pools[count] = ThreadPool(count)
        tell(count, _pools[count])
        return _pools[count]


def forget() -> None:
    """In a forked process there are no workers."""
    global _lock
    _lock = threading.Lock()
    _pools.clear()
    blas.one_thread.forget()
    note_threads()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=forget)
