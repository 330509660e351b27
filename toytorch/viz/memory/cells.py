"""Which memory cell each element of a strided view is, and what of it there is room to show.

Element (i, j, …) of a view is cell offset + i·stride₀ + j·stride₁ + … of its storage. All answers
here are arithmetic on shape, stride and offset; only the cells that are drawn are ever read.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from toytorch.facts.hints import Sizes
from toytorch.viz.draw.text import number

Pick = int | None  # an index that is shown, or None for those left out between two


@dataclass(slots=True)
class View:
    """One tensor as its storage sees it."""

    name: str
    shape: Sizes
    stride: Sizes
    offset: int
    dtype: str

    @property
    def numel(self) -> int:
        """The number of elements."""
        count = 1
        for size in self.shape:
            count *= size
        return count

    def cell(self, index: Iterable[int]) -> int:
        """Return the memory cell of the element at `index`."""
        return self.offset + sum(i * s for i, s in zip(index, self.stride, strict=True))

    def places(self, cell: int) -> int:
        """Return how many elements are this cell: 0, 1, or 2 for two and more.

        Example:
            >>> View("x", (3, 2), (0, 1), 0, "float32").places(1)
            2
        """
        if not self.numel:
            return 0
        # largest stride first: what the other dimensions can still reach bounds each index tightly
        dims = sorted(zip(self.stride, self.shape, strict=True), reverse=True)
        reach = [0] * (len(dims) + 1)
        for at in range(len(dims) - 1, -1, -1):
            reach[at] = reach[at + 1] + dims[at][0] * (dims[at][1] - 1)
        found = 0
        stack = [(0, cell - self.offset)]
        while stack and found < 2:
            at, left = stack.pop()
            if at == len(dims):
                found += left == 0
                continue
            stride, size = dims[at]
            if stride == 0:
                low, high = 0, min(size - 1, 1)
            else:
                low = max(0, -((reach[at + 1] - left) // stride))
                high = min(size - 1, left // stride)
            stack += [(at + 1, left - i * stride) for i in range(low, high + 1)]
        return found

    def formula(self) -> str:
        """Return in words and letters which cell an element is."""
        letters = "ijklmnpq"[: len(self.shape)]
        if len(letters) < len(self.shape):
            return ""
        steps = "".join(f" + {s}·{i}" for i, s in zip(letters, self.stride, strict=True))
        where = f"[{', '.join(letters)}]" if letters else "the element"
        return f"{where} is cell {self.offset}{steps}"


@dataclass(slots=True)
class Memory:
    """One storage, read as cells of one dtype, with the views of it that are drawn."""

    cells: int
    dtype: str
    item_bytes: int
    bytes: Any  # the untyped storage: its bytes by number
    views: list[View] = field(default_factory=list)
    again: bool = False  # whether the same bytes were already drawn in another dtype

    def value(self, cell: int) -> str:
        """Return what stands in a cell, as short text: its bytes, read as the dtype."""
        start = cell * self.item_bytes
        raw = bytes(int(self.bytes[start + at]) for at in range(self.item_bytes))
        if self.dtype == "bfloat16":  # the upper half of a float32
            raw = raw + b"\0\0" if sys.byteorder == "big" else b"\0\0" + raw
            return number(np.frombuffer(raw, np.float32)[0].item())
        return number(np.frombuffer(raw, np.dtype(self.dtype))[0].item())


def memories(named: Iterable[tuple[str, Any]]) -> list[Memory]:
    """Group tensors by storage and dtype, in the order given.

    Raises TypeError for what is not a strided tensor.
    """
    found: dict[tuple[Any, ...], Memory] = {}
    for number_, (name, tensor) in enumerate(named):
        if not hasattr(tensor, "stride") or not hasattr(tensor, "untyped_storage"):
            raise TypeError(f"storage() draws tensors with strides, got {type(tensor).__name__}")
        storage, dtype = tensor.untyped_storage(), str(tensor.dtype).rsplit(".", 1)[-1]
        item = int(tensor.element_size())
        count = int(storage.nbytes()) // item
        # empty storages all have the same address: they are not one
        where = (storage.data_ptr(),) if count else (0, number_)
        if (*where, dtype) not in found:
            again = any(key[:-1] == where for key in found)
            found[(*where, dtype)] = Memory(count, dtype, item, storage, again=again)
        shape = tuple(int(size) for size in tensor.shape)
        stride = tuple(int(step) for step in tensor.stride())
        view = View(name, shape, stride, int(tensor.storage_offset()), dtype)
        found[(*where, dtype)].views.append(view)
    return list(found.values())


def picks(size: int, most: int) -> list[Pick]:
    """Return the indices shown of `size`: all, or the first ones, a gap, and the last.

    Example:
        >>> picks(4, 8), picks(100, 5)
        ([0, 1, 2, 3], [0, 1, 2, None, 99])
    """
    if size <= most:
        return list(range(size))
    return [*range(most - 2), None, size - 1]


def chosen_cells(memory: Memory, wanted: Iterable[int], most: int) -> list[Pick]:
    """Return the cells shown: all if there is room, otherwise the ends and those wanted first."""
    if memory.cells <= most:
        return list(range(memory.cells))
    chosen = {0, 1, memory.cells - 1}
    for cell in wanted:
        if len(chosen) >= most // 2:  # the gaps between them take room too
            break
        chosen.add(cell)
    shown: list[Pick] = []
    for cell in sorted(chosen):
        if shown and shown[-1] is not None and cell != shown[-1] + 1:
            shown.append(None)
        shown.append(cell)
    return shown


@dataclass(slots=True)
class Block:
    """A matrix of a view: the part shown at one position of its leading dimensions."""

    label: str
    rows: Sequence[Pick]
    columns: Sequence[Pick]
    cells: dict[tuple[int, int], int]  # (row, column) → memory cell


def blocks(view: View, *, most: int = 8, most_blocks: int = 4) -> list[Block | None]:
    """Return the matrices that a view is drawn as; None stands for those left out."""
    matrix = view.shape[-2:]
    heads = view.shape[:-2]
    count = 1
    for size in heads:
        count *= size
    shown: list[Block | None] = []
    for position in picks(count, most_blocks):
        if position is None:
            shown.append(None)
            continue
        head: list[int] = []
        for size in reversed(heads):
            position, i = divmod(position, size)
            head.insert(0, i)
        rows = picks(matrix[0], most) if len(matrix) == 2 else [0]
        columns = picks(matrix[-1], most) if matrix else [0]
        cells = {}
        for r in (r for r in rows if r is not None):
            for c in (c for c in columns if c is not None):
                tail = ((), (c,), (r, c))[len(matrix)]
                cells[r, c] = view.cell((*head, *tail))
        label = f"[{', '.join(map(str, head))}]" if head else ""
        shown.append(Block(label, rows, columns, cells))
    return shown
