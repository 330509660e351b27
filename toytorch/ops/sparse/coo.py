"""Making sparse tensors, reading their parts, and the ways to dense tensors and back.

The gradient of a sparse tensor is sparse wherever the op that needs it looks at stored entries
only: `to_dense`, `coalesce`, `values`, `torch.sparse.mm`. It then has an entry for each place that
the tensor has one for.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from toytorch.backends import base
from toytorch.backends.sparse import SparseArray, unsupported
from toytorch.core.op import Op
from toytorch.core.tensor import Tensor, wrap
from toytorch.facts.device import sparse_coo, strided
from toytorch.facts.hints import Array, ArrayModule, DType, Layout, Sizes
from toytorch.ops.define import in_own_type, relayout
from toytorch.ops.sparse.kernels import kernel, look_up, need_sparse

# -- records --------------------------------------------------------------------------------------


construct: Op = relayout(
    "_sparse_coo_tensor(Tensor indices, Tensor values, int[] size, bool? is_coalesced=None) "
    "-> Tensor",
    lambda xp, *parts: SparseArray(*parts),
    node="SparseCooTensorWithDimsAndTensorsBackward0",
    d_values=lambda g, indices: entries.function(g, indices),
    doc="A sparse tensor of places and values.",
)


def _entries(xp: ArrayModule, a: Array, indices: Array) -> Any:
    return look_up(a, indices)


entries: Op = in_own_type(
    "_sparse_entries(Tensor self, Tensor indices) -> Tensor",
    _entries,
    node="IndexBackward0",
    d_self=lambda g, indices, self_shape: construct.function(indices, g, tuple(self_shape)),
    doc="The elements, or blocks of them, at the places that columns of indices name.",
)
kernel("_sparse_entries")(look_up)


def _nothing_dense(xp: ArrayModule, a: Array, *rest: bool) -> Any:
    raise RuntimeError("expected sparse coordinate tensor layout but got Strided")


def _dense_gradient(g: Any, self: Any, masked_grad: bool) -> Any:
    if self._compressed:
        if masked_grad:
            return sparse_mask(g, self.detach())
        a = self._array
        return to_sparse(g, layout=a.layout, blocksize=a.blocksize, dense_dim=a.dense_dim or None)
    if not masked_grad:
        return g if g.is_sparse else to_sparse(g, self._array.sparse_dim)
    return sparse_mask(g, self.detach().coalesce())


dense = in_own_type(
    "to_dense(Tensor self, bool masked_grad=True) -> Tensor",
    _nothing_dense,
    forms="",
    d_self=_dense_gradient,
    doc="All elements in a dense tensor.",
)
kernel("to_dense")(lambda a, masked_grad: a.dense())


def _to_sparse(xp: ArrayModule, a: Array, sparse_dim: int | None) -> SparseArray:
    dims = a.ndim if sparse_dim is None else sparse_dim
    if not 0 <= dims <= a.ndim:
        raise RuntimeError(
            f"dense_to_sparse: sparse_dim argument must be in [0,{a.ndim}] range, "
            f"but {dims} is given"
        )
    if a.ndim and not dims:
        raise RuntimeError("dense_to_sparse: sparse_dim argument must be in >0 when self.dim()>0")
    if not a.ndim:
        return SparseArray(xp.empty((0, int(a != 0)), np.int64), a.reshape(1)[: int(a != 0)], ())
    full = (a != 0).any(tuple(range(dims, a.ndim))) if dims < a.ndim else a != 0
    places = full.nonzero()
    return SparseArray(xp.stack(places).astype(np.int64, copy=False), a[places], a.shape, True)


sparse = relayout(
    "to_sparse(Tensor self, int? sparse_dim=None) -> Tensor",
    _to_sparse,
    variant=lambda self, sparse_dim: 1 if sparse_dim is None else 0,
    d_self=lambda g: to_dense(g, masked_grad=False),
    doc="The non-zero elements by their places.",
)

coalesced = in_own_type(
    "coalesce(Tensor self) -> Tensor",
    _nothing_dense,
    forms="",
    d_self=lambda g: g,
    doc="The entries in order, those at one place added up.",
)
kernel("coalesce")(lambda a: a.coalesce())


def _at_entries(g: Any, self: Any, shape: Sizes) -> Any:
    """A gradient of the values, where the entries are."""
    if self._compressed:
        from toytorch.ops.sparse.compressed import with_values  # seldom needed

        return with_values(self, g)
    return construct.function(wrap(self._array.indices), g, shape, True)


stored = in_own_type(
    "values(Tensor self) -> Tensor",
    _nothing_dense,
    forms="",
    d_self=lambda g, self, self_shape: _at_entries(g, self, tuple(self_shape)),
    doc="The values of a coalesced tensor's entries.",
)
kernel("values")(lambda a: a.values)


def check_mask(a: Any, mask: Any) -> None:
    """Refuses a mask of another shape."""
    if a.shape != mask.shape:
        raise RuntimeError(
            "sparse_mask(): operands have incompatible sizes; self has size "
            f"{list(a.shape)} but mask has size {list(mask.shape)}"
        )


def _mask(a: SparseArray | Array, mask: SparseArray | Array) -> SparseArray:
    mask = need_sparse("sparse_mask", mask)
    check_mask(a, mask)
    return SparseArray(mask.indices, look_up(a, mask.indices), mask.shape, mask.coalesced)


def _mask_dense(xp: ArrayModule, a: Array, mask: Array) -> SparseArray:
    return _mask(a, mask)


masked = in_own_type(
    "sparse_mask(Tensor self, Tensor mask) -> Tensor",
    _mask_dense,
    forms="",
    d_self=lambda g, mask: to_dense(sparse_mask(g, mask), masked_grad=False),
    doc="The elements at the places where a sparse mask has entries.",
)
masked_sparse = in_own_type(
    "sparse_mask.sparse(Tensor self, Tensor mask) -> Tensor",
    _mask_dense,
    forms="",
    d_self=lambda g, mask: sparse_mask(g, mask),
    doc="`sparse_mask` of a sparse tensor.",
)
kernel("sparse_mask", "sparse_mask.sparse")(_mask)

# -- methods --------------------------------------------------------------------------------------


def to_sparse(
    self: Tensor,
    sparse_dim: int | None = None,
    *,
    layout: Layout | None = None,
    blocksize: Any = None,
    dense_dim: int | None = None,
) -> Tensor:
    """The tensor in coordinates; with sparse_dim, entries are blocks of the other dimensions.

    >>> Tensor([[0., 5.], [0., 0.]]).to_sparse()
    tensor(indices=tensor([[0],
                           [1]]),
           values=tensor([5.]),
           size=(2, 2), nnz=1, layout=torch.sparse_coo)
    """
    plain = self.layout is strided or self.is_sparse
    if blocksize is not None or not plain or layout not in (None, sparse_coo, strided):
        if sparse_dim is not None and layout is not None:
            raise TypeError("to_sparse() takes 0 positional arguments but 1 was given")
        from toytorch.ops.sparse.compressed import to_layout  # few programs need these layouts

        return to_layout(self, layout, blocksize, dense_dim, sparse_dim)
    if layout is strided:
        return to_dense(self)
    if dense_dim is not None and not self.is_sparse:
        sparse_dim = self.ndim - dense_dim
    if self.is_sparse:
        if sparse_dim is not None and sparse_dim != self._array.sparse_dim:
            raise RuntimeError(
                "to_sparse: conversion from Sparse to Sparse with sparse_dim "
                "argument !=self.sparse_dim() is not supported"
            )
        return self
    return sparse.function(self, sparse_dim)


def to_dense(
    self: Tensor, dtype: DType | None = None, *, masked_grad: bool | None = None
) -> Tensor:
    """All elements in a dense tensor; itself where it is dense.

    The gradient of a sparse tensor has entries at its places only, unless masked_grad is False.
    """
    if self.layout is strided:
        return self if dtype is None else self.to(dtype)
    if dtype is not None:
        raise RuntimeError("dtype argument is not supported by sparse_to_dense")
    return dense.function(self, masked_grad is None or masked_grad)


def sparse_mask(self: Tensor, mask: Tensor) -> Tensor:
    """The elements at the places where a sparse mask has entries."""
    op = masked if self.layout is strided else masked_sparse
    return op.function(self, mask)


kernel("_to_device")(
    lambda a, device, source, non_blocking: a.mapped(lambda part: moved(part, device))
)


def moved(array: Any, device: Any) -> Any:
    """A dense array on another device."""
    target = base.of_device(device)
    with target.on(device):
        return target.from_numpy(base.of_array(array).to_numpy(array))


def refused(name: str) -> Any:
    """A kernel for an op that PyTorch has for dense tensors only, under its own name."""

    def run(*args: SparseArray) -> Any:
        raise NotImplementedError(unsupported(name, "SparseCPU"))

    return run


for _name in ("eq", "ne", "gt", "ge", "lt", "le"):
    kernel(_name)(refused(_name + ".Tensor"))
kernel("mean")(refused("mean.dim"))
kernel("index")(refused("index.Tensor"))
