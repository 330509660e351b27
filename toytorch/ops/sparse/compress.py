"""Arrays with compressed rows or columns from dense arrays, from coordinates and from each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from toytorch.backends.compressed import BY_ROWS, IN_BLOCKS, TURNED, CompressedArray
from toytorch.backends.sparse import SparseArray, positions, xp_of
from toytorch.facts.device import layout as layout_class
from toytorch.facts.device import layout_name, sparse_coo
from toytorch.facts.hints import Array, ArrayModule, Ints

Stored = Array | SparseArray | CompressedArray


def into(
    a: Any, layout: layout_class, blocksize: Ints | None = None, dense_dim: int | None = None
) -> CompressedArray:
    """The array in a compressed layout; errors name the conversion as PyTorch does."""
    short = layout.name
    if a.__class__ is CompressedArray:
        if dense_dim is not None:
            raise RuntimeError(
                f"to_{short}: conversion from {layout_name(a.layout)} to {layout_name(layout)} "
                "with dense_dim argument given is not supported"
            )
        return between(a, layout, blocksize)
    size = checked_blocks(a, layout, blocksize, dense_dim)
    if a.__class__ is SparseArray:
        if a.sparse_dim != 2:
            raise RuntimeError(
                f"coo_to_{short}: conversion from Sparse to {layout_name(layout)} for input "
                "tensors with sparse_dim()!=2 is not supported"
            )
        return from_coordinates(a, layout, size)
    return from_dense(a, layout, size, dense_dim or 0)


def checked_blocks(
    a: Any, layout: layout_class, blocksize: Ints | None, dense_dim: int | None
) -> tuple[int, ...]:
    """The sizes of blocks, which must divide those of the matrices."""
    kind = {SparseArray: "coo", CompressedArray: "sparse_compressed"}.get(a.__class__, "dense")
    name = f"{kind}_to_{layout.name}"
    if a.ndim < 2:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [-{max(a.ndim, 1)}, "
            f"{max(a.ndim, 1) - 1}], but got {-2 if layout in IN_BLOCKS else 1})"
        )
    if dense_dim is not None and not 0 <= dense_dim <= a.ndim - 2:
        raise RuntimeError(
            f"{name}: dense_dim argument must be in [0,{a.ndim - 2}] range, but {dense_dim} "
            "is given"
        )
    if layout not in IN_BLOCKS:
        return ()
    size = (blocksize, blocksize) if isinstance(blocksize, int) else tuple(blocksize or ())
    if len(size) != 2:
        raise RuntimeError(f"{name}: blocksize needs to be a tuple of size 2, but got {len(size)}")
    if min(size) < 1:
        raise RuntimeError(f"{name}: blocksize needs to be positive, but got {list(size)}")
    first = a.ndim - (dense_dim or 0) - 2
    if a.__class__ is not np.ndarray and hasattr(a, "sparse_dim"):
        first = a.ndim - a.dense_dim - 2
    n, m = a.shape[first : first + 2]
    if n % size[0] or m % size[1]:
        raise RuntimeError(
            f"{name}: tensor sparse size ({n},{m}) must be divisible by given blocksize "
            f"({size[0]},{size[1]})"
        )
    return size


def from_dense(
    a: Array, layout: layout_class, block: tuple[int, ...], dense_dim: int
) -> CompressedArray:
    """The elements, blocks or dense parts that are not all zero."""
    lead = a.ndim - dense_dim - 2
    n, m = a.shape[lead : lead + 2]
    parts = a
    if block:  # (…, n, m, …) → (…, n / p, m / q, p, q, …)
        p, q = block
        n, m = n // p, m // q
        parts = a.reshape(*a.shape[:lead], n, p, m, q, *a.shape[lead + 2 :]).swapaxes(
            lead + 1, lead + 2
        )
    if layout not in BY_ROWS:
        parts, n, m = parts.swapaxes(lead, lead + 1), m, n
    xp = xp_of(a)
    full = parts != 0
    if full.ndim > lead + 2:
        full = full.any(tuple(range(lead + 2, full.ndim)))
    batch = a.shape[:lead]
    counts = full.sum(-1, dtype=np.int64)
    ends = xp.zeros((*batch, n + 1), np.int64)
    xp.cumsum(counts, axis=-1, out=ends[..., 1:])
    totals = ends[..., -1].reshape(-1)
    if totals.size and (totals != totals[0]).any():
        raise RuntimeError("Expect the same number of specified elements per batch.")
    nnz = int(totals[0]) if totals.size else 0
    places = full.nonzero()
    values = parts[places].reshape(*batch, nnz, *parts.shape[lead + 2 :])
    return CompressedArray(ends, places[-1].reshape(*batch, nnz), values, a.shape, layout)


def from_coordinates(
    a: SparseArray, layout: layout_class, block: tuple[int, ...] = ()
) -> CompressedArray:
    """The entries of matrices in coordinates, sorted by line."""
    a = a.coalesce()
    xp, (rows, columns) = xp_of(a), a.indices
    n, m = a.shape[:2]
    values = a.values
    if block:
        rows, columns, values = gathered(xp, a, block)
        n, m = n // block[0], m // block[1]
    by_rows = layout in BY_ROWS
    lines, places, count = (rows, columns, n) if by_rows else (columns, rows, m)
    if not by_rows:
        order = xp.argsort(positions(xp.stack([lines, places]), (m, n)), kind="stable")
        lines, places, values = lines[order], places[order], values[order]
    ends = xp.searchsorted(lines, xp.arange(count + 1)).astype(np.int64, copy=False)
    return CompressedArray(ends, places, values, a.shape, layout)


def gathered(xp: ArrayModule, a: SparseArray, block: tuple[int, ...]) -> tuple[Array, Array, Array]:
    """The blocks in which a matrix has entries, row by row: rows, columns, values of blocks."""
    p, q = block
    (rows, columns), width = a.indices, a.shape[1] // q
    number = (rows // p) * width + columns // q
    blocks, which = xp.unique(number, return_inverse=True)
    values = xp.zeros((len(blocks), p, q, *a.values.shape[1:]), a.dtype)
    values[which, rows % p, columns % q] = a.values
    return blocks // max(width, 1), blocks % max(width, 1), values


def between(a: CompressedArray, layout: layout_class, blocksize: Ints | None) -> CompressedArray:
    """One compressed layout in another."""
    if layout not in IN_BLOCKS and a.layout in IN_BLOCKS:
        raise RuntimeError(
            f"sparse_compressed_to_{layout.name}: expected SparseCsr or SparseCsc layout but got "
            f"{layout_name(a.layout)}"
        )
    if layout in IN_BLOCKS:
        held = a.blocksize
        size = held if blocksize is None else checked_blocks(a, layout, blocksize, None)
        if held and size != held:
            raise RuntimeError(
                f"to_{layout.name}: conversion from {layout_name(a.layout)} to "
                f"{layout_name(layout)} with blocksize changed from {list(held)} to {list(size)} "
                "is not supported"
            )
        if not held:
            return each_matrix(a, lambda c: from_coordinates(c, layout, size), layout)
    if layout is a.layout:
        return a
    if a.blocksize:  # blocks as they are, in the order of the other lines
        return each_matrix(a, None, layout)
    return each_matrix(a, lambda c: from_coordinates(c, layout), layout)


def each_matrix(
    a: CompressedArray,
    convert: Callable[[SparseArray], CompressedArray] | None,
    layout: layout_class,
) -> CompressedArray:
    """The matrices of a batch, each converted."""
    xp, batch = xp_of(a), a.ends.shape[:-1]
    shape = a.shape[len(batch) :]
    made = []
    for k in np.ndindex(*batch):
        one = CompressedArray(a.ends[k], a.places[k], a.values[k], shape, a.layout)
        made.append(reordered(one, layout) if convert is None else convert(one.coordinates()))
    if not batch:
        return made[0]
    if len({m.nnz for m in made}) > 1:
        raise RuntimeError("Expect the same number of specified elements per batch.")
    ends, places, values = (
        xp.stack([getattr(m, part) for m in made]) for part in ("ends", "places", "values")
    )
    ends, places, values = (v.reshape(*batch, *v.shape[1:]) for v in (ends, places, values))
    return CompressedArray(ends, places, values, a.shape, layout)


def reordered(a: CompressedArray, layout: layout_class) -> CompressedArray:
    """A matrix of blocks whose blocks are listed along the other dimension."""
    p, q = a.blocksize
    count = SparseArray(a.indices, a.values, (a.shape[0] // p, a.shape[1] // q), a.by_rows)
    lines = from_coordinates(count, layout)
    return CompressedArray(lines.ends, lines.places, lines.values, a.shape, layout)


def transposed(a: CompressedArray) -> CompressedArray:
    """The matrices transposed: the same lists, rows being columns, and each block transposed."""
    lead = a.batch_dim
    values = a.values.swapaxes(lead + 1, lead + 2) if a.blocksize else a.values
    shape = (*a.shape[:lead], a.shape[lead + 1], a.shape[lead], *a.shape[lead + 2 :])
    return CompressedArray(a.ends, a.places, values, shape, TURNED[a.layout])


def in_layout(a: Stored, layout: layout_class) -> Stored:
    """An array in coordinates, or compressed."""
    if layout is sparse_coo:
        return a.coordinates() if a.__class__ is CompressedArray else a
    return into(a, layout)
