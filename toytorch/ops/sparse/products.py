"""Products of sparse matrices.

A product with a dense matrix gathers the dense rows that the entries name, scales them and adds up
the runs that share a result row: O(nnz · columns). `mm` gives a sparse operand its full gradient,
which is dense; `torch.sparse.mm` only the part at its entries, from `_sampled_mm`.
"""

from __future__ import annotations

from typing import Any

from toytorch.backends.sparse import SparseArray, sum_runs, xp_of
from toytorch.core.tensor import Tensor
from toytorch.facts.device import strided
from toytorch.facts.dtype import from_numpy_dtype
from toytorch.facts.hints import Array, ArrayModule
from toytorch.facts.size import broadcast_pair
from toytorch.ops.define import internal
from toytorch.ops.linalg.matmul import addmm, check_factors, check_stacks, scaled
from toytorch.ops.sparse.kernels import is_sparse, kernel, need_sparse
from toytorch.ops.sparse.layout import joined

CROWDED = 8  # with more than 1 entry in so many places, the dense product is faster


def _check(a: Any, b: Any, what: str = "addmm") -> None:
    """Refuses operands that are no matrices, do not fit or have two types."""
    for m in (a, b):
        if is_sparse(m) and m.sparse_dim != 2:
            raise RuntimeError(f"{what}: matrices expected, got {m.sparse_dim}D tensor")
        if m.ndim != 2:
            raise IndexError(
                "Dimension out of range (expected to be in range of "
                f"[-{m.ndim}, {m.ndim - 1}], but got 1)"
            )
    if a.shape[1] != b.shape[0]:
        if is_sparse(a) and not is_sparse(b):
            raise RuntimeError(
                f"{what}: Argument #3 (dense): Expected dim 0 size {a.shape[1]}, got {b.shape[0]}"
            )
        check_factors(a, b)
    if a.dtype != b.dtype:
        raise RuntimeError(
            f"expected scalar type {from_numpy_dtype(a.dtype).legacy} but found "
            f"{from_numpy_dtype(b.dtype).legacy}"
        )


def times_dense(a: SparseArray, b: Any) -> Any:
    """Sparse (n, m) times dense (m, k)."""
    xp = xp_of(a)
    if a.nnz * CROWDED > a.shape[0] * a.shape[1]:
        return xp.matmul(a.dense(), b)
    made = xp.zeros((a.shape[0], b.shape[1]), a.dtype)
    if not a.nnz:
        return made
    rows, columns, values = a.indices[0], a.indices[1], a.values
    if not a.coalesced:
        order = xp.argsort(rows, kind="stable")
        rows, columns, values = rows[order], columns[order], values[order]
    terms = b[columns]
    terms *= values[:, None]
    first = xp.ones(len(rows), bool)
    first[1:] = rows[1:] != rows[:-1]
    made[rows[first]] = sum_runs(xp, terms, first)
    return made


def product(a: Any, b: Any) -> Any:
    """The product of two matrices, of which one at least is sparse."""
    _check(a, b)
    if is_sparse(a) and is_sparse(b):
        return times_sparse(a, b)
    if is_sparse(a):
        return times_dense(a, b)
    return times_dense(SparseArray(b.indices[::-1], b.values, b.shape[::-1]), a.T).T


def times_sparse(a: SparseArray, b: SparseArray) -> SparseArray:
    """Sparse times sparse: each entry (i, k) of one meets row k of the other."""
    xp, b = xp_of(a), b.coalesce()
    ends = xp.searchsorted(b.indices[0], xp.arange(b.shape[0] + 1))
    left, right = joined(xp, a.indices[1], ends)
    places = xp.stack([a.indices[0][left], b.indices[1][right]])
    shape = (a.shape[0], b.shape[1])
    return SparseArray(places, a.values[left] * b.values[right], shape, False).coalesce()


kernel("mm")(product)


@kernel("mv")
def _mv(a: Any, v: Array) -> Any:
    a = need_sparse("mv", a)
    if a.ndim != 2 or v.ndim != 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got {v.ndim}, {a.ndim}, {v.ndim}")
    if a.shape[1] != v.shape[0]:
        raise RuntimeError("mv: expected self.size(-1) == vec.size(-1)")
    return product(a, v[:, None])[:, 0]


@kernel("addmm", "_sparse_addmm")
def _addmm(c: Array, a: Any, b: SparseArray | Array, beta: float, alpha: float) -> Any:
    if is_sparse(c):
        raise RuntimeError("addmm: expected 'self' to be dense, but it is sparse")
    made = product(a, b)
    if is_sparse(made):
        made = made.dense()
    if broadcast_pair(c.shape, made.shape) != made.shape:
        raise RuntimeError(
            f"The expanded size of the tensor {list(made.shape)} does not hold {list(c.shape)}"
        )
    made = made if alpha == 1 else made * made.dtype.type(alpha)
    return made if beta == 0 else made + (c if beta == 1 else c * c.dtype.type(beta))


@kernel("linear")
def _linear(bias: Tensor, x: Any, weight: Tensor) -> Any:
    return product(x, weight.T) + bias


@kernel("bmm")
def _bmm(a: Any, b: Any) -> Any:
    """A batch of products, as one product with a matrix of blocks on the diagonal."""
    a = need_sparse("bmm", a)
    check_stacks(a, b)
    batch, n, m = a.shape
    xp, which = xp_of(a), a.indices[0]
    blocks = SparseArray(
        xp.stack([which * n + a.indices[1], which * m + a.indices[2]]),
        a.values,
        (batch * n, batch * m),
    )
    return times_dense(blocks, b.reshape(batch * m, -1)).reshape(batch, n, -1)


# -- torch.sparse.mm, addmm and sampled_addmm -----------------------------------------------------


def _plain(
    xp: ArrayModule, c: Array, a: SparseArray, b: SparseArray, beta: float, alpha: int
) -> Any:
    return addmm.kernel_on(xp)(c, a, b, beta, alpha)


def _left_share(g: Tensor, mat1: Tensor, mat2: Tensor, alpha: int) -> Any:
    if mat1.layout is strided:
        return scaled(g.mm(mat2.t()), alpha)
    if mat2.layout is not strided:
        return scaled(_at(g.mm(mat2.t()), mat1), alpha)
    return scaled(sampled.function(g, mat2.t(), places_of(mat1)), alpha)


def places_of(operand: Tensor) -> Tensor:
    """A sparse operand as a mask: each place once."""
    mask = operand.detach()
    return mask.coalesce() if mask.is_sparse else mask


sparse_addmm = internal(
    "_sparse_addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) "
    "-> Tensor",
    _plain,
    d_self=lambda g, beta: scaled(g, beta),
    d_mat1=_left_share,
    d_mat2=lambda g, mat1, alpha: scaled(mat1.t().mm(g), alpha),
    doc="beta·self + alpha·mat1·mat2, where the gradient of a sparse mat1 is sparse.",
)


@kernel("_sampled_mm")
def _sampled(a: Any, b: Any, mask: SparseArray | Array) -> SparseArray:
    mask = need_sparse("sparse_sampled_addmm", mask)
    rows, columns = mask.indices
    xp = xp_of(mask)
    dots = xp.einsum("nk,nk->n", a[rows], b.T[columns])
    return mask.with_values(dots.astype(mask.dtype, copy=False))


sampled = internal(
    "_sampled_mm(Tensor mat1, Tensor mat2, Tensor mask) -> Tensor",
    lambda xp, a, b, mask: _sampled(a, b, mask),
    d_mat1=lambda g, mat2, mask: g.sparse_mask(mask).mm(mat2.t()),
    d_mat2=lambda g, mat1, mask: g.sparse_mask(mask).t().mm(mat1).t(),
    node="SparseSampledAddmmBackward0",
    doc="The elements of a product at the places where a sparse mask has entries.",
)


sparse_sparse = internal(
    "_sparse_sparse_matmul(Tensor self, Tensor other) -> Tensor",
    lambda xp, a, b: xp.matmul(a, b),
    d_self=lambda g, self, other: _at(g.mm(other.t()), self),
    d_other=lambda g, self, other: _at(self.t().mm(g), other),
    doc="A product of two sparse matrices, whose gradients have entries where they have.",
)
kernel("_sparse_sparse_matmul")(product)


def _at(g: Tensor, operand: Any) -> Any:
    return g.sparse_mask(places_of(operand))
