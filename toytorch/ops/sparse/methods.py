"""Methods of Tensor about sparse entries: their parts, order and number, and other layouts."""

from __future__ import annotations

from typing import Any

from toytorch.backends import sparse as arrays
from toytorch.backends.sparse import SparseArray, unsupported, xp_of
from toytorch.core.inplace import bump
from toytorch.core.tensor import Tensor, wrap
from toytorch.facts.composed import called
from toytorch.facts.device import (
    layout_name,
    sparse_bsc,
    sparse_bsr,
    sparse_csc,
    sparse_csr,
    strided,
)
from toytorch.facts.hints import Ints, Sizes
from toytorch.ops.define import on_tensors
from toytorch.ops.sparse import coo
from toytorch.ops.sparse.kernels import need_sparse


def _compressed() -> Any:
    """What few programs need, imported when a compressed layout is first asked for."""
    from toytorch.ops.sparse import compressed  # few programs need these layouts

    return compressed


def smm(self: Tensor, mat2: Tensor) -> Tensor:
    """The sparse product of a sparse matrix and a dense one."""
    from toytorch.ops.sparse import older  # names that few programs use

    return older.smm(self, mat2)


def sspaddmm(self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta·self + alpha·mat1·mat2 of sparse tensors, as one."""
    from toytorch.ops.sparse import older  # names that few programs use

    return older.sspaddmm(self, mat1, mat2, beta=beta, alpha=alpha)


def qscheme(self: Tensor) -> Any:
    """How a quantized tensor is quantized, which no tensor is: NotImplementedError."""
    raise NotImplementedError(unsupported("qscheme", "CPU"))


def to_sparse_coo(self: Tensor) -> Any:
    """The elements that are not zero, with their coordinates: `to_sparse()` by another name."""
    return coo.to_sparse(self)


def to_sparse_csr(self: Tensor, dense_dim: int | None = None) -> Tensor:
    """The elements that are not zero, row by row: a matrix, or a batch of them.

    >>> Tensor([[0., 5.], [6., 0.]]).to_sparse_csr()
    tensor(crow_indices=tensor([0, 1, 2]),
           col_indices=tensor([1, 0]),
           values=tensor([5., 6.]), size=(2, 2), nnz=2, layout=torch.sparse_csr)
    """
    return _compressed().convert(self, sparse_csr, None, dense_dim)


def to_sparse_csc(self: Tensor, dense_dim: int | None = None) -> Tensor:
    """The elements that are not zero, column by column."""
    return _compressed().convert(self, sparse_csc, None, dense_dim)


def to_sparse_bsr(self: Tensor, blocksize: Ints, dense_dim: int | None = None) -> Tensor:
    """The blocks that are not all zero, by rows of blocks."""
    return _compressed().convert(self, sparse_bsr, _size(blocksize, "bsr"), dense_dim)


def to_sparse_bsc(self: Tensor, blocksize: Ints, dense_dim: int | None = None) -> Tensor:
    """The blocks that are not all zero, by columns of blocks."""
    return _compressed().convert(self, sparse_bsc, _size(blocksize, "bsc"), dense_dim)


def _size(value: object, name: str) -> Sizes:
    where = f"to_sparse_{name}(): argument 'blocksize' (position 1) must be tuple of ints, "
    if isinstance(value, int):
        return value, value
    if not isinstance(value, (tuple, list)):
        raise TypeError(f"{where}not {type(value).__name__}")
    for i, n in enumerate(value):
        if not isinstance(n, int):
            raise TypeError(f"{where}but found element of type {type(n).__name__} at pos {i}")
    return tuple(value)


def _part(name: str, line: str, doc: str) -> Any:
    def part(self: Tensor) -> Tensor:
        a = self._array
        if not self._compressed or a.by_rows != (line == "row"):
            raise RuntimeError(
                f"{name} expected sparse {line} compressed tensor layout but got "
                f"{layout_name(self.layout)}"
            )
        return wrap(a.ends if name in ("crow_indices", "ccol_indices") else a.places)

    return called(name, doc, part)


crow_indices = _part("crow_indices", "row", "Where the entries of each row (of blocks) end.")
col_indices = _part("col_indices", "row", "The column of each entry, row by row.")
ccol_indices = _part("ccol_indices", "column", "Where the entries of each column (of blocks) end.")
row_indices = _part("row_indices", "column", "The row of each entry, column by column.")


def _need(self: Tensor, name: str, kind: str = "sparse coordinate tensor") -> SparseArray:
    if not self.is_sparse:
        raise RuntimeError(f"{name} expected {kind} layout but got {layout_name(self.layout)}")
    return self._array


def _parts(self: Tensor, name: str) -> SparseArray:
    if self._compressed:
        raise NotImplementedError(unsupported(name, "SparseCsrCPU"))
    return need_sparse(name, self._array)


def coalesce(self: Tensor) -> Tensor:
    """The tensor with its entries in order and one for each place; itself where it is so."""
    if _need(self, "coalesce").coalesced:
        return self
    return coo.coalesced.function(self)


def is_coalesced(self: Tensor) -> bool:
    """Whether entries are known to be in order, with one for each place."""
    return _need(self, "is_coalesced").coalesced


def indices(self: Tensor) -> Tensor:
    """The places of a coalesced tensor's entries, (sparse_dim, nnz)."""
    if not _need(self, "indices").coalesced:
        raise RuntimeError(
            "Cannot get indices on an uncoalesced tensor, please call .coalesce() first"
        )
    return wrap(self._array.indices)


def values(self: Tensor) -> Tensor:
    """The values of a coalesced tensor's entries, over the same memory."""
    if not self._compressed and not _need(self, "values", "sparse tensor").coalesced:
        raise RuntimeError(
            "Cannot get values on an uncoalesced tensor, please call .coalesce() first"
        )
    return coo.stored.function(self)


def _indices(self: Tensor) -> Tensor:
    """The places of the entries as they are stored."""
    return wrap(_parts(self, "_indices").indices)


def _values(self: Tensor) -> Tensor:
    """The values of the entries as they are stored; no gradient passes here."""
    return wrap(_parts(self, "_values").values, self.dtype)


def _nnz(self: Tensor) -> int:
    """The number of entries."""
    return self._array.nnz if self._compressed else _parts(self, "_nnz").nnz


def sparse_dim(self: Tensor) -> int:
    """How many dimensions the coordinates name; 0 for a dense tensor."""
    return self._array.sparse_dim if self.layout is not strided else 0


def dense_dim(self: Tensor) -> int:
    """How many dimensions each entry has."""
    return self._array.dense_dim if self.layout is not strided else self.ndim


def _coalesced_(self: Tensor, coalesced: bool) -> Tensor:
    """Says whether entries are in order, one for each place; whoever says so must know."""
    _parts(self, "_coalesced_").coalesced = bool(coalesced)
    return self


def sparse_resize_(self: Tensor, size: Sizes, sparse_dim: int, dense_dim: int) -> Tensor:
    """Another size with the same entries, in place; dimensions may only grow."""
    a, size = _parts(self, "sparse_resize_"), tuple(size)
    _fit_dims(size, sparse_dim, dense_dim)
    if a.nnz:
        for kind, old, new in (
            ("sparse", a.sparse_dim, sparse_dim),
            ("dense", a.dense_dim, dense_dim),
        ):
            if old != new:
                raise RuntimeError(
                    f"changing the number of {kind} dimensions (from {old} to {new})"
                    " on a non-empty sparse tensor is not supported."
                )
        for kind, part in (("sparse", slice(sparse_dim)), ("dense", slice(sparse_dim, None))):
            before, after = a.shape[part], size[part]
            if any(m < n for n, m in zip(before, after)):
                raise RuntimeError(
                    f"shrinking the size of {kind} dimensions (from {list(before)} to "
                    f"{list(after)}) on a non-empty sparse tensor is not supported."
                )
    else:
        return sparse_resize_and_clear_(self, size, sparse_dim, dense_dim)
    values = a.values
    if a.shape[sparse_dim:] != size[sparse_dim:]:  # over the same memory, which grows
        values = xp_of(a).zeros((a.nnz, *size[sparse_dim:]), a.dtype)
        values.reshape(-1)[: a.values.size] = a.values.reshape(-1)
    self._array = SparseArray(a.indices, values, size, a.coalesced)
    bump(self)
    return self


def sparse_resize_and_clear_(self: Tensor, size: Any, sparse_dim: int, dense_dim: int) -> Tensor:
    """Another size without entries, in place."""
    a = _parts(self, "sparse_resize_and_clear_")
    _fit_dims(size, sparse_dim, dense_dim)
    self._array = arrays.empty(tuple(size), a.dtype, sparse_dim, xp_of(a))
    bump(self)
    return self


def _fit_dims(size: Sizes, sparse_dim: int, dense_dim: int) -> None:
    if len(size) != sparse_dim + dense_dim:
        raise RuntimeError(
            "'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = "
            f"{len(size)}, sparse_dim = {sparse_dim}, dense_dim = {dense_dim}"
        )


METHODS = (
    coo.to_sparse, coo.to_dense, to_sparse_coo, to_sparse_csr, to_sparse_csc, to_sparse_bsr,
    to_sparse_bsc, crow_indices, col_indices, ccol_indices, row_indices, coalesce, is_coalesced,
    indices, values, _indices, _values, _nnz, sparse_dim, dense_dim, coo.sparse_mask, _coalesced_,
    sparse_resize_, sparse_resize_and_clear_, smm, sspaddmm, qscheme,
)  # fmt: skip
for _method in METHODS:
    setattr(Tensor, _method.__name__, _method)
on_tensors(_dimI=sparse_dim, _dimV=dense_dim)
