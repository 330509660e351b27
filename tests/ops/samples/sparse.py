"""Samples of sparse tensors: functions of dense tensors that go through sparse ones.

Tensors cross between the implementations as dense arrays, so every function here starts and ends
dense. tests/sparse has the rest: printing, forms, errors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tests.ops.samples.base import S, Sample, V, boolean, c64, const, entry, f32, f64, i64, t

PLACES = const([[0, 2, 1, 0], [1, 0, 3, 1]], i64)  # the last is at the first one's place
MASK = const([[0, 1, 0, 1], [0, 0, 0, 0], [1, 0, 0, 1]])


def holes(*shape: int, dtype: Any = f64) -> Any:
    """A random tensor with zeros."""
    x = t(shape, dtype)
    return x * (t(shape, f64) > 0).to(dtype)


def _to_sparse() -> Iterator[Sample]:
    for x in (holes(3, 4), holes(2, 3, 2), holes(5), t(()), t((0, 3)), t((3, 4), layout="strided")):
        yield S(x)
    yield S(holes(3, 4), 1)
    yield S(holes(2, 3, 2), 2)
    for d in (boolean, i64, f32, c64):
        yield S(holes(3, 4, dtype=d))


def _through(side: Any) -> Any:
    return lambda x, *dims: x.to_sparse(*dims).to_dense()


entry("to_sparse", _to_sparse, call=_through, forms=False, covers=("to_dense", "sparse_mask"))


def _constructed() -> Iterator[Sample]:
    yield S(PLACES, t((4,)), (3, 4))
    yield S(PLACES, t((4,)), (5, 6))
    yield S(PLACES, t((4, 2)), (3, 4, 2))
    yield S(const([[], []], i64), t((0,)), (2, 3))
    yield S(const([[1]], i64), t((1, 3)), (2, 3))
    for d in (i64, f32, c64):
        yield V(PLACES, t((4,), d), (3, 4))


def _construct(side: Any) -> Any:
    return lambda i, v, size: side.root.sparse_coo_tensor(i, v, size).to_dense()


entry("sparse_coo_tensor", _constructed, call=_construct, forms=False,
      covers=("_sparse_coo_tensor", "_sparse_entries"))  # fmt: skip


def _coalesce(side: Any) -> Any:
    return lambda i, v, size: side.root.sparse_coo_tensor(i, v, size).coalesce().values() ** 2


entry("coalesce", lambda: (replace(s, second=False) for s in _constructed()), call=_coalesce,
      forms=False, covers=("values",))  # fmt: skip


def _masked(side: Any) -> Any:
    return lambda x, mask: x.sparse_mask(mask.to_sparse()).to_dense() ** 2


def _masked_sparse(side: Any) -> Any:
    return lambda x, mask: x.to_sparse().sparse_mask(mask.to_sparse()).to_dense() ** 2


entry("sparse_mask dense", lambda: iter([S(t((3, 4)), MASK)]), call=_masked, forms=False)
entry("sparse_mask sparse", lambda: iter([S(holes(3, 4), MASK)]), call=_masked_sparse, forms=False,
      covers=("sparse_mask.sparse",))  # fmt: skip


def _matrices() -> Iterator[Sample]:
    yield S(holes(3, 4), t((4, 2)))
    yield S(holes(3, 4), t((4, 1), layout="strided"))
    yield S(holes(1, 5), t((5, 3), layout="transposed"))
    yield S(holes(20, 30) * (t((20, 30)) > 1.7), t((30, 2)))  # few enough to be worth a sparse sum
    yield S(const([[0.0, 0.0]]), t((2, 2)))


def _mm(side: Any) -> Any:
    return lambda a, b: side.root.sparse.mm(a.to_sparse(), b)


def _mm_both(side: Any) -> Any:
    return lambda a, b: side.root.sparse.mm(a.to_sparse(), b.to_sparse()).to_dense()


def _product(side: Any) -> Any:
    return lambda a, b: a.to_sparse() @ b


entry("sparse.mm", _matrices, call=_mm, forms=False, covers=("_sparse_addmm", "_sampled_mm"))
entry("sparse.mm sparse", _matrices, call=_mm_both, forms=False, covers=("_sparse_sparse_matmul",))
entry("matmul sparse", _matrices, call=_product, forms=False)


def _addmm(side: Any) -> Any:
    return lambda c, a, b, **how: side.root.sparse.addmm(c, a.to_sparse(), b, **how)


def _sums_of_products() -> Iterator[Sample]:
    yield S(t((3, 2)), holes(3, 4), t((4, 2)), beta=0.5, alpha=2)
    yield S(t((2,)), holes(3, 4), t((4, 2)))


entry("sparse.addmm", _sums_of_products, call=_addmm, forms=False)


def _sum(side: Any) -> Any:
    def run(x: Any, n: int, *dim: Any) -> Any:
        made = side.root.sparse.sum(x.to_sparse(n), *dim)
        return made.to_dense() if made.is_sparse else made

    return run


def _sums() -> Iterator[Sample]:
    for dims in (0, 1, -1, (0, 1), (0, 2), (1, 2), (0, 1, 2)):
        yield S(holes(2, 3, 4), 2, dims)
    yield S(holes(2, 3), 2)
    yield S(holes(2, 3), 1, 1)


entry("sparse.sum", _sums, call=_sum, forms=False, covers=("_sparse_sum", "_sparse_sum_backward"))


def _softmax(name: str) -> Any:
    def call(side: Any) -> Any:
        return lambda x, n, d: getattr(side.root.sparse, name)(x.to_sparse(n), d).to_dense() ** 2

    return call


def _rows() -> Iterator[Sample]:
    for d in (0, 1):  # of negative numbers PyTorch's backward makes something else
        yield S(holes(4, 5), 2, d)
        yield S(holes(4, 5, 2), 2, d)
    yield S(holes(4, dtype=f32), 1, 0)


for _name in ("softmax", "log_softmax"):
    entry(f"sparse.{_name}", _rows, call=_softmax(_name), forms=False,
          covers=(f"_sparse_{_name}", f"_sparse_{_name}_backward_data"))  # fmt: skip


def _broadcast() -> Iterator[Sample]:
    yield S(holes(1, 4), (3, 4))
    yield S(holes(2, 1), (3, 2, 5))
    yield S(holes(3, 4), (3, 4))


def _broadcast_to(side: Any) -> Any:
    return lambda x, size: side.root._sparse_broadcast_to(x.to_sparse(), size).to_dense()


entry("_sparse_broadcast_to", _broadcast, call=_broadcast_to, forms=False)


# -- compressed rows and columns ------------------------------------------------------------------


def _converted() -> Iterator[Sample]:
    for layout in ("sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"):
        yield S(holes(4, 6), layout)
    yield V(holes(4, 6, dtype=i64), "sparse_csr")
    yield S(holes(4, 6, dtype=c64), "sparse_csc")


def _there_and_back(side: Any) -> Any:
    def run(x: Any, layout: str) -> Any:
        size = (2, 3) if layout[-3] == "b" else None
        a = x.to_sparse(layout=getattr(side.root, layout), blocksize=size)
        b = getattr(x, "to_" + layout)(*([size] if size else []))
        sums = b.values().sum()  # whose gradient is made of the places
        return a.to_dense() + 2 * a.to_sparse().to_dense() + 3 * b.to_dense() + sums

    return run


entry("to_sparse compressed", _converted, call=_there_and_back, forms=False,
      covers=("to_sparse.layout", "_compressed_to_coo", "_sparse_compressed_tensor",
              "_to_sparse_csr", "_to_sparse_csc", "_to_sparse_bsr", "_to_sparse_bsc"))  # fmt: skip
