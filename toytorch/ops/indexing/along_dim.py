"""Ops along a dimension by indices: index_select and its kin with a vector, gather and scatter with
an index for each element, take and put with places in the flattened tensor."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from toytorch.backends.generic import attempt, counting, flattened, inside, reduced, some, span
from toytorch.core.memory_order import copied, in_rows
from toytorch.core.op import Op
from toytorch.core.scalars import as_element
from toytorch.core.tensor import Tensor
from toytorch.facts.hints import Array, ArrayModule, Scalar, Shape, Sizes
from toytorch.facts.size import need_room, wrap_dim
from toytorch.ops import aten_words, batching
from toytorch.ops.define import in_own_type
from toytorch.ops.indexing.by_index import add_at, type_name
from toytorch.settings import alert_not_deterministic

# -- an index vector ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Refusals:
    """What an op says of an index vector that it does not take.

    no_vector   of an index with several dimensions
    no_index    of one of another type
    smaller     whether int32 will do
    behind      whether places below 0 count from the end
    outside     of a place outside the dimension; asked with the array, the dimension and the place
    """

    no_vector: Callable[[Any], Exception]
    no_index: Callable[[Any], Exception]
    outside: Callable[[Any, int, int], Exception]
    smaller: bool = True
    behind: bool = False


def _outside(a: Array, d: int, bad: int) -> str:
    return f"index {bad} is out of bounds for dimension {d} with size {a.shape[d] if a.ndim else 1}"


def _vector(words: Refusals, a: Array, dim: int, i: Array) -> int:
    """The dimension, counted from the front; refuses an index that is no vector of integers."""
    d = wrap_dim(dim, a.ndim)
    if i.ndim > 1:
        raise words.no_vector(i)
    if i.dtype.kind != "i" or i.dtype.itemsize < (4 if words.smaller else 8):
        raise words.no_index(i)
    return d


def _inside(words: Refusals, a: Array, d: int, i: Array) -> None:
    """Refuses places that a dimension does not have."""
    n = a.shape[d] if a.ndim else 1
    if not i.size or inside(i, n):
        return
    low, (least, most) = -n if words.behind else 0, span(i)
    if least < low or most >= n:
        flat = i.reshape(-1)
        raise words.outside(a, d, int(flat[(flat < low) | (flat >= n)][0]))


def _inside_memory(words: Refusals, a: Array, d: int, i: Array) -> None:
    """`_inside` of what PyTorch lays out again, with a place for each one that is named: of what is
    empty nothing is asked but whether there is any memory for that."""
    shape = [*a.shape[:d], i.size, *a.shape[d + 1 :]]
    if not a.ndim or a.size:
        _inside(words, a, d, i)
    elif math.prod(shape):
        inner = [max(n, 1) for n in a.shape]
        steps = [0 if k == d else math.prod(inner[k + 1 :]) for k in range(a.ndim)]
        need_room(shape, steps, 0, a.itemsize, 0)


def check_slices(name: str, a: Array, d: int, i: Array, source: Array) -> None:
    """Refuses a source that has not one slice for each place, or slices of another shape."""
    if d and d >= source.ndim:
        raise RuntimeError(
            f"{name}(): Indexing dim {d} is out of bounds of the source tensor with dim "
            f"{source.ndim}"
        )
    if not source.ndim and i.size != 1:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    if source.ndim and source.shape[d] != i.size:
        raise RuntimeError(
            f"{name}(): Number of indices ({i.size}) should be equal to "
            f"source.size(dim): ({source.shape[d]}), for dim: {d}"
        )
    mine, given = list(a.shape), list(source.shape)
    if mine and given:
        del mine[d], given[d]
    if mine != given:
        raise RuntimeError(
            "source tensor shape must match self tensor shape, excluding the specified dimension. "
            f"Got self.shape = {list(a.shape)} source.shape = {list(source.shape)}"
        )


def _rows(d: int, i: Array) -> tuple[Any, ...]:
    """The index of places i of dimension d."""
    return (slice(None),) * d + (i.reshape(-1),)


def _line(a: Array) -> Any:
    """A 0-d array as one of a single element, over the same memory."""
    return a if a.ndim else a.reshape(1)


def _outside_selected(a: Array, d: int, bad: int) -> Exception:
    n = a.shape[d] if a.ndim else 1
    if a.ndim > 1 and not n:
        return RuntimeError("index_select(): self indexing axis dim should be positive")
    if a.ndim > 1 and (d == 1 or not a.size):
        return RuntimeError(f"INDICES element is out of DATA bounds, id={bad} axis_dim={n}")
    return IndexError("index out of range in self")


SELECTED = Refusals(
    lambda i: IndexError("index_select(): Index is supposed to be a vector"),
    lambda i: RuntimeError("index_select(): Expected dtype int32 or int64 for index"),
    _outside_selected,
)


def _index_select(xp: ArrayModule, a: Array, dim: int, i: Array) -> Any:
    d = _vector(SELECTED, a, dim, i)
    if not a.ndim and i.size != 1:
        raise RuntimeError(
            f"index_select(): Index to scalar can have only 1 value, got {i.size} value(s)"
        )
    _inside(SELECTED, a, d, i)
    if not a.ndim:
        return a.copy()
    made = attempt(xp, "select", a, d, i.reshape(-1))
    return xp.take(a, i.reshape(-1), axis=d) if made is None else made


index_select = in_own_type(
    "index_select(Tensor self, int dim, Tensor index) -> Tensor",
    _index_select,
    apart="own",
    out_type="selected",
    d_self=lambda g, self_shape, dim, index: g.new_zeros(self_shape).index_add(dim, index, g),
    fresh=True,
    doc="Places of a dimension, in the order of an index vector.",
)


def _check_source(name: str, a: Array, source: Array) -> None:
    if source.dtype != a.dtype:
        raise RuntimeError(
            f"index_add_(): self ({type_name(a)}) and source ({type_name(source)}) must have the "
            "same scalar type"
            if name == "index_add_()"
            else f"{name}: self and source expected to have the same dtype, but got "
            f"(self) {type_name(a)} and (source) {type_name(source)}"
        )


ADDED = Refusals(
    lambda i: IndexError(
        f"index_add_(): Index is supposed to be a vector, but got dim: {i.ndim} "
        f"with type: {type_name(i)} and size: {list(i.shape)}"
    ),
    lambda i: RuntimeError(
        f"index_add_(): Expected dtype int32/int64 for index but got: {type_name(i)}"
    ),
    lambda a, d, bad: (
        RuntimeError(_outside(a, d, bad))
        if a.ndim > 1
        else IndexError("index out of range in self")
    ),
)


def _index_add(xp: ArrayModule, a: Array, dim: int, i: Array, source: Array, alpha: int) -> Any:
    d = _vector(ADDED, a, dim, i)
    _check_source("index_add_()", a, source)
    check_slices("index_add_", a, d, i, source)
    if a.ndim > 1 and not a.size:  # of slices without elements, nobody asks where
        return in_rows(a)
    _inside(ADDED, a, d, i)
    values = source if alpha == 1 else source * xp.asarray(alpha).astype(source.dtype)
    result = _wide(a)
    if result is not a and (a.ndim < 2 or 0 < d < a.ndim - 1 or alpha != 1):
        # Every sum is rounded, but of slices as they are along the first or the last of dimensions.
        result = in_rows(a)
        add_at(xp, _line(result), _rows(d, i.reshape(-1)), _line(values))
        return result
    result = in_rows(result)
    _add_rows(xp, _line(result), d, i.reshape(-1), _line(values))
    return result.astype(a.dtype, copy=False)


def _wide(a: Array) -> Array:
    """Half types as float32, in which PyTorch adds up what meets at one place."""
    half = a.dtype.itemsize == 2 and a.dtype.kind not in "iu"
    return a.astype(np.float32) if half else a


def _add_rows(xp: ArrayModule, target: Array, d: int, i: Array, values: Array) -> None:
    """Adds slices of values to the slices of target that i names, some of them several times."""
    half = target.dtype.itemsize == 2
    if half or attempt(xp, "add_slices", target, d, i, values) is None:
        add_wide(xp, target, _rows(d, i), values)


def add_wide(xp: ArrayModule, target: Array, places: Any, values: Array) -> None:
    """`add_at`, of which sums of half types are rounded once, in the end."""
    if target.dtype.itemsize != 2 or target.dtype.kind not in "fV":
        add_at(xp, target, places, values)
        return
    total = target.astype(np.float32)
    add_at(xp, total, places, values.astype(np.float32))
    target[...] = total.astype(target.dtype)


index_add = in_own_type(
    "index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
    _index_add,
    forms="function method inplace out",
    apart="in place",
    d_self=lambda g: g,
    d_source=lambda g, dim, index, source, alpha: (  # saves source as PyTorch
        (g.index_select(dim, index).reshape(source.shape)) * alpha
    ),
    fresh=True,
    doc="Slices of source added at the places that index names.",
    out_type="same",
)


FILLED = Refusals(
    lambda i: RuntimeError("Index has to be a vector/scalar"),
    lambda i: IndexError("index_fill_(): Expected dtype int64 for index."),
    lambda a, d, bad: IndexError(_outside(a, d, bad)),
    smaller=False,
    behind=True,
)


def _index_fill(xp: ArrayModule, a: Array, dim: int, i: Array, value: Array | Scalar) -> Any:
    if not isinstance(value, (int, float, complex)) and value.ndim:
        raise RuntimeError(
            "index_fill_ only supports a 0-dimensional value tensor, but got tensor "
            f"with {value.ndim} dimension(s)."
        )
    if i.dtype != np.int64:
        raise FILLED.no_index(i)
    d = _vector(FILLED, a, dim, i)
    _inside_memory(FILLED, a, d, i)
    if a.dtype.kind != "c" and np.iscomplexobj(value):
        raise RuntimeError(
            "index_fill_(): Converting complex Scalar to non-complex type is not supported"
        )
    result = copied(a)
    if a.size:
        _line(result)[_rows(d, i)] = as_element(xp, value, a.dtype)
    return result


index_fill = in_own_type(
    "index_fill(Tensor self, int dim, Tensor index, Operand value) -> Tensor",
    _index_fill,
    forms="function method inplace",
    overlap="tensor[mask] = scalar",
    apart=True,
    d_self=lambda g, dim, index: g.index_fill(dim, index, 0),
    d_value=lambda g, dim, index: g.index_select(dim, index.unique()).sum(),
    memory="kept",
    names="same",
    overload=aten_words.place_filled,
    doc="Places that index names set to a value.",
)


COPIED = Refusals(
    lambda i: IndexError(f"index_copy_(): Index should have dimension 1 or 0 (got {i.ndim})"),
    lambda i: RuntimeError(
        f"index_copy_(): Expected a long tensor for index, but got {type_name(i)}"
    ),
    lambda a, d, bad: IndexError(f"index_copy_(): {_outside(a, d, bad)}"),
    smaller=False,
)


def _index_copy(xp: ArrayModule, a: Array, dim: int, i: Array, source: Array) -> Any:
    d = wrap_dim(dim, a.ndim)
    if i.ndim < 2 and not source.ndim and i.size != 1:
        raise IndexError(
            f"index_copy_(): When source is scalar, index should have one element (got {i.size})"
        )
    if i.ndim < 2 and source.ndim and a.ndim and source.ndim != a.ndim:
        raise IndexError(
            "index_copy_(): When source and destination are not scalars, their dimensionality must "
            f"match. Source dimensionality ({source.ndim}), destination dimensionality ({a.ndim})"
        )
    d = _vector(COPIED, a, dim, i)
    _check_source("index_copy_()", a, source)
    mine, theirs = (tuple(n for k, n in enumerate(s) if k != d) for s in (a.shape, source.shape))
    if mine != theirs:
        raise RuntimeError(
            "index_copy_(): Source/destination tensor must have same slice shapes. Destination "
            f"slice shape: {' '.join(map(str, mine))} at dimension {d} and source slice shape: "
            f"{' '.join(map(str, theirs))} at dimension 0."
        )
    if source.ndim and i.size != source.shape[d]:
        raise IndexError(
            f"index_copy_(): Number of indices ({i.size}) should be equal to "
            f"source.size(dim) ({source.shape[d]})"
        )
    _inside_memory(COPIED, a, d, i)
    result = in_rows(a)
    if a.size:
        _line(result)[_rows(d, i)] = _line(source)
    return result


index_copy = in_own_type(
    "index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor",
    _index_copy,
    forms="function method inplace out",
    apart="first",
    d_self=lambda g, dim, index: g.index_fill(dim, index, 0),
    d_source=lambda g, dim, index, source: g.index_select(dim, index).reshape(source.shape),
    amp="widest",
    doc="Slices of source written at the places that index names.",
    out_type="same",
)

# -- an index for each element --------------------------------------------------------------------


def places(
    name: str, xp: ArrayModule, a: Any, dim: int, i: Any, source: Any = None, called: str = "self"
) -> Any:
    """The places in the flattened `a` of which the one at `dim` is `i`, after PyTorch's checks.

    `name` and `called` are the op and the array in messages.
    """
    d = wrap_dim(dim, a.ndim)
    if i.dtype.kind != "i" or i.dtype.itemsize < 4:
        if i.size:
            raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index")
        i = i.astype(np.int64)
    if i.size and max(i.ndim, 1) != max(a.ndim, 1):
        raise RuntimeError(
            f"Index tensor must have the same number of dimensions as {called} tensor"
        )
    if source is not None and i.size and source.ndim:
        inside = all(m <= n for k, (m, n) in enumerate(zip(i.shape, a.shape)) if k != d)
        inside = inside and all(m <= n for m, n in zip(i.shape or (1,), source.shape))
        if inside and source.ndim < a.ndim:  # it has been asked for the size of each
            wrap_dim(source.ndim, source.ndim)
    if source is not None and i.size and max(i.ndim, 1) != max(source.ndim, 1):
        raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
    n = a.shape[d] if a.ndim else 1
    if i.size:
        for k in range(a.ndim) if i.shape != a.shape else ():
            if k != d and i.shape[k] > a.shape[k]:
                raise RuntimeError(
                    f"Size does not match at dimension {k} expected index {list(i.shape)} to be "
                    f"no larger than self {list(a.shape)} apart from dimension {d}"
                )
        low, high = int(reduced(np.minimum, xp, i)), int(reduced(np.maximum, xp, i))
        if low < 0 or high >= n:
            bad = low if low < 0 else high
            raise RuntimeError(f"index {bad} is out of bounds for dimension {d} with size {n}")
    if (
        source is not None
        and i.size
        and any(m > n for m, n in zip(i.shape or (1,), source.shape or (1,)))
    ):
        raise RuntimeError(
            f"Expected index {list(i.shape)} to be no larger than self {list(a.shape)} apart from "
            f"dimension {d} and to be no larger size than src {list(source.shape)}"
        )
    if not a.ndim or not i.ndim or not i.size:
        return i.reshape(-1) if not a.ndim else i
    return flattened(xp, i, a.shape, d)


FEW = 1024  # numbers, of which all signs at once are sooner looked at than the smallest
NOTHING = np.array(0)


def _from_the_front(i: Array) -> bool:
    """Whether no number of NumPy's array counts from the end."""
    if i.size > FEW:
        return bool(np.minimum.reduce(i, None) >= 0)
    return not some(i < NOTHING)


def _gather(xp: ArrayModule, a: Array, dim: int, i: Array, sparse_grad: bool) -> Any:
    d = dim + a.ndim if dim < 0 else dim
    if 0 <= d < a.ndim:
        made = attempt(xp, "gather", a, d, i)
        if made is not None:
            return made
    if a.__class__ is np.ndarray and a.ndim == 2 == i.ndim and i.dtype == np.int64 and i.size:
        other = 1 - d
        if d in (0, 1) and i.shape[other] == a.shape[other] and _from_the_front(i):
            along = counting(a.shape[other])
            try:
                return a[along[:, None], i] if d else a[i, along]
            except IndexError:
                pass  # which is said in PyTorch's words below
    flat = places("gather", xp, a, dim, i, called="input")
    if not i.size:
        return xp.empty(i.shape, a.dtype)
    return a.reshape(-1)[flat].reshape(i.shape)


gather = in_own_type(
    "gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor",
    _gather,
    apart=True,
    out_type="same",
    d_self=lambda g, self, dim, index: (  # saves self as PyTorch
        scattered.function(g, self.shape, dim, index, True)
    ),
    memory="rows",
    batch="along",
    fresh=True,
    doc="out[i][j] = self[index[i][j]][j] (for dim=0).",
)


def cut(source: Array | Tensor, i: Array | Tensor) -> Any:
    """The part of a source (an array or a tensor) that an index of its own size or less uses."""
    if tuple(source.shape) == tuple(i.shape) or not source.ndim:
        return source
    return source[tuple(slice(n) for n in i.shape)]


def _writing(name: str, write: Any, adds: bool = False) -> Any:
    def kernel(xp: ArrayModule, a: Any, dim: int, i: Any, src: Any, into: bool = False) -> Any:
        d, given = wrap_dim(dim, a.ndim), None
        if hasattr(src, "dtype"):
            if src.dtype != a.dtype:
                raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
            given = src
        else:
            src = as_element(xp, src if i.size else 0, a.dtype)  # of nothing, nothing is asked
        start = _wide(a) if adds else a
        if start is not a:
            src = _wide(src)
        # Spoilt where an index is outside: refused below.
        result = start if into else in_rows(start)
        if src.ndim and a.ndim and attempt(xp, "scatter", result, d, i, src, adds):
            return result if start is a else result.astype(a.dtype)
        if a.__class__ is np.ndarray and a.ndim == 2 == i.ndim and i.dtype == np.int64 and i.size:
            other = 1 - d
            if (
                i.shape[other] == a.shape[other]
                and (given is None or src.shape == i.shape)
                and i.flags.c_contiguous  # of equal places the last one counts
                and _from_the_front(i)
            ):
                along = counting(a.shape[other])
                try:
                    write(xp, result, (along[:, None], i) if d else (i, along), src)
                    return result if start is a else result.astype(a.dtype)
                except IndexError:
                    pass  # which is said in PyTorch's words below
        flat = places(name, xp, a, dim, i, given)
        if i.size:
            values = cut(src, i) if src.ndim else src
            write(xp, result.reshape(-1), flat.reshape(-1), values.reshape(-1))
        return result.astype(a.dtype, copy=False)

    return kernel


def _put(xp: ArrayModule, target: Array, at: Array | tuple[Array, ...], values: Array) -> None:
    target[at] = values


_written = _writing("scatter", _put)
_increased = _writing("scatter_add", add_wide, True)


def _scattered(xp: ArrayModule, src: Array, size: Shape, dim: int, i: Array, adds: bool) -> Any:
    if not len(size):
        return src
    if i.ndim < len(size):  # one element of each row, without its dimension
        d = wrap_dim(dim, len(size))
        at = (slice(None),) * d + (None,)
        src, i = src[at], i[at]
    zeros = xp.zeros(tuple(size), src.dtype)
    return (_increased if adds else _written)(xp, zeros, dim, i, src, True)


def _unscattered(g: Tensor, size: Shape, dim: int, index: Tensor) -> Any:
    if not len(size):
        return g
    if index.ndim == len(size):
        return g.gather(dim, index)
    return g.gather(dim, index.unsqueeze(dim)).squeeze(dim)


scattered: Op = in_own_type(
    "_scattered(Tensor src, int[] size, int dim, Tensor index, bool adds=False) -> Tensor",
    _scattered,
    node="ScatterAddBackward0",
    d_src=lambda g, size, dim, index: _unscattered(g, size, dim, index),
    batch=batching.into_zeros,
    doc="What `gather`, and ops with indices as results, picked, at its place in zeros of a size.",
)


def back_to_source(g: Tensor, dim: int, index: Tensor, src_shape: Sizes, op: str) -> Any:
    """The gradient of what an index picked. Of a source larger than the index PyTorch has none,
    unless it is of single elements."""
    part = g.gather(dim, index)
    if len(src_shape) > part.ndim or any(n not in (1, m) for n, m in zip(src_shape, part.shape)):
        raise RuntimeError(
            f"Function {op}Backward0 returned an invalid gradient at index 1 - got "
            f"{list(part.shape)} but expected shape compatible with {list(src_shape)}"
        )
    return part.sum_to_size(src_shape) if part.shape != src_shape else part


scatter: Op = in_own_type(
    "scatter(Tensor self, int dim, Tensor index, Operand src) -> Tensor",
    _written,
    forms="inplace out",
    apart="own in place",
    variant=lambda self, dim, index, src: 0 if hasattr(src, "dtype") else 1,
    d_self=lambda g, dim, index: scatter.function(g, dim, index, 0),
    d_src=lambda g, dim, index, src_shape: back_to_source(g, dim, index, src_shape, "Scatter"),
    batch="along",
    fresh=True,
    overload=aten_words.source_or_value,
    doc="self[index[i][j]][j] = src[i][j] (for dim=0).",
    out_type="same",
)
scatter_add = in_own_type(
    "scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
    _increased,
    forms="function method inplace out",
    apart="own in place",
    d_self=lambda g: g,
    d_src=lambda g, dim, index, src_shape: back_to_source(g, dim, index, src_shape, "ScatterAdd"),
    batch="along",
    fresh=True,
    doc="self[index[i][j]][j] += src[i][j] (for dim=0).",
    out_type="same",
)

# -- places in the flattened tensor ---------------------------------------------------------------


def _flat_index(name: str, a: Array, i: Array) -> Any:
    if i.dtype != np.int64:
        raise RuntimeError(f"{name}: Expected a long tensor for index, but got {type_name(i)}")
    n = a.size
    if i.size and (int(i.min()) < -n or int(i.max()) >= n):
        raise IndexError(
            "out of range: tried to access index "
            f"{int(i.max()) if int(i.max()) >= n else int(i.min())} on a tensor of {n} elements."
        )
    return i


def _take(xp: ArrayModule, a: Array, i: Array) -> Any:
    return xp.take(a, _flat_index("take()", a, i))


def _take_gradient(g: Tensor, self: Tensor, index: Tensor) -> Any:
    nothing = self.detach().clone().zero_()  # which lies as self does
    return nothing.put(index, g, True)


take = in_own_type(
    "take(Tensor self, Tensor index) -> Tensor",
    _take,
    apart="own",
    out_type="same",
    d_self=_take_gradient,
    doc="Elements by their place in the flattened tensor.",
)


def _put_flat(xp: ArrayModule, a: Array, i: Array, source: Array, accumulate: bool) -> Any:
    if not accumulate:
        alert_not_deterministic("put_")
    i = _flat_index("put_()", a, i).reshape(-1)
    if source.dtype != a.dtype:
        raise RuntimeError(
            "put_(): self and source expected to have the same dtype, but got "
            f"self.dtype = {type_name(a)} and source.dtype = {type_name(source)}"
        )
    if source.size != i.size:
        raise IndexError(
            "put_(): Expected source and index to have the same number of elements, "
            f"but got source.numel() = {source.size}, index.numel() = {i.size}"
        )
    result = in_rows(a)
    flat = result.reshape(-1)
    if accumulate:
        add_at(xp, flat, i % max(a.size, 1), source.reshape(-1))
    else:
        flat[i] = source.reshape(-1)
    return result


put: Op = in_own_type(
    "put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor",
    _put_flat,
    forms="function method inplace",
    apart="in place",
    memory="like",
    d_self=lambda g, index, source, accumulate: (  # saves source as PyTorch
        g if accumulate else g.put(index, g.new_zeros(index.shape), False)
    ),
    d_source=lambda g, index, source: g.take(index).reshape(source.shape),
    doc="Elements written, or added, at places in the flattened tensor.",
)
