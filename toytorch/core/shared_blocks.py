"""Memory that processes share: forked ones see it, others are sent its file descriptor.

Queues, pipes and the arguments of new processes go through `multiprocessing`'s own pickler, which
is told here what to do with tensors and their memory; `pickle` and `torch.save` are not.
"""

from __future__ import annotations

import mmap
import os
import sys
import tempfile
from multiprocessing import reduction
from typing import Any

import numpy as np

from toytorch.core.storage import CountedElsewhere, Storage
from toytorch.core.tensor import Tensor
from toytorch.facts.hints import Array

DESCRIPTORS = sys.platform != "win32"  # whether processes can send them to each other
NON_LEAF = (
    "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not "
    "support crossing process boundaries.  If you just want to transfer the data, call detach() "
    "on the tensor before serializing (e.g., putting it on the queue)."
)


class Block(mmap.mmap):
    """A mapped file without a name, and its descriptor."""

    descriptor: int

    def __del__(self) -> None:
        os.close(self.descriptor)


def map_file(descriptor: int, nbytes: int) -> Block:
    """The memory behind a descriptor, which belongs to the block from now on."""
    block = Block(descriptor, nbytes)
    block.descriptor = descriptor
    return block


def new_memory(nbytes: int) -> mmap.mmap:
    """Zeros that other processes can be given."""
    if not DESCRIPTORS:
        return mmap.mmap(-1, nbytes)  # which only copies leave
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("toytorch")
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, nbytes)
    return map_file(descriptor, nbytes)


def receive(descriptor: Any, nbytes: int, start: int, size: int, kind: Any) -> Storage:
    """The storage over memory that another process sent."""
    flat = np.frombuffer(map_file(descriptor.detach(), nbytes), kind, size, start)
    return Storage(flat, flat)


def reduce_storage(storage: Storage) -> Any:
    """Shared memory by its descriptor, any other by its bytes."""
    flat: Array = storage.flat()
    block: Any = flat
    while isinstance(block, np.ndarray):
        block = block.base
    block = block.obj if isinstance(block, memoryview) else block
    if not isinstance(block, Block):
        return storage.__reduce__()
    start = storage.memory_at()[0] - np.frombuffer(block, np.uint8).ctypes.data
    sent = reduction.DupFd(block.descriptor)
    return receive, (sent, len(block), start, flat.size, flat.dtype)


def reduce_tensor(tensor: Tensor) -> Any:
    """What a tensor is sent as; RuntimeError for one that has a history."""
    if tensor._grad_edge is not None and tensor.requires_grad:
        raise RuntimeError(NON_LEAF)
    return tensor.__reduce_ex__(2)


reduction.ForkingPickler.register(Tensor, reduce_tensor)
if DESCRIPTORS:
    for kind in (Storage, CountedElsewhere):
        reduction.ForkingPickler.register(kind, reduce_storage)
