"""Samples of indexing, gathering, scattering, sorting and searching."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.ops.samples.base import (
    NAN,
    OTHERS,
    S,
    Sample,
    V,
    boolean,
    c128,
    const,
    entry,
    f32,
    f64,
    i32,
    i64,
    layouts,
    t,
    u8,
)  # fmt: skip
from tests.oracle import torch


def ix(*values: Any) -> Any:
    return const(list(values), i64)


KEYS: list[tuple[tuple[int, ...], Any]] = [
    ((3, 4), 1), ((3, 4), -1), ((3, 4), slice(1, None)), ((3, 4), (slice(None), 2)),
    ((3, 4), (Ellipsis, None)),
    ((3, 4), None), ((3, 4), Ellipsis), ((2, 3, 4), (0, Ellipsis, slice(None, None, 2))),
    ((3, 4), (1, 2)),
    ((3, 4), [0, 2]), ((3, 4), ([0, 2], [1, 1])), ((3, 4), (slice(None), [3, 0])),
    ((3, 4), ([[0], [1]], [1, 2])),
    ((2, 3, 4), ([0, 1], slice(None), [1, 2])), ((2, 3, 4), (slice(None), [0, 1], [1, 2])),
    ((2, 3, 4), (0, [1, 0], slice(1, 3))), ((3, 4), True), ((), Ellipsis), ((), None), ((), True),
    ((2, 3, 4), ([1], None, slice(None), [2])), ((0, 3), slice(None)), ((3, 4), ()),
]  # fmt: skip


def _keys() -> Iterator[tuple[Any, Any]]:
    for shape, key in KEYS:
        yield t(shape), key
    for layout in ("transposed", "strided", "expanded", "offset"):
        yield t((3, 4), layout=layout), ix(2, 0, 2)
        yield t((3, 4), layout=layout), (slice(0, 2), ix(1, 1))
        yield t((3, 4), layout=layout), 1
    x = t((3, 4))
    yield x, x > 0
    yield x, const([True, False, True], boolean)
    yield x, (slice(None), const([True, False, True, True], boolean))
    yield x, (const([True, False, True], boolean), ix(0, 3))
    yield x, (ix(0, 2)[:, None], ix(1, 2, 3))
    yield x, ix()
    yield x, const([0, -1], i32)
    yield x, const(1, i64)
    yield x, (const(1, i64), slice(None))
    yield t((2, 3, 4)), (const([[True, False, True], [False, True, True]], boolean), 1)


def _getitem() -> Iterator[Sample]:
    for x, key in _keys():
        yield S(x, key)
        yield V(x.to(i64), key)


def _get(side: Any) -> Any:
    return lambda x, key: x[key]


for _name in ("getitem", "__getitem__"):
    entry(_name, _getitem, exact=True, call=_get, forms=False)


def _setitem() -> Iterator[Sample]:
    for x, key in _keys():
        target = x[key]
        dense = x.contiguous()
        duplicates = isinstance(key, torch.Tensor) and key.dtype is i64
        yield S(dense, key, 2.5)
        if not duplicates:  # which of several writes to one place wins is not defined
            yield S(dense, key, t(tuple(target.shape)))
        yield S(dense, key, t(()))


def _set(side: Any) -> Any:
    def run(x: Any, key: Any, value: Any) -> Any:
        out = x.clone()
        out[key] = value
        return out

    return run


for _name in ("setitem", "__setitem__"):
    entry(_name, _setitem, exact=True, call=_set, forms=False)


def _index() -> Iterator[Sample]:
    yield S(t((3, 4)), (ix(0, 2),))
    yield S(t((3, 4)), (ix(0, 2), ix(1, 1)))
    yield S(t((3, 4)), (const([True, False, True], boolean),))
    yield S(t((3, 4), layout="transposed"), (ix(0, 2, 2),))


entry("index", _index, exact=True, call=_get, forms=False, covers=("_index_backward",))


def _index_put() -> Iterator[Sample]:
    yield S(t((3, 4)), (ix(0, 2),), t((2, 4)))
    yield S(t((3, 4)), (ix(0, 2), ix(1, 3)), t((2,)))
    yield S(t((3, 4)), (ix(0, 2), ix(1, 3)), t(()))
    yield S(t((3, 4)), (ix(0, 0), ix(1, 1)), t((2,)), True)
    yield S(t((3, 4)), (ix(0, 0, 2),), t((4,)), accumulate=True)
    yield S(t((3, 4)), (const([True, False, True], boolean),), t((4,)))
    yield V(t((3, 4), i64), (ix(0, 2),), const(7, i64))
    yield S(t((3, 4), layout="transposed"), (ix(0, 1),), t((4,)))


entry("index_put", _index_put)


def _index_select() -> Iterator[Sample]:
    for x in layouts():
        if x.ndim and x.shape[0]:
            yield S(x, 0, ix(0, 0))
            yield S(x, -1, ix(0))
    yield S(t((3, 4)), 1, ix(3, 1, 1))
    yield S(t((3, 4)), 0, ix())
    yield S(t((3, 4)), 0, const(1, i64))
    yield S(t((3, 4)), 0, const([1, 2], i32))
    yield V(t((3, 4), i64), 1, ix(0, 2))
    yield V(t((3, 4), boolean), 1, ix(0, 2))


entry("index_select", _index_select, exact=True)


def _index_add() -> Iterator[Sample]:
    yield S(t((3, 4)), 0, ix(0, 2, 0), t((3, 4)))
    yield S(t((3, 4)), 1, ix(1, 1), t((3, 2)))
    yield S(t((3, 4)), -1, ix(0), t((3, 1)), alpha=2)
    yield S(t((5,)), 0, ix(4, 4, 0), t((3,)))
    yield V(t((3, 4), i64), 0, ix(0, 0), t((2, 4), i64))
    yield S(t((3, 4), layout="transposed"), 0, ix(1), t((1, 4)))


entry("index_add", _index_add)


def _index_copy() -> Iterator[Sample]:
    yield S(t((3, 4)), 0, ix(2, 0), t((2, 4)))
    yield S(t((3, 4)), 1, ix(1), t((3, 1)))
    yield V(t((3, 4), i64), 0, ix(0), t((1, 4), i64))


entry("index_copy", _index_copy, exact=True)


def _index_fill() -> Iterator[Sample]:
    yield S(t((3, 4)), 0, ix(2, 0), 1.5)
    yield S(t((3, 4)), 1, ix(1, 1), t(()))
    yield V(t((3, 4), i64), 0, ix(0), 3)


entry("index_fill", _index_fill, exact=True)


def _gather() -> Iterator[Sample]:
    yield S(t((3, 4)), 0, const([[0, 2, 1, 0]], i64))
    yield S(t((3, 4)), 1, const([[0, 0], [3, 1], [2, 2]], i64))
    yield S(t((3, 4)), -1, const([[0], [1]], i64))
    yield S(t((3, 4), layout="transposed"), 1, const([[3], [0], [1]], i64))
    yield S(t((5,)), 0, ix(4, 4, 0))
    yield S(t(()), 0, const(0, i64))
    yield S(t((3, 4)), 0, const([], i64).reshape(0, 4))
    yield V(t((3, 4), i64), 1, const([[0], [1], [2]], i64))


entry("gather", _gather, exact=True, covers=("_scattered",))


def _scatter() -> Iterator[Sample]:
    k = const([[0, 2, 1, 0]], i64)
    yield S(t((3, 4)), 0, k, t((1, 4)))
    yield S(t((3, 4)), 0, k, t((3, 4)))
    yield S(t((3, 4)), 1, const([[0, 1], [3, 1], [2, 0]], i64), t((3, 2)))
    yield S(t((3, 4)), 0, k, 1.5)
    yield S(t((3, 4)), 1, const([[3], [0]], i64), 2)
    yield V(t((3, 4), i64), 0, k, t((1, 4), i64))
    yield S(t((3, 4), layout="transposed"), 0, k, t((1, 4)))


entry("scatter", _scatter, exact=True)


def _scatter_add() -> Iterator[Sample]:
    k = const([[0, 2, 1, 0], [0, 0, 1, 2]], i64)
    yield S(t((3, 4)), 0, k, t((2, 4)))
    yield S(t((3, 4)), 0, k, t((3, 4)))
    yield S(t((3, 4)), -1, const([[1, 1], [3, 3], [2, 0]], i64), t((3, 2)))
    yield S(t((5,)), 0, ix(4, 4, 0), t((3,)))
    yield V(t((3, 4), i64), 0, k, t((2, 4), i64))


entry("scatter_add", _scatter_add)


def _scatter_reduce() -> Iterator[Sample]:
    k = const([[0, 2, 1, 0], [0, 0, 1, 2]], i64)
    for how in ("sum", "amax", "amin", "mean", "prod"):
        yield Sample((t((3, 4)), 0, k, t((2, 4)), how), second=how in ("sum", "mean"))
    yield S(t((3, 4)), 0, k, t((2, 4)), "sum", include_self=False)


entry("scatter_reduce", _scatter_reduce)


def _masked_fill() -> Iterator[Sample]:
    for x in layouts():
        yield S(x, t(tuple(x.shape), boolean), 1.5)
    yield S(t((3, 4)), t((4,), boolean), t(()))
    yield S(t((3, 4)), t((3, 1), boolean), 0)
    yield S(t((4,)), t((3, 4), boolean), 2.0)
    yield V(t((3, 4), i64), t((3, 4), boolean), 3)
    yield V(t((3, 4), f32), t((3, 4), boolean), -float("inf"))
    yield V(t((3, 4), boolean), t((3, 4), boolean), True)


entry("masked_fill", _masked_fill, exact=True)


def _masked_select() -> Iterator[Sample]:
    for x in layouts():
        yield S(x, t(tuple(x.shape), boolean))
    yield S(t((3, 4)), t((4,), boolean))
    yield S(t((4,)), t((3, 1), boolean))
    yield V(t((3, 4), i64), t((3, 4), boolean))


entry("masked_select", _masked_select, exact=True)


def _masked_scatter() -> Iterator[Sample]:
    yield S(t((3, 4)), t((3, 4), boolean), t((3, 4)))
    yield S(t((3, 4)), t((4,), boolean), t((20,)))


entry("masked_scatter", _masked_scatter, exact=True)


def _take() -> Iterator[Sample]:
    yield S(t((3, 4)), ix(0, 11, -1))
    yield S(t((3, 4), layout="transposed"), const([[0, 5], [5, 2]], i64))
    yield S(t((3, 4)), const(3, i64))
    yield V(t((3, 4), i64), ix(1))


entry("take", _take, exact=True)


def _put() -> Iterator[Sample]:
    yield S(t((3, 4)), ix(0, 11, -2), t((3,)))
    yield S(t((3, 4)), ix(0, 0, 3), t((3,)), True)


entry("put", _put)


def _take_along_dim() -> Iterator[Sample]:
    yield S(t((3, 4)), const([[0, 2, 1, 0]], i64), 0)
    yield S(t((3, 4)), const([[3], [0], [1]], i64), dim=1)
    yield S(t((3, 4)), const([[2], [0], [1]], i64), 1)
    yield S(t((3, 4)), ix(0, 5))


entry("take_along_dim", _take_along_dim, exact=True)


def _nonzero() -> Iterator[Sample]:
    for d in (f64, i64, boolean, u8):
        yield V(t((3, 4), d, -1, 1))
        yield V(const([0, 1, 0, 2]).to(d))
        yield V(const(1).to(d))
        yield V(const(0).to(d))
        yield V(t((0, 3), d))
    yield V(t((3, 4), i64, 0, 1), as_tuple=True)
    yield V(t((3, 4), i64, 0, 1, "transposed"))


entry("nonzero", _nonzero)


def _argwhere() -> Iterator[Sample]:
    yield V(t((3, 4), i64, 0, 1))
    yield V(t((3,), boolean))


entry("argwhere", _argwhere)


def _distinct(*shape: int, dtype: Any = f64) -> Any:
    """Values without ties, shuffled."""
    n = 1
    for k in shape:
        n *= k
    return (torch.randperm(n).to(dtype) - n // 2).reshape(shape) * (1 if dtype is i64 else 0.7)


def _sort(stable: bool) -> Any:
    def draw() -> Iterator[Sample]:
        x = _distinct(3, 4)
        yield S(x)
        yield S(x, 0)
        yield S(x, dim=0, descending=True)
        yield S(x, -1, True)
        yield S(x.t())
        yield S(_distinct(2, 3, 4), 1)
        yield S(t(()))
        yield S(t((0, 3)), 0)
        yield V(_distinct(6, dtype=i64))
        yield V(const([2.0, NAN, 1.0, 3.0]))
        yield V(const([2.0, NAN, 1.0, 3.0]), descending=True)
        yield S(const([1.0, 0.0, 1.0, 0.0, 2.0]), stable=True)
        yield V(const([[1, 0, 1], [2, 2, 1]], i64), stable=True, dim=1, descending=True)
        yield V(const([True, False, True], boolean), stable=True)

    return draw


entry("sort", _sort(True), exact=True)
entry("argsort", _sort(False), exact=True)
entry("msort", lambda: iter([S(_distinct(3, 4)), S(_distinct(5))]), exact=True)


def _topk() -> Iterator[Sample]:
    x = _distinct(3, 4)
    yield S(x, 2)
    yield S(x, 2, 0)
    yield S(x, 3, dim=1, largest=False)
    yield S(x.t(), 1)
    yield S(x, 4)
    yield S(x, 0)
    yield S(t(()), 1)
    yield V(_distinct(6, dtype=i64), 3)
    yield V(const([2.0, NAN, 1.0, 3.0]), 2)


entry("topk", _topk, exact=True)


def _kthvalue() -> Iterator[Sample]:
    x = _distinct(3, 4)
    yield S(x, 2)
    yield S(x, 1, 0)
    yield S(x, 3, 1, True)


entry("kthvalue", _kthvalue, exact=True)


def _unique() -> Iterator[Sample]:
    for d in (f64, i64, boolean, u8, f32):
        yield V(const([3, 1, 2, 1, 3, 3]).to(d))
        yield V(const([[3, 1], [1, 3]]).to(d), return_inverse=True)
        yield V(const([3, 1, 2, 1]).to(d), True, True, True)
        yield V(const([3, 1, 2, 1]).to(d), return_counts=True)
    yield V(const([[3, 1], [1, 3], [3, 1]]), dim=0)
    yield V(const([[3, 1, 3], [1, 3, 1]]), dim=1, return_inverse=True, return_counts=True)
    yield V(t((0,)))
    yield V(t(()))


entry("unique", _unique, exact=True, covers=("_unique2", "unique_dim"))


def _unique_consecutive() -> Iterator[Sample]:
    yield V(const([1, 1, 2, 2, 3, 1, 1, 2], i64))
    yield V(const([1, 1, 2, 2, 3, 1, 1, 2], i64), return_inverse=True, return_counts=True)
    yield V(const([[1, 1], [1, 1], [2, 1]], i64), dim=0)


entry("unique_consecutive", _unique_consecutive, exact=True, covers=("_unique_consecutive",))


def _searchsorted() -> Iterator[Sample]:
    edges = const([1.0, 3.0, 5.0, 7.0])
    yield V(edges, t((3, 2), f64, 0, 9))
    yield V(edges, const([1.0, 3.0, 8.0]), right=True)
    yield V(edges, const([3.0]), side="right")
    yield V(edges, 4.0)
    yield V(const([[1, 3, 5], [2, 4, 6]], i64), const([[3, 6], [3, 6]], i64))
    yield V(edges, const([1.0, 3.0]), out_int32=True)


entry("searchsorted", _searchsorted)


def _bucketize() -> Iterator[Sample]:
    edges = const([1.0, 3.0, 5.0])
    yield V(t((3, 2), f64, 0, 9), edges)
    yield V(const([1.0, 3.0]), edges, right=True)


entry("bucketize", _bucketize)


def _bincount() -> Iterator[Sample]:
    yield V(const([0, 3, 1, 3], i64))
    yield V(const([0, 3, 1, 3], i64), t((4,)))
    yield V(const([0, 1], i64), minlength=6)
    yield V(const([], i64))


entry("bincount", _bincount)


def _isin() -> Iterator[Sample]:
    yield V(const([1, 2, 3], i64), const([2, 5], i64))
    yield V(const([[1, 2], [3, 4]], i64), const([2, 3], i64), invert=True)
    yield V(const([1.0, 2.0]), 2.0)


entry("isin", _isin)


def _embedding() -> Iterator[Sample]:
    yield Sample((const([[0, 2], [1, 1]], i64), t((4, 3))))
    yield Sample((const([0, 3], i64), t((4, 3))), {"padding_idx": 0})
    yield Sample((const(1, i64), t((4, 3), f32)))


entry("embedding", _embedding, call=lambda side: side.root.nn.functional.embedding)


def _one_hot() -> Iterator[Sample]:
    yield V(const([0, 2, 1], i64))
    yield V(const([[0, 2], [1, 0]], i64), 5)


entry("one_hot", _one_hot)


def _select_scatter() -> Iterator[Sample]:
    yield S(t((3, 4)), t((4,)), 0, 1)
    yield S(t((3, 4)), t((3,)), 1, -1)


entry("select_scatter", _select_scatter, exact=True)


def _slice_scatter() -> Iterator[Sample]:
    yield S(t((5, 4)), t((2, 4)), 0, 1, 3)
    yield S(t((5, 4)), t((5, 2)), 1, 0, 4, 2)


entry("slice_scatter", _slice_scatter, exact=True)


def _diagonal_scatter() -> Iterator[Sample]:
    yield S(t((3, 4)), t((3,)))
    yield S(t((3, 4)), t((3,)), 1)
    yield S(t((2, 3, 3)), t((2, 2)), -1, 1, 2)


entry("diagonal_scatter", _diagonal_scatter, exact=True)


def _as_strided_scatter() -> Iterator[Sample]:
    # PyTorch's gradient of self is wrong (it is kept where src lies): of src only.
    yield Sample((t((3, 4)).detach(), t((2, 2)), (2, 2), (1, 4), 1), grad=False)
    yield V(t((3, 4)), t((2,)), (2,), (5,))
    yield V(t((3, 4), layout="transposed"), t((2,)), (2,), (5,), 2)


entry("as_strided_scatter", _as_strided_scatter, exact=True)


def _index_reduce() -> Iterator[Sample]:
    x, k = t((3, 4), f64, 0.5, 2), ix(0, 2, 0)
    for how in ("prod", "mean", "amax", "amin"):
        for include in (True, False):
            yield Sample((x, 0, k, t((3, 4), f64, 0.5, 2), how), {"include_self": include},
                         second=how in ("mean", "prod"))  # fmt: skip
    yield S(x, 1, ix(1, 1), t((3, 2), f64, 0.5, 2), "prod")
    yield V(t((3, 4), i64), 0, ix(0, 0), t((2, 4), i64), "mean")
    yield V(t((3, 4), i64), 0, ix(0, 0), t((2, 4), i64), "amax", include_self=False)


entry("index_reduce", _index_reduce)


def _unsafe_masked_index() -> Iterator[Sample]:
    index, mask = ix(0, 7, -1), const([True, False, True], boolean)
    yield S(t((3, 4)), mask[:, None], [index], 0.5)
    yield S(t((3,)), mask, [index], 0)


entry("_unsafe_masked_index", _unsafe_masked_index)


def _unsafe_put() -> Iterator[Sample]:
    index, mask = ix(0, 7, -1), const([True, False, True], boolean)
    yield S(t((3,)), mask, [index], t((3,)))


entry("_unsafe_masked_index_put_accumulate", _unsafe_put)


def _nonzero_static() -> Iterator[Sample]:
    for size in (0, 2, 9):
        yield V(t((3, 4), i64, 0, 1), size=size)
    yield V(t((3,), boolean), size=4, fill_value=7)


entry("nonzero_static", _nonzero_static)


def _unravel_index() -> Iterator[Sample]:
    yield V(const([0, 5, 11], i64), (3, 4))
    yield V(const([[0, 5]], i32), (2, 1, 3))
    yield V(const(3, i64), 4)


entry("unravel_index", _unravel_index, exact=True)


def _histc() -> Iterator[Sample]:
    x = t((3, 4))
    yield V(x)
    yield V(x, bins=5, min=-1, max=1)
    yield V(x.to(f32), 4)
    yield V(const([1.0, 1.0]), bins=3)
    yield V(t((0,)), bins=3)


entry("histc", _histc)


def _histogram() -> Iterator[Sample]:
    x = t((3, 4))
    yield V(x, 4)
    yield V(x, const([-1.0, 0.0, 0.5, 2.0]))
    yield V(x, 4, range=(-1.0, 1.0), weight=t((3, 4)), density=True)
    yield V(x.to(f32), 3)


entry("histogram", _histogram)


def _histogramdd() -> Iterator[Sample]:
    x = t((9, 2))
    yield V(x, [2, 3])
    yield V(x, 2, range=[-1.0, 1.0, -2.0, 2.0], density=True)
    yield V(x, [const([-1.0, 0.0, 1.0]), const([-2.0, 2.0])], weight=t((9,)))


entry("histogramdd", _histogramdd)


def _item() -> Iterator[Sample]:
    for d in (f64, *OTHERS):
        yield V(t((), d))
        yield V(t((1, 1), d))


entry("item", _item, call=lambda side: side.Tensor.item, exact=True, forms=False)
entry("tolist",
    lambda: (V(t(s, d)) for s in ((), (2, 3), (0, 2)) for d in (f64, i64, boolean, f32, c128)),
      call=lambda side: side.Tensor.tolist, exact=True, forms=False)  # fmt: skip
