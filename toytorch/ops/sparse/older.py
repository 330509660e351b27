"""Sparse products under names from before sparse tensors shared those of dense ones."""

from __future__ import annotations

from typing import Any

from toytorch.backends.sparse import SparseArray, unsupported, xp_of
from toytorch.core.tensor import Tensor, wrap
from toytorch.core.write import refuse_leaf
from toytorch.facts.hints import Array, Scalar
from toytorch.ops.define import takes_words
from toytorch.ops.sparse.products import times_dense

ASKED = object()  # the default of what only a longer form of a call has


def _rows_of_product(a: SparseArray, b: Array) -> tuple[Array, Array]:
    """The rows of a·b in which a has entries, by number, and what stands in them."""
    xp = xp_of(a)
    rows = xp.unique(a.indices[0])
    return rows, times_dense(a, b)[rows]


@takes_words()
def sspaddmm(
    input: Tensor,
    mat1: Tensor,
    mat2: Tensor,
    *,
    beta: Scalar = 1,
    alpha: Scalar = 1,
    out: Tensor | None = None,
) -> Any:
    """beta·input + alpha·mat1·mat2 of sparse input and mat1, as a sparse tensor that is not coalesced.

    RuntimeError for tensors that are not sparse. Like `torch.sspaddmm`.

    >>> a = torch.eye(2).to_sparse()
    >>> torch.sspaddmm(a, a, torch.ones(2, 2)).to_dense()
    tensor([[2., 1.],
            [1., 2.]])
    """
    refuse_leaf("sspaddmm", out)
    if not (input.is_sparse and mat1.is_sparse and (out is None or out.is_sparse)):
        raise RuntimeError("tensor.sspaddmm(...) can only be called on sparse tensors")
    c, a = input._array, mat1._array
    xp = xp_of(a)
    rows, values = _rows_of_product(a, mat2._array)
    columns = mat2._array.shape[1]
    places = xp.stack([xp.repeat(rows, columns), xp.tile(xp.arange(columns), len(rows))])
    entries = xp.concatenate([c.values * beta, (values * alpha).reshape(-1)]).astype(c.dtype)
    made = wrap(SparseArray(xp.concatenate([c.indices, places], 1), entries, c.shape), input.dtype)
    return made if out is None else out.copy_(made)


@takes_words()
def smm(input: Tensor, mat2: Tensor) -> Any:
    """The sparse product of a sparse matrix and a dense one. Like `torch.smm`.

    >>> torch.smm(torch.eye(2).to_sparse(), torch.ones(2, 2)).to_dense()
    tensor([[1., 1.],
            [1., 1.]])
    """
    if not input.is_sparse:
        raise RuntimeError("tensor.sspaddmm(...) can only be called on sparse tensors")
    a = input._array
    xp = xp_of(a)
    nothing = SparseArray(
        xp.zeros((2, 0), "int64"), a.values[:0], (a.shape[0], mat2._array.shape[1])
    )
    return sspaddmm(wrap(nothing, input.dtype), input, mat2, beta=0)


@takes_words()
def hspmm(mat1: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Any:
    """The product of a sparse and a dense matrix, of which the rows that mat1 has are kept.

    NotImplementedError for dense tensors. Like `torch.hspmm`.

    >>> torch.hspmm(torch.eye(2).to_sparse(), torch.ones(2, 2)).to_dense()
    tensor([[1., 1.],
            [1., 1.]])
    """
    refuse_leaf("hspmm", out)
    if not mat1.is_sparse or not (out is None or out.is_sparse):
        raise NotImplementedError(unsupported("hspmm" if out is None else "hspmm.out", "CPU"))
    a = mat1._array
    rows, values = _rows_of_product(a, mat2._array)
    product = SparseArray(rows[None], values, (a.shape[0], mat2._array.shape[1]), True)
    made = wrap(product, mat1.dtype)
    return made if out is None else out.copy_(made)


hsmm = hspmm


@takes_words()
def native_norm(
    input: Tensor, p: Any = 2, dim: Any = ASKED, keepdim: Any = ASKED, dtype: Any = ASKED
) -> Any:
    """The norm of a sparse tensor's entries; NotImplementedError for dense ones. Its second form
    takes all five arguments.

    >>> torch.native_norm(torch.eye(4).to_sparse())
    tensor(2.)
    """
    given = [a is not ASKED for a in (dim, keepdim, dtype)]
    if any(given) and not all(given):
        raise TypeError("native_norm() received an invalid combination of arguments")
    if not input.is_sparse:
        raise NotImplementedError(unsupported("native_norm", "CPU"))
    return input.norm(p)
