"""Global, shared, local and constant memory: the bytes, and what is known of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from toytorch.cuda.emulator.races import Shadow
from toytorch.cuda.emulator.threads import Threads
from toytorch.facts.hints import Array

UNKNOWN = 0xFF  # fills memory that holds nothing yet: floats are then NaN


class Memory:
    """Bytes that kernels address.

    size    bytes of one copy
    copies  1 for global memory, one for each block of the batch for shared, each thread for local
    item    bytes of a declared element
    shadow  who touched what; None where nothing can race
    known   what has been written, where memory begins with nothing in it
    """

    def __init__(
        self,
        name: str,
        space: str,
        size: int,
        item: int,
        copies: int = 1,
        data: Array | None = None,
        writable: bool = True,
    ) -> None:
        self.name, self.space, self.size, self.item, self.copies = name, space, size, item, copies
        self.stride = -(-size // 16) * 16 if data is None else size
        self.writable = writable
        self.data = np.full(copies * self.stride, UNKNOWN, np.uint8) if data is None else data
        self.views: dict[Any, Any] = {}
        self.shadow: Shadow | None = None
        self.known: Any = None
        self.known_size = item
        if space in ("shared", "local"):
            self.known = np.zeros(len(self.data) // item, bool)

    def view(self, dtype: Any) -> Any:
        """The bytes as elements of a type."""
        if dtype not in self.views:
            usable = len(self.data) // dtype.itemsize * dtype.itemsize
            self.views[dtype] = self.data[:usable].view(dtype)
        return self.views[dtype]

    def flat(self, offset: Array, threads: Threads, size: int) -> Any:
        """Where in `view` the elements of `size` bytes at these bytes are."""
        index = offset >> (size.bit_length() - 1)  # sizes are powers of 2, and shifts are fast
        if self.space == "shared":
            return index + threads.blocks * (self.stride // size)
        if self.space == "local":
            return index + threads.positions * (self.stride // size)
        return index

    def forget(self, threads: Threads, zeros: bool) -> None:
        """Local memory of these threads begins anew."""
        self.data.reshape(self.copies, -1)[threads.key] = 0 if zeros else UNKNOWN
        self.known.reshape(self.copies, -1)[threads.key] = zeros

    def refine(self, size: int) -> None:
        """Smaller elements than declared are accessed."""
        if size < self.known_size:
            if self.known is not None:
                self.known = np.repeat(self.known, self.known_size // size)
            self.known_size = size
        if self.shadow is not None and size < self.shadow.granule:
            self.shadow.refine(size)
