"""Batches in shared memory: written by a worker, used by the loader's process where they lie.

A batch is pickled with its arrays beside it (protocol 5), all into one slot: a segment that both
processes have mapped. A segment loses its name as soon as both have it, so that nothing is left of
it when they end, however they end. A slot is written to again when nobody uses its batch any more.
"""

from __future__ import annotations

import contextlib
import ctypes
import io
import mmap
import pickle
import sys
import weakref
from collections import deque
from multiprocessing.shared_memory import SharedMemory
from typing import Any

import numpy as np

from toytorch.core.dtype import bfloat16
from toytorch.core.tensor import Tensor, wrap

ALIGNMENT = 64
SMALLEST = 1 << 16
Place = tuple[int, int]  # (first byte, byte behind the last) of a piece within a slot


class _Pickler(pickle.Pickler):
    """Leaves the memory of tensors and arrays out of the pickle."""

    def reducer_override(self, obj: Any) -> Any:
        if type(obj) is Tensor and type(obj._array) is np.ndarray and obj._batches is None:
            array = obj._array
            if not (array.flags.c_contiguous or array.flags.f_contiguous):
                array = np.ascontiguousarray(array)
            if obj.dtype is bfloat16:
                array = array.view(np.uint16)
            return _tensor, (array, obj.dtype.name, obj._rg)
        return NotImplemented


def _tensor(array: Any, kind: str, requires_grad: bool) -> Tensor:
    made = wrap(array.view(bfloat16.numpy) if kind == "bfloat16" else array)
    made._rg = requires_grad
    return made


class Outbox:
    """A worker's slots. The name of the n-th segment is known beforehand: `prefix` and n."""

    def __init__(self, prefix: str) -> None:
        self._prefix, self._made = prefix, 0
        self._slots: dict[int, SharedMemory] = {}
        self._free: list[int] = []

    def put(self, value: Any) -> tuple[int, int, list[Place]]:
        """Writes a value; returns (slot, its size, where the pieces are)."""
        buffers: list[pickle.PickleBuffer] = []
        file = io.BytesIO()
        _Pickler(file, protocol=5, buffer_callback=buffers.append).dump(value)
        pieces = [file.getbuffer(), *(b.raw() for b in buffers)]
        places, at = [], 0
        for piece in pieces:
            places.append((at, at + piece.nbytes))
            at += -(-piece.nbytes // ALIGNMENT) * ALIGNMENT
        number = self._slot(at)
        memory: Any = self._slots[number].buf
        shared = np.frombuffer(memory, np.uint8)
        for (start, end), piece in zip(places, pieces):
            shared[start:end] = np.frombuffer(piece, np.uint8) if end > start else 0
        return number, self._slots[number].size, places

    def _slot(self, size: int) -> int:
        """A free slot of at least this size."""
        for number in self._free:
            if self._slots[number].size >= size:
                self._free.remove(number)
                return number
        for number in self._free:  # too small for batches as they are now
            self._slots.pop(number).close()
        self._free.clear()
        number = self._made
        room = max(SMALLEST, size + size // 8)
        self._slots[number] = SharedMemory(name_of(self._prefix, number), create=True, size=room)
        self._made += 1
        return number

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
            self._slots[number] = mmap.mmap(shared._fd, shared.size)  # type: ignore[attr-defined]
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
