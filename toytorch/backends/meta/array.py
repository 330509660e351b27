"""Arrays without memory.

`held` has the shape and the strides of the array over addresses without memory, so that a kernel of a
view gives the right view of it. Whatever computes gets arrays of zeros in its place (see `infer`).
"""

from __future__ import annotations

import contextlib
import mmap
import sys
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import as_strided

from toytorch.backends.held import HeldArray
from toytorch.backends.no_elements import strided
from toytorch.facts.device import device as device_class
from toytorch.facts.hints import Array, Device, Shape
from toytorch.facts.size import contiguous_strides

NO_DATA = "Cannot copy out of meta tensor; no data!"


NOT_RESERVED = getattr(mmap, "MAP_NORESERVE", 0)


class Memory:
    """Memory that is not there: how many bytes it would have.

    `root` are addresses that the system has set aside, without memory behind them, so that views
    can be made by NumPy, which checks bounds; where even addresses are short, a few bytes.
    """

    __slots__ = ("nbytes", "root", "start")

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes
        self.root = addresses(nbytes)
        self.start: int = self.root.__array_interface__["data"][0]


def addresses(nbytes: int) -> Any:
    """An array over so many addresses, or over 16 bytes."""
    if nbytes > 16:
        with contextlib.suppress(OSError, OverflowError, ValueError):
            if sys.platform == "win32":
                return np.zeros(nbytes, np.uint8)
            flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NOT_RESERVED
            return np.frombuffer(mmap.mmap(-1, nbytes, flags, mmap.PROT_READ), np.uint8)
    return np.zeros(16, np.uint8)  # as large as the largest element


class MetaArray(HeldArray):
    """An array of the device "meta", with the part of NumPy's interface that describes it."""

    __slots__ = ("memory",)
    refusal = NotImplementedError(NO_DATA)

    def __init__(self, held: Array, memory: Memory) -> None:
        self.held, self.memory = held, memory

    @classmethod
    def new(cls, shape: Shape, kind: npt.DTypeLike, strides: Shape | None = None) -> MetaArray:
        """A new array; by rows unless strides (in bytes) are given."""
        kind = np.dtype(kind)
        if strides is None:
            strides = [int(s) * kind.itemsize for s in contiguous_strides(shape)]
        last = sum((int(n) - 1) * s for n, s in zip(shape, strides))
        memory = Memory(0 if 0 in shape else last + kind.itemsize)
        return cls(hollow(memory, 0, shape, strides, kind), memory)

    def seen(self, held: Array) -> MetaArray:
        return MetaArray(held, self.memory)

    @property
    def base(self) -> Any:
        """None where it is all of its memory, as NumPy has it."""
        return None if self.nbytes == self.memory.nbytes else self.memory

    @property
    def offset(self) -> int:
        """Where it begins in its memory, in bytes."""
        here: int = self.held.__array_interface__["data"][0]
        return here - self.memory.start if self.size else 0

    def at(self, offset: int, shape: Shape, strides: Shape, kind: npt.DTypeLike) -> MetaArray:
        """Another view of the same memory; offset and strides in bytes."""
        return MetaArray(hollow(self.memory, offset, shape, strides, kind), self.memory)

    def __repr__(self) -> str:
        return f"<array {self.shape} of {np.dtype(self.dtype).name} without memory>"


def hollow(memory: Memory, offset: int, shape: Shape, strides: Shape, kind: npt.DTypeLike) -> Any:
    """A NumPy array of a shape and strides (in bytes) that must not be read."""
    kind = np.dtype(kind)
    if memory.root.size >= memory.nbytes:
        return np.ndarray(shape, kind, memory.root, offset, strides)
    first = memory.root[: kind.itemsize].view(kind)
    if offset:  # a view so far from its base as it would be
        steps = as_strided(memory.root[:1], (offset + 1,), (1,))
        first = as_strided(steps[offset:], (kind.itemsize,), (1,)).view(kind)
    return strided(np, first, tuple(shape), tuple(strides))


class WrappedArray(MetaArray):
    """What stands for the data of a tensor that has none, since its class holds other tensors. It
    says which device they are on."""

    __slots__ = ("placed",)
    placed: device_class


def wrapped(
    shape: Shape, kind: npt.DTypeLike, strides: Shape | None, offset: int, where: Device
) -> WrappedArray:
    """A new one; strides and offset in elements."""
    kind = np.dtype(kind)
    steps = contiguous_strides(shape) if strides is None else strides
    steps = [int(s) * kind.itemsize for s in steps]
    last = (offset + 1) * kind.itemsize + sum((int(n) - 1) * s for n, s in zip(shape, steps))
    memory = Memory(0 if 0 in shape else last)
    made = WrappedArray(hollow(memory, offset * kind.itemsize, shape, steps, kind), memory)
    made.placed = device_class("cpu" if where is None else where)
    return made
