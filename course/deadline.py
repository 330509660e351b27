"""Run a learner's code so that an endless loop ends.

The code runs in a thread of its own. At the deadline an exception is sent into that thread, which
every loop of Python code receives, on all systems and inside Jupyter, without the slowness of
tracing each line. A loop that swallows the exception, or sits in C code, is left behind after a
moment's grace: the caller gets control back in any case.
"""

from __future__ import annotations

import contextlib
import contextvars
import ctypes
import sys
import threading
import time
from collections.abc import Callable, Iterator

# threads get 512 KiB on macOS, too little for a deep recursion to end in RecursionError
_STACK = 64 * 1024 * 1024
_GRACE = 1.0


class OutOfTime(BaseException):
    """Sent into the thread at its deadline; not an Exception, so that few handlers catch it."""


def run(work: Callable[[], None], seconds: float) -> bool:
    """Run ``work`` in a thread for at most ``seconds``; False if it had to be stopped.

    The seconds are the processor's, so that a busy machine does not make right code late; code
    that only waits is stopped after four times as long on the clock.

    ``work`` must not raise. Ctrl-C (in Jupyter the stop button) stops it as the deadline does.
    """
    context = contextvars.copy_context()
    thread = _Runner(context, work)
    before = threading.stack_size()
    try:
        threading.stack_size(_STACK)
        thread.start()
    finally:
        threading.stack_size(before)
    try:
        _wait(thread, seconds)
    except KeyboardInterrupt:
        _stop(thread)
        raise
    if not thread.is_alive():
        return True
    _stop(thread)
    return False


class _Runner(threading.Thread):
    """A thread that lets go of its work when it begins, so that the work cannot look it up."""

    def __init__(self, context: contextvars.Context, work: Callable[[], None]) -> None:
        super().__init__(daemon=True)
        self._job = [(context, work)]

    def run(self) -> None:
        _quietly(*self._job.pop())


def _wait(thread: threading.Thread, seconds: float) -> None:
    begun, worked = time.monotonic(), time.process_time()
    while thread.is_alive():
        thread.join(0.05)
        if time.process_time() - worked > seconds or time.monotonic() - begun > 4 * seconds:
            return


def _quietly(context: contextvars.Context, work: Callable[[], None]) -> None:
    try:
        context.run(work)
    except OutOfTime:
        return


def _stop(thread: threading.Thread) -> None:
    """Send OutOfTime until the thread ends or the grace is over."""
    with _lost_quietly():
        for _ in range(10):
            if thread.ident is None or not thread.is_alive():
                return
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(thread.ident), ctypes.py_object(OutOfTime)
            )
            thread.join(_GRACE / 10)


@contextlib.contextmanager
def _lost_quietly() -> Iterator[None]:
    """Print nothing of an OutOfTime that arrives where nobody can catch it.

    Inside ``__del__`` or a callback of the garbage collector an exception ends nothing and is
    reported to ``sys.unraisablehook``: the next one sent ends the thread. On a busy machine that
    next one may come while the thread is ending, and is reported to ``threading.excepthook``.
    """
    report, report_end = sys.unraisablehook, threading.excepthook

    def hook(unraisable: sys.UnraisableHookArgs) -> None:
        if not issubclass(unraisable.exc_type, OutOfTime):
            report(unraisable)

    def end_hook(args: threading.ExceptHookArgs) -> None:
        if not issubclass(args.exc_type, OutOfTime):
            report_end(args)

    sys.unraisablehook, threading.excepthook = hook, end_hook
    try:
        yield
    finally:
        sys.unraisablehook, threading.excepthook = report, report_end
