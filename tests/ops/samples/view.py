"""Samples of views: results that lie in their input's memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tests.ops.samples.base import S, Sample, V, boolean, c64, c128, entry, f32, f64, i64, t
from tests.oracle import torch

LAYOUTS = ("contiguous", "transposed", "strided", "offset", "expanded")


def views(name: str, calls: list[tuple[tuple[int, ...], tuple[Any, ...]]], **how: Any) -> None:
    """Register a view op by pairs of an input's shape and the rest of the arguments.

    Every pair is tried on every memory layout that PyTorch accepts for it.
    """

    def draw() -> Iterator[Sample]:
        for shape, rest in calls:
            kwargs = rest[-1] if rest and isinstance(rest[-1], dict) else {}
            args = rest[:-1] if kwargs else rest
            for layout in LAYOUTS if shape else LAYOUTS[:1]:
                yield Sample((t(shape, f64, layout=layout), *args), kwargs)
            for d in (f32, i64, boolean, c64):
                yield V(t(shape, d), *args, **kwargs)

    entry(name, draw, exact=True, **how)


views("view",
    [((3, 4), (12,)), ((3, 4), (2, 6)), ((3, 4), (-1,)), ((3, 4), ((4, 3),)), ((3, 4), (3, 2, -1)),
               ((), (1, 1)), ((1,), ((),)), ((0, 3), (3, 0)), ((2, 3, 4), (6, 4)),
               ((2, 1, 3), (2, 3)),
               ((0, 3), (-1, 3))])  # fmt: skip
views("reshape",
    [((3, 4), ((12,),)), ((3, 4), ((2, -1),)), ((3, 4), ([4, 3],)), ((), ((1, 1),)), ((1,), ((),)),
                  ((0, 3), ((3, 0),)), ((2, 3, 4), ((6, 4),)), ((2, 3, 4), ((2, 12),)),
                  ((2, 3, 4), ((-1,),))])  # fmt: skip
views("permute",
    [((3, 4), ((1, 0),)), ((2, 3, 4), ((2, 0, 1),)), ((2, 3, 4), ((-1, 0, 1),)), ((), ((),)),
                  ((0, 3), ((1, 0),))])  # fmt: skip
for _name in ("transpose", "swapaxes", "swapdims"):
    views(
        _name,
        [
            ((3, 4), (0, 1)),
            ((2, 3, 4), (0, -1)),
            ((2, 3, 4), (1, 1)),
            ((), (0, -1)),
            ((0, 3), (0, 1)),
        ],
    )
views("t", [((3, 4), ()), ((4,), ()), ((), ())])
views("T", [((3, 4), ()), ((4,), ()), ((), ())], forms=False)
views("mT", [((3, 4), ()), ((2, 3, 4), ())], forms=False)
# Complex ones are lazily conjugated views in PyTorch, which is not part of the documentation.
views("H", [((3, 4), ())], forms=False, shares=False)
views("mH", [((2, 3, 4), ())], forms=False, shares=False)
views("adjoint", [((2, 3, 4), ())], shares=False)
for _name in ("movedim", "moveaxis"):
    views(
        _name,
        [((2, 3, 4), (0, 2)), ((2, 3, 4), (-1, 0)), ((2, 3, 4), ((0, 1), (1, 2))), ((3,), (0, 0))],
    )
views("squeeze",
    [((1, 3, 1), ()), ((1, 3, 1), (0,)), ((1, 3, 1), (1,)), ((1, 3, 1), (-1,)),
        ((1, 3, 1), ((0, 2),)),
                  ((), ()), ((), (0,)), ((3, 4), ()), ((0, 1), ())])  # fmt: skip
views(
    "unsqueeze",
    [((3, 4), (0,)), ((3, 4), (1,)), ((3, 4), (-1,)), ((3, 4), (2,)), ((), (0,)), ((0, 3), (1,))],
)
views("flatten",
    [((2, 3, 4), ()), ((2, 3, 4), (1,)), ((2, 3, 4), (0, 1)), ((2, 3, 4), (-2, -1)), ((), ()),
                  ((3,), ()), ((0, 3), ())])  # fmt: skip
views("ravel", [((2, 3), ()), ((), ()), ((4,), ())])
views(
    "unflatten",
    [
        ((12, 2), (0, (3, 4))),
        ((12, 2), (0, (-1, 4))),
        ((2, 12), (-1, (2, 6))),
        ((2, 6), (1, [3, 2])),
    ],
)
views("expand",
    [((1, 4), (3, 4)), ((1, 4), ((3, 4),)), ((1, 4), (3, -1)), ((4,), (2, 3, 4)), ((), (2, 2)),
                 ((3, 1, 2), (3, 5, 2)), ((1,), (0,)), ((), ())])  # fmt: skip
views("expand_as", [((1, 4), (t((3, 4)),)), ((4,), (t((2, 3, 4)),)), ((), (t((2,)),))])
views("broadcast_to", [((1, 4), ((3, 4),)), ((4,), ((2, 3, 4),)), ((), ((2, 2),)), ((1,), ((0,),))])
views("view_as", [((3, 4), (t((2, 6)),)), ((4,), (t((2, 2)),))])
views("reshape_as", [((3, 4), (t((2, 6)),)), ((4,), (t((2, 2)),))])
views("narrow",
    [((3, 4), (0, 1, 2)), ((3, 4), (1, 0, 2)), ((3, 4), (-1, -3, 2)), ((3, 4), (1, 2, 0)),
                 ((2, 3, 4), (2, 1, 3))])  # fmt: skip
views(
    "select",
    [((3, 4), (0, 1)), ((3, 4), (1, -1)), ((3, 4), (-1, 2)), ((4,), (0, 3)), ((2, 3, 4), (1, 0))],
)
views("unfold",
    [((6,), (0, 3, 1)), ((6,), (0, 2, 2)), ((3, 7), (1, 3, 2)), ((3, 7), (-1, 7, 1)),
        ((), (0, 1, 1))],
      call=lambda side: side.Tensor.unfold)  # fmt: skip
views("diagonal",
    [((3, 4), ()), ((3, 4), (1,)), ((3, 4), (-1,)), ((2, 3, 4), (0, 1, 2)), ((2, 3, 4), (1, -1, 0)),
                   ((3, 3), (5,)),
                   ((2, 3, 4), ({"offset": -1, "dim1": 0, "dim2": 2},))])  # fmt: skip
views("as_strided",
    [((3, 4), ((2, 2), (4, 1))), ((3, 4), ((2, 2), (1, 2), 1)), ((12,), ((3, 3), (4, 1))),
                     ((12,), ((2, 3), (0, 1))), ((3, 4), ((), ())),
                     ((12,), ((4, 3), (2, 1)))])  # fmt: skip
views("split",
    [((5, 4), (2,)), ((5, 4), (2, 1)), ((5, 4), ([2, 3],)), ((5, 4), ([1, 3], -1)), ((5, 4), (9,)),
                ((0, 4), (2,)), ((5, 4), ([0, 5],))])  # fmt: skip
views("split_with_sizes", [((5, 4), ([2, 3],)), ((5, 4), ([1, 3], -1))])
views("chunk", [((5, 4), (2,)), ((5, 4), (3, 1)), ((6,), (4,)), ((2, 3), (5,))])
views("unbind", [((3, 4), ()), ((3, 4), (1,)), ((3, 4), (-1,)), ((0, 3), ()), ((3,), ())])
views(
    "tensor_split",
    [((7, 4), (3,)), ((7, 4), ((1, 5),)), ((7, 4), (2, 1)), ((7, 4), ((2, 2, 9), 0))],
)
for _name, _shape in (("hsplit", (4, 6)), ("vsplit", (4, 6)), ("dsplit", (2, 3, 4))):
    views(_name, [(_shape, (2,)), (_shape, ((1, 2),))])
views("detach", [((3, 4), ()), ((), ()), ((0, 3), ())])
views("alias", [((3, 4), ())], call=lambda side: _alias(side))
views("slice",
    [((5, 4), (0, 1, 3, 1)), ((5, 4), (1, 0, 4, 2)), ((5, 4), (0, -2, 99, 1)),
        ((5, 4), (0, 3, 1, 1))],
      call=lambda side: _slice(side), forms=False)  # fmt: skip
views("slice_", [((5, 4), (0, 1, 3, 1))], call=lambda side: _slice(side), forms=False)


def _view_dtype() -> Iterator[Sample]:
    for a, b in ((f64, i64), (f32, torch.int32), (i64, f64), (boolean, torch.uint8)):
        yield V(t((3, 4), a), b)
    yield V(t((3, 4)), f32)
    yield V(t((3, 4), f32), f64)


entry("view.dtype", _view_dtype, exact=True, call=lambda side: side.Tensor.view, forms=False)


def _alias(side: Any) -> Callable[[Any], Any]:
    return lambda x: x[...]


def _slice(side: Any) -> Callable[..., Any]:
    def run(x: Any, dim: int, start: int, end: int, step: int) -> Any:
        return x[(slice(None),) * dim + (slice(start, end, step),)]

    return run


def _complex_numbers() -> Iterator[Sample]:
    for d in (c64, c128):
        for layout in LAYOUTS:
            yield S(t((3, 4), d, layout=layout))
        yield S(t((), d))


def _real() -> Iterator[Sample]:
    yield from _complex_numbers()
    yield S(t((3, 4)))


entry("real", _real, exact=True)
entry("imag", _complex_numbers, exact=True)
entry("view_as_real", _complex_numbers, exact=True)


def _view_as_complex() -> Iterator[Sample]:
    yield S(t((3, 2)))
    yield S(t((2, 3, 2), f32))


entry("view_as_complex", _view_as_complex, exact=True)


def _conj() -> Iterator[Sample]:
    yield from _complex_numbers()
    yield S(t((3, 4)))


# PyTorch's conj is a lazy view; whether it shares memory is not part of its documentation.
entry("conj", _conj, exact=True, shares=False)


def _broadcast_tensors() -> Iterator[Sample]:
    yield S(t((3, 1)), t((4,)))
    yield S(t(()), t((2, 3)), t((1, 3)))
    yield S(t((2,), i64), t((3, 1)))


# PyTorch hands an input back itself where its shape is already right.
entry("broadcast_tensors", _broadcast_tensors, exact=True, shares=False)


# -- in fresh memory ------------------------------------------------------------------------------


def _list(*samples: Sample) -> Callable[[], Iterator[Sample]]:
    return lambda: iter(samples)


COPIES: dict[str, list[tuple[Any, ...]]] = {
    "alias": [()], "as_strided": [((2, 2), (1, 2)), ((3,), (1,), 1)], "detach": [()],
    "diagonal": [(), (1, 0, 1)], "expand": [((2, 3, 4),)], "narrow": [(0, 1, 2), (1, -2, 1)],
    "permute": [((1, 0),)], "select": [(0, 1), (1, -1)], "slice": [(0, 1, 3), (1, 0, 4, 2)],
    "split": [(2,), (3, 1)], "split_with_sizes": [([1, 2],), ([3, 1], 1)], "squeeze": [(), (0,)],
    "t": [()], "transpose": [(0, 1)], "unbind": [(), (1,)], "unfold": [(1, 2, 1)],
    "unsqueeze": [(1,)], "view": [((4, 3),)],
}  # fmt: skip
for _name, _calls in COPIES.items():
    entry(
        f"{_name}_copy",
        _list(
            *(S(t(), *args) for args in _calls),
            Sample((t((3, 4), layout="strided" if _name != "view" else "offset"), *_calls[0]),
                   second=False),
            V(t((3, 4), i64), *_calls[0]),
        ),
        exact=True,
        covers=("_detach_copy",) if _name == "detach" else (),
    )  # fmt: skip


def _unsafe_split() -> Iterator[Sample]:
    yield S(t((5, 4)), 2)
    yield S(t((5, 4)), 3, 1)
    yield S(t((0, 4)), 2)


entry("unsafe_split", _unsafe_split, exact=True)
entry("unsafe_chunk", _unsafe_split, exact=True)
entry("unsafe_split_with_sizes", _list(S(t((5, 4)), [2, 3]), S(t((5, 4)), [1, 3], 1)), exact=True)
