"""Memory that other processes or devices can reach: shared and pinned tensors."""

from __future__ import annotations

import mmap
import sys
from typing import Any

import numpy as np

from toytorch.backends import base
from toytorch.core.tensor import Tensor, wrap
from toytorch.facts.hints import Device


def is_shared(self: Tensor) -> bool:
    """Whether other processes see the same memory."""
    owner: Any = self._array
    while isinstance(owner, np.ndarray):
        owner = owner.base
    if isinstance(owner, memoryview):
        owner = owner.obj
    return isinstance(owner, mmap.mmap)


def share_memory_(self: Tensor) -> Tensor:
    """Moves the elements to memory that processes share, and may write to: those forked from now on,
    and those that are sent the tensor.

    Raises RuntimeError for a view of a tensor that the program still has: that one has to be moved.
    Like `torch.Tensor.share_memory_`; what is on a GPU stays where it is.

    >>> torch.zeros(3).share_memory_().is_shared()
    True
    """
    if is_shared(self) or type(self._array) is not np.ndarray:
        return self
    if self._base is not None:
        if sys.getrefcount(self._base) > 2:  # the view's and that of this question
            raise RuntimeError(
                "share_memory_() was called on a view; call it on the tensor whose memory it shows"
            )
        self._base = None
    from toytorch.core.shared_blocks import new_memory  # seldom needed; brings multiprocessing

    memory = new_memory(max(self._array.nbytes, 1))
    flat = np.frombuffer(memory, self._array.dtype, self._array.size)
    by_columns = self._array.flags.f_contiguous and not self._array.flags.c_contiguous
    moved = flat.reshape(self._array.shape, order="F" if by_columns else "C")
    moved[...] = self._array
    self.data = wrap(moved, self.dtype)
    return self


def is_pinned(self: Tensor, device: Device = None) -> bool:
    """Whether a GPU may copy from this memory while Python goes on: never, without one."""
    backend: Any = base.of_kind("cuda")
    return bool(backend.is_available() and backend.is_pinned(self._array))


def pin_memory(self: Tensor, device: Device = None) -> Tensor:
    """A copy from which a GPU may copy while Python goes on; raises RuntimeError without a GPU."""
    if not base.of_kind("cuda").is_available():
        raise RuntimeError("Cannot access accelerator device when none is available.")
    if not isinstance(self._array, np.ndarray):
        raise RuntimeError(f"cannot pin '{self.type()}' only dense CPU tensors can be pinned")
    backend: Any = base.of_kind("cuda")
    if backend.is_pinned(self._array):
        return self
    return wrap(backend.pinned_copy(self._array), self.dtype)


def record_stream(self: Tensor, stream: Any) -> None:
    """Keeps the memory from being used again before a stream is done with it: for tensors that were
    made on one stream and are used on another. Like `torch.Tensor.record_stream`."""
    if not self.is_cuda:
        raise NotImplementedError(
            "Could not run 'aten::record_stream' with arguments from the 'CPU' backend."
        )
    base.of_device(self.device).runtime.record_stream(self._array, stream._handle)  # type: ignore[attr-defined]  # of devices that have streams


for _f in (is_shared, share_memory_, is_pinned, pin_memory, record_stream):
    setattr(Tensor, _f.__name__, _f)
