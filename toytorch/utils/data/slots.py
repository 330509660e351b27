"""Batches in shared memory: written by a worker, used by the loader's process where they lie.

A batch is pickled with its arrays beside it (protocol 5), all into one slot: a segment that both
processes have mapped. A segment loses its name as soon as both have it, so that nothing is left of
it when they end, however they end. A slot is written to again when nobody uses its batch any more.
"""

from __future__ import annotations

import contextlib
import ctypes
import io
import math
import mmap
import pickle
import sys
import weakref
from collections import deque
from multiprocessing.shared_memory import SharedMemory
from typing import Any

import numpy as np

from toytorch.core.tensor import Tensor, wrap
from toytorch.facts import dtype as dtypes
from toytorch.facts.hints import Array, Sizes

ALIGNMENT = 64
SMALLEST = 1 << 16
Place = tuple[int, int]  # (first byte, byte behind the last) of a piece within a slot


outbox: Outbox | None = None  # of this process, if it is a worker


class _Pickler(pickle.Pickler):
    """Leaves the memory of tensors and arrays out of the pickle."""

    def reducer_override(self, obj: Any) -> Any:
        if type(obj) is Tensor and type(obj._array) is np.ndarray and obj._batches is None:
            array = obj._array
            if not (array.flags.c_contiguous or array.flags.f_contiguous):
                array = np.ascontiguousarray(array)
            if obj.dtype.extended:  # no buffer has such elements
                array = array.view(f"u{obj.dtype.itemsize}")
            return _tensor, (array, obj.dtype.name, obj._requires_grad)
        return NotImplemented


def _tensor(array: Array, kind: str, requires_grad: bool) -> Tensor:
    stored = getattr(dtypes, kind)
    made = wrap(array.view(stored.numpy) if stored.extended else array)
    made._requires_grad = requires_grad
    return made


class Outbox:
    """A worker's slots. The name of the n-th segment is known beforehand: `prefix` and n.

    A batch may be made in a slot from the start (`buffer`): then `put` has nothing to copy.
    """

    def __init__(self, prefix: str) -> None:
        self._prefix, self._made = prefix, 0
        self._slots: dict[int, SharedMemory] = {}
        self._free: list[int] = []
        self._leases: dict[int, Any] = {}  # weak references to what arrays made here hold
        self._draft: int | None = None  # the slot that the next batch is made in
        self._filled = 0  # bytes of it that are given away
        self._usual = 0  # the size of the last batch
        self._held: list[SharedMemory] = []  # dropped, while arrays of theirs are in use

    def buffer(self, shape: Sizes, kind: np.dtype[Any]) -> Any:
        """An array in the slot of the next batch; None for a small one, or if it has no room."""
        size = math.prod(shape) * kind.itemsize
        if size < SMALLEST:
            return None
        if self._draft is None:
            self._draft, self._filled = self._slot(max(size, self._usual)), 0
        slot, at = self._slots[self._draft], self._filled
        if at + size > slot.size:
            return None
        lease = self._leases.get(self._draft, type(None))()
        if lease is None:
            memory: Any = slot.buf
            lease = (ctypes.c_char * slot.size).from_buffer(memory)
            self._leases[self._draft] = weakref.ref(lease)
        self._filled = at + -(-size // ALIGNMENT) * ALIGNMENT
        return np.frombuffer(lease, kind, math.prod(shape), at).reshape(shape)

    def put(self, value: Any) -> tuple[int, int, list[Place]]:
        """Writes a value; returns (slot, its size, where the pieces are)."""
        buffers: list[pickle.PickleBuffer] = []
        file = io.BytesIO()
        _Pickler(file, protocol=5, buffer_callback=buffers.append).dump(value)
        pieces = [
            np.frombuffer(p, np.uint8) if len(p) else np.empty(0, np.uint8)
            for p in (file.getbuffer(), *(b.raw() for b in buffers))
        ]
        draft, self._draft = self._draft, None
        if draft is not None:
            places = self._places(pieces, draft)
            self._usual = places[-1][1]
            if places[-1][1] <= self._slots[draft].size:
                return self._write(draft, pieces, places)
        places = self._places(pieces, None)
        found = self._write(self._slot(places[-1][1]), pieces, places)
        if draft is not None:  # too small, as it turned out
            self._drop(draft)
        return found

    def _places(self, pieces: list[Any], draft: int | None) -> list[Place]:
        """Where the pieces of a batch are to lie, and behind them the end of it all: those that
        were made in the draft stay, the others come behind."""
        start, size, at = 0, 0, 0
        if draft is not None:
            memory: Any = self._slots[draft].buf
            shared = np.frombuffer(memory, np.uint8)
            start, size, at = shared.ctypes.data, shared.nbytes, self._filled
        places = []
        for piece in pieces:
            lies = piece.ctypes.data - start
            if size and piece.size and 0 <= lies < size:
                places.append((lies, lies + piece.nbytes))
            else:
                places.append((at, at + piece.nbytes))
                at += -(-piece.nbytes // ALIGNMENT) * ALIGNMENT
        return [*places, (at, at)]

    def _write(
        self, number: int, pieces: list[Any], places: list[Place]
    ) -> tuple[int, int, list[Place]]:
        """Copies the pieces that do not lie in their places yet."""
        slot = self._slots[number]
        memory: Any = slot.buf
        shared = np.frombuffer(memory, np.uint8)
        for (start, end), piece in zip(places, pieces):
            if end > start and piece.ctypes.data != shared.ctypes.data + start:
                shared[start:end] = piece
        return number, slot.size, places[:-1]

    def _slot(self, size: int) -> int:
        """A free slot of at least this size."""
        idle = [n for n in self._free if not self._in_use(n)]
        for number in idle:  # nobody in this process holds an array of it
            if self._slots[number].size >= size:
                self._free.remove(number)
                return number
        for number in idle:  # too small for batches as they are now
            self._free.remove(number)
            self._drop(number)
        number = self._made
        size = max(SMALLEST, size + size // 8)
        self._slots[number] = SharedMemory(name_of(self._prefix, number), create=True, size=size)
        self._made += 1
        return number

    def _in_use(self, number: int) -> bool:
        """Whether this process holds an array of a slot."""
        return self._leases.get(number, type(None))() is not None

    def _drop(self, number: int) -> None:
        """Gives a slot up. It may have a name still, if it was never sent."""
        slot = self._slots.pop(number)
        with contextlib.suppress(FileNotFoundError):
            slot.unlink()
        if self._in_use(number):
            self._held.append(slot)
        else:
            slot.close()
        self._leases.pop(number, None)

    def release(self, numbers: list[int]) -> None:
        """Slots whose batches nobody uses any more."""
        self._free += [n for n in numbers if n in self._slots]

    def close(self) -> None:
        """Takes away the names that the loader has not taken away."""
        for shared in self._slots.values():
            with contextlib.suppress(FileNotFoundError):
                shared.unlink()


class Inbox:
    """The loader's side of a worker's slots."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._slots: dict[int, mmap.mmap] = {}
        self._last = -1
        self._released: deque[int] = deque()

    def get(self, number: int, size: int, places: list[Place]) -> Any:
        """The value in a slot. The slot is free when no array of it is left."""
        if number not in self._slots:
            self._attach(number)
        lease = (ctypes.c_char * size).from_buffer(self._slots[number])
        weakref.finalize(lease, self._released.append, number).atexit = False
        view = memoryview(lease).cast("B")
        pieces = [view[start:end] for start, end in places]
        return pickle.loads(pieces[0], buffers=pieces[1:])

    def skip(self, number: int) -> None:
        """Frees a slot whose value nobody wants."""
        if number not in self._slots:
            self._attach(number)
        self._released.append(number)

    def _attach(self, number: int) -> None:
        shared = SharedMemory(name_of(self._prefix, number))
        if sys.platform == "win32":  # there a segment is known by its name, as long as it is open
            self._slots[number] = mmap.mmap(-1, shared.size, tagname=shared.name)
        else:
            self._slots[number] = mmap.mmap(shared._fd, shared.size)  # type: ignore[attr-defined]  # SharedMemory has it, the stubs do not
        self._last = max(self._last, number)
        shared.close()
        shared.unlink()

    def released(self) -> list[int]:
        """The slots that became free since the last call."""
        found = []
        while self._released:
            found.append(self._released.popleft())
        return found

    def forget(self) -> None:
        """Takes away what a killed worker may have made and not told of."""
        for number in range(self._last + 1, self._last + 65):
            with contextlib.suppress(FileNotFoundError):
                shared = SharedMemory(name_of(self._prefix, number))
                shared.close()
                shared.unlink()
        self._slots.clear()


def name_of(prefix: str, number: int) -> str:
    """The name of a segment while it has one."""
    return f"{prefix}_{number}"
