"""Work in parts on several threads, for functions that spend their time in compiled code.

Such code runs without the GIL. Waking a thread takes up to 100 µs, and so does handing over the GIL
between two calls: only work of a millisecond or so is divided, in few calls. (Pools, which make
many, were slower on two threads.) Kernels of `toytorch.loops`, which are smaller, have threads of
their own kind.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from toytorch.loops.runtime.threads import thread_count

LEAST = 1 << 19  # numbers read or written, or 32 multiplications each: about half a millisecond
_lock = threading.Lock()
_pool: tuple[int, int, ThreadPoolExecutor] | None = None  # process, threads, executor


def in_parts(count: int, work: int, function: Callable[[int, int], Any]) -> list[Any]:
    """function(start, end) for parts of range(count), each on a thread, and what they return.

    `work` says how much there is altogether, in the unit of LEAST; little is done in one part.

    >>> in_parts(10, 1, lambda start, end: end - start)
    [10]
    """
    threads = min(thread_count(), count, work // LEAST) if work >= 2 * LEAST else 1
    if threads < 2:
        return [function(0, count)]
    bounds = [count * i // threads for i in range(threads + 1)]
    pool = executor(threads - 1)
    others = [pool.submit(function, *part) for part in zip(bounds[1:-1], bounds[2:])]
    try:
        first = function(bounds[0], bounds[1])
    finally:
        results = [other.exception() or other.result() for other in others]
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return [first, *results]


def executor(threads: int) -> ThreadPoolExecutor:
    """The threads; made again in a forked process, which has none."""
    global _pool
    with _lock:
        if _pool is None or _pool[0] != os.getpid() or _pool[1] < threads:
            _pool = os.getpid(), threads, ThreadPoolExecutor(threads, "toytorch parts")
        return _pool[2]
