"""What ops do on compressed sparse tensors: the table of `backends.compressed`.

Sums and products of two go by the coordinates, as those of `torch.sparse_coo`; results that are
sparse are compressed again.
"""

from __future__ import annotations

from typing import Any, TypeGuard

from toytorch.backends.compressed import BY_ROWS, IN_BLOCKS, CompressedArray, backend
from toytorch.backends.sparse import TABLES, SparseArray, positions, unsupported, xp_of
from toytorch.core.op import Op
from toytorch.facts.device import layout_name, sparse_csr, strided
from toytorch.facts.dtype import from_numpy_dtype
from toytorch.facts.hints import Array, DType, Ints, Sizes
from toytorch.facts.size import wrap_dim
from toytorch.ops.linalg.matmul import check_factors, check_vector
from toytorch.ops.reductions import reduce as reductions
from toytorch.ops.sparse import coo, kernels, layout, products, reduce
from toytorch.ops.sparse.compress import Stored, in_layout, into, transposed
from toytorch.ops.sparse.kernels import Kernel, entering

WHERE = "SparseCsrCPU"


kernel = entering(backend.kernels)


def refuse(op: Op) -> Kernel:
    """What an op without a kernel raises."""

    def run(*args: Any) -> Any:
        if op.kind != "pointwise":
            raise NotImplementedError(unsupported(op.name, WHERE))
        kind = next(a.layout for a in args if a.__class__ is CompressedArray)
        raise RuntimeError(f"unsupported tensor layout: {layout_name(kind)}")

    return run


backend.xp.refuse = refuse


def is_compressed(a: object) -> TypeGuard[CompressedArray]:
    """Whether an array is a compressed one."""
    return a.__class__ is CompressedArray


def is_sparse(a: Any) -> bool:
    """Whether an array is sparse in any layout."""
    return a.__class__ in TABLES


def plain(a: Stored) -> Any:
    """A compressed array in coordinates; others as they are."""
    return a.coordinates() if is_compressed(a) else a


def like(made: SparseArray, a: CompressedArray) -> CompressedArray:
    """A result in coordinates, in the layout of an operand."""
    return into(made, a.layout, a.blocksize or None)


# -- one operand ----------------------------------------------------------------------------------

kernel("to_dense")(lambda a, masked_grad: a.dense())
kernel("values")(lambda a: a.values)
kernel("alias")(lambda a: a.with_values(a.values))
kernel("clone")(lambda a, memory_format: a.copy())
kernel("zero")(lambda a: a.without_entries(a.dtype))
kernel("fill")(lambda a, value: a.with_values(xp_of(a).full_like(a.values, value)))
kernel("_to_device")(
    lambda a, device, source, non_blocking: a.mapped(lambda part: coo.moved(part, device))
)


@kernel("expand")
def _expand(a: CompressedArray, sizes: Sizes) -> Any:
    raise RuntimeError(f"expand is unsupported for {layout_name(a.layout)} tensors")


@kernel("copy")
def _copy(a: Any, source: Any, non_blocking: bool) -> CompressedArray:
    if not (is_compressed(a) and is_compressed(source) and a.layout is source.layout):
        here, there = (layout_name(getattr(x, "layout", strided)) for x in (a, source))
        raise RuntimeError(
            "copy of sparse compressed tensors having different layouts is not supported, self "
            f"layout is {here} and src layout is {there}"
        )
    if a.nnz != source.nnz:
        raise RuntimeError(
            "copy of sparse compressed tensors having different number of specified elements is "
            f"not supported, self has {a.nnz} but src has {source.nnz}"
        )
    return source.copy().astype(a.dtype)


@kernel("sum")
def _sum(a: CompressedArray, dim: Ints | None, keepdim: bool, dtype: DType | None) -> Any:
    if dim is None:
        kind = reductions.sum_type(a.values, dtype)
        return xp_of(a).asarray(a.values.sum(dtype=kind))
    if not keepdim:
        raise RuntimeError("reduction operations on CSR tensors with keepdim=False is unsupported")
    made = reduce._sum(a.coordinates(), dim, True, dtype)
    return into(made, a.layout)


# -- views, which are copies ----------------------------------------------------------------------


@kernel("t")
def _t(a: CompressedArray) -> CompressedArray:
    if a.ndim != 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {a.ndim}D")
    return transposed(a)


@kernel("transpose")
def _transpose(a: CompressedArray, dim0: int, dim1: int) -> CompressedArray:
    d0, d1 = wrap_dim(dim0, a.ndim), wrap_dim(dim1, a.ndim)
    if d0 == d1:
        return a

    def kind(d: int) -> str:
        lead = a.batch_dim
        return "Batch" if d < lead else "Sparse" if d < lead + 2 else "Dense"

    if kind(d0) != kind(d1):
        raise RuntimeError(
            "transpose(): can only transpose dimensions of the same type (Batch, Sparse, Dense), "
            f"got {d0}({kind(d0)}) and {d1}({kind(d1)})"
        )
    if kind(d0) == "Sparse":
        return transposed(a)
    if kind(d0) == "Dense":
        raise RuntimeError("transpose(): hybrid sparse compressed tensors with dense dimensions")
    ends, places, values = (p.swapaxes(d0, d1) for p in (a.ends, a.places, a.values))
    shape = list(a.shape)
    shape[d0], shape[d1] = shape[d1], shape[d0]
    return CompressedArray(ends, places, values, shape, a.layout)


@kernel("select")
def _select(a: CompressedArray, dim: int, index: int) -> Any:
    """One matrix of a batch; else a row or column, in coordinates."""
    d, lead = wrap_dim(dim, a.ndim), a.batch_dim
    index = layout.place_in(a, d, index)
    if d < lead:
        shape = a.shape[:d] + a.shape[d + 1 :]
        ends, places, values = (p.take(index, d) for p in (a.ends, a.places, a.values))
        return CompressedArray(ends, places, values, shape, a.layout)
    return layout._select(a.coordinates(), d, index)


@kernel("unbind")
def _unbind(a: CompressedArray, dim: int) -> list[Any]:
    return [_select(a, dim, i) for i in range(a.shape[wrap_dim(dim, a.ndim)])]


# -- two operands ---------------------------------------------------------------------------------


def _one_layout(a: CompressedArray, b: CompressedArray) -> None:
    if a.layout is not b.layout:
        line = "row" if a.layout in BY_ROWS else "column"
        name = "crow_indices" if line == "row" else "ccol_indices"
        raise RuntimeError(
            f"{name} expected sparse {line} compressed tensor layout but got "
            f"{layout_name(b.layout)}"
        )


@kernel("add")
def _add(a: Any, b: Any, alpha: float = 1) -> Stored:
    """self + alpha·other; with a dense operand the sum is dense."""
    if is_sparse(a) and is_sparse(b):
        if not (is_compressed(a) and is_compressed(b)):
            raise RuntimeError("Expected both operands to be of one sparse layout")
        _one_layout(a, b)
        if a.shape != b.shape:
            raise RuntimeError(
                f"torch.add: Expected input tensors to have the same shape, but got tensor `self` "
                f"with shape {list(a.shape)} and tensor `other` with shape {list(b.shape)}"
            )
        return like(kernels._add(plain(a), plain(b), alpha), a)
    if is_compressed(a) and a.shape == b.shape:
        return a.dense() + (b if alpha == 1 else b * b.dtype.type(alpha))
    if is_compressed(a):
        raise RuntimeError(f"unsupported tensor layout: {layout_name(a.layout)}")
    return kernels._add(a, plain(b), alpha)


@kernel("mul")
def _mul(a: Any, b: Any) -> CompressedArray:
    """The product, at the places where both operands have entries."""
    if not is_compressed(a):
        a, b = b, a
    if is_compressed(b):
        _one_layout(a, b)
        x, y = plain(a), plain(b).coalesce()
        xp, sizes = xp_of(x), x.shape[: x.sparse_dim]
        shared = xp.isin(positions(x.indices, sizes), positions(y.indices, sizes))
        x = SparseArray(x.indices[:, shared], x.values[shared], x.shape, x.coalesced)
        return like(kernels._mul(x, y), a)
    if b.ndim == 0:
        return a.with_values(a.values * b[()])
    if b.shape != a.shape or a.blocksize:
        raise RuntimeError(f"unsupported tensor layout: {layout_name(a.layout)}")
    found = kernels.look_up(b, a.indices).reshape(a.values.shape)
    return a.with_values(a.values * found)


@kernel("sparse_mask", "sparse_mask.sparse")
def _mask(a: Any, mask: Any) -> CompressedArray:
    if not is_compressed(mask):
        raise RuntimeError(
            "sparse_mask_sparse_compressed expects mask to have sparse compressed layout, got "
            f"{layout_name(getattr(mask, 'layout', strided))}"
        )
    coo.check_mask(a, mask)
    if is_compressed(a) and mask.blocksize == a.blocksize:
        found = kernels.look_up(SparseArray(a.indices, flat_values(a), cells(a)), mask.indices)
    else:
        dense = a.dense() if is_sparse(a) else a
        found = blocks_at(dense, mask)
    return mask.with_values(found.reshape(mask.values.shape))


def flat_values(a: CompressedArray) -> Array:
    """The values with one dimension for all entries of all matrices."""
    return a.values.reshape(-1, *a.values.shape[a.batch_dim + 1 :])


def cells(a: CompressedArray) -> tuple[int, ...]:
    """The shape in which entries have places: that of the batch, and of the matrix of blocks."""
    lead, (p, q) = a.batch_dim, a.blocksize or (1, 1)
    sizes = (*a.shape[:lead], a.shape[lead] // p, a.shape[lead + 1] // q)
    return sizes + tuple(a.values.shape[lead + 1 :])


def blocks_at(dense: Array, mask: CompressedArray) -> Array:
    """The elements of a dense array, or its blocks, at the places of a compressed one."""
    if mask.blocksize:
        lead, (p, q) = mask.batch_dim, mask.blocksize
        n, m = mask.shape[lead : lead + 2]
        dense = dense.reshape(
            *mask.shape[:lead], n // p, p, m // q, q, *mask.shape[lead + 2 :]
        ).swapaxes(lead + 1, lead + 2)
    return dense[tuple(mask.indices)]


# -- products -------------------------------------------------------------------------------------


def _fits(a: Any, b: Any, result: str) -> None:
    """Refuses products that PyTorch has no kernel for."""
    kinds = [layout_name(getattr(m, "layout", strided)) for m in (a, b)]
    mixed = SparseArray in (a.__class__, b.__class__)
    blocks = is_compressed(b) and b.layout in IN_BLOCKS
    if mixed or blocks or (is_compressed(b) and kinds[0] in ("SparseBsr", "SparseBsc")):
        raise RuntimeError(
            f"addmm: computation on CPU is not implemented for {result} + {kinds[0]} @ {kinds[1]}"
        )
    for m in (a, b):
        if m.ndim != 2:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [-2, 1], but got {m.ndim})"
            )
    check_factors(a, b)
    if a.dtype == b.dtype and a.dtype.kind not in "fc":
        name = from_numpy_dtype(a.dtype).legacy
        raise NotImplementedError(f"\"addmm_out_sparse_csr_impl_mkl\" not implemented for '{name}'")


@kernel("mm", "_sparse_sparse_matmul")
def _mm(a: Any, b: Any) -> Any:
    sparse = is_sparse(a) and is_sparse(b)
    _fits(a, b, "SparseCsr" if sparse else "Strided")
    made = products.product(plain(a), plain(b))
    return in_layout(made, sparse_csr) if sparse else made


@kernel("mv")
def _mv(a: Any, v: Array) -> Array:
    if a.ndim != 2 or v.ndim != 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got {v.ndim}, {a.ndim}, {v.ndim}")
    check_vector(a, v)
    return products.product(plain(a), v[:, None])[:, 0]


@kernel("addmv")
def _addmv(c: Array, a: Any, v: Array, beta: float, alpha: float) -> Array:
    made = _mv(a, v)
    made = made if alpha == 1 else made * made.dtype.type(alpha)
    return made if beta == 0 else made + c * made.dtype.type(beta)


@kernel("addmm", "_sparse_addmm")
def _addmm(c: Any, a: Any, b: Any, beta: float, alpha: float) -> Any:
    if not is_compressed(c):
        _fits(a, b, "Strided")
        return products._addmm(c, plain(a), plain(b), beta, alpha)
    made = _mm(a, b)
    if made.__class__ not in TABLES:
        raise RuntimeError("addmm: a sparse result needs sparse factors")
    made = made.with_values(made.values * made.dtype.type(alpha))
    return like(kernels._add(plain(made), plain(c), beta), c)


@kernel("linear")
def _linear(bias: Array, x: Any, weight: Any) -> Array:
    return _mm(x, transposed(weight) if is_compressed(weight) else weight.T) + bias


@kernel("_sampled_mm")
def _sampled(a: Array, b: Array, mask: Any) -> CompressedArray:
    if mask.layout is not sparse_csr and mask.blocksize:
        return _mask(xp_of(mask).matmul(a, b), mask)
    indices = mask.indices
    dots = products._sampled(a, b, SparseArray(indices, flat_values(mask), mask.shape))
    return mask.with_values(dots.values.reshape(mask.values.shape))
