"""What existing ops do on sparse tensors: elementwise ops, views (which are copies here), joining.

`toytorch.backends.sparse` looks kernels up in the table that this module and its neighbours fill;
they are functions of the op's arguments, in which tensors are SparseArrays or dense arrays.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from toytorch.backends.sparse import SparseArray, backend, empty, positions, unsupported, xp_of
from toytorch.core.op import registry
from toytorch.core.size import broadcast_pair, wrap_dim
from toytorch.ops import reduce

Kernel = Callable[..., Any]
K = TypeVar("K", bound=Kernel)


def kernel(*names: str) -> Callable[[K], K]:
    """Enters a function in the table as the sparse kernel of the named ops."""
    def enter(function: K) -> K:
        for name in names:
            backend.kernels[name] = function
        return function
    return enter


def is_sparse(a: Any) -> bool:
    """Whether an array is a sparse one."""
    return a.__class__ is SparseArray


def need_sparse(name: str, a: Any) -> SparseArray:
    """The operand, which must be sparse."""
    if a.__class__ is not SparseArray:
        raise NotImplementedError(unsupported(name, "CPU"))
    found: SparseArray = a
    return found


# -- one operand ----------------------------------------------------------------------------------

ZERO_PRESERVING = (
    "abs", "asin", "asinh", "atan", "atanh", "ceil", "deg2rad", "erf", "erfinv", "expm1", "floor",
    "frac", "isinf", "isnan", "isneginf", "isposinf", "log1p", "nan_to_num", "rad2deg", "relu",
    "round", "sgn", "sign", "signbit", "sin", "sinh", "sqrt", "square", "tan", "tanh", "trunc")
backend.xp.by_value.update(ZERO_PRESERVING)


def _linear_in_values(name: str) -> Kernel:
    """An op that may run on the values as they are, for f(a + b) = f(a) + f(b)."""
    def run(a: SparseArray, *rest: Any) -> SparseArray:
        return a.with_values(registry[name].kernel_on(xp_of(a))(a.values, *rest))
    return run


for _name in ("neg", "conj_physical", "_to_copy", "real", "imag"):
    kernel(_name)(_linear_in_values(_name))


@kernel("clone")
def _clone(a: SparseArray, memory_format: Any) -> SparseArray:
    if memory_format is not None and memory_format.name != "preserve_format":
        raise RuntimeError("unsupported memory format option "
                           + memory_format.name.title().split("_")[0])
    return a.copy()


@kernel("alias")
def _alias(a: SparseArray) -> SparseArray:
    return a.with_values(a.values)


@kernel("copy")
def _copy(a: Any, source: Any, non_blocking: bool) -> SparseArray:
    if not (is_sparse(a) and is_sparse(source)):
        raise RuntimeError("copy_() between dense and sparse Tensors is not implemented!")
    made: SparseArray = source.copy().astype(a.dtype)
    return made


@kernel("fill")
def _fill(a: SparseArray, value: Any) -> Any:
    raise NotImplementedError(unsupported("fill_.Scalar", "SparseCPU"))


@kernel("zero")
def _zero(a: SparseArray) -> SparseArray:
    return empty(a.shape, a.dtype, a.sparse_dim, xp_of(a))


@kernel("any")
def _any(a: SparseArray, dim: Any, keepdim: bool) -> Any:
    if dim is not None:
        raise NotImplementedError(unsupported("any.dim", "SparseCPU"))
    return xp_of(a).asarray(a.coalesce().values.any())


@kernel("pow")
def _pow(a: Any, exponent: Any) -> SparseArray:
    if not is_sparse(a) or is_sparse(exponent) or exponent.ndim:
        raise NotImplementedError(unsupported("pow.Tensor_Tensor", "SparseCPU"))
    if exponent == 0:
        raise RuntimeError("pow: cannot raise to zeroth power on sparse tensor; it would make the "
                           "result tensor dense")
    a = a.coalesce()
    made: SparseArray = a.with_values(registry["pow"].kernel_on(xp_of(a))(a.values, exponent))
    return made


# -- two operands ---------------------------------------------------------------------------------


@kernel("add")
def _add(a: Any, b: Any, alpha: Any = 1) -> Any:
    """self + alpha·other; entries of uncoalesced operands are listed one after the other."""
    if not is_sparse(b) or (is_sparse(a) != is_sparse(b) and not a.ndim):
        raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
    xp = xp_of(b)
    share = b.values if alpha == 1 else b.values * b.dtype.type(alpha)
    if not is_sparse(a):
        return _add_to_dense(xp, a, b.with_values(share))
    if a.shape != b.shape:
        raise RuntimeError("add: expected sizes of 'self' and 'other' to match, but "
                           f"{list(a.shape)} != {list(b.shape)}")
    if a.sparse_dim != b.sparse_dim:
        raise RuntimeError("add: expected 'self' and 'other' to have same density, but 'self' has "
                           f"{a.sparse_dim} sparse dimensions while 'other' has {b.sparse_dim} "
                           "sparse dimensions")
    both = SparseArray(xp.concatenate([a.indices, b.indices], 1),
                       xp.concatenate([a.values, share]), a.shape, False)
    return both.coalesce() if a.coalesced and b.coalesced else both


def _add_to_dense(xp: Any, a: Any, b: SparseArray) -> Any:
    if a.shape != b.shape:
        raise RuntimeError("add: expected 'self' and 'other' to have same size, but self has size "
                           f"{list(a.shape)} while other has size {list(b.shape)} (FYI: "
                           "dense-sparse addition does not currently support broadcasting)")
    b = b.coalesce()
    made = a.copy()
    if b.nnz:
        made[tuple(b.indices)] += b.values if b.sparse_dim else b.values[0]
    return made


@kernel("sub")
def _sub(a: Any, b: Any, alpha: Any = 1) -> Any:
    if not is_sparse(b):
        return _add(a, b)  # refuses it
    return _add(a, b.with_values(-b.values), alpha)


@kernel("mul")
def _mul(a: Any, b: Any) -> SparseArray:
    """The product: zero wherever a sparse operand is."""
    if is_sparse(a) and is_sparse(b):
        return _mul_sparse(a, b)
    if not is_sparse(a):
        a, b = b, a
    if b.ndim == 0:
        scaled: SparseArray = a.with_values(a.values * b)
        return scaled
    shape = broadcast_pair(a.shape, b.shape)
    wide = spread(a, shape)
    factors = xp_of(a).broadcast_to(b, shape)[tuple(wide.indices)]
    if not wide.sparse_dim:
        factors = factors[None]
    return wide.with_values(wide.values * factors)


def spread(a: SparseArray, shape: tuple[int, ...]) -> SparseArray:
    """A sparse array broadcast to a shape: its entries repeated."""
    if a.shape == shape:
        return a
    xp, lead = xp_of(a), len(shape) - a.ndim
    indices, values = a.indices, a.values
    if lead:
        places = xp.indices(shape[:lead]).reshape(lead, -1)
        times = places.shape[1]
        indices = xp.concatenate([xp.repeat(places, a.nnz, 1), xp.tile(indices, (1, times))])
        values = xp.tile(values, (times, *(1,) * a.dense_dim))
    coalesced = a.coalesced
    for d in range(a.sparse_dim):
        n = shape[lead + d]
        if a.shape[d] == 1 != n:
            indices = xp.repeat(indices, n, 1)
            indices[lead + d] = xp.tile(xp.arange(n), len(values))
            values, coalesced = xp.repeat(values, n, 0), False
    values = xp.broadcast_to(values, (len(values), *shape[lead + a.sparse_dim:]))
    return SparseArray(indices, values, shape, coalesced)


def _mul_sparse(a: SparseArray, b: SparseArray) -> SparseArray:
    """The entries of one operand, each times what the other has at its place."""
    if a.shape != b.shape or a.sparse_dim != b.sparse_dim:
        raise RuntimeError("sparse_binary_op_intersection_cpu(): expects sparse inputs with equal "
                           "dimensionality, number of sparse dimensions, and shape of sparse "
                           "dimensions")
    if a.coalesced == b.coalesced:
        table, source = (a, b) if a.nnz >= b.nnz else (b, a)
    else:
        table, source = (a, b) if a.coalesced else (b, a)
    return source.with_values(source.values * look_up(table, source.indices))


def look_up(a: Any, indices: Any) -> Any:
    """The blocks of an array, sparse or dense, at the places that columns of indices name."""
    if not is_sparse(a):
        found = a[tuple(indices)]
        return found if len(indices) else xp_of(a).repeat(a[None], indices.shape[1], 0)
    table = a.coalesce()
    xp, places = xp_of(table), table.places()
    wanted = positions(indices, a.shape[:a.sparse_dim])
    made = xp.zeros((len(wanted), *table.values.shape[1:]), a.dtype)
    if table.nnz:
        at = xp.minimum(xp.searchsorted(places, wanted), table.nnz - 1)
        hit = places[at] == wanted
        made[hit] = table.values[at[hit]]
    return made


def _divider(name: str) -> Kernel:
    def run(a: Any, b: Any) -> SparseArray:
        if not is_sparse(a) or b.ndim:
            raise RuntimeError("Sparse division requires a scalar or zero-dim dense tensor divisor "
                               f"(got shape {list(b.shape)} for divisor)")
        if name != "div":  # rounding is not linear
            a = a.coalesce()
        made: SparseArray = a.with_values(registry[name].kernel_on(xp_of(a))(a.values, b))
        return made
    return run


for _name in ("div", "div.floor", "div.trunc", "floor_divide"):
    kernel(_name)(_divider(_name))


@kernel("relu_backward")
def _relu_backward(g: Any, y: Any) -> SparseArray:
    if not is_sparse(g):
        g = SparseArray(y.indices, look_up(g, y.indices), y.shape, y.coalesced)
    open_ = look_up(y, g.indices) > 0
    made: SparseArray = g.with_values(g.values * open_)
    return made


# -- layout ---------------------------------------------------------------------------------------


@kernel("t")
def _t(a: SparseArray) -> SparseArray:
    if a.sparse_dim > 2 or a.dense_dim:
        raise RuntimeError("t() expects a tensor with <= 2 sparse and 0 dense dimensions, but got "
                           f"{a.sparse_dim} sparse and {a.dense_dim} dense dimensions")
    return _permute(a, tuple(reversed(range(a.ndim))))


@kernel("transpose")
def _transpose(a: SparseArray, dim0: int, dim1: int) -> SparseArray:
    d0, d1 = wrap_dim(dim0, a.ndim), wrap_dim(dim1, a.ndim)
    if max(d0, d1, 0) >= a.sparse_dim and d0 != d1:
        raise RuntimeError("sparse transpose: transposed dimensions must be sparse Got sparse_dim: "
                           f"{a.sparse_dim}, d0: {d0}, d1: {d1}")
    order = list(range(a.ndim))
    order[d0], order[d1] = d1, d0
    return _permute(a, tuple(order))


@kernel("permute")
def _permute(a: SparseArray, dims: Any) -> SparseArray:
    if len(dims) != a.ndim:
        raise RuntimeError("permute(sparse_coo): number of dimensions in the tensor input does not "
                           "match the length of the desired ordering of dimensions i.e. input.dim()"
                           f" = {a.ndim} is not equal to len(dims) = {len(dims)}")
    order = [wrap_dim(d, a.ndim) for d in dims]
    if len(set(order)) != a.ndim:
        raise RuntimeError("permute(sparse_coo): duplicate dims are not allowed.")
    n = a.sparse_dim
    if sorted(order[:n]) != list(range(n)):
        raise RuntimeError("permute(sparse_coo): transpositions between sparse and dense dimensions"
                           " are not allowed.Only transpositions within sparse and dense dimensions"
                           " are supported.")
    same = order[:n] == list(range(n))
    values = a.values.transpose((0, *(d - n + 1 for d in order[n:])))
    return SparseArray(a.indices[order[:n]], values, [a.shape[d] for d in order],
                       a.coalesced if same else None)


@kernel("unsqueeze")
def _unsqueeze(a: SparseArray, dim: int) -> SparseArray:
    xp, d = xp_of(a), wrap_dim(dim, a.ndim + 1)
    shape = (*a.shape[:d], 1, *a.shape[d:])
    if d > a.sparse_dim:
        return SparseArray(a.indices, xp.expand_dims(a.values, d - a.sparse_dim + 1), shape,
                           a.coalesced)
    row = xp.zeros((1, a.nnz), np.int64)
    return SparseArray(xp.concatenate([a.indices[:d], row, a.indices[d:]]), a.values, shape)


@kernel("expand")
def _expand(a: SparseArray, sizes: Any) -> SparseArray:
    raise RuntimeError("expand is unsupported for Sparse tensors")


@kernel("select")
def _select(a: SparseArray, dim: int, index: int) -> Any:
    """One place of a dimension; a dense array where no coordinates remain."""
    if not a.ndim:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    d = wrap_dim(dim, a.ndim)
    n = a.shape[d]
    if not -n <= index < n:
        raise IndexError(f"select(): index {index} out of range for tensor of size {list(a.shape)} "
                         f"at dimension {d}")
    index %= n
    shape = a.shape[:d] + a.shape[d + 1:]
    if d >= a.sparse_dim:
        return SparseArray(a.indices, a.values.take(index, d - a.sparse_dim + 1), shape,
                           a.coalesced)
    kept = a.indices[d] == index
    if a.sparse_dim == 1:
        return a.values[kept].sum(0, dtype=a.dtype)
    xp = xp_of(a)
    others = xp.concatenate([a.indices[:d], a.indices[d + 1:]])
    return SparseArray(others[:, kept], a.values[kept], shape)


@kernel("unbind")
def _unbind(a: SparseArray, dim: int) -> list[Any]:
    return [_select(a, dim, i) for i in range(a.shape[wrap_dim(dim, a.ndim)])]


@kernel("index_select")
def _index_select(a: Any, dim: int, index: Any) -> SparseArray:
    a = need_sparse("index_select", a)
    xp, d = xp_of(a), wrap_dim(dim, a.ndim)
    if index.ndim != 1:
        raise IndexError("index_select(): Index is supposed to be a vector, but got "
                         f"{index.ndim} dimensions")
    n = a.shape[d]
    wild = (index < -n) | (index >= n)
    if wild.any():
        raise IndexError(f"index_select(): index contains {int(index[wild][0])} that is out of "
                         f"range for tensor of size {list(a.shape)} at dimension {d}")
    index = xp.where(index < 0, index + n, index)
    shape = (*a.shape[:d], len(index), *a.shape[d + 1:])
    if d >= a.sparse_dim:
        return SparseArray(a.indices, a.values.take(index, d - a.sparse_dim + 1), shape,
                           a.coalesced)
    order = xp.argsort(a.indices[d], kind="stable")  # the entries of each place together
    ends = xp.searchsorted(a.indices[d][order], xp.arange(n + 1))
    new, entries = joined(xp, index, ends)
    entries = order[entries]
    indices = a.indices[:, entries]
    indices[d] = new
    return SparseArray(indices, a.values[entries], shape)


def joined(xp: Any, keys: Any, ends: Any) -> tuple[Any, Any]:
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
            raise RuntimeError("Concatenating sparse tensors, but a dense tensor was found at "
                               f"position {i}.")
    d = wrap_dim(dim, first.ndim)
    for i, a in enumerate(arrays):
        if [*a.shape[:d], *a.shape[d + 1:]] != [*first.shape[:d], *first.shape[d + 1:]]:
            raise RuntimeError(f"All tensors must have the same shape: {list(first.shape)} (except "
                               f"in the concatenating dimension), but found shape: {list(a.shape)} "
                               f"at position {i}.")
        if a.sparse_dim != first.sparse_dim:
            raise RuntimeError("All tensors must have the same sparse_dim and dense_dim: "
                               f"{first.sparse_dim}, {first.dense_dim}, but tensor at position {i} "
                               f"has {a.sparse_dim}, {a.dense_dim}.")
    xp, kind = xp_of(first), np.result_type(*(a.dtype for a in arrays))
    total, start = builtins.sum(a.shape[d] for a in arrays), 0
    shape = (*first.shape[:d], total, *first.shape[d + 1:])
    indices, blocks = [], []
    for a in arrays:
        if d < a.sparse_dim:
            shifted = a.indices.copy()
            shifted[d] += start
            indices.append(shifted)
            blocks.append(a.values)
        else:
            wide = xp.zeros((a.nnz, *shape[a.sparse_dim:]), kind)
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
    return _cat([_unsqueeze(a, d) for a in arrays], d)


# -- sums -----------------------------------------------------------------------------------------


@kernel("sum")
def _sum(a: SparseArray, dim: Any, keepdim: bool, dtype: Any) -> Any:
    kind = reduce.sum_type(a, dtype)
    if dim is None or a.ndim == 0:
        return xp_of(a).asarray(a.values.sum(dtype=kind))
    made = sum_dims(a, reduce.axes(dim, a.ndim), kind)
    if keepdim:
        for d in sorted(reduce.axes(dim, a.ndim)):
            made = _unsqueeze(made, d) if is_sparse(made) else xp_of(made).expand_dims(made, d)
    return made


@kernel("linalg_vector_norm")
def _norm(a: SparseArray, order: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    if dim is not None and len(reduce.axes(dim, a.ndim)) < a.ndim:
        raise RuntimeError("norm_sparse currently only supports full reductions, so 'dim' must "
                           "either be empty or contain all dimensions of the input")
    a = a.coalesce()
    return registry["linalg_vector_norm"].kernel_on(xp_of(a))(
        a.values.reshape(-1), order, None, False, dtype)


def sum_dims(a: SparseArray, dims: Any, kind: Any = None) -> Any:
    """The sum over some dimensions; a dense array where no coordinates remain."""
    over = {wrap_dim(d, a.ndim) for d in dims}
    n = a.sparse_dim
    kept = [d for d in range(n) if d not in over]
    inner = tuple(d - n + 1 for d in sorted(over) if d >= n)
    values = a.values.sum(inner, dtype=kind) if inner or kind else a.values
    if not kept:
        return values.sum(0, dtype=kind or a.dtype)
    shape = [m for d, m in enumerate(a.shape) if d not in over]
    if len(kept) == n:
        return SparseArray(a.indices, values, shape, a.coalesced)
    made = SparseArray(a.indices[kept], values, shape, None).coalesce()
    return made


def spread_dims(g: Any, a: SparseArray, dims: Any) -> SparseArray:
    """The gradient of `sum_dims`: what g has at the place that each entry of `a` went to."""
    a = a.coalesce()
    over = {wrap_dim(d, a.ndim) for d in dims}
    n = a.sparse_dim
    blocks = look_up(g, a.indices[[d for d in range(n) if d not in over]])
    for d in sorted(d - n + 1 for d in over if d >= n):
        blocks = xp_of(a).expand_dims(blocks, d)
    values = xp_of(a).broadcast_to(blocks, (a.nnz, *a.shape[n:]))
    return SparseArray(a.indices, values.copy(), a.shape, True)

