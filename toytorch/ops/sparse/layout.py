"""Layouts of sparse tensors: views, which are copies here, selecting and joining."""

from __future__ import annotations

from typing import Any

import numpy as np

from toytorch.backends.sparse import SparseArray, xp_of
from toytorch.core.tensor import Tensor
from toytorch.facts.hints import Array, ArrayModule, Sizes
from toytorch.facts.size import wrap_dim
from toytorch.ops.sparse.kernels import is_sparse, kernel, need_sparse


@kernel("t")
def _t(a: SparseArray) -> SparseArray:
    if a.sparse_dim > 2 or a.dense_dim:
        raise RuntimeError(
            "t() expects a tensor with <= 2 sparse and 0 dense dimensions, but got "
            f"{a.sparse_dim} sparse and {a.dense_dim} dense dimensions"
        )
    return _permute(a, tuple(reversed(range(a.ndim))))


@kernel("transpose")
def _transpose(a: SparseArray, dim0: int, dim1: int) -> SparseArray:
    d0, d1 = wrap_dim(dim0, a.ndim), wrap_dim(dim1, a.ndim)
    if max(d0, d1, 0) >= a.sparse_dim and d0 != d1:
        raise RuntimeError(
            "sparse transpose: transposed dimensions must be sparse Got sparse_dim: "
            f"{a.sparse_dim}, d0: {d0}, d1: {d1}"
        )
    order = list(range(a.ndim))
    order[d0], order[d1] = d1, d0
    return _permute(a, tuple(order))


@kernel("permute")
def _permute(a: SparseArray, dims: tuple[int, ...]) -> SparseArray:
    if len(dims) != a.ndim:
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not "
            "match the length of the desired ordering of dimensions i.e. input.dim()"
            f" = {a.ndim} is not equal to len(dims) = {len(dims)}"
        )
    order = [wrap_dim(d, a.ndim) for d in dims]
    if len(set(order)) != a.ndim:
        raise RuntimeError("permute(sparse_coo): duplicate dims are not allowed.")
    n = a.sparse_dim
    if sorted(order[:n]) != list(range(n)):
        raise RuntimeError(
            "permute(sparse_coo): transpositions between sparse and dense dimensions are not "
            "allowed.Only transpositions within sparse and dense dimensions are supported."
        )
    same = order[:n] == list(range(n))
    values = a.values.transpose((0, *(d - n + 1 for d in order[n:])))
    return SparseArray(
        a.indices[order[:n]], values, [a.shape[d] for d in order], a.coalesced if same else None
    )


@kernel("unsqueeze")
def unsqueeze(a: SparseArray, dim: int) -> SparseArray:
    xp, d = xp_of(a), wrap_dim(dim, a.ndim + 1)
    shape = (*a.shape[:d], 1, *a.shape[d:])
    if d > a.sparse_dim:
        return SparseArray(
            a.indices, xp.expand_dims(a.values, d - a.sparse_dim + 1), shape, a.coalesced
        )
    row = xp.zeros((1, a.nnz), np.int64)
    return SparseArray(xp.concatenate([a.indices[:d], row, a.indices[d:]]), a.values, shape)


@kernel("expand")
def _expand(a: SparseArray, sizes: Sizes) -> SparseArray:
    raise RuntimeError("expand is unsupported for Sparse tensors")


def place_in(a: Any, d: int, index: int) -> int:
    """A place of a dimension, counted from the front. Raises IndexError for others."""
    n: int = a.shape[d]
    if not -n <= index < n:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(a.shape)} "
            f"at dimension {d}"
        )
    return index % n


@kernel("select")
def _select(a: SparseArray, dim: int, index: int) -> Any:
    """One place of a dimension; a dense array where no coordinates remain."""
    if not a.ndim:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    d = wrap_dim(dim, a.ndim)
    index = place_in(a, d, index)
    shape = a.shape[:d] + a.shape[d + 1 :]
    if d >= a.sparse_dim:
        return SparseArray(
            a.indices, a.values.take(index, d - a.sparse_dim + 1), shape, a.coalesced
        )
    kept = a.indices[d] == index
    if a.sparse_dim == 1:
        return a.values[kept].sum(0, dtype=a.dtype)
    xp = xp_of(a)
    others = xp.concatenate([a.indices[:d], a.indices[d + 1 :]])
    return SparseArray(others[:, kept], a.values[kept], shape)


@kernel("unbind")
def _unbind(a: SparseArray, dim: int) -> list[Any]:
    return [_select(a, dim, i) for i in range(a.shape[wrap_dim(dim, a.ndim)])]


@kernel("index_select")
def _index_select(a: SparseArray, dim: int, index: Any) -> SparseArray:
    a = need_sparse("index_select", a)
    xp, d = xp_of(a), wrap_dim(dim, a.ndim)
    if index.ndim != 1:
        raise IndexError(
            f"index_select(): Index is supposed to be a vector, but got {index.ndim} dimensions"
        )
    n = a.shape[d]
    wild = (index < -n) | (index >= n)
    if wild.any():
        raise IndexError(
            f"index_select(): index contains {int(index[wild][0])} that is out of "
            f"range for tensor of size {list(a.shape)} at dimension {d}"
        )
    index = xp.where(index < 0, index + n, index)
    shape = (*a.shape[:d], len(index), *a.shape[d + 1 :])
    if d >= a.sparse_dim:
        return SparseArray(
            a.indices, a.values.take(index, d - a.sparse_dim + 1), shape, a.coalesced
        )
    order = xp.argsort(a.indices[d], kind="stable")  # the entries of each place together
    ends = xp.searchsorted(a.indices[d][order], xp.arange(n + 1))
    new, entries = joined(xp, index, ends)
    entries = order[entries]
    indices = a.indices[:, entries]
    indices[d] = new
    return SparseArray(indices, a.values[entries], shape)


def joined(xp: ArrayModule, keys: Array | Tensor, ends: Array) -> tuple[Any, Any]:
    """All pairs (i, entry) where the entry belongs to group keys[i]; group k is
    ends[k]:ends[k + 1]."""
    counts = (ends[1:] - ends[:-1])[keys]
    left = xp.repeat(xp.arange(len(keys)), counts)
    starts = xp.cumsum(counts) - counts
    return left, xp.arange(len(left)) - starts[left] + ends[:-1][keys][left]


# -- several tensors ------------------------------------------------------------------------------


@kernel("cat")
def _cat(arrays: Any, dim: int = 0) -> SparseArray:
    first = arrays[0]
    for i, a in enumerate(arrays):
        if not is_sparse(a):
            raise RuntimeError(
                f"Concatenating sparse tensors, but a dense tensor was found at position {i}."
            )
    d = wrap_dim(dim, first.ndim)
    for i, a in enumerate(arrays):
        if [*a.shape[:d], *a.shape[d + 1 :]] != [*first.shape[:d], *first.shape[d + 1 :]]:
            raise RuntimeError(
                f"All tensors must have the same shape: {list(first.shape)} (except in the "
                f"concatenating dimension), but found shape: {list(a.shape)} at position {i}."
            )
        if a.sparse_dim != first.sparse_dim:
            raise RuntimeError(
                f"All tensors must have the same sparse_dim and dense_dim: {first.sparse_dim}, "
                f"{first.dense_dim}, but tensor at position {i} has {a.sparse_dim}, {a.dense_dim}."
            )
    xp, kind = xp_of(first), np.result_type(*(a.dtype for a in arrays))
    total, start = sum(a.shape[d] for a in arrays), 0
    shape = (*first.shape[:d], total, *first.shape[d + 1 :])
    indices, blocks = [], []
    for a in arrays:
        if d < a.sparse_dim:
            shifted = a.indices.copy()
            shifted[d] += start
            indices.append(shifted)
            blocks.append(a.values)
        else:
            wide = xp.zeros((a.nnz, *shape[a.sparse_dim :]), kind)
            at = (slice(None),) * (d - a.sparse_dim + 1) + (slice(start, start + a.shape[d]),)
            wide[at] = a.values
            indices.append(a.indices)
            blocks.append(wide)
        start += a.shape[d]
    values = xp.concatenate([b.astype(kind, copy=False) for b in blocks])
    return SparseArray(xp.concatenate(indices, 1), values, shape)


@kernel("stack")
def _stack(arrays: Any, dim: int = 0) -> SparseArray:
    if not all(is_sparse(a) for a in arrays):
        return _cat(arrays, dim)  # refuses it
    d = wrap_dim(dim, arrays[0].ndim + 1)
    return _cat([unsqueeze(a, d) for a in arrays], d)
