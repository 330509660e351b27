"""Sparse arrays whose rows, or columns, are compressed: CSR, CSC, and their forms of blocks.

Like a SparseArray, a CompressedArray stands in `Tensor._array`, and has a table of kernels of its own
(filled by `toytorch.ops.sparse.compressed_kernels`). Few programs need these layouts: the module is
imported with the first such tensor.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from toytorch.backends import base, sparse
from toytorch.backends.sparse import Entries, Kernels, SparseArray, SparseBackend
from toytorch.facts.device import layout as layout_class
from toytorch.facts.device import layout_name, sparse_bsc, sparse_bsr, sparse_csc, sparse_csr
from toytorch.facts.hints import Array, ArrayModule, Shape, Sizes

BY_ROWS = (sparse_csr, sparse_bsr)  # layouts whose compressed dimension is the first of the two
IN_BLOCKS = (sparse_bsr, sparse_bsc)
NAMES = {  # what PyTorch calls the two kinds of indices, and the lines they count
    True: ("crow_indices", "col_indices", "row", "col"),
    False: ("ccol_indices", "row_indices", "col", "row"),
}
TURNED = {
    sparse_csr: sparse_csc,
    sparse_csc: sparse_csr,
    sparse_bsr: sparse_bsc,
    sparse_bsc: sparse_bsr,
}


class CompressedArray(Entries):
    """Matrices (of blocks) whose entries are listed row by row, or column by column.

    ends     (*batch, lines + 1): where each line's entries end; line k has ends[k]:ends[k + 1]
    places   (*batch, nnz): the place of each entry in its line
    values   (*batch, nnz, *block, *dense): an entry is an element, a block, or a dense part
    layout   torch.sparse_csr, sparse_csc, sparse_bsr or sparse_bsc
    """

    __slots__ = ("ends", "layout", "places")
    held = "ends places values shape layout"
    coalesced = True

    def __init__(
        self, ends: Array, places: Array, values: Array, shape: Shape, layout: layout_class
    ) -> None:
        self.ends, self.places, self.values = ends, places, values
        self.shape, self.layout = tuple(shape), layout

    @property
    def by_rows(self) -> bool:
        """Whether the lines are rows."""
        return self.layout in BY_ROWS

    @property
    def batch_dim(self) -> int:
        """How many dimensions count matrices."""
        return int(self.ends.ndim) - 1

    @property
    def blocksize(self) -> Sizes:
        """The sizes of a block; nothing where entries are elements."""
        if self.layout not in IN_BLOCKS:
            return ()
        return tuple(self.values.shape[self.batch_dim + 1 : self.batch_dim + 3])

    @property
    def nnz(self) -> int:
        """The number of entries of each matrix."""
        return int(self.places.shape[-1])

    @property
    def sparse_dim(self) -> int:
        """The dimensions of a matrix."""
        return 2

    @property
    def dense_dim(self) -> int:
        """How many dimensions each entry, or each element of a block, has."""
        return int(self.values.ndim) - self.batch_dim - 1 - len(self.blocksize)

    @property
    def indices(self) -> Array:
        """The places as coordinates, (dimensions, entries), of elements or of blocks.

        With batches, the numbers of the batch's dimensions come first.
        """
        xp = sparse.xp_of(self)
        batch = self.ends.shape[:-1]
        ends = self.ends.reshape(-1, self.ends.shape[-1])
        lines = [xp.repeat(xp.arange(len(e) - 1, dtype=np.int64), e[1:] - e[:-1]) for e in ends]
        line = xp.concatenate(lines) if lines else xp.zeros(0, np.int64)
        place = self.places.reshape(-1).astype(np.int64, copy=False)
        pair = (line, place) if self.by_rows else (place, line)
        which = [xp.repeat(row.reshape(-1), self.nnz) for row in xp.indices(batch, dtype=np.int64)]
        return xp.stack([*which, *pair])

    def parts(self) -> tuple[tuple[str, Array], ...]:
        """What it consists of, as it is printed."""
        ends, places, *_ = NAMES[self.by_rows]
        return (ends, self.ends), (places, self.places), ("values", self.values)

    def without_entries(self, kind: npt.DTypeLike) -> CompressedArray:
        """Zeros of the same shape and place."""
        return empty(
            sparse.xp_of(self), self.shape, kind, self.layout, self.blocksize, self.ends.dtype
        )

    def coalesce(self) -> CompressedArray:
        """Itself: no two entries have one place."""
        return self

    def coordinates(self) -> SparseArray:
        """The same elements in coordinates; the elements of blocks one by one."""
        xp, indices = sparse.xp_of(self), self.indices
        lead = self.batch_dim
        count = indices.shape[1]
        values = self.values.reshape(count, *self.values.shape[lead + 1 :])
        if self.blocksize:
            n, m = self.blocksize
            inner = xp.indices((n, m), dtype=np.int64).reshape(2, -1)
            indices = xp.repeat(indices, n * m, axis=1)
            indices[lead] = indices[lead] * n + xp.tile(inner[0], count)
            indices[lead + 1] = indices[lead + 1] * m + xp.tile(inner[1], count)
            values = values.reshape(count * n * m, *values.shape[3:])
        plain = self.by_rows and not self.blocksize
        return SparseArray(indices, values, self.shape, plain)

    def dense(self) -> Array:
        return self.coordinates().dense()


def empty(
    xp: Any,
    shape: Any,
    kind: object,
    layout: layout_class,
    blocksize: Any = (),
    index: object = np.int64,
) -> CompressedArray:
    """An array without entries."""
    *batch, n, m = shape
    n, m = (n // blocksize[0], m // blocksize[1]) if blocksize else (n, m)
    ends = xp.zeros((*batch, (n if layout in BY_ROWS else m) + 1), index)
    values = xp.empty((*batch, 0, *blocksize), kind)
    return CompressedArray(ends, xp.empty((*batch, 0), index), values, shape, layout)


def zeros(
    xp: ArrayModule, fill: str, shape: Shape, kind: npt.DTypeLike, layout: layout_class
) -> CompressedArray:
    """What `torch.zeros` and `torch.empty` make where a layout is given."""
    if layout in IN_BLOCKS:
        raise RuntimeError(
            f"{fill}_sparse_compressed expected sparse compressed (non-block) tensor layout but "
            f"got {layout_name(layout)}"
        )
    if len(shape) < 2:
        raise RuntimeError(
            "torch.empty: Only batched sparse compressed (non-block) tensors are supported, but "
            f"got size {list(shape)}"
        )
    return empty(xp, shape, kind, layout)


class CompressedBackend(SparseBackend):
    """The table of kernels of compressed arrays, which live where their values do."""

    name = module = "compressed"
    array_type = CompressedArray

    def __init__(self) -> None:
        self.xp = Kernels("SparseCsrCPU")
        self.kernels = self.xp.table

    def flat(self, array: CompressedArray) -> Array:
        raise NotImplementedError("Cannot access storage of SparseCsrTensorImpl")


backend = CompressedBackend()
base.register("compressed", backend)
sparse.TABLES[CompressedArray] = backend.xp
