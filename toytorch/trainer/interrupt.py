"""Ctrl-C during training: the first one waits for the end of the batch, the second does not."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toytorch.trainer.trainer import Trainer


@contextlib.contextmanager
def deferred(trainer: Trainer) -> Iterator[None]:
    """Within the block SIGINT sets `trainer.interrupted`; a second SIGINT raises as always.

    Between batches model, optimizer and random streams belong together, so a checkpoint written
    there is exact. Only the main thread gets signals; elsewhere nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    if before is None or before == signal.SIG_IGN:
        yield
        return

    def note(number: int, frame: object) -> None:
        if trainer.interrupted:
            raise KeyboardInterrupt
        trainer.interrupted = True

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
