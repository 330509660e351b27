"""`torch.jit.fork` and `wait`: a call whose result is asked for later.

What is forked runs at once, in the thread that forks it, as PyTorch does outside of a compiled
function; the graph has the call and a future of its result.
"""

from __future__ import annotations

from typing import Any

from toytorch.facts.hints import Fn
from toytorch.futures import Future

__all__ = ["Future", "fork", "wait"]


def fork(func: Fn, *args: object, **kwargs: object) -> Future[Any]:
    """A future of `func(*args, **kwargs)`, like `torch.jit.fork`.

    >>> wait(fork(max, 1, 2))
    2
    """
    return finished(func(*args, **kwargs))


def wait(future: Future[Any]) -> Any:
    """The value of a future, like `torch.jit.wait`."""
    return future.wait()


def finished(value: object) -> Future[Any]:
    """A future that has its value already."""
    made: Future[Any] = Future()
    made.set_result(value)
    return made
