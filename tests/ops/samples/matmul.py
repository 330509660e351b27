"""Samples of products: matrices, vectors, batches, einsum, and a little linear algebra."""

from __future__ import annotations

from collections.abc import Iterator

from tests.ops.samples.base import (
    S,
    Sample,
    V,
    boolean,
    c64,
    c128,
    entry,
    f16,
    f32,
    i32,
    i64,
    t,
    u8,
)

_PAIRS = [
    ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)),
    ((2, 3), (5, 3, 4)),
    ((5, 2, 3), (5, 3, 4)), ((2, 1, 2, 3), (4, 3, 2)), ((5, 2, 3), (3,)), ((3,), (5, 3, 2)),
    ((0, 3), (3, 4)),
    ((2, 0), (0, 4)), ((1, 2, 3), (4, 3, 2)),
]  # fmt: skip


def _matmul() -> Iterator[Sample]:
    for a, b in _PAIRS:
        yield S(t(a), t(b))
    for a, b in (("transposed", "contiguous"), ("contiguous", "transposed"), ("strided", "offset"),
                 ("expanded", "transposed"), ("transposed", "transposed")):  # fmt: skip
        yield S(t((3, 4), layout=a), t((4, 2), layout=b))
        yield S(t((2, 3, 4), layout=a), t((2, 4, 3), layout=b))
    for d in (f32, f16, i64, i32, u8, c64, c128):
        yield Sample((t((2, 3), d), t((3, 2), d)), second=d is c128)


entry("matmul", _matmul, slack=3)
entry("__matmul__", _matmul, slack=3, call=lambda side: side.Tensor.__matmul__)


def _mm() -> Iterator[Sample]:
    for a in ("contiguous", "transposed", "strided", "expanded"):
        for b in ("contiguous", "transposed"):
            yield S(t((3, 4), layout=a), t((4, 2), layout=b))
    yield S(t((0, 3)), t((3, 2)))
    yield S(t((2, 0)), t((0, 2)))
    x = t((3, 3))
    yield S(x, x)
    yield S(x, x.t())
    for d in (f32, i64, c64):
        yield Sample((t((2, 3), d), t((3, 2), d)), second=False)


entry("mm", _mm, slack=3)


def _bmm() -> Iterator[Sample]:
    yield S(t((2, 3, 4)), t((2, 4, 5)))
    yield S(t((2, 3, 4), layout="transposed"), t((2, 4, 5), layout="strided"))
    yield S(t((0, 3, 4)), t((0, 4, 5)))
    yield S(t((2, 3, 0)), t((2, 0, 5)))
    yield V(t((2, 3, 4), f32), t((2, 4, 5), f32))
    yield V(t((2, 3, 4), i64), t((2, 4, 5), i64))


entry("bmm", _bmm, slack=3)


def _mv() -> Iterator[Sample]:
    yield S(t((3, 4)), t((4,)))
    yield S(t((3, 4), layout="transposed"), t((4,), layout="strided"))
    yield S(t((0, 4)), t((4,)))
    yield V(t((3, 4), i64), t((4,), i64))
    yield S(t((3, 4), c128), t((4,), c128))


entry("mv", _mv, slack=3)


def _dot() -> Iterator[Sample]:
    yield S(t((4,)), t((4,)))
    yield S(t((4,), layout="strided"), t((4,)))
    yield S(t((0,)), t((0,)))
    yield V(t((4,), i64), t((4,), i64))
    yield S(t((4,), c128), t((4,), c128))


entry("dot", _dot, slack=3)
entry("inner", _dot, slack=3)


def _outer() -> Iterator[Sample]:
    yield S(t((3,)), t((4,)))
    yield S(t((3,), layout="strided"), t((2,)))
    yield S(t((0,)), t((4,)))
    yield Sample((t((3,), i64), t((4,))), second=False)


entry("outer", _outer)
entry("ger", _outer)


def _addmm() -> Iterator[Sample]:
    yield S(t((3, 2)), t((3, 4)), t((4, 2)))
    yield S(t((2,)), t((3, 4)), t((4, 2)))
    yield S(t(()), t((3, 4)), t((4, 2)))
    yield S(t((3, 1)), t((3, 4)), t((4, 2)), beta=0.5, alpha=2)
    yield S(t((3, 2)), t((3, 4), layout="transposed"), t((4, 2), layout="transposed"), beta=0)
    yield V(t((2,), i64), t((3, 4), i64), t((4, 2), i64))
    yield S(t((2,), f32), t((3, 4), f32), t((4, 2), f32))


entry("addmm", _addmm, slack=3)
entry("addmv", lambda: iter([
    S(t((3,)), t((3, 4)), t((4,))), S(t((3,)), t((3, 4)), t((4,)), beta=2, alpha=0.5),
    S(t((1,)), t((3, 4)), t((4,)), beta=0), S(t((3,), c128), t((3, 4), c128), t((4,), c128)),
    V(t((3,), i64), t((3, 4), i64), t((4,), i64))]), slack=3)  # fmt: skip
entry("addr", lambda: iter([
    S(t((3, 4)), t((3,)), t((4,))), S(t((4,)), t((3,)), t((4,)), beta=2, alpha=0.5),
    V(t((3, 4), boolean), t((3,), boolean), t((4,), boolean)),
    S(t((3, 4)), t((3,)), t((4,)), beta=0), V(t((2, 2), i64), t((2,), i64), t((2,), i64)),
    S(t((2, 2), c128), t((2,), c128), t((2,), c128))]))  # fmt: skip


def _baddbmm() -> Iterator[Sample]:
    yield S(t((2, 3, 5)), t((2, 3, 4)), t((2, 4, 5)))
    yield S(t((5,)), t((2, 3, 4)), t((2, 4, 5)), beta=0.5, alpha=2)


entry("baddbmm", _baddbmm)
entry("addbmm", lambda: iter([
    S(t((3, 5)), t((2, 3, 4)), t((2, 4, 5))), S(t((3, 5)), t((2, 3, 4)), t((2, 4, 5)), beta=0.5),
    S(t((3, 5), c128), t((2, 3, 4), c128), t((2, 4, 5), c128), alpha=2)]), slack=3)  # fmt: skip


def _einsum() -> Iterator[Sample]:
    for spec, *shapes in (
        ("ij,jk->ik", (2, 3), (3, 4)), ("ij,jk", (2, 3), (3, 4)),
        ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)),
        ("i,i->", (3,), (3,)), ("i,j->ij", (3,), (4,)), ("ij->ji", (2, 3)), ("ii->i", (3, 3)),
        ("ii", (3, 3)),
        ("ij->", (2, 3)), ("ij->j", (2, 3)), ("...ij,...jk->...ik", (2, 2, 3), (3, 4)),
        ("bhqd,bhkd->bhqk", (1, 2, 3, 4), (1, 2, 5, 4)), ("i j, j k -> k i", (2, 3), (3, 4)),
        ("ij,jk,kl->il", (2, 3), (3, 4), (4, 2)), ("ij,ij->i", (2, 3), (2, 3)),
        ("...j->j...", (2, 3)),
    ):  # fmt: skip
        yield Sample((spec, *map(t, shapes)))
    yield S("ij,jk->ik", [t((2, 3)), t((3, 4))])
    yield V("ij,jk->ik", t((2, 3), f32), t((3, 4), f32))


entry("einsum", _einsum, slack=3)


def _linear() -> Iterator[Sample]:
    yield S(t((2, 3)), t((4, 3)))
    yield S(t((2, 3)), t((4, 3)), t((4,)))
    yield S(t((3,)), t((4, 3)), t((4,)))
    yield S(t((2, 5, 3)), t((4, 3)), t((4,)))
    yield S(t((0, 3)), t((4, 3)), t((4,)))
    yield S(t((3, 4), layout="transposed"), t((2, 4)), t((2,)))
    yield S(t((2, 3), f32), t((4, 3), f32), t((4,), f32))


entry("linear", _linear, slack=3)


def _tensordot() -> Iterator[Sample]:
    yield S(t((2, 3, 4)), t((3, 4, 5)))
    yield S(t((2, 3)), t((3, 4)), 1)
    yield S(t((2, 3, 4)), t((4, 3, 5)), ([1, 2], [1, 0]))
    yield S(t((2,)), t((3,)), dims=0)
    yield S(t((1, 3)), t((2, 4)), ([0], [0]))


entry("tensordot", _tensordot, slack=3)


def _trace() -> Iterator[Sample]:
    yield S(t((3, 4)))
    yield S(t((4, 3), layout="transposed"))
    yield V(t((3, 3), i64))


entry("trace", _trace)
