"""Ops that pick elements by index tensors and masks: `x[...]`, masked_fill, where, nonzero."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from toytorch.backends import generic, no_elements
from toytorch.backends.no_elements import with_strides
from toytorch.core.memory_order import copied, loop_strides, order_of, repeated, with_layout
from toytorch.core.op import Op
from toytorch.core.scalars import as_element
from toytorch.core.tensor import Tensor
from toytorch.core.write import c_name
from toytorch.facts.dtype import from_numpy_dtype
from toytorch.facts.hints import Array, ArrayModule, Scalar, Shape, Sizes
from toytorch.facts.size import broadcast_pair
from toytorch.ops import aten_words, batching, named_dims
from toytorch.ops.define import in_own_type, pointwise
from toytorch.ops.shaping.copies import MANY
from toytorch.ops.shaping.rearrange import cat


def add_at(
    xp: ArrayModule, target: Array, places: Array | tuple[Array | slice, ...], values: Array
) -> None:
    """target[places] += values, counting every place as often as it comes."""
    generic.at(xp, "add", target, places, values)


# -- x[...] ---------------------------------------------------------------------------------------


def full_places(indices: Sequence[Array | None]) -> tuple[Any, ...]:
    """Index arrays with full slices where there is none."""
    return tuple(slice(None) if i is None else i for i in indices)


def _check_bounds(a: Array, indices: Sequence[Array | None]) -> Sequence[Array | None]:
    """The indices, after a look at whether they name places; where nothing is read, none is asked
    for, and the indices that come back are of the first place."""
    if all(i is None or i.dtype != np.bool_ for i in indices) and (
        not a.size or any(i is not None and not i.size for i in indices)
    ):
        if all(i is None or i.size for i in indices) and any(
            i is not None and n == 0 for i, n in zip(indices, a.shape)
        ):
            raise IndexError("index is out of bounds for dimension with size 0")
        return [None if i is None else np.zeros_like(i) for i in indices]
    picked = [(n, i) for n, i in zip(a.shape, indices) if i is not None]
    for k, (n, i) in enumerate(picked):  # as PyTorch counts: the dimensions that are indexed
        if i.size and i.dtype.kind in "iu":
            low, high = generic.span(i)
            if low < -n or high >= n:
                bad = low if low < -n else high
                raise IndexError(f"index {bad} is out of bounds for dimension {k} with size {n}")
    return indices


def names_few(i: Array | None) -> bool:
    """Whether an index array has places, by their numbers."""
    return i is not None and i.dtype == np.int64 and bool(i.size)


def places_of(a: Array, indices: Sequence[Tensor | None]) -> list[Any]:
    """The arrays of indices, which for memory of the host are there, too."""
    arrays = [None if i is None else i._array for i in indices]
    if a.__class__ is np.ndarray:
        for i in arrays:
            if i is not None and not isinstance(i, np.ndarray):
                raise RuntimeError(
                    "indices should be either on cpu or on the same device as the indexed tensor "
                    "(cpu)"
                )
    return arrays


def in_rows(a: Array) -> bool:
    """Whether an array lies in rows for PyTorch's loops, too, which look at the steps of dimensions
    of 1."""
    steps = a.strides
    return a.flags.c_contiguous and (1 not in a.shape or [*steps] == sorted(steps, reverse=True))


def _index(xp: ArrayModule, a: Array, indices: Sequence[Tensor | None]) -> Any:
    arrays = places_of(a, indices)
    few = a.__class__ is np.ndarray and 0 < a.size < MANY
    one, rows = -1, few and in_rows(a)  # the only dimension that is indexed
    if few:
        for d, i in enumerate(arrays):
            if i is None:
                continue
            if i.dtype != np.int64 or not i.size:
                few = False
                break
            rows = rows and i.flags.c_contiguous
            one = d if one == -1 else -2
    if few and rows and one >= 0:
        try:
            return a.take(arrays[one], one)
        except IndexError:
            pass  # which is said in PyTorch's words below
    if not few:  # else NumPy asks
        arrays = list(_check_bounds(a, arrays))
    if generic.worthwhile(a, MANY):
        made = _slices(xp, a, arrays)
        if made is not None:
            return made
    try:
        found = a[full_places(arrays)]
    except IndexError as error:
        _check_bounds(a, arrays)
        raise_index(error, arrays)
        raise
    if found.__class__ is not np.ndarray or found.ndim < 2:
        return found
    if few and rows:
        return found if found.flags.c_contiguous else found.copy()
    a = a if a.size else with_strides(a)
    if found.size and in_rows(a) and all(i is None or i.flags.c_contiguous for i in arrays):
        return found if found.flags.c_contiguous else found.copy()
    return with_layout(found, _layout_of_picked(a, arrays, found))


def _slices(xp: ArrayModule, a: Array, arrays: Sequence[Array | None]) -> Any:
    """What one index array picks along its dimension; None where there are several."""
    at = [d for d, i in enumerate(arrays) if i is not None]
    if len(at) != 1 or not in_rows(a):
        return None
    d, i = at[0], arrays[at[0]]
    if i is None or i.dtype.kind != "i" or not i.flags.c_contiguous or not i.size:
        return None
    flat = i.reshape(-1)
    if flat.__class__ is not a.__class__:  # a list, for memory of a device
        flat = xp.asarray(flat)
    if int(flat.min()) < 0:
        flat = xp.where(flat < 0, flat + a.shape[d], flat)
    made = generic.attempt(xp, "select", a, d, flat)
    shape = *a.shape[:d], *i.shape, *a.shape[d + 1 :]
    return a.take(flat, d).reshape(shape) if made is None else made.reshape(shape)


def _layout_of_picked(a: Array, arrays: Sequence[Array | None], found: Array) -> tuple[int, ...]:
    """The strides of PyTorch's result: its loop goes over the source and the indices at once."""
    at = [d for d, i in enumerate(arrays) if i is not None]
    picked = [i for i in arrays if i is not None]
    common = np.broadcast_shapes(*(i.shape for i in picked))
    together = at[-1] - at[0] + 1 == len(at)
    before = at[0] if together else 0
    rest = [s for d, s in enumerate(a.strides) if d not in at]
    strides = [(*rest[:before], *(0 for _ in common), *rest[before:])]
    for i in picked:
        steps = repeated(i.shape, i.strides, common)
        # PyTorch gives an index dimensions of 1 for those of the source. Where the result has 1
        # there, too, their steps count as any others.
        size, end = i.itemsize, before + len(common)
        first = [size * max(math.prod(common), 1) * (n == 1) for n in found.shape[:before]]
        last = [size * (n == 1) for n in found.shape[end:]]
        strides.append((*first, *steps, *last))
    return loop_strides(found.shape, order_of(found.shape, strides), found.itemsize)


def raise_index(error: BaseException | str, arrays: Sequence[Array | None]) -> None:
    """PyTorch's words for index arrays that do not broadcast."""
    if "indexing arrays" in str(error):
        shapes = ", ".join(str(list(i.shape)) for i in arrays if i is not None)
        raise IndexError(
            f"shape mismatch: indexing tensors could not be broadcast together with shapes {shapes}"
        ) from None


index = in_own_type(
    "index(Tensor self, Indices indices) -> Tensor",
    _index,
    host_indices=True,
    forms="",
    d_self=lambda g, self_shape, indices: index_backward.function(g, self_shape, indices),
    batch=batching.indexed,
    overload="Tensor",
    doc="Elements at index tensors (None: a whole dimension).",
)


def _index_put(
    xp: ArrayModule,
    a: Array,
    indices: Sequence[Tensor | None],
    values: Array,
    accumulate: bool,
    into: bool = False,
) -> Any:
    """The array with values at some places: a copy of it, or (`into`) itself."""
    arrays = places_of(a, indices)
    count = sum(1 if i is None or i.dtype != np.bool_ else i.ndim for i in arrays)
    if count > a.ndim:
        raise IndexError(f"too many indices for tensor of dimension {a.ndim} (got {count})")
    for i in arrays:
        if i is not None and i.dtype not in (np.int64, np.int32, np.uint8, np.bool_):
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
    plain = a.__class__ is np.ndarray and a.size and values.size and values.dtype == a.dtype
    masked = [i is not None and i.dtype == np.bool_ for i in arrays]
    if values.size == 1 and any(masked) and not accumulate:
        values = as_element(xp, values.reshape(()), a.dtype)  # as masked_fill would
    if not plain or accumulate or not all(map(names_few, arrays)):  # else NumPy asks, then writes
        try:
            np.broadcast_shapes(*(i.shape for i in arrays if i is not None))
        except ValueError:
            raise_index("indexing arrays", arrays)
        try:
            arrays = list(_check_bounds(a, arrays))
        except IndexError:
            if a.size:  # else there is no place to ask for a type
                _need_fit(a, arrays, values)
                _need_same_type(a, values)
            raise
    if values.dtype != a.dtype or not values.size:  # NumPy takes any nothing for nothing
        _need_fit(a, arrays, values)
    _need_same_type(a, values)
    result = a if into else copied(a)
    places = full_places(arrays)
    try:
        if not accumulate:
            result[places] = values
        elif not _added_slices(xp, result, arrays, values):
            add_at(xp, result, places, values)
    except (IndexError, ValueError) as error:
        _need_fit(a, arrays, values)
        _check_bounds(a, arrays)
        raise_index(error, arrays)
        raise
    return result


def _added_slices(
    xp: ArrayModule, target: Array, arrays: Sequence[Array | None], values: Array
) -> bool:
    """Whether a kernel did it: where one index array, which is inside, picks slices of one dimension."""
    at = [d for d, i in enumerate(arrays) if i is not None]
    if len(at) != 1:
        return False
    d, i = at[0], arrays[at[0]]
    if i is None or i.dtype.kind != "i" or not values.size:
        return False
    if values.shape != (*target.shape[:d], *i.shape, *target.shape[d + 1 :]):
        return False
    rows, flat = values.reshape(*target.shape[:d], i.size, *target.shape[d + 1 :]), i.reshape(-1)
    if flat.__class__ is not target.__class__:  # as above
        flat = xp.asarray(flat)
    return generic.attempt(xp, "add_slices", target, d, flat, rows) is not None


def _need_same_type(a: Array, values: Array) -> None:
    if values.dtype != a.dtype:
        raise RuntimeError(
            f"Index put requires the source and destination dtypes match, got {type_name(a)} for "
            f"the destination and {type_name(values)} for the source."
        )


def _need_fit(a: Array, indices: Sequence[Array | None], values: Array) -> None:
    """Refuses values that do not fit where indices point, which need not be in bounds yet."""
    places = (i if i is None or i.dtype == np.bool_ else np.zeros_like(i) for i in indices)
    try:
        found = a[full_places(list(places))].shape
    except (IndexError, ValueError):
        return  # which is said elsewhere
    try:
        np.broadcast_to(np.empty(values.shape, bool), found)
    except ValueError:
        raise mismatch(values, found) from None


def mismatch(values: Array, found: tuple[int, ...]) -> RuntimeError:
    """What to raise for values that do not fit where they are to go."""
    return RuntimeError(
        f"shape mismatch: value tensor of shape {list(values.shape)} cannot be broadcast to "
        f"indexing result of shape {list(found)}"
    )


index_put: Op = in_own_type(
    "index_put(Tensor self, Indices indices, Tensor values, bool accumulate=False) -> Tensor",
    _index_put,
    host_indices=True,
    forms="function method inplace",
    overlap="tensor[indices] = tensor",
    apart="in place",
    d_self=lambda g, indices, accumulate: (
        g if accumulate else index_put.function(g, indices, g.new_zeros(()), False)
    ),
    d_values=lambda g, indices: index.function(g, indices),
    doc="Elements at index tensors replaced by, or increased by, values.",
)


def _index_backward(
    xp: ArrayModule, g: Array, size: Shape, indices: Sequence[Tensor | None]
) -> Any:
    zeros = xp.zeros(tuple(size), g.dtype)
    if g.__class__ is np.ndarray and g.size < MANY and len(indices) == 1:
        (i,) = places_of(zeros, indices)
        if names_few(i):  # inside, as it was when they were picked; else it is asked below
            try:
                np.add.at(zeros, i, g)
                return zeros
            except IndexError:
                zeros[...] = 0
    return _index_put(xp, zeros, indices, g, True, True)


index_backward: Op = in_own_type(
    "_index_backward(Tensor grad, int[] size, Indices indices) -> Tensor",
    _index_backward,
    host_indices=True,
    node="IndexPutBackward0",
    d_grad=lambda g, indices: index.function(g, indices),
    doc="The gradient of `index`: sums at index tensors in zeros of a size.",
)


def type_name(a: Array) -> str:
    """A type as error messages name it."""
    return from_numpy_dtype(a.dtype).legacy


def _product(shape: Sizes) -> int:
    n = 1
    for s in shape:
        n *= s
    return n


# -- masks ----------------------------------------------------------------------------------------


def need_mask(name: str, mask: Array) -> None:
    if mask.dtype != np.bool_:
        raise RuntimeError(
            f"{name} only supports boolean masks, but got mask with dtype "
            f"{c_name(from_numpy_dtype(mask.dtype))}"
        )


def _masked_fill(xp: ArrayModule, a: Array, mask: Array, value: Array | Scalar) -> Any:
    need_mask("masked_fill_", mask)
    if not isinstance(value, (int, float, complex)) and value.ndim:
        raise RuntimeError(
            "masked_fill_ only supports a 0-dimensional value tensor, but got tensor"
            f" with {value.ndim} dimension(s)."
        )
    c = value.__class__
    number: Any = value
    plain = a.__class__ is np.ndarray and a.dtype.char in "fd" and a.shape == mask.shape
    if plain and (
        (c is float and (-1e38 < number < 1e38 or abs(number) == np.inf))
        or (c is int and -9e18 < number < 9e18)
    ):
        filled = generic.where(mask, a.dtype.type(value), a)
        return filled if filled.flags.c_contiguous else filled.copy()
    shape = broadcast_pair(mask.shape, a.shape)
    filled = xp.where(mask, as_element(xp, value, a.dtype), a).reshape(shape)
    if filled.dtype != a.dtype:  # CuPy chooses between numbers of bfloat16 in float32
        return filled.astype(a.dtype)
    return filled if filled.flags.c_contiguous else filled.copy()


masked_fill = in_own_type(
    "masked_fill(Tensor self, Tensor mask, Operand value) -> Tensor",
    _masked_fill,
    forms="function method inplace",
    overlap="tensor[mask] = scalar",
    variant=lambda self, mask, value: 1 if hasattr(value, "dtype") else 0,
    d_self=lambda g, mask: g.masked_fill(mask, 0),
    d_value=lambda g, mask: (g * mask.to(g.dtype)).sum(),
    batch="elementwise",
    names="same",
    fresh=True,
    fused="value if mask else self",
    overload=aten_words.number_at(2),
    doc="A value wherever the mask is True.",
)


def _masked_select(xp: ArrayModule, a: Array, mask: Array) -> Any:
    if mask.dtype != np.bool_:
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    if a.shape != mask.shape:
        shape = broadcast_pair(a.shape, mask.shape)
        a, mask = xp.broadcast_to(a, shape), xp.broadcast_to(mask, shape)
    made = generic.attempt(xp, "picked", a, mask)
    return a[mask] if made is None else made


def _masked_select_gradient(g: Tensor, self: Tensor, mask: Tensor) -> Any:
    shape = broadcast_pair(self.shape, mask.shape)  # of self, which PyTorch saves
    return g.new_zeros(shape).masked_scatter(mask.expand(shape), g)


masked_select = in_own_type(
    "masked_select(Tensor self, Tensor mask) -> Tensor",
    _masked_select,
    apart="own",
    out_type="same",
    d_self=_masked_select_gradient,
    names=named_dims.one,
    data_dependent=True,
    doc="The elements where the mask is True, in one dimension.",
)


def _masked_scatter(xp: ArrayModule, a: Array, mask: Array, source: Array) -> Any:
    need_mask("masked_scatter_", mask)
    if source.dtype != a.dtype:
        raise RuntimeError(
            "masked_scatter: expected self and source to have same dtypes but got"
            f"{type_name(a)} and {type_name(source)}"
        )
    shape = broadcast_pair(a.shape, mask.shape)
    result, mask = xp.broadcast_to(a, shape).copy(), xp.broadcast_to(mask, shape)
    count = int(mask.sum())
    if count > source.size:
        raise RuntimeError("Number of elements of source < number of ones in mask")
    result[mask] = source.reshape(-1)[:count]
    return result


def _masked_scatter_source(g: Tensor, mask: Tensor, source_shape: Sizes) -> Any:
    n = _product(source_shape)
    picked = g.masked_select(mask)
    rest = picked.new_zeros(n - picked.shape[0])
    return cat.function([picked, rest], 0).reshape(source_shape)


masked_scatter = in_own_type(
    "masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor",
    _masked_scatter,
    forms="function method inplace",
    d_self=lambda g, mask: g.masked_fill(mask, 0),
    d_source=_masked_scatter_source,
    doc="Elements of source, in order, wherever the mask is True.",
)


where = pointwise(
    "where(Tensor condition, Operand self, Operand other) -> Tensor",
    formula="self if condition else other",
    forms="out",
    promotion="none",
    out_type="same",
    d_self="g if condition else 0",
    d_other="0 if condition else g",
    overload="self",
    doc="self where the condition holds, other elsewhere.",
)


def _nonzero(xp: ArrayModule, a: Array) -> Any:
    if a.ndim == 0:
        made = xp.zeros((int(bool(a)), 0), np.int64)
        return with_layout(made, (8, 8 * len(made))) if a.__class__ is np.ndarray else made
    found = generic.attempt(xp, "nonzero", a if a.dtype.kind == "b" else a != 0)
    if found is None and a.__class__ is np.ndarray:
        places = generic.concatenate(a.nonzero()).reshape(a.ndim, -1).T
        if not len(places):
            return no_elements.lying(places, places.shape, (places.itemsize, 0), 0)
        return places
    found = xp.argwhere(a).astype(np.int64) if found is None else found
    if found.__class__ is not np.ndarray:
        return found
    step = found.itemsize  # each dimension's places are side by side
    return with_layout(found, (step, step * len(found)))


nonzero = in_own_type(
    "nonzero(Tensor self) -> Tensor",
    _nonzero,
    forms="out",
    apart="own",
    data_dependent=True,
    doc="The places of all non-zero elements, one a row.",
    out_type="scalar",
)
