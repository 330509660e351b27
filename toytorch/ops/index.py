"""Ops that pick elements by their place: gather, scatter, masks, and `x[...]` itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from toytorch.core.op import Op
from toytorch.core.size import broadcast_pair, copy_order, wrap_dim
from toytorch.ops.define import define, general, pointwise
from toytorch.ops.element import as_element


def add_at(xp: Any, target: Any, places: Any, values: Any) -> None:
    """target[places] += values, counting every place as often as it comes."""
    if xp is np:
        np.add.at(target, places, values)
    else:
        import cupyx
        cupyx.scatter_add(target, places, values)


# -- x[...] ---------------------------------------------------------------------------------------


def full_places(a: Any, indices: Any) -> tuple[Any, ...]:
    """Index arrays with full slices where there is none."""
    return tuple(slice(None) if i is None else i for i in indices)


def _check_bounds(a: Any, indices: Any) -> None:
    if any(i is None and n == 0 for i, n in zip(indices, a.shape)):
        return  # nothing is read, so nothing is out of bounds
    for d, i in enumerate(indices):
        if i is not None and i.size and i.dtype.kind in "iu":
            low, high = int(i.min()), int(i.max())
            if low < -a.shape[d] or high >= a.shape[d]:
                bad = low if low < -a.shape[d] else high
                raise IndexError(f"index {bad} is out of bounds for dimension {d} with size "
                                 f"{a.shape[d]}")


def _index(xp: Any, a: Any, indices: Any) -> Any:
    arrays = [None if i is None else i._array for i in indices]
    _check_bounds(a, arrays)
    try:
        return a[full_places(a, arrays)]
    except IndexError as error:
        raise_index(error, arrays)
        raise


def raise_index(error: Any, arrays: Any) -> None:
    """PyTorch's words for index arrays that do not broadcast."""
    if "indexing arrays" in str(error):
        shapes = ", ".join(str(list(i.shape)) for i in arrays if i is not None)
        raise IndexError("shape mismatch: indexing tensors could not be broadcast together with "
                         f"shapes {shapes}") from None


index = general("index(Tensor self, Indices indices) -> Tensor", _index, method=False, out=False,
                upcast=False, function=False,
                d_self=lambda g, self_shape, indices: _put(g.new_zeros(self_shape), indices, g),
                doc="Elements at index tensors (None: a whole dimension).")


def _put(zeros: Any, indices: Any, g: Any) -> Any:
    return index_put.function(zeros, indices, g, True)


def _index_put(xp: Any, a: Any, indices: Any, values: Any, accumulate: bool) -> Any:
    arrays = [None if i is None else i._array for i in indices]
    _check_bounds(a, arrays)
    if values.dtype != a.dtype:
        raise RuntimeError("Index put requires the source and destination dtypes match, got "
                           f"{type_name(a)} for the destination and {type_name(values)} for the "
                           "source.")
    result = xp.array(a, order=copy_order(a))
    places = full_places(a, arrays)
    try:
        if accumulate:
            add_at(xp, result, places, values)
        else:
            result[places] = values
    except (IndexError, ValueError) as error:
        raise_index(error, arrays)
        if "could not be broadcast" in str(error) or "shape mismatch" in str(error):
            raise RuntimeError(f"shape mismatch: value tensor of shape {list(values.shape)} cannot "
                               "be broadcast to indexing result of shape "
                               f"{list(a[places].shape)}") from None
        raise
    return result


index_put: Op = define(
    "index_put(Tensor self, Indices indices, Tensor values, bool accumulate=False) -> Tensor",
    _index_put, kind="general", inplace=True, out=False, upcast=False, overlap=True,
    d_self=lambda g, indices, accumulate: g if accumulate else index_put.function(
        g, indices, g.new_zeros(()), False),
    d_values=lambda g, indices: index.function(g, indices),
    doc="Elements at index tensors replaced by, or increased by, values.")

# -- along a dimension ----------------------------------------------------------------------------


def _bounds(name: str, a: Any, d: int, i: Any) -> None:
    """Refuses an index outside a dimension, in the words of each op."""
    n = a.shape[d] if a.ndim else 1
    if not i.size or (int(i.min()) >= 0 and int(i.max()) < n):
        return
    bad = int(i.max()) if int(i.max()) >= n else int(i.min())
    where = f"index {bad} is out of bounds for dimension {d} with size {n}"
    if name == "index_add":
        raise RuntimeError(where)
    if name == "index_select" and a.ndim > 1 and not n:
        raise RuntimeError("index_select(): self indexing axis dim should be positive")
    if name == "index_select" and a.ndim > 1 and (d == 1 or not a.size):
        raise RuntimeError(f"INDICES element is out of DATA bounds, id={bad} axis_dim={n}")
    if name == "index_select":
        raise IndexError("index out of range in self")
    raise IndexError(f"index_copy_(): {where}" if name == "index_copy_" else where)


def _vector_index(name: str, a: Any, dim: int, i: Any) -> int:
    d = wrap_dim(dim, a.ndim)
    if i.ndim > 1:
        if name == "index_fill_":
            raise RuntimeError("Index has to be a vector/scalar")
        raise IndexError({
            "index_add": f"index_add(): Index is supposed to be a vector, but got dim: {i.ndim} "
                         f"with type: {type_name(i)} and size: {list(i.shape)}",
            "index_copy_": f"index_copy_(): Index should have dimension 1 or 0 (got {i.ndim})",
        }.get(name, f"{name}(): Index is supposed to be a vector"))
    if i.dtype.kind not in "iu" or i.dtype.itemsize < 4:
        if name == "index_select":
            raise RuntimeError("index_select(): Expected dtype int32 or int64 for index")
        raise IndexError(f"{name}(): Expected dtype int32/int64 for index")
    _bounds(name, a, d, i)
    return d


def type_name(a: Any) -> str:
    """A type as error messages name it."""
    from toytorch.core.dtype import from_numpy_dtype
    return from_numpy_dtype(a.dtype).legacy


def _index_select(xp: Any, a: Any, dim: int, i: Any) -> Any:
    d = _vector_index("index_select", a, dim, i)
    if not a.ndim and i.size != 1:
        raise RuntimeError(f"index_select(): Index to scalar can have only 1 value, got {i.size} "
                           "value(s)")
    return xp.take(a, i.reshape(-1), axis=d) if a.ndim else a.copy()


index_select = general("index_select(Tensor self, int dim, Tensor index) -> Tensor", _index_select,
                       upcast=False, d_self=lambda g, self_shape, dim, index:
                       g.new_zeros(self_shape).index_add(dim, index, g),
                       doc="Places of a dimension, in the order of an index vector.")


def _index_add(xp: Any, a: Any, dim: int, i: Any, source: Any, alpha: Any) -> Any:
    d = _vector_index("index_add", a, dim, i)
    if source.dtype != a.dtype:
        raise RuntimeError("index_add_(): self and source expected to have the same dtype, but got "
                           f"(self) {type_name(a)} and (source) {type_name(source)}")
    result = a.copy()
    if not a.ndim:
        return result + source.reshape(-1).sum() * a.dtype.type(alpha)
    expected = (*a.shape[:d], i.size, *a.shape[d + 1:])
    if source.shape != expected and source.ndim:
        raise RuntimeError("source tensor shape must match self tensor shape, excluding the "
                           f"specified dimension. Got self.shape = {list(a.shape)} source.shape = "
                           f"{list(source.shape)}")
    values = source if alpha == 1 else source * source.dtype.type(alpha)
    add_at(xp, result, (slice(None),) * d + (i.reshape(-1),), values)
    return result


index_add = define(
    "index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
    _index_add, kind="general", inplace=True, upcast=False, d_self=lambda g: g,
    d_source=lambda g, dim, index, source_shape, alpha:
    (g.index_select(dim, index).reshape(source_shape)) * alpha,
    doc="Slices of source added at the places that index names.")


def _index_fill(xp: Any, a: Any, dim: int, i: Any, value: Any) -> Any:
    d = _vector_index("index_fill_", a, dim, i)
    if isinstance(value, complex) and a.dtype.kind != "c":
        raise RuntimeError("index_fill_(): Converting complex Scalar to non-complex type is not "
                           "supported")
    result = xp.array(a, order=copy_order(a))
    result[(slice(None),) * d + (i.reshape(-1),)] = value
    return result


index_fill = define(
    "index_fill(Tensor self, int dim, Tensor index, Operand value) -> Tensor", _index_fill,
    kind="general", inplace=True, out=False, upcast=False, overlap=True,
    d_self=lambda g, dim, index: g.index_fill(dim, index, 0),
    d_value=lambda g, dim, index: g.index_select(dim, index.unique()).sum(),
    doc="Places that index names set to a value.")


def _index_copy(xp: Any, a: Any, dim: int, i: Any, source: Any) -> Any:
    d = _vector_index("index_copy_", a, dim, i)
    if source.dtype != a.dtype:
        raise RuntimeError("index_copy_(): self and source expected to have the same dtype, but got"
                           f" (self) {type_name(a)} and (source) {type_name(source)}")
    wanted = (*a.shape[:d], i.size, *a.shape[d + 1:])
    if source.ndim and source.shape != wanted:
        mine, theirs = (tuple(n for k, n in enumerate(s) if k != d)
                        for s in (a.shape, source.shape))
        if mine != theirs:
            raise RuntimeError("index_copy_(): Source/destination tensor must have same slice "
                               f"shapes. Destination slice shape: {' '.join(map(str, mine))} at "
                               f"dimension {d} and source slice shape: "
                               f"{' '.join(map(str, theirs))} at dimension 0.")
        raise IndexError(f"index_copy_(): Number of indices ({i.size}) should be equal to "
                         f"source.size(dim) ({source.shape[d]})")
    result = a.copy()
    result[(slice(None),) * d + (i.reshape(-1),)] = source
    return result


index_copy = define(
    "index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor", _index_copy,
    kind="general", inplace=True, upcast=False,
    d_self=lambda g, dim, index: g.index_fill(dim, index, 0),
    d_source=lambda g, dim, index: g.index_select(dim, index),
    doc="Slices of source written at the places that index names.")


def _places(name: str, xp: Any, a: Any, dim: int, i: Any, source: Any = None) -> tuple[Any, int]:
    """Index arrays for all dimensions, of which the one at `dim` is `i`."""
    if i.dtype != np.int64 and i.size:
        raise RuntimeError(f"{name}(): Expected dtype int64 for index")
    d = wrap_dim(dim, a.ndim)
    if i.size and max(i.ndim, 1) != max(a.ndim, 1):
        raise RuntimeError("Index tensor must have the same number of dimensions as "
                           f"{'input' if name == 'gather' else 'self'} tensor")
    if i.size:
        for k in range(a.ndim):
            if k != d and i.shape[k] > a.shape[k]:
                raise RuntimeError(
                    f"Size does not match at dimension {k} expected index {list(i.shape)} to be "
                    f"no larger than self {list(a.shape)} apart from dimension {d}")
        n = a.shape[d] if a.ndim else 1
        if int(i.min()) < 0 or int(i.max()) >= n:
            bad = int(i.min()) if int(i.min()) < 0 else int(i.max())
            raise RuntimeError(f"index {bad} is out of bounds for dimension {d} with size {n}")
    if source is not None and source.ndim and i.size and any(
            m > n for m, n in zip(i.shape, source.shape)):
        raise RuntimeError(f"Expected index {list(i.shape)} to be no larger than src "
                           f"{list(source.shape)}")
    grid = list(xp.indices(i.shape, sparse=True)) if i.ndim else [i]
    if i.ndim:
        grid[d] = i
    return tuple(grid), d


def _gather(xp: Any, a: Any, dim: int, i: Any, sparse_grad: bool) -> Any:
    grid, _ = _places("gather", xp, a, dim, i)
    if not i.size:
        return xp.empty(i.shape, a.dtype)
    return a.reshape(1)[grid] if not a.ndim else a[grid]


gather = general("gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor",
                 _gather, upcast=False, d_self=lambda g, self, dim, index:  # saves self as PyTorch
                 g.new_zeros(self.shape).scatter_add(dim, index, g),
                 doc="out[i][j] = self[index[i][j]][j] (for dim=0).")


def _cut(source: Any, i: Any) -> Any:
    return source[tuple(slice(n) for n in i.shape)] if source.ndim else source


def _same_dtype(name: str, a: Any, source: Any) -> None:
    if source.dtype != a.dtype:
        raise RuntimeError(f"{name}(): Expected self.dtype to be equal to src.dtype")


def _scatter(xp: Any, a: Any, dim: int, i: Any, src: Any) -> Any:
    number = not hasattr(src, "dtype")
    if not number:
        _same_dtype("scatter", a, src)
    grid, _ = _places("scatter", xp, a, dim, i, None if number else src)
    result = a.copy()
    if i.size:
        (result.reshape(1) if not a.ndim else result)[grid] = src if number else _cut(src, i)
    return result


def _scatter_src(g: Any, dim: int, index: Any, src_shape: Any) -> Any:
    part = g.gather(dim, index)
    if tuple(part.shape) == tuple(src_shape):
        return part
    full = g.new_zeros(src_shape)
    full[tuple(slice(n) for n in part.shape)] = part
    return full


scatter: Op = define(
    "scatter(Tensor self, int dim, Tensor index, Operand src) -> Tensor", _scatter, kind="general",
    inplace=True, upcast=False, function=False, method=False,
    d_self=lambda g, dim, index: scatter.function(g, dim, index, 0),
    d_src=_scatter_src, doc="self[index[i][j]][j] = src[i][j] (for dim=0).")


def _scatter_add(xp: Any, a: Any, dim: int, i: Any, src: Any) -> Any:
    _same_dtype("scatter", a, src)
    grid, _ = _places("scatter_add", xp, a, dim, i, src)
    result = a.copy()
    if i.size:
        add_at(xp, result.reshape(1) if not a.ndim else result, grid, _cut(src, i))
    return result


scatter_add = define(
    "scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor", _scatter_add,
    kind="general", inplace=True, upcast=False, d_self=lambda g: g, d_src=_scatter_src,
    doc="self[index[i][j]][j] += src[i][j] (for dim=0).")


def _take(xp: Any, a: Any, i: Any) -> Any:
    if i.dtype != np.int64:
        raise RuntimeError(f"take(): Expected a long tensor for index, but got {type_name(i)}")
    n = a.size
    if i.size and (int(i.min()) < -n or int(i.max()) >= n):
        raise IndexError("out of range: tried to access index "
                         f"{int(i.max()) if int(i.max()) >= n else int(i.min())} on a tensor of "
                         f"{n} elements.")
    return xp.take(a, i)


take = general("take(Tensor self, Tensor index) -> Tensor", _take, upcast=False,
               d_self=lambda g, self_shape, index: g.new_zeros(_product(self_shape)).index_add(
                   0, (index % max(_product(self_shape), 1)).reshape(-1),
                   g.reshape(-1)).reshape(self_shape),
               doc="Elements by their place in the flattened tensor.")


def _product(shape: Any) -> int:
    n = 1
    for s in shape:
        n *= s
    return n

# -- masks ----------------------------------------------------------------------------------------


def _need_mask(name: str, mask: Any) -> None:
    if mask.dtype != np.bool_:
        raise RuntimeError(f"{name} only supports boolean masks, but got mask with dtype "
                           f"{type_name(mask)}" if name != "masked_select" else
                           "masked_select: expected BoolTensor for mask")


def _masked_fill(xp: Any, a: Any, mask: Any, value: Any) -> Any:
    _need_mask("masked_fill_", mask)
    if getattr(value, "ndim", 0):
        raise RuntimeError("masked_fill_ only supports a 0-dimensional value tensor, but got tensor"
                           f" with {value.ndim} dimension(s).")
    shape = broadcast_pair(a.shape, mask.shape)
    filled = xp.where(mask, as_element(xp, value, a.dtype), a).reshape(shape)
    return filled if filled.flags.c_contiguous else filled.copy()


masked_fill = define(
    "masked_fill(Tensor self, Tensor mask, Operand value) -> Tensor", _masked_fill, kind="general",
    inplace=True, out=False, upcast=False, overlap=True,
    d_self=lambda g, mask: g.masked_fill(mask, 0),
    d_value=lambda g, mask: (g * mask.to(g.dtype)).sum(),
    doc="A value wherever the mask is True.")


def _masked_select(xp: Any, a: Any, mask: Any) -> Any:
    _need_mask("masked_select", mask)
    shape = broadcast_pair(a.shape, mask.shape)
    return xp.broadcast_to(a, shape)[xp.broadcast_to(mask, shape)]


def _masked_select_gradient(g: Any, self_shape: Any, mask: Any) -> Any:
    shape = broadcast_pair(self_shape, mask.shape)
    return g.new_zeros(shape).masked_scatter(mask.expand(shape), g)


masked_select = general("masked_select(Tensor self, Tensor mask) -> Tensor", _masked_select,
                        upcast=False, d_self=_masked_select_gradient,
                        doc="The elements where the mask is True, in one dimension.")


def _masked_scatter(xp: Any, a: Any, mask: Any, source: Any) -> Any:
    _need_mask("masked_scatter_", mask)
    shape = broadcast_pair(a.shape, mask.shape)
    result, mask = xp.broadcast_to(a, shape).copy(), xp.broadcast_to(mask, shape)
    count = int(mask.sum())
    if count > source.size:
        raise RuntimeError("masked_scatter: expected self and source to have same dtypes or enough "
                           f"elements: {count} wanted, {source.size} given")
    result[mask] = source.reshape(-1)[:count]
    return result


def _masked_scatter_source(g: Any, mask: Any, source_shape: Any) -> Any:
    n = _product(source_shape)
    picked = g.masked_select(mask)
    return _pad_end(picked, n).reshape(source_shape)


def _pad_end(values: Any, n: int) -> Any:
    from toytorch.ops.shape import cat
    return cat.function([values, values.new_zeros(n - values.shape[0])], 0)


masked_scatter = define(
    "masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor", _masked_scatter,
    kind="general", inplace=True, out=False, upcast=False,
    d_self=lambda g, mask: g.masked_fill(mask, 0), d_source=_masked_scatter_source,
    doc="Elements of source, in order, wherever the mask is True.")


def _where(xp: Any, condition: Any, a: Any, b: Any) -> Any:
    return xp.where(condition, a, b)


def _where_share(g: Any, condition: Any, yes: bool) -> Any:
    return g.masked_fill(~condition if yes else condition, 0)


where = pointwise(
    "where(Tensor condition, Operand self, Operand other) -> Tensor", _where, method=False,
    function=False, promotion="none", inplace=False, expr="condition ? self : other",
    d_self=lambda g, condition: _where_share(g, condition, True),
    d_other=lambda g, condition: _where_share(g, condition, False),
    doc="self where the condition holds, other elsewhere.")


def _nonzero(xp: Any, a: Any) -> Any:
    if a.ndim == 0:
        return xp.zeros((int(bool(a)), 0), np.int64)
    return xp.argwhere(a).astype(np.int64)


nonzero = general("nonzero(Tensor self) -> Tensor", _nonzero, upcast=False, function=False,
                  method=False, doc="The places of all non-zero elements, one a row.")
