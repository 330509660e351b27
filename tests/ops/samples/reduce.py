"""Samples of reductions, scans and normalisations over dimensions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from tests.ops.samples.base import (
    INF,
    NAN,
    OTHERS,
    S,
    Sample,
    V,
    boolean,
    c64,
    c128,
    const,
    entry,
    f32,
    f64,
    i32,
    i64,
    layouts,
    t,
)  # fmt: skip

DIMS: list[dict[str, Any]] = [
    {"dim": 0}, {"dim": -1}, {"dim": 1, "keepdim": True}, {"dim": (0, 1)},
    {"dim": [0, -1], "keepdim": True},
    {"dim": ()}, {"dim": None},
]  # fmt: skip


def reduction(
    name: str, *, dims: Iterable[dict[str, Any]] = DIMS, dtype: bool = False, low: float = -2,
    high: float = 2, whole: bool = True, empty: bool = True, special: bool = True,
    extra: Iterable[tuple[tuple[Any, ...], dict[str, Any]]] = (), ties: bool = True, **how: Any,
) -> None:  # fmt: skip
    """Register an op that reduces one tensor: whole, over dims, of every dtype, at NaN and empty.

    ties=False leaves out inputs with equal elements, where the chosen index is not defined.
    """
    options, more = list(dims), list(extra)

    def draw() -> Iterator[Sample]:
        for x in layouts(low, high):
            if not ties and 0 in x.stride():
                continue
            if whole:
                yield S(x)
            yield from (
                Sample((x,), o) for o in options if x.ndim or o.get("dim") in (0, -1, None, ())
            )
        for o in options:
            for shape in ((2, 3, 4), (1, 3), (3, 1, 2)):
                yield Sample((t(shape, f64, low, high),), o)
        first = options[:2]
        for d in OTHERS:
            if not ties and not d.is_floating_point:
                continue
            if whole:
                yield S(t((3, 4), d, low, high))
            yield from (Sample((t((3, 4), d, low, high),), o, second=False) for o in first)
        if dtype:
            for d in (f32, f64, i64, i32, c64, boolean):
                for source in (f32, i32, boolean):
                    yield V(t((3, 4), source), **(options[0] if not whole else {}), dtype=d)
        if empty:
            for shape in ((0,), (0, 3), (2, 0)):
                yield from (Sample((t(shape),), o, grad=False) for o in ([{}] * whole + options))
        if special:
            for x in ([1.0, NAN, 2.0], [INF, 1.0], [INF, -INF], [-INF, -INF], [0.0, -0.0, 0.0]):
                yield V(const(x), **({} if whole else {"dim": 0}))
                yield Sample((const([x, x]),), {"dim": 1}, grad=False)
        for args, kwargs in more:
            yield Sample(args, kwargs)

    entry(name, draw, **how)


reduction("sum", dtype=True)
reduction("nansum", dtype=True)
reduction("mean", dtype=True)
reduction("nanmean", dtype=True)
reduction("amax", exact=True)
reduction("amin", exact=True)
reduction("logsumexp", whole=False, dims=[o for o in DIMS if o["dim"] is not None])
reduction("count_nonzero", dims=[o for o in DIMS if "keepdim" not in o])
reduction("hash_tensor", exact=True)
for _name in ("all", "any"):
    reduction(_name)
ONE: list[dict[str, Any]] = [{"dim": 0}, {"dim": -1}, {"dim": 1, "keepdim": True}]
_zeros = [
    ((const([[1.0, 0.0, 2.0], [0.0, 0.0, 3.0], [1.0, 2.0, 3.0]]),), o)
    for o in ({}, {"dim": 1}, {"dim": 0})
]
reduction("prod", dims=ONE, dtype=True, extra=_zeros)
for _name in ("argmax", "argmin"):
    reduction(_name, dims=[*ONE, {"dim": None}, {"keepdim": True}])
for _name in ("max", "min"):
    reduction(_name, dims=ONE, exact=True,
              extra=[((t((3, 4)), t((4,))), {}), ((t((3,), i64), t((3,), i32)), {})])  # fmt: skip
for _name in ("median", "nanmedian"):
    reduction(_name, dims=ONE, exact=True, ties=False, special=False,
              covers=(f"{_name}.dim",),
              extra=[((const([[1.0, NAN, 2.0], [3.0, 1.0, 2.0]]), 1), {}),
                  ((const([4, 1, 3], i64),), {})])  # fmt: skip
reduction("mode", dims=ONE, whole=True, special=False, empty=False)


def _var() -> Iterator[Sample]:
    options = [
        {}, *(o for o in DIMS if o["dim"] != ()), {"correction": 0}, {"dim": 1, "correction": 2},
        {"dim": 0, "unbiased": False}, {"unbiased": False},
    ]  # fmt: skip
    for o in options:
        for layout in ("contiguous", "transposed", "strided", "offset"):
            yield Sample((t((3, 4), layout=layout),), o)
        yield Sample((t((2, 3, 4)),), o)
        for d in OTHERS:
            yield Sample((t((3, 4), d),), o, second=False)
        # Where there is too little to vary, gradients are 0/0 in one form or another: values only.
        for shape in ((3, 1, 2), (1, 3), (2, 0), (0, 3)):
            yield Sample((t(shape),), o, grad=False)
        yield Sample((t((3, 4), layout="expanded"),), o, grad=False)
    yield V(t((3, 4)), dim=())
    for shape in ((), (1,), (0,)):
        yield V(t(shape))
        yield V(t(shape), dim=0)
    for x in ([1.0, NAN], [INF, 1.0]):
        yield V(const(x))


for _name in ("var", "std", "var_mean", "std_mean"):
    entry(_name, _var)

reduction("aminmax", dims=[{"dim": 0}, {"dim": -1, "keepdim": True}], exact=True)


def _norm() -> Iterator[Sample]:
    for p in (None, 2, 1, 0, 3, 0.5, INF, -INF, "fro"):
        args = () if p is None else (p,)
        for x in (t(), t((4,)), t(()), t((3, 4), layout="transposed")):
            yield S(x, *args)
        if p is not None:
            yield S(t((2, 3, 4)), p, 1)
            yield S(t((2, 3, 4)), p, -1, True)
            yield S(t((2, 3, 4)), p, (0, 2))
            yield S(t((2, 3, 4)), p=p, dim=[0, 1], keepdim=True)
    yield S(t((3, 4), f32))
    yield S(t((3, 4), c128))
    yield V(t((3, 4), f32), 2, 1, dtype=f64)
    yield Sample((const([0.0, 0.0]),), second=False, note="at zero")
    yield Sample((const([[3.0, 4.0], [0.0, 0.0]]), 2, 1), second=False, note="at zero")
    yield V(t((0,)))


entry("norm", _norm)


def _dist() -> Iterator[Sample]:
    for p in (2, 1, 3, INF):
        yield S(t((3, 4)), t((4,)), p)
    yield S(t((3,)), t((3,)))


entry("dist", _dist)


def _scan(dtype: bool) -> Any:
    def draw() -> Iterator[Sample]:
        for x in layouts():
            yield from (S(x, d) for d in (0, -1))
        yield S(t((2, 3, 4)), 1)
        yield S(t((2, 3, 4)), dim=-2)
        for d in OTHERS:
            yield Sample((t((3, 4), d), 1), second=False)
        if dtype:
            for d in (f32, f64, i32, c64):
                yield V(t((3, 4), f32), 0, dtype=d)
                yield V(t((3, 4), i32), 0, dtype=d)
        yield V(const([1.0, NAN, 2.0]), 0)
        yield V(const([1.0, INF, -INF, 2.0]), 0)
        yield V(const([2.0, 2.0, 1.0, 2.0]), 0)

    return draw


def _cumprod() -> Iterator[Sample]:
    yield from _scan(True)()
    for x in ([1.0, 0.0, 2.0, 3.0], [0.0, 0.0, 2.0], [2.0, 3.0, 0.0], [[1.0, 2.0], [0.0, 1.0]]):
        yield Sample((const(x), 0), note="with zeros")


entry("cumsum", _scan(True))
entry("cumprod", _cumprod)
entry("cummax", _scan(False), exact=True)
entry("cummin", _scan(False), exact=True)
entry("logcumsumexp", _scan(False))


def _softmax() -> Iterator[Sample]:
    for x in layouts():
        yield from (S(x, d) for d in (0, -1))
    yield S(t((2, 3, 4)), 1)
    yield S(t((2, 3, 4)), dim=-2)
    for d in OTHERS:
        yield Sample((t((3, 4), d), 1), second=False)
    for d in (f32, f64):
        yield V(t((3, 4), f32), 0, dtype=d)
        yield V(t((3, 4), i32), 0, dtype=d)
    yield V(const([1.0, NAN, 2.0]), 0)
    yield V(const([[1.0, INF], [-INF, 2.0], [-INF, -INF], [1000.0, -1000.0]]), 1)


entry("softmax", _softmax)
entry("log_softmax", _softmax, covers=("_log_softmax_backward_data",))
entry("softmin", _softmax)


def _normalize() -> Iterator[Sample]:
    yield S(t((3, 4)))
    yield S(t((3, 4)), dim=0)
    yield S(t((3, 4)), 1.0, -1)


entry("normalize", _normalize)


def _quantile() -> Iterator[Sample]:
    yield V(t((3, 4)), 0.3)
    yield V(t((3, 4)), const([0.1, 0.5]), 1)
    yield V(t((3, 4)), 0.25, 0, True)


entry("quantile", _quantile)


def _diff() -> Iterator[Sample]:
    yield S(t((3, 4)))
    yield S(t((3, 4)), 2)
    yield S(t((3, 4)), dim=0)
    yield V(t((3, 4), i64), dim=0)


entry("diff", _diff)


def _gradient() -> Iterator[Sample]:
    x = t((3, 4))
    yield S(x)
    yield S(x, spacing=0.5)
    yield S(x, spacing=[0.5, 2.0], edge_order=2)
    yield S(x, dim=1, edge_order=2)
    yield S(x, spacing=[const([0.0, 1.0, 3.0, 4.5])], dim=1)
    yield S(x, spacing=[const([0.0, 1.0, 3.0, 4.5])], dim=(1,), edge_order=2)
    yield V(t((4,), i64))
    yield V(t((4,), f32))


entry("gradient", _gradient)


def _nanquantile() -> Iterator[Sample]:
    x = const([[1.0, NAN, 3.0, 2.0], [NAN, NAN, 2.0, 5.0], [4.0, 1.0, 0.5, 3.0]])
    for how in ("linear", "lower", "higher", "midpoint", "nearest"):
        yield Sample((x, 0.3), {"dim": 1, "interpolation": how}, second=False)
    yield V(x, const([0.0, 0.4, 1.0]))
    yield V(x, const([0.5]), dim=0, keepdim=True)
    yield V(const([NAN, NAN]), 0.5)


entry("nanquantile", _nanquantile)
