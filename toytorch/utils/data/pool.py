"""The loader's side of its worker processes: starting, asking, listening, ending."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import time
from collections.abc import Iterator
from multiprocessing import connection as connections
from multiprocessing import get_context, resource_tracker
from typing import Any

from toytorch.facts.hints import Fn, Ints
from toytorch.utils.data.fetch import Recipe
from toytorch.utils.data.slots import Inbox
from toytorch.utils.data.worker import End, work

GRACE = 5.0  # seconds that workers get to end by themselves
_numbers = itertools.count()


class Pool:
    """Worker processes, each with a pipe for indices and answers and slots for batches."""

    def __init__(
        self, recipe: Recipe, count: int, context: str | None, base_seed: int, init: Fn | None
    ) -> None:
        ctx: Any = get_context(context) if context is None or isinstance(context, str) else context
        if os.name != "nt":  # there segments end with the last process that has them
            resource_tracker.ensure_running()  # one for all: it removes segments if all are killed
        self.owner, self.epoch = os.getpid(), -1
        self.processes: list[Any] = []
        self.pipes: list[Any] = []
        self.inboxes: list[Inbox] = []
        try:
            for i in range(count):
                prefix = f"tt{os.getpid()}_{os.urandom(3).hex()}_{next(_numbers)}_{i}"
                ours, theirs = ctx.Pipe()
                self.pipes.append(ours)
                self.inboxes.append(Inbox(prefix))
                process = ctx.Process(
                    target=work,
                    daemon=True,
                    args=(theirs, recipe, prefix, i, count, base_seed, init),
                )
                try:
                    process.start()
                finally:
                    theirs.close()
                self.processes.append(process)
        except BaseException:
            self.close()
            raise

    def ask(self, worker: int, order: int, index: Ints | None) -> None:
        """Sends an index to a worker, and the slots it may use again."""
        try:
            self.pipes[worker].send((self.epoch, order, index, self.inboxes[worker].released()))
        except (BrokenPipeError, ConnectionError):
            self._report([worker])

    def __len__(self) -> int:
        return len(self.processes)

    def hear(self, timeout: float = 0.0) -> tuple[int, int, Any]:
        """The next (worker, order, value) of this epoch; RuntimeError if a worker dies."""
        end = time.monotonic() + timeout if timeout else None
        while True:
            left = 5.0 if end is None else end - time.monotonic()
            if left <= 0:
                raise RuntimeError(f"DataLoader timed out after {timeout} seconds")
            sentinels = [p.sentinel for p in self.processes]
            ready = connections.wait([*self.pipes, *sentinels], min(left, 5.0))
            for worker, pipe in enumerate(self.pipes):
                if pipe in ready:
                    try:
                        epoch, order, *answer = pipe.recv()
                    except (EOFError, ConnectionError):
                        self._report([worker])
                    if epoch == self.epoch:
                        return worker, order, self.inboxes[worker].get(*answer)
                    self.inboxes[worker].skip(answer[0])
                    break
            else:
                dead = [i for i, s in enumerate(sentinels) if s in ready]
                if dead:
                    self._report(dead)

    def _report(self, dead: list[int]) -> None:
        """Says which workers died, and of what."""
        for i in dead:
            self.processes[i].join(1.0)
        pids = ", ".join(str(self.processes[i].pid) for i in dead)
        codes = [self.processes[i].exitcode for i in dead]
        why = ", ".join(
            f"killed by signal: {signal.Signals(-c).name}"
            if c is not None and c < 0
            else f"exit code {c}"
            for c in codes
        )
        raise RuntimeError(f"DataLoader worker (pid(s) {pids}) exited unexpectedly ({why})")

    def close(self) -> None:
        """Ends all workers: asks them, then terminates, then kills. Safe to call again."""
        if os.getpid() != self.owner:
            return  # a copy of this object in a forked process
        for pipe in self.pipes:
            with contextlib.suppress(OSError, ValueError):
                pipe.send(None)
            pipe.close()
        end = time.monotonic() + GRACE
        for process in self.processes:
            process.join(max(0.0, min(0.2, end - time.monotonic())))
        for stop in ("terminate", "kill"):
            left = [p for p in self.processes if p.is_alive()]
            for process in left:
                getattr(process, stop)()
            for process in left:
                process.join(GRACE / 2)
        for process in self.processes:
            process.close()
        for inbox in self.inboxes:
            inbox.forget()
        self.processes, self.pipes, self.inboxes = [], [], []


def batches(
    pool: Pool, indices: Iterator[Any], ahead: int, timeout: float, stream: bool, in_order: bool
) -> Iterator[Any]:
    """The batches of one epoch, `ahead` of them under way in every worker.

    Indices go to the workers in turn; a worker whose stream has ended is left out from then on.
    What failed comes in its turn, as a Failure; the batches after it are still to be had.
    """
    count = len(pool)
    active = dict.fromkeys(range(count), 0)  # worker: how many batches it has under way
    asked = itertools.count()
    waiting: dict[int, Any] = {}
    under_way: list[int] = []  # orders, the oldest first

    def ask(worker: int) -> bool:
        for index in itertools.islice(indices, 1):
            order = next(asked)
            under_way.append(order)
            active[worker] += 1
            pool.ask(worker, order, index)
            return True
        return False

    for worker in list(range(count)) * ahead:
        if not ask(worker):
            break
    while under_way:
        if in_order and under_way[0] in waiting:
            order = under_way.pop(0)
        elif not in_order and waiting:
            order = next(iter(waiting))
            under_way.remove(order)
        else:
            worker, order, value = pool.hear(timeout)
            if worker in active:
                active[worker] -= 1
            if isinstance(value, End):
                active.pop(worker, None)
                under_way.remove(order)
            else:
                waiting[order] = worker, value
            del value
            continue
        worker, value = waiting.pop(order)
        if worker in active:
            ask(worker)
        yield value
        del value  # its slot may be used again while the caller works


__all__ = ["Pool", "batches"]
