"""Ops that put elements in order or count them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from toytorch.backends.generic import attempt, every, some, taken
from toytorch.facts import warned
from toytorch.facts.dtype import no_kernel
from toytorch.facts.hints import Array, ArrayModule, Sizes
from toytorch.facts.size import wrap_dim
from toytorch.ops import named_dims
from toytorch.ops.define import in_own_type, underived
from toytorch.ops.indexing.along_dim import scattered
from toytorch.ops.reductions.extremes import back_to_place, share_ties_of_all

SHORT, SMALL = 32, 1024  # rows, and numbers, that are sorted by insertion


def order(xp: ArrayModule, a: Array, dim: int, descending: bool, stable: bool = True) -> Any:
    """Indices that sort along a dimension; NaN counts as the largest."""
    if a.dtype.kind == "V":  # bfloat16, which CuPy does not sort
        a = a.astype(np.float32)
    made = attempt(xp, "ordered", a, dim, descending)
    if made is not None:
        return made[1]
    if a.__class__ is np.ndarray:
        if not descending:
            return a.argsort(dim, "stable")
        flipped = (slice(None),) * dim + (slice(None, None, -1),)
        return a.shape[dim] - 1 - a[flipped].argsort(dim, "stable")[flipped]
    if not descending:
        return xp.argsort(a, axis=dim, kind="stable")
    flipped = xp.flip(a, dim)  # sorting the reversed array keeps equal elements in order
    index = xp.flip(xp.argsort(flipped, axis=dim, kind="stable"), dim)
    return a.shape[dim] - 1 - index


def _sort(xp: ArrayModule, a: Array, dim: int, descending: bool, stable: bool) -> Any:
    d = wrap_dim(dim, a.ndim)
    if a.dtype.kind in "cW":
        raise RuntimeError(" Sort does not support complex dtypes on CPU")
    if a.ndim == 0:
        return a.copy(), xp.zeros((), np.int64)
    if a.shape[d] <= SHORT and a.size < SMALL:
        made = attempt(xp, "top", a, a.shape[d], d, descending)
    else:
        made = attempt(xp, "ordered", a, d, descending)
    if made is not None:
        return made
    index = order(xp, a, d, descending)
    return taken(xp, a, index, d), index.astype(np.int64, copy=False)


def _back(gs: Any, self_shape: Sizes, dim: int, result1: Any) -> Any:
    return scattered.function(gs[0], self_shape, dim, result1)


sort = in_own_type(
    "sort(Tensor self, int dim=-1, bool descending=False, bool? stable=False) "
    "-> (Tensor values, Tensor indices)",
    _sort,
    d_self=_back,
    memory="kept",
    batch="along",
    names="same",
    apart="partly",
    doc="Elements in order along a dimension, and where they were.",
    out_type="same",
)


def _topk(xp: ArrayModule, a: Array, k: int, dim: int, largest: bool, sorted: bool) -> Any:
    d = wrap_dim(dim, a.ndim)
    n = a.shape[d] if a.ndim else 1
    k = int(k)  # traced, a tensor's only element
    if not 0 <= k <= n:
        raise RuntimeError("selected index k out of range")
    if a.dtype.kind == "b":
        raise RuntimeError("topk does not support bool dtypes on CPU")
    if a.dtype.kind == "c":
        raise RuntimeError(" topk does not support complex dtypes on CPU")
    if a.ndim == 0:
        return a.copy(), xp.zeros((), np.int64)
    made = attempt(xp, "top", a, k, d, largest, True)
    if made is not None:
        values, index, told = made
    else:
        index = order(xp, a, d, largest)[(slice(None),) * d + (slice(k),)]
        values, index = taken(xp, a, index, d), index.astype(np.int64)
        told = (
            sorted and d == a.ndim - 1 and a.__class__ is np.ndarray and clear(a, values, largest)
        )
    if n <= FEW and a.size <= SEVERAL and a.__class__ is np.ndarray and values.size:
        if sorted and told:
            return values, index
        last = values[(slice(None),) * d + (slice(k - 1, k),)]
        if not sorted or equal(values, d) or bool((_same(a, last).sum(d) > 1).any()):
            from toytorch.ops.reductions.equals import top  # seldom needed

            index = by_rows(a, d, lambda row: top(row, k, largest, sorted))
            return taken(xp, a, index, d), index
    return values, index


def clear(a: Array, values: Array, largest: bool) -> bool:
    """Whether the first numbers of each row, along the last dimension, are equal to no other number of
    the row, and none is NaN: then i numbers come up to the i-th of them."""
    k = values.shape[-1]
    if a.dtype.kind == "V" or a.size * k > MANY:
        return False
    rows, first = a[..., None, :], values[..., None]
    found = rows >= first if largest else rows <= first
    if 2 * int(np.count_nonzero(found)) != values.size * (k + 1):
        return False
    return a.dtype.kind != "f" or every(values == values)  # NaN in one row may make up for another


def _same(a: Array, b: Array) -> Any:
    return (a == b) | ((a != a) & (b != b))


def equal(values: Array, d: int) -> bool:
    """Whether neighbours along a dimension are equal."""
    lead = (slice(None),) * d
    return bool(_same(values[(*lead, slice(1, None))], values[(*lead, slice(-1))]).any())


def by_rows(a: Array, d: int, places: Callable[[list[Any]], list[int]]) -> Any:
    """The places that a function names in each row along a dimension."""
    turned = np.moveaxis(a, d, -1)
    plain = turned.astype(np.float32) if a.dtype.kind == "V" else turned
    found = [places(row) for row in plain.reshape(-1, plain.shape[-1]).tolist()]
    made = np.array(found, np.int64).reshape(*turned.shape[:-1], len(found[0]))
    return np.ascontiguousarray(np.moveaxis(made, -1, d))


topk = in_own_type(
    "topk(Tensor self, int k, int dim=-1, bool largest=True, bool sorted=True) "
    "-> (Tensor values, Tensor indices)",
    _topk,
    d_self=_back,
    batch="along",
    names="same",
    apart="partly",
    doc="The k largest (or smallest) along a dimension.",
    out_type="same",
)


def _kth(xp: ArrayModule, a: Array, k: int, dim: int, keepdim: bool) -> Any:
    d = wrap_dim(dim, a.ndim)
    n = a.shape[d] if a.ndim else 1
    if not n:
        raise IndexError(f"kthvalue(): Expected reduction dim {d} to have non-zero size.")
    if not 1 <= k <= n:
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {d}")
    if a.ndim == 0:
        return a.copy(), xp.zeros((), np.int64)
    if a.dtype.kind in "bc":
        raise no_kernel("kthvalue_cpu", a.dtype)
    index = order(xp, a, d, False)[(slice(None),) * d + (slice(k - 1, k),)]
    values = taken(xp, a, index, d)
    few = n <= FEW and a.size <= SEVERAL and a.__class__ is np.ndarray
    if few and bool((_same(a, values).sum(d) > 1).any()):  # the one that PyTorch comes upon
        index = by_rows(a, d, lambda row: [selected(row, k - 1)])
    if not keepdim:
        values, index = values.squeeze(d), index.squeeze(d)
    return values, index.astype(np.int64)


FEW = 256  # elements of a row, of which equal ones are told apart
SEVERAL = 1 << 15  # elements of all such rows
MANY = 1 << 13  # comparisons that are made at once, to see whether there are any


def selected(row: list[Any], k: int) -> int:
    """The place of the k-th smallest by quickselect (Hoare 1961), with the median of three as pivot
    and NaN as the largest: of several equal elements this says which."""
    place = list(range(len(row)))

    def above(x: Any, y: Any) -> bool:
        return bool((x != x and y == y) or x > y)

    def swap(i: int, j: int) -> None:
        row[i], row[j], place[i], place[j] = row[j], row[i], place[j], place[i]

    low, high = 0, len(row) - 1
    while high > low:
        if high == low + 1:
            if above(row[low], row[high]):
                swap(low, high)
            break
        swap(low + (high - low) // 2, low + 1)
        for i, j in ((low + 1, high), (low, high), (low + 1, low)):
            if above(row[i], row[j]):
                swap(i, j)
        i, j, pivot = low + 1, high, row[low]
        while True:
            i += 1
            while above(pivot, row[i]):
                i += 1
            j -= 1
            while above(row[j], pivot):
                j -= 1
            if j < i:
                break
            swap(i, j)
        swap(low, j)
        if j <= k:
            low = i
        if j >= k:
            high = j - 1
    return place[k]


kthvalue = in_own_type(
    "kthvalue(Tensor self, int k, int dim=-1, bool keepdim=False) "
    "-> (Tensor values, Tensor indices)",
    _kth,
    apart=True,
    out_type="output",
    d_self=back_to_place,
    batch="along",
    names="reduced",
    doc="The k-th smallest along a dimension.",
)


def median_by(
    xp: ArrayModule, a: Array, dim: int, keepdim: bool, kernel: str, middle: Callable[..., Array]
) -> Any:
    """(values, places) of the element for which `middle(xp, a, places, d)` chooses one of the
    places in order."""
    d = wrap_dim(dim, a.ndim)
    if a.ndim and not a.shape[d]:
        raise IndexError(f"median(): Expected reduction dim {d} to have non-zero size.")
    if a.dtype.kind in "bc":
        raise no_kernel(kernel, a.dtype)
    if a.ndim == 0:
        return a.copy(), xp.zeros((), np.int64)
    return picked(xp, a, middle(xp, a, order(xp, a, d, False), d), d, keepdim)


def picked(xp: ArrayModule, a: Array, index: Array, d: int, keepdim: bool) -> tuple[Array, Array]:
    """The one element of each row that an index names, and the index."""
    values = taken(xp, a, index, d)
    if not keepdim:
        values, index = values.squeeze(d), index.squeeze(d)
    return values, index.astype(np.int64)


def _middle(xp: ArrayModule, a: Array, places: Array, d: int) -> Any:
    at = (a.shape[d] - 1) // 2
    index = places[(*(slice(None),) * d, slice(at, at + 1))]
    if a.dtype.kind != "f":
        return index
    bad = xp.isnan(a)
    return xp.where(bad.any(axis=d, keepdims=True), xp.argmax(bad, axis=d, keepdims=True), index)


def _median(xp: ArrayModule, a: Array, dim: int, keepdim: bool, kernel: str = "median_out") -> Any:
    return median_by(xp, a, dim, keepdim, kernel, _middle)


median_dim = in_own_type(
    "median.dim(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
    _median,
    forms="method out",
    d_self=back_to_place,
    of_reals="median",
    batch="along",
    names="reduced",
    node="MedianBackward1",
    out_type="same",
    doc="The middle element along a dimension (the lower of two).",
)


def median_of_nothing(xp: ArrayModule, a: Array) -> Any:
    """NaN as PyTorch's processor converts it: True, the smallest integer of 32 or 64 bits, or 0."""
    if a.dtype.kind not in "iu":
        return xp.asarray(np.nan).astype(a.dtype)
    return xp.asarray(np.iinfo(a.dtype).min if a.itemsize > 2 else 0, a.dtype)


def _median_all(xp: ArrayModule, a: Array) -> Any:
    if not a.size:
        return median_of_nothing(xp, a)
    made = attempt(xp, "middle", a)
    if made is not None:
        return made
    flat = a.reshape(-1)
    known = a.__class__ is np.ndarray and a.dtype.kind == "f"
    if known and not some(a != a):
        return flat[order(xp, flat, 0, False)[(flat.size - 1) // 2]]
    return _median(xp, flat, 0, False, "median_cpu")[0]


median = in_own_type(
    "median(Tensor self) -> Tensor",
    _median_all,
    forms="out",
    d_self=share_ties_of_all,
    of_reals="median",
    names=named_dims.none,
    doc="The middle element (the lower of two).",
)


def _places(xp: ArrayModule, row: Array, values: Array, side: str) -> Any:
    """Where values go in a row, by halving, as PyTorch does it: in a row that is not sorted, and
    with NaN, which NumPy takes for the largest number, NumPy finds other places."""
    if row.dtype is values.dtype:
        made = attempt(xp, "places", row, values, side == "right")
        if made is not None:
            return made
    if row.__class__ is np.ndarray and 1 < len(row) <= 64:
        rising = every(row[1:] >= row[:-1])  # which no NaN is
        if rising and every(values == values):
            return xp.searchsorted(row, values, side)
    known = (row == row).all() and (values == values).all()
    if len(row) > 64 or (known and (row[1:] >= row[:-1]).all()):
        return xp.searchsorted(row, values, side)
    row = row.astype(np.result_type(row.dtype, values.dtype), copy=False)
    low, high = xp.zeros(values.shape, np.int64), xp.full(values.shape, len(row), np.int64)
    while (open_ := low < high).any():
        middle = low + ((high - low) >> 1)
        at = row[xp.minimum(middle, len(row) - 1)]
        later = ~(at >= values) if side == "left" else ~(at > values)
        low = xp.where(open_ & later, middle + 1, low)
        high = xp.where(open_ & ~later, middle, high)
    return low


def _searchsorted(
    xp: ArrayModule, sequence: Array, values: Array, right: bool, out_int32: bool
) -> Any:
    kind = np.int32 if out_int32 else np.int64
    side = "right" if right else "left"
    if not sequence.ndim:
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 dimension"
        )
    kinds = sequence.dtype, values.dtype
    common = kinds[0] if kinds[0] is kinds[1] else np.result_type(*kinds)
    if sequence.ndim > 1 and sequence.shape[:-1] != values.shape[:-1]:
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 "
            "dimensions of boundaries tensor and input value tensor must match, but we got "
            f"boundaries tensor {list(sequence.shape)} and input value tensor {list(values.shape)}"
        )
    if common.kind in "bc" and values.size:
        raise no_kernel("searchsorted_out_cpu", common)
    if sequence.ndim == 1 and kind is np.int64 and values.__class__ is np.ndarray:
        found = _places(xp, sequence, values, side)
        return found if found.__class__ is np.ndarray else np.asarray(found, kind)
    if sequence.ndim == 1:
        return xp.asarray(_places(xp, sequence, values, side), dtype=kind)
    if not values.size:
        return xp.zeros(values.shape, kind)
    rows = sequence.reshape(-1, sequence.shape[-1])
    wanted = values.reshape(rows.shape[0], -1)
    made = attempt(xp, "row_places", rows, wanted, right)
    if made is not None:
        return made.reshape(values.shape).astype(kind, copy=False)
    found = [_places(xp, r, v, side) for r, v in zip(rows, wanted)]
    return xp.asarray(found).reshape(values.shape).astype(kind)


searchsorted = in_own_type(
    "searchsorted(Tensor sorted_sequence, Operand self, *, bool right=False, "
    "bool out_int32=False) -> Tensor",
    _searchsorted,
    forms="out",
    doc="Where values would go in a sorted sequence.",
    out_type="indices",
)


ONLY_COUNTS = "bincount only supports 1-d non-negative integral inputs."


def _bincount(xp: ArrayModule, a: Array, weights: Any, minlength: int) -> Any:
    if a.dtype.kind not in "iu":
        raise no_kernel("bincount_cpu", a.dtype)
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if a.shape == (0,):
        return xp.zeros(minlength, np.int64)
    differ = weights is not None and weights.shape != a.shape
    if a.ndim != 1 or (differ and int(a.min()) < 0):
        raise RuntimeError(ONLY_COUNTS)
    if differ:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    if weights is not None and weights.dtype.kind == "c":
        warned.at_call("Casting complex values to real discards the imaginary part")
        weights = weights.real.astype(np.float64)
    try:
        counts = attempt(xp, "counted", a, minlength) if weights is None else None
        if counts is None:
            counts = xp.bincount(a, weights, minlength)
    except ValueError:  # it looks for negative numbers itself
        raise RuntimeError(ONLY_COUNTS) from None
    if weights is None:
        return counts
    return counts.astype(weights.dtype if weights.dtype == np.float32 else np.float64)


bincount = in_own_type(
    "bincount(Tensor self, Tensor? weights=None, int minlength=0) -> Tensor",
    _bincount,
    forms="function method",
    data_dependent=True,
    node="NotImplemented",
    d_weights=underived("aten::bincount"),
    doc="How often each integer occurs.",
)
