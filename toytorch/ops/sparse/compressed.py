"""Compressed sparse tensors: the records that make them, and the methods that read their parts.

The methods of Tensor in `ops.sparse.methods` import this module when one is first called on a
compressed tensor.
"""

from __future__ import annotations

from toytorch.backends.compressed import IN_BLOCKS, CompressedArray
from toytorch.backends.sparse import SparseArray
from toytorch.core.op import Op
from toytorch.core.tensor import Tensor, wrap
from toytorch.facts.device import layout as layout_class
from toytorch.facts.device import (
    layout_name,
    sparse_bsc,
    sparse_bsr,
    sparse_coo,
    sparse_csc,
    sparse_csr,
    strided,
)
from toytorch.facts.hints import Array, ArrayModule, Ints, Layout, Shape
from toytorch.ops.define import relayout
from toytorch.ops.sparse import compressed_kernels, coo
from toytorch.ops.sparse.compress import Stored, into
from toytorch.ops.sparse.kernels import kernel as coo_kernel

LAYOUTS = (sparse_csr, sparse_csc, sparse_bsr, sparse_bsc)


construct: Op = relayout(
    "_sparse_compressed_tensor(Tensor compressed_indices, Tensor plain_indices, Tensor values, "
    "int[] size, Layout layout) -> Tensor",
    lambda xp, *parts: CompressedArray(*parts),
    d_values=lambda g, result: coo.sparse_mask(g, result.detach()).values(),
    doc="A sparse tensor of ends of lines, places and values.",
)


def with_values(like: Tensor, values: Tensor) -> Tensor:
    """A tensor with the places of another and other values, to which gradients pass."""
    a = like._array
    return construct.function(wrap(a.ends), wrap(a.places), values, a.shape, a.layout)


def _conversion(name: str, node: str = "") -> Op:
    def run(
        xp: ArrayModule,
        a: Stored,
        layout: layout_class,
        blocksize: Ints | None,
        dense_dim: int | None,
    ) -> CompressedArray:
        return into(a, layout, blocksize, dense_dim)

    made = relayout(
        f"{name}(Tensor self, Layout layout, int[]? blocksize=None, int? dense_dim=None) -> Tensor",
        run,
        node=node,
        d_self=lambda g, self: as_operand(g, self),
        doc="The elements that are not zero, by rows or columns (of blocks).",
    )
    for kernel in (compressed_kernels.kernel, coo_kernel):
        kernel(name)(into)
    return made


def as_operand(g: Tensor, self: Tensor) -> Tensor:
    """A gradient in the layout of the tensor that was converted."""
    if self.layout is strided:
        return coo.to_dense(g, masked_grad=False)
    return to_layout(g, self.layout, self._array.blocksize if self._compressed else None)


CONVERSIONS = {layout: _conversion(f"_to_{layout.name}") for layout in LAYOUTS}
general = _conversion("to_sparse.layout", "ToSparseBackward1")


def _spread(xp: ArrayModule, a: Array) -> Array:
    raise RuntimeError("only compressed tensors are spread")


def _coordinates(a: CompressedArray) -> SparseArray:
    return a.coordinates()


to_coordinates: Op = relayout(
    "_compressed_to_coo(Tensor self) -> Tensor",
    _spread,
    node="ToSparseBackward1",
    d_self=lambda g, self: as_operand(g, self),
    doc="A compressed tensor in coordinates.",
)
compressed_kernels.kernel("_compressed_to_coo")(_coordinates)


def to_layout(
    self: Tensor,
    layout: Layout | None,
    blocksize: Shape | None = None,
    dense_dim: int | None = None,
    sparse_dim: int | None = None,
) -> Tensor:
    """`Tensor.to_sparse` where a compressed layout is given or wanted."""
    wanted = sparse_coo if layout is None else layout
    here = {strided: "dense", sparse_coo: "sparse_coo"}.get(self.layout, "sparse_compressed")
    what = f"{here}_to_sparse: conversion from {layout_name(self.layout)} to {layout_name(wanted)}"
    if wanted is strided:
        return coo.to_dense(self)
    size = None if not blocksize else tuple(blocksize)
    if size is not None and len(size) != 2 and wanted not in IN_BLOCKS:
        raise RuntimeError(
            f"{here}_to_sparse: blocksize needs to be a tuple of size 2, but got {len(size)}"
        )
    if wanted in IN_BLOCKS:
        if size is None and self.layout not in IN_BLOCKS:
            raise RuntimeError(f"{what} without blocksize argument given is not supported")
    elif size is not None:
        raise RuntimeError(f"{what} with blocksize argument given is not supported")
    if dense_dim is not None and self.layout is not strided and wanted is not self.layout:
        raise RuntimeError(f"{what} with dense_dim argument given is not supported")
    if wanted is sparse_coo:
        if sparse_dim not in (None, 2):
            raise RuntimeError(f"{what} with sparse_dim argument !=2 is not supported")
        made: Tensor = to_coordinates.function(self)
    elif wanted is self.layout and (size is None or size == self._array.blocksize):
        return self
    else:
        made = general.function(self, wanted, size, dense_dim)
    return made


def convert(
    self: Tensor, layout: layout_class, blocksize: Ints | None = None, dense_dim: int | None = None
) -> Tensor:
    """`to_sparse_csr` and the like."""
    if self.layout is layout and dense_dim is None and blocksize is None:
        return self
    return CONVERSIONS[layout].function(self, layout, blocksize, dense_dim)
