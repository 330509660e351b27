"""Samples of factories, and of composites that stand on other ops: losses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tests.ops.samples.base import (
    INF,
    NAN,
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
    t,
    u8,
)  # fmt: skip
from tests.oracle import Side, torch


def _shapes(*rest: Any) -> Callable[[], Iterator[Sample]]:
    def draw() -> Iterator[Sample]:
        yield V(3, *rest) if not rest else V((3,), *rest)
        yield V((2, 3), *rest)
        yield V([2, 3], *rest)
        yield V((), *rest)
        yield V((0, 2), *rest)
        if not rest:
            yield V(2, 3)
            yield V(size=(2, 2))
        for d in (f16, f32, f64, i64, i32, u8, boolean, c64):
            yield V((2, 3), *rest, dtype=d)
        yield V((2,), *rest, device="cpu")
        yield V((2,), *rest, requires_grad=True, dtype=f64)

    return draw


entry("zeros", _shapes(), exact=True)
entry("ones", _shapes(), exact=True)
entry("empty", _shapes(), values=False)


def _full() -> Iterator[Sample]:
    for value in (3, 2.5, True, 1j, NAN, -INF):
        yield V((2, 3), value)
    yield V((2,), 3, dtype=f32)
    yield V((), 3.5, dtype=i64)
    yield V((0, 2), 3.5)
    yield V((2,), 1, dtype=boolean)


entry("full", _full, exact=True)


def _likes(*rest: Any) -> Callable[[], Iterator[Sample]]:
    def draw() -> Iterator[Sample]:
        for layout in ("contiguous", "transposed", "strided", "expanded"):
            yield V(t((3, 4), layout=layout), *rest)
        for d in (f32, i64, boolean, c64):
            yield V(t((2, 3), d), *rest)
            yield V(t((2, 3)), *rest, dtype=d)
        yield V(t(()), *rest)
        yield V(t((0, 3)), *rest)

    return draw


entry("zeros_like", _likes(), exact=True)
entry("ones_like", _likes(), exact=True)
entry("empty_like", _likes(), values=False)
entry("full_like", _likes(3), exact=True)
for _name in ("rand_like", "randn_like"):

    def _float_likes() -> Iterator[Sample]:
        for d in (f32, f64):
            yield V(t((2, 3), d))
        yield V(t((2, 3)), dtype=f32)
        yield V(t(()))

    entry(_name, _float_likes, values=False)
entry("randint_like", lambda: iter([V(t((2, 3), i64), 5), V(t((2, 3)), 2, 5)]), values=False)


def _new(name: str, *rest: Any, values: bool = True) -> None:
    def draw() -> Iterator[Sample]:
        for d in (f32, i64, boolean):
            yield V(t((2,), d), (2, 3), *rest)
        yield V(t((2,)), (2,), *rest, dtype=i32)
        yield V(t((2,)), (), *rest)

    entry(name, draw, values=values, exact=True, call=lambda side: getattr(side.Tensor, name))


_new("new_zeros")
_new("new_ones")
_new("new_full", 3)
_new("new_empty", values=False)
entry("new_tensor",
    lambda: iter([V(t((2,)), [1, 2]), V(t((2,), i64), [1, 2]), V(t((2,)), 1.5, dtype=f32)]),
      exact=True, call=lambda side: side.Tensor.new_tensor)  # fmt: skip


def _arange() -> Iterator[Sample]:
    # Before PyTorch 2.13, which a card may have beside it, out= of integers with such a step ends the
    # process: it divides by the step as an integer.
    old = tuple(int(n) for n in torch.__version__.split(".")[:2]) < (2, 13)
    for args in (
        (5,),
        (2, 7),
        (2, 7, 2),
        (5.0,),
        (0, 1, 0.1),
        (7, 2, -2),
        (0,),
        (3, 3),
        (-2.5, 2),
        (0, 10, 3),
    ):
        yield Sample(args, grad=False)
        for d in (f32, f64) if old and 0.1 in args else (f32, f64, i64):
            yield Sample(args, {"dtype": d}, grad=False)
    yield V(start=1, end=4)
    yield V(1, 4, step=2)


entry("arange", _arange)


def _linspace() -> Iterator[Sample]:
    for args in (
        (0, 1, 5),
        (-2.0, 3.0, 7),
        (1, 0, 4),
        (0, 1, 1),
        (0, 1, 0),
        (3, 3, 3),
        (0, 10, 101),
    ):
        yield Sample(args, grad=False)
        yield Sample(args, {"dtype": f64}, grad=False)
    yield V(0, 10, 5, dtype=i64)
    yield V(start=0, end=1, steps=3)


entry("linspace", _linspace)


def _logspace() -> Iterator[Sample]:
    yield V(0, 2, 5)
    yield V(0, 2, 5, base=2.0, dtype=f64)
    yield V(-1, 1, 3, 3.0)


entry("logspace", _logspace)


def _eye() -> Iterator[Sample]:
    for args in ((3,), (2, 4), (4, 2), (0,), (1, 0)):
        yield Sample(args, grad=False)
        yield Sample(args, {"dtype": i64}, grad=False)
    yield V(2, dtype=boolean)


entry("eye", _eye, exact=True)


def _indices() -> Iterator[Sample]:
    yield V(3, 4)
    yield V(3, 4, 1)
    yield V(4, 3, -1)


entry("range", lambda: iter([V(0, 3), V(1, 2, 0.5), V(3, 0, -1, dtype=i64)]))
entry("empty_permuted", lambda: iter([V((2, 3), (1, 0)), V((2, 3, 4), (0, 2, 1), dtype=f64)]),
      values=False)  # fmt: skip
entry("tril_indices", _indices)
entry("triu_indices", _indices)
entry("vander", lambda: iter([V(t((3,))), V(t((3,)), 4), V(t((3,)), increasing=True)]))
entry("complex", lambda: iter([S(t((3,)), t((3,))), V(t((2, 2), f32), t((2, 2), f32))]), exact=True)
entry("polar", lambda: iter([S(t((3,), f64, 0.2, 2), t((3,)))]))


def _tensor() -> Iterator[Sample]:
    for value in (
        1, 2.5, True, 1j, [], [1, 2], [1, 2.5], [True, False], [True, 2], [[1], [2]], (1, (2)),
        [[], []],
        [1 + 2j, 3], [[1.5, 2], [3, 4]], np.arange(3), np.float32(2), np.ones((2, 2), np.float32),
        NAN, [INF],
        np.int64(3), [np.float64(1.5), 2], range(4), -(2**63),
    ):  # fmt: skip
        yield V(value)
    for d in (f16, f32, f64, i64, u8, boolean, c128):
        yield V([1, 0, 2], dtype=d)
    yield V([1.0], dtype=f64, requires_grad=True)


entry("tensor", _tensor, exact=True, call=lambda side: side.root.tensor, forms=False)
entry("as_tensor", lambda: iter([V([1, 2.5]), V(np.arange(3)), V(t((2,))), V(t((2,)), dtype=i64)]),
    exact=True,
      forms=False, shares=False)  # fmt: skip
entry(
    "from_numpy",
    lambda: iter([V(np.arange(3)), V(np.ones((2, 3), np.float32).T)]),
    exact=True,
    forms=False,
)
entry("scalar_tensor", lambda: iter([V(2), V(2.5, dtype=f64), V(True)]), exact=True, forms=False)


def _asarray(side: Side) -> Any:
    return side.root.asarray


entry("asarray", lambda: iter([V([1, 2.5]), V(3)]), exact=True, call=_asarray, forms=False)


# Losses.
def _losses(target: Callable[..., Any] = t, **more: Any) -> Callable[[], Iterator[Sample]]:
    def draw() -> Iterator[Sample]:
        for how in ("mean", "sum", "none"):
            yield S(t((3, 4)), target((3, 4)), reduction=how, **more)
        yield S(t((3, 4)), target((3, 4)), **more)
        yield S(t((3, 4), f32), target((3, 4)).float(), **more)
        yield S(t(()), target(()), **more)
        yield S(t((0, 3)), target((0, 3)), reduction="sum", **more)

    return draw


def _loss(name: str, draw: Callable[[], Iterator[Sample]]) -> None:
    # torch.kl_div and others exist too, with an integer for the reduction.
    entry(name, draw, call=lambda side: getattr(side.root.nn.functional, name), forms=False)


_loss("mse_loss", _losses())
_loss("l1_loss", _losses())
_loss("smooth_l1_loss", _losses())
_loss("huber_loss", _losses(delta=0.7))


def _probabilities(shape: tuple[int, ...]) -> Any:
    return t(shape, f64, 0.1, 0.9)


def _bce() -> Iterator[Sample]:
    for how in ("mean", "sum", "none"):
        yield S(_probabilities((3, 4)), _probabilities((3, 4)), reduction=how)
    yield S(_probabilities((3, 4)), _probabilities((3, 4)), t((4,), f64, 0.5, 2))


_loss("binary_cross_entropy", _bce)
_loss("binary_cross_entropy_with_logits", _losses(_probabilities))
_loss("kl_div", _losses(_probabilities))


def _cross_entropy() -> Iterator[Sample]:
    for how in ("mean", "sum", "none"):
        yield S(t((3, 4)), const([0, 3, 1], i64), reduction=how)
        yield S(t((2, 4, 3)), t((2, 3), i64, 0, 3), reduction=how)
        yield S(t((3, 4)), const([0, 3, 1], i64), t((4,), f64, 0.5, 2).detach(), reduction=how)
        yield S(t((3, 4)), const([0, -100, 1], i64), reduction=how)
        yield S(t((3, 4)), const([0, 2, 1], i64), ignore_index=2, reduction=how)
        yield S(t((3, 4)), _probabilities((3, 4)), reduction=how)
        yield S(t((3, 4)), const([0, 3, 1], i64), label_smoothing=0.1, reduction=how)
    yield S(t((4,)), const(2, i64))
    yield S(t((3, 4), f32), const([0, 3, 1], i64))


def _nll() -> Iterator[Sample]:
    for how in ("mean", "sum", "none"):
        yield S(t((3, 4)), const([0, 3, 1], i64), reduction=how)
        yield S(t((2, 4, 3)), t((2, 3), i64, 0, 3), reduction=how)
        yield S(t((3, 4)), const([0, -100, 1], i64), reduction=how)
        yield S(t((3, 4)), const([0, 2, 1], i64), ignore_index=2, reduction=how)
    yield S(t((4,)), const(2, i64))


# The weight of a class takes no gradient in PyTorch, so samples carry it without one.
_loss("cross_entropy", _cross_entropy)
_loss("nll_loss", _nll)
assert all((c128, f16))


def _pairs() -> Iterator[Sample]:
    yield S(t((3, 4)), t((3, 4)))
    yield S(t((3, 4)), t((3, 4)), dim=0)
    yield S(t((3, 4)), t((4,)))


entry("cosine_similarity", _pairs)


def _layer_norm() -> Iterator[Sample]:
    yield S(t((3, 4)), (4,))
    yield S(t((3, 4)), (4,), t((4,)), t((4,)))
    yield S(t((2, 3, 4)), (3, 4))


entry("layer_norm", _layer_norm)
assert torch
