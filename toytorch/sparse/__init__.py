"""Functions on sparse tensors: `torch.sparse`.

Compressed layouts (`torch.sparse_csr` and its like) have conversions, clone and to; neg, sin and
the other functions with f(0) = 0; add, mul, sum; mm, mv, addmm; t, transpose, select.

Sparse tensors in coordinates (`torch.sparse_coo`) have

    torch.sparse_coo_tensor, to_sparse, to_dense, coalesce, indices, values, sparse_mask, clone,
    to, detach, zeros_like; neg, abs and the other functions with f(0) = 0; add, sub, mul,
    division by numbers, pow; sum, any, norm; mm, mv, bmm, addmm, matmul with dense and sparse;
    t, transpose, permute, unsqueeze, select, unbind, index_select, cat, stack

and the functions below. Other ops raise NotImplementedError. Zeros that are not stored count as
zeros, with two exceptions: in `sparse.softmax` they are minus infinity, and the gradients of the
functions below are kept for stored entries only.
"""

from __future__ import annotations

import importlib
from typing import Any

from toytorch.backends.sparse import unsupported
from toytorch.core.tensor import Tensor, as_dtype, wrap
from toytorch.facts import dtype as types
from toytorch.facts.device import layout_name, sparse_coo, sparse_csc, sparse_csr, strided
from toytorch.facts.hints import DType
from toytorch.facts.size import wrap_dim
from toytorch.ops.creation import create, from_data, ranges
from toytorch.ops.linalg import matmul
from toytorch.ops.shaping import rearrange as shape_ops
from toytorch.ops.sparse import products
from toytorch.ops.sparse import reduce as sparse_reduce
from toytorch.ops.sparse.create import check_sparse_tensor_invariants, sparse_coo_tensor

__all__ = [
    "addmm", "as_sparse_gradcheck", "check_sparse_tensor_invariants", "log_softmax", "mm", "sampled_addmm", "softmax",
    "spdiags", "sum",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name == "as_sparse_gradcheck":  # stands with what it extends, above this package
        return importlib.import_module("toytorch.autograd.sparse_gradcheck").as_sparse_gradcheck
    raise AttributeError(f"module 'torch.sparse' has no attribute '{name}'")


def mm(mat1: Tensor, mat2: Tensor, reduce: str | None = None) -> Tensor:
    """Matrix product in which a sparse operand gets a sparse gradient, at its own entries.

    >>> a = torch.tensor([[0., 2.], [0., 0.]]).to_sparse().requires_grad_()
    >>> torch.sparse.mm(a, torch.ones(2, 1)).sum().backward(); a.grad
    tensor(indices=tensor([[0],
                           [1]]),
           values=tensor([1.]),
           size=(2, 2), nnz=1, layout=torch.sparse_coo)
    """
    if reduce is not None:
        return _reduced(mat1, mat2, reduce)
    if mat2.ndim != 2 and mat1.layout not in (strided, sparse_coo):
        raise RuntimeError(f"mat2 must be a matrix, got {mat2.ndim}-D tensor")
    if mat1.layout is not strided and mat2.layout is not strided:
        return products.sparse_sparse.function(mat1, mat2)
    if mat2.layout is not strided:  # the sparse operand goes first
        return mm(mat2.t(), mat1.t()).transpose(0, 1)
    zero = create.zeros(mat1.shape[0], mat2.shape[-1], dtype=mat1.dtype, device=mat1.device)
    return addmm(zero, mat1, mat2, beta=0)


def _reduced(mat1: Tensor, mat2: Tensor, reduce: str) -> Tensor:
    """A product whose terms are not added up in each row but reduced; rows without entries are 0."""
    name = layout_name(mat1.layout)
    if mat1.layout in (strided, sparse_coo):
        place = "CPU" if mat1.layout is strided else "SparseCPU"
        # PyTorch's error: it reduces compressed rows alone.
        raise NotImplementedError(unsupported("_sparse_mm_reduce_impl", place))
    if mat1.layout is not sparse_csr:
        raise RuntimeError(f"sparse_mm_reduce: expect self to be SparseCsr, got {name}")
    if mat2.ndim != 2 or mat2.shape[0] != mat1.shape[1]:
        raise RuntimeError(
            f"Expected a tensor of dimension 2 and tensor.size[0] == {mat1.shape[1]} but got: "
            f"dimension {mat2.ndim} and tensor.size[0] = {mat2.shape[0]}"
        )
    if mat2.dtype is not mat1.dtype:
        raise RuntimeError(
            f"Expected tensor for argument #1 'other' to have scalar type {mat1.dtype.legacy}; but got "
            f"torch.{mat2.dtype.legacy}Tensor instead (while checking arguments for sparse_mm_reduce)"
        )
    if reduce == "prod":
        raise RuntimeError("sparse_mm_reduce: reduce type of prod has not been enabled.")
    reduce = f"a{reduce}" if reduce[:1] == "m" and len(reduce) == 3 else reduce  # of extremes
    counts = mat1.crow_indices().diff()
    rows = ranges.arange(mat1.shape[0], device=mat1.device).repeat_interleave(counts)
    terms = mat1.values().unsqueeze(-1) * mat2[mat1.col_indices()]
    zero = create.zeros(mat1.shape[0], mat2.shape[-1], dtype=terms.dtype, device=mat1.device)
    index = rows.unsqueeze(-1).expand(terms.shape)
    return zero.scatter_reduce(0, index, terms, reduce, include_self=False)


def addmm(mat: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: int = 1) -> Tensor:
    """beta·mat + alpha·mat1·mat2 with `mm`'s gradients."""
    op = matmul.addmm if mat1.layout is strided else products.sparse_addmm
    return op.function(mat, mat1, mat2, beta=beta, alpha=alpha)


def sampled_addmm(
    input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: int = 1, alpha: int = 1, out: Any = None
) -> Tensor:
    """beta·input + alpha·mat1·mat2, computed at the entries of input only.

    >>> places = torch.eye(2).to_sparse()
    >>> sampled_addmm(places, torch.ones(2, 3), torch.ones(3, 2)).values()
    tensor([4., 4.])
    """
    if input.layout is strided:
        raise NotImplementedError(unsupported("sparse_sampled_addmm", "CPU"))
    for name, m in (("mat1", mat1), ("mat2", mat2)):
        if m.layout is not strided or m.ndim != 2:
            raise RuntimeError(f"sampled_addmm: Expected {name} to be a dense matrix")
    if mat1.shape[1] != mat2.shape[0]:
        raise RuntimeError(
            f"sampled_addmm: mat1 and mat2 shapes cannot be multiplied "
            f"({mat1.shape[0]}x{mat1.shape[1]} and {mat2.shape[0]}x{mat2.shape[1]})"
        )
    for d, n in enumerate((mat1.shape[0], mat2.shape[1])):
        if input.shape[d] != n:
            raise RuntimeError(f"sampled_addmm: self.shape[{d}] must match mat{d + 1}.shape[{d}]")
    base = input.coalesce() if input.is_sparse else input
    made = products.sampled.function(mat1, mat2, base.detach())
    made = made if alpha == 1 else made * alpha
    if beta != 0:
        made = (base if beta == 1 else base * beta) + made
    return made if out is None else out.copy_(made)


def sum(input: Tensor, dim: Any = None, dtype: DType | None = None) -> Tensor:
    """Sum over dimensions, sparse where coordinates remain; gradients at the entries of input.

    >>> sum(torch.eye(2).to_sparse(), 0).to_dense()
    tensor([1., 1.])
    """
    if not input.is_sparse:
        raise NotImplementedError(unsupported("_indices", "CPU"))
    if dim is None:
        return input.coalesce().values().sum(dtype=dtype)
    if dtype is not None:
        input = input.to(as_dtype(dtype))
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    wrapped = [wrap_dim(d, input.ndim) for d in dims]
    for d in wrapped:
        if wrapped.count(d) > 1:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
    return sparse_reduce.dims_sum.function(input, dims)


def _softmax(name: str) -> Any:
    op = getattr(sparse_reduce, name)

    def function(input: Tensor, dim: int, *, dtype: DType | None = None) -> Tensor:
        if dtype is not None:
            input = input.to(as_dtype(dtype))
        return op.function(input, dim)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`{name}` along dim over the entries that are stored; others count as -∞."
    return function


softmax, log_softmax = _softmax("softmax"), _softmax("log_softmax")


def spdiags(diagonals: Tensor, offsets: Tensor, shape: Any, layout: Any = None) -> Tensor:
    """A sparse matrix with the rows of `diagonals` on its diagonals.

    >>> spdiags(torch.tensor([[1, 2, 3]]), torch.tensor([1]), (3, 3)).to_dense()
    tensor([[0, 2, 0],
            [0, 0, 3],
            [0, 0, 0]])
    """
    if layout not in (None, sparse_coo, sparse_csr, sparse_csc):
        raise RuntimeError(
            "Only output layouts (Sparse, SparseCsc, SparseCsr) are supported, got "
            f"{layout_name(layout)}"
        )
    if offsets.ndim > 1:
        raise RuntimeError("Offsets must be scalar or vector")
    if diagonals.ndim not in (1, 2):
        raise RuntimeError("Diagonals must be vector or matrix")
    if len(shape) != 2:
        raise RuntimeError("Output shape must be 2d")
    if offsets.dtype is not types.int64:
        raise RuntimeError(f"Offset Tensor must have dtype Long but got {offsets.dtype.legacy}")
    diagonals, offsets = diagonals.reshape(-1, diagonals.shape[-1]), offsets.reshape(-1)
    if len(offsets) != len(diagonals):
        raise RuntimeError(
            f"Number of diagonals ({len(diagonals)}) does not match the number of "
            f"offsets ({len(offsets)})"
        )
    n, m = shape
    steps = offsets._array[:, None]
    if len(set(offsets.tolist())) != len(offsets):
        raise RuntimeError("Offset tensor contains duplicate values")
    columns = from_data.tensor(range(diagonals.shape[1]))._array[None]
    rows = columns - steps
    inside = (rows >= 0) & (rows < n) & (columns < m)
    which, where = inside.nonzero()
    places = [wrap(rows[which, where]), wrap(where)]
    values = diagonals[wrap(which), wrap(where)]
    made = sparse_coo_tensor(shape_ops.stack.function(places), values, (n, m))
    return made if layout is None else made.to_sparse(layout=layout)


def to_sparse_semi_structured(original_tensor: Tensor, transposed: bool = False) -> Tensor:
    """For matrices of which two of four elements are zeros: cards alone compute with them."""
    if original_tensor.device.type != "cuda":
        raise RuntimeError(
            f"Error original_tensor.device= {original_tensor.device} is not supported! Only CUDA "
            "tensors are currently supported."
        )
    # They are cuSPARSELt's, of which CuPy has none.
    raise NotImplementedError("toytorch has no such kernels: use to_sparse_csr()")
