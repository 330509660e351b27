"""What runs in a worker process: take an index, make the batch, put it in shared memory."""

from __future__ import annotations

import contextlib
import os
import pickle
import random
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from toytorch.core.random import manual_seed
from toytorch.loops.runtime import blas
from toytorch.utils.data import slots
from toytorch.utils.data.dataset import IterableDataset
from toytorch.utils.data.fetch import Recipe
from toytorch.utils.data.slots import Outbox

PATIENCE = 2.0  # seconds after which an idle worker looks whether its parent still lives


@dataclass(frozen=True)
class WorkerInfo:
    """Which worker this is, for datasets that share out their work."""

    id: int
    num_workers: int
    seed: int
    dataset: Any
    rng: None = None  # what a worker that is a thread would draw from
    worker_method: str = "multiprocessing"


_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """Which worker this process is; None in the main process."""
    return _info


class Failure:
    """An exception on its way to the loader's process: its class, and its traceback as text."""

    def __init__(self, where: str) -> None:
        kind, error, trace = sys.exc_info()
        self.kind: Any = kind
        self.text = "".join(traceback.format_exception(kind, error, trace))
        self.where = where
        try:
            if pickle.loads(pickle.dumps(kind)) is not kind:
                self.kind = RuntimeError
        except Exception:  # a class that only the worker knows
            self.kind = RuntimeError

    def reraise(self) -> None:
        """Raises an exception of the same class whose message holds the worker's traceback."""
        text = f"Caught {self.kind.__name__} {self.where}.\nOriginal {self.text}"
        if self.kind is KeyError:
            raise KeyError(Text(text))
        try:
            error = self.kind(text)
        except Exception:  # its constructor wants something else
            raise RuntimeError(text) from None
        raise error


class Text(str):
    """A message whose repr is itself, since KeyError shows the repr of its argument."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class End:
    """The answer of a worker whose stream has ended."""


def at_end(index: object) -> Any:
    """What there is in a stream that has ended, whatever its iterator would say."""
    raise StopIteration


def seed_everything(base_seed: int, number: int) -> int:
    """Seeds Python's, NumPy's and toytorch's generators of a worker; returns base + number."""
    seed = (base_seed + number) % (1 << 64)
    random.seed(seed)
    manual_seed(seed)
    np.random.seed(np.random.SeedSequence((number, base_seed)).generate_state(4))
    return seed


def work(
    connection: Any,
    recipe: Recipe,
    prefix: str,
    number: int,
    count: int,
    base_seed: int,
    init: Callable[[int], None] | None,
) -> None:
    """The life of worker `number` of `count`: until told to end, or its parent is gone."""
    global _info
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the main process's affair
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    parent = os.getppid()
    blas.set_threads(1)
    outbox = slots.outbox = Outbox(prefix)
    where = f"in DataLoader worker process {number}"
    fetch: Any = None
    failed: Failure | None = None
    _info = WorkerInfo(number, count, seed_everything(base_seed, number), recipe.dataset)
    try:
        if init is not None:
            init(number)
    except Exception:
        failed = Failure(where)
    epoch = -1
    with contextlib.suppress(EOFError, OSError):  # the loader's process is gone
        while os.getppid() == parent:
            if not connection.poll(PATIENCE):
                continue
            task = connection.recv()
            if task is None:
                break
            wanted, order, index, released = task
            outbox.release(released)
            try:
                if failed is None and wanted != epoch:
                    fetch, epoch = None, wanted
                    fetch = recipe.start()
                result = failed or fetch(index)
            except Exception as error:
                ended = (
                    isinstance(error, StopIteration)
                    and fetch is not None
                    and isinstance(recipe.dataset, IterableDataset)
                )
                result = End() if ended else Failure(where)
                fetch = at_end if ended or fetch is None else fetch
            try:
                answer = outbox.put(result)
            except Exception:
                answer = outbox.put(Failure(where))
            del result
            connection.send((wanted, order, *answer))
    outbox.close()
    connection.close()
