"""Names for parts of a program, which NVIDIA's profilers show. Like `torch.cuda.nvtx`.

On simulated devices they are spans of the timeline.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager

from toytorch.backends import base

_open: list[tuple[str, float]] = []
_loose: dict[int, tuple[str, float]] = {}
_numbers = itertools.count()


def range_push(msg: str) -> int:
    """Begins a named part; how many are open around it."""
    machine = None if base.simulation is None else base.simulation.machine
    _open.append((msg, 0.0 if machine is None else machine.now))
    return len(_open) - 1


def range_pop() -> int:
    """Ends the innermost named part; how many are still open."""
    if not _open:
        return -2
    name, start = _open.pop()
    if base.simulation is not None:
        machine = base.simulation.machine
        machine.span("host", name, "named parts", start, machine.now)
    return len(_open)


def range_start(msg: str) -> int:
    """Begins a named part that need not lie within others; its number, for `range_end`."""
    machine = None if base.simulation is None else base.simulation.machine
    number = next(_numbers)
    _loose[number] = msg, 0.0 if machine is None else machine.now
    return number


def range_end(range_id: int) -> None:
    """Ends a part that `range_start` began."""
    found = _loose.pop(range_id, None)
    if found is not None and base.simulation is not None:
        machine = base.simulation.machine
        machine.span("host", found[0], "named parts", found[1], machine.now)


def mark(msg: str) -> None:
    """A named point in time."""
    range_push(msg)
    range_pop()


@contextmanager
def range(msg: str, *args: object, **kwargs: object) -> Iterator[None]:
    """A context that is a named part; `msg` is a format for the arguments."""
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()


__all__ = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]
