"""Memory under the profiler: what each call allocated, and when it was freed again.

What counts is the memory of the tensors that a call returns. A view has none of its own, and what
a kernel needs for itself while it runs is not seen.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from threading import get_ident
from time import perf_counter_ns
from typing import Any, NamedTuple

import numpy as np

from toytorch.core.tensor import Tensor
from toytorch.facts.hints import Array


class Change(NamedTuple):
    """Bytes taken (or freed: less than 0), by a thread, while it was inside `span`."""

    time: int
    thread: int
    address: int
    bytes: int
    span: Any


class Ledger:
    """Follows memory by weak references to the NumPy arrays that own it.

    `here` says what the thread that asks is inside of: that is who frees.
    """

    def __init__(self, here: Callable[[], Any]) -> None:
        self.changes: list[Change] = []
        self._here = here
        self._alive: dict[int, Any] = {}  # id of an array: a weak reference to it
        self._open = True

    def count(self, span: Any, args: Sequence[Any], result: Any) -> None:
        """Books what the results of a call own and its arguments do not."""
        known: set[int] | None = None
        for tensor in tensors_in(result):
            array = owner(tensor._array)
            if array is None or id(array) in self._alive:
                continue
            if known is None:
                known = {id(owner(t._array)) for a in args for t in tensors_in(a)}
            if id(array) not in known:
                address = array.__array_interface__["data"][0]
                self._alive[id(array)] = weakref.ref(array, self._freed(array, address))
                self._book(address, array.nbytes, span)

    def _freed(self, array: Array, address: int) -> Callable[[Any], None]:
        key, size = id(array), array.nbytes

        def note(reference: object) -> None:
            self._alive.pop(key, None)
            if self._open:
                self._book(address, -size, self._here())

        return note

    def _book(self, address: int, size: int, span: Any) -> None:
        self.changes.append(Change(perf_counter_ns(), get_ident(), address, size, span))
        if span is not None:
            span.bytes += size

    def close(self) -> None:
        """What is freed from now on no longer counts."""
        self._open = False

    def peak(self) -> int:
        """The most bytes that were taken at one time."""
        return max((total for _, total in self.history()), default=0)

    def history(self) -> Iterator[tuple[Change, int]]:
        """Each change and the bytes taken after it, in the order of time."""
        total = 0
        for change in sorted(self.changes, key=lambda c: c.time):
            total += change.bytes
            yield change, total


def tensors_in(value: object) -> Sequence[Tensor]:
    """The tensors of an argument or result."""
    if isinstance(value, Tensor):
        return (value,)
    if isinstance(value, (list, tuple)):
        return [t for t in value if isinstance(t, Tensor)]
    return ()


def owner(array: Array) -> Any:
    """The NumPy array that owns the memory of another; None for memory of another kind."""
    if not isinstance(array, np.ndarray):
        return None
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array
