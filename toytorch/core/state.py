"""The two questions every call asks first: are gradients wanted, and does anyone watch?

`shortcut` is read by the fast path of every op, so it is one global with three kinds of value:

    None          gradients are wanted in every thread and nothing watches: take the fast path
    a thread id   only that thread has switched gradients off: fast path there, without a graph
    SLOW          anything else: the general path, which looks at the thread's own state
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import Any

SLOW = "general path"
shortcut: Any = None


class ThreadState(threading.local):
    """What each thread has set: gradient recording and inference mode."""

    grad = True
    inference = False
    leaving: Any = None


class _Leaving:
    """Forgets a thread that ended with gradients off: its id may be given to another."""

    def __init__(self, ident: int) -> None:
        self.ident = ident

    def __del__(self) -> None:
        if _without_grad is not None and self.ident in _without_grad:  # None while Python ends
            _without_grad.discard(self.ident)
            _update()


local = ThreadState()
_lock = threading.Lock()
_without_grad: set[int] = set()
_watchers: list[Any] = []  # what makes the general path necessary; the last one is asked first


def _update() -> None:
    global shortcut
    if _watchers or len(_without_grad) > 1:
        shortcut = SLOW
    else:
        shortcut = next(iter(_without_grad), None)


def is_grad_enabled() -> bool:
    """Whether ops called by this thread record a graph."""
    return local.grad


def set_grad(enabled: bool) -> None:
    """Switches recording for this thread."""
    if local.grad is enabled:
        return
    local.grad = enabled
    ident = threading.get_ident()
    if local.leaving is None:
        local.leaving = _Leaving(ident)
    with _lock:
        (_without_grad.discard if enabled else _without_grad.add)(ident)
        _update()


def watchers() -> list[Any]:
    """The modes in force, innermost last."""
    return _watchers


@contextmanager
def watching(mode: Any) -> Any:
    """Sends every call through the general path, which hands it to `mode`."""
    with _lock:
        _watchers.append(mode)
        _update()
    try:
        yield mode
    finally:
        with _lock:
            _watchers.remove(mode)
            _update()
