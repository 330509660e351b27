"""Samples of ops that build tensors from tensors: joining, repeating, rolling, copying, casting."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.ops.samples.base import (
    OTHERS,
    S,
    Sample,
    V,
    boolean,
    c64,
    c128,
    const,
    entry,
    f16,
    f32,
    f64,
    i32,
    i64,
    layouts,
    t,
    u8,
)  # fmt: skip
from tests.oracle import names, torch


def _cat() -> Iterator[Sample]:
    yield S([t((2, 3)), t((1, 3))])
    yield S([t((2, 3)), t((2, 1)), t((2, 2))], 1)
    yield S((t((2, 3)), t((2, 3))), dim=-1)
    yield S([t((3, 4), layout="transposed"), t((3, 4), layout="strided")], 0)
    yield S([t((0,)), t((2, 3))])
    yield S([t((0, 3)), t((2, 3))])
    yield S([t((3,))])
    x = t((2, 2))
    yield S([x, x, x], 1)
    for a, b in ((f32, f64), (i64, f32), (boolean, u8), (i32, i64), (f16, f32), (f32, c64)):
        yield Sample(([t((2,), a), t((3,), b)],), second=False)


for _name in ("cat", "concat", "concatenate"):
    entry(_name, _cat, exact=True)


def _stack() -> Iterator[Sample]:
    for dim in (0, 1, 2, -1, -3):
        yield S([t((2, 3)), t((2, 3))], dim)
    yield S([t(()), t(())])
    yield S([t((0, 3))], dim=1)
    yield S((t((3, 4), layout="transposed"), t((3, 4), layout="expanded")))
    for a, b in ((f32, f64), (i64, f32), (boolean, u8)):
        yield Sample(([t((2,), a), t((2,), b)],), second=False)


entry("stack", _stack, exact=True)


def _hstack() -> Iterator[Sample]:
    yield S([t((2, 3)), t((2, 3))])
    yield S([t((3,)), t((3,))])
    yield S([t(()), t(())])
    yield S((t((2, 3, 2)), t((2, 3, 2))))
    yield S([t((2,), i64), t((2,))])


for _name in ("hstack", "vstack", "dstack", "column_stack", "row_stack"):
    entry(_name, _hstack, exact=True)


def _repeat() -> Iterator[Sample]:
    yield S(t((2, 3)), 2, 2)
    yield S(t((2, 3)), (1, 2))
    yield S(t((2, 3)), [4, 1, 2])
    yield S(t((3,)), 2)
    yield S(t(()), 3)
    yield S(t(()), (2, 2))
    yield S(t((2, 3)), 0, 1)
    yield S(t((3, 4), layout="transposed"), 1, 2)
    yield S(t((3, 4), layout="expanded"), 2, 1)
    yield V(t((2,), i64), 2)


entry("repeat", _repeat, exact=True, call=lambda side: side.Tensor.repeat)


def _tile() -> Iterator[Sample]:
    yield S(t((2, 3)), (2,))
    yield S(t((2, 3)), (2, 1))
    yield S(t((3,)), (2, 2))
    yield S(t(()), (3,))
    yield S(t((3, 4), layout="transposed"), (1, 2))


entry("tile", _tile, exact=True)


def _repeat_interleave() -> Iterator[Sample]:
    yield S(t((2, 3)), 2)
    yield S(t((2, 3)), const([1, 2], i64), 0)
    yield S(t((2, 3)), 2, 0)
    yield S(t((2, 3)), 3, dim=1)
    yield S(t((3,)), const([0, 2, 1], i64))
    yield S(t((3, 4), layout="transposed"), 2, 1)
    yield V(const([1, 0, 2], i64))
    yield V(t((2, 3), i64), 2, 1)


entry("repeat_interleave", _repeat_interleave, exact=True)


def _flip() -> Iterator[Sample]:
    yield S(t((3, 4)), (0,))
    yield S(t((3, 4)), [1])
    yield S(t((2, 3, 4)), (0, -1))
    yield S(t((3, 4), layout="transposed"), (0, 1))
    yield S(t((3, 4), layout="strided"), ())
    yield S(t((0, 3)), (0,))
    yield V(t((3,), i64), (0,))


entry("flip", _flip, exact=True)


def _lr() -> Iterator[Sample]:
    yield S(t((3, 4)))
    yield S(t((2, 3, 2)))
    yield V(t((3, 4), i64))


entry("fliplr", _lr, exact=True)
entry("flipud", _lr, exact=True)


def _roll() -> Iterator[Sample]:
    yield S(t((3, 4)), 1)
    yield S(t((3, 4)), -2, 0)
    yield S(t((3, 4)), (1, 2), (0, 1))
    yield S(t((3, 4)), 9, 1)
    yield S(t((3, 4), layout="transposed"), 1, -1)
    yield S(t((0, 3)), 1, 0)
    yield S(t(()), 1)
    yield V(t((5,), i64), 2)


entry("roll", _roll, exact=True)


def _rot90() -> Iterator[Sample]:
    yield S(t((3, 4)))
    yield S(t((3, 4)), 2)
    yield S(t((2, 3, 4)), 3, (1, 2))


entry("rot90", _rot90, exact=True)


def _tri() -> Iterator[Sample]:
    for k in (0, 1, -1, 5, -5):
        yield S(t((3, 4)), k)
    yield S(t((2, 3, 3)))
    yield S(t((3, 4), layout="transposed"), diagonal=1)
    yield S(t((0, 3)))
    yield S(t((3, 3), c128))
    for d in (f32, i64, boolean):
        yield V(t((3, 3), d))


entry("tril", _tri, exact=True)
entry("triu", _tri, exact=True)


def _diag() -> Iterator[Sample]:
    for k in (0, 1, -2):
        yield S(t((3,)), k)
        yield S(t((3, 4)), k)
    yield S(t((4, 3), layout="transposed"))
    yield V(t((3,), i64))
    yield S(t((0,)))


entry("diag", _diag, exact=True)


def _diag_embed() -> Iterator[Sample]:
    yield S(t((3,)))
    yield S(t((2, 3)), 1)
    yield S(t((2, 3)), offset=-1, dim1=0, dim2=2)


entry("diag_embed", _diag_embed, exact=True)


def _diagflat() -> Iterator[Sample]:
    yield S(t((3,)))
    yield S(t((2, 2)), 1)


entry("diagflat", _diagflat, exact=True)


def _copies() -> Iterator[Sample]:
    for x in layouts():
        yield S(x)
    for d in OTHERS:
        yield S(t((3, 4), d))


for _name in ("clone", "contiguous"):
    entry(_name, _copies, exact=True)
for _name in names("float double half bfloat16 long int short char byte bool cfloat cdouble"):

    def _casts(complex_ok: bool = _name in ("cfloat", "cdouble")) -> Iterator[Sample]:
        for x in layouts(0, 3):
            yield S(x)
        for d in OTHERS:
            if complex_ok or not d.is_complex:
                yield Sample((t((3, 4), d, 0, 5),), second=False)

    entry(_name, _casts, exact=True, call=lambda side, n=_name: getattr(side.Tensor, n))


def _to() -> Iterator[Sample]:
    for d in (f64, f32, f16, i64, i32, boolean, c64):
        yield Sample((t((3, 4)), d), second=False)
        yield Sample((t((3, 4), i64), d), second=False)
    yield S(t((3, 4)), torch.device("cpu"))
    yield S(t((3, 4)), "cpu", f32)
    yield S(t((3, 4)), dtype=f64, copy=True)
    yield S(t((3, 4)), t((2,), f32))
    yield S(t((3, 4), layout="transposed"), f32)


entry("to", _to, exact=True)


def _type_as() -> Iterator[Sample]:
    yield S(t((3, 4)), t((2,), f32))
    yield S(t((3, 4)), t((2,)))
    yield V(t((3, 4)), t((2,), i64))


entry("type_as", _type_as, exact=True)


def _meshgrid() -> Iterator[Sample]:
    yield S(t((3,)), t((2,)), indexing="ij")
    yield S(t((3,)), t((2,)), indexing="xy")
    yield S([t((3,)), t(()), t((2,))], indexing="ij")


entry("meshgrid", _meshgrid, exact=True)


def _cartesian() -> Iterator[Sample]:
    yield S(t((3,)), t((2,)))
    yield S(t((3,)))
    yield V(t((2,), i64), t((2,), i64), t((1,), i64))


entry("cartesian_prod", _cartesian, exact=True)


def _combinations() -> Iterator[Sample]:
    yield S(t((4,)))
    yield S(t((4,)), 3)
    yield S(t((3,)), 2, True)


entry("combinations", _combinations, exact=True)


def _block_diag() -> Iterator[Sample]:
    yield S(t((2, 3)), t((1, 2)), t((3,)))


entry("block_diag", _block_diag, exact=True)


def _pad() -> Iterator[Sample]:
    yield S(t((3, 4)), (1, 2))
    yield S(t((3, 4)), (1, 0, 2, 1), "constant", 3.5)
    yield S(t((3, 4)), (-1, 1))
    yield S(t((2, 3, 4)), (2, 1), mode="reflect")
    yield S(t((2, 3, 4)), (2, 1), mode="replicate")
    yield S(t((2, 3, 4)), (2, 1), mode="circular")


entry("pad", _pad, exact=True)


def _atleast() -> Iterator[Sample]:
    for shape in ((), (3,), (2, 3), (2, 3, 4)):
        yield S(t(shape))


for _name in ("atleast_1d", "atleast_2d", "atleast_3d"):
    entry(_name, _atleast, exact=True)


def _sum_to_size() -> Iterator[Sample]:
    yield S(t((3, 4)), (3, 1))
    yield S(t((3, 4)), (4,))
    yield S(t((2, 3, 4)), 3, 1)
    yield S(t((3, 4)), (3, 4))
    yield S(t((3, 4)), ())


entry("sum_to_size", _sum_to_size)


def _copy_into() -> Iterator[Sample]:
    yield S(t((3, 4)), t((3, 4)))
    yield S(t((3, 4)), t((4,)))
    yield S(t((3, 4)), t((), f32))
    yield V(t((3, 4), i64), t((3, 4), f64, 0, 5))
    yield V(t((3, 4), f32), t((3, 1), boolean))
    yield S(t((3, 4), layout="transposed"), t((3, 4)))


def _inplace(name: str) -> Any:
    def find(side: Any) -> Any:
        method = getattr(side.Tensor, name)
        return lambda x, *a, **k: method(x.clone(), *a, **k)

    return find


entry("copy_", _copy_into, exact=True, call=_inplace("copy_"), forms=False)
entry("copy", _copy_into, exact=True, call=_inplace("copy_"), forms=False)


def _fill() -> Iterator[Sample]:
    yield S(t((3, 4)), 2.5)
    yield S(t((3, 4)), t(()))
    yield V(t((3, 4), i64), 3)
    yield V(t((3, 4), boolean), True)
    yield S(t((3, 4), layout="transposed"), 1)
    yield S(t(()), 1)


entry("fill_", _fill, exact=True, call=_inplace("fill_"), forms=False)
entry("fill", _fill, exact=True, call=_inplace("fill_"), forms=False)


def _zero() -> Iterator[Sample]:
    yield S(t((3, 4)))
    yield V(t((3, 4), i64))


entry("zero_", _zero, exact=True, call=_inplace("zero_"), forms=False)
entry("zero", _zero, exact=True, call=_inplace("zero_"), forms=False)


def _chunk_cat() -> Iterator[Sample]:
    yield V([t((3, 4)), t((2, 4))], 0, 2)
    yield V([t((2, 3)), t((2, 5))], 1, 2)


entry("_chunk_cat", _chunk_cat, exact=True)


def _fill_diagonal() -> Iterator[Sample]:
    yield S(t((3, 4)), 2.5)
    yield S(t((7, 3)), 1)
    yield S(t((7, 3)), 1, True)
    yield S(t((3, 3, 3)), 0)
    yield S(t((3, 4), layout="transposed"), 2)


entry("fill_diagonal_", _fill_diagonal, exact=True, call=_inplace("fill_diagonal_"), forms=False)
