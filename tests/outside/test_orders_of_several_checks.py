"""Calls in which several things are wrong at once: the class of error is that of what PyTorch asks first."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from tests.oracle import torch, tt

pytestmark = pytest.mark.filterwarnings("ignore")

SHAPES: tuple[tuple[int, ...], ...] = (
    (),
    (3,),
    (0,),
    (2, 3),
    (2, 0),
    (2, 2, 3),
    (0, 2, 3),
    (2, 3, 0),
)
KINDS = ("int64", "int32", "float32")


def agree(what: Any, cases: Any) -> None:
    def told(m: Any, case: Any) -> Any:
        try:
            return what(m, *case).tolist()
        except Exception as e:
            return type(e).__name__

    for case in cases:
        assert told(tt, case) == told(torch, case), case


def test_copies_of_ranges() -> None:
    numbers = (-5, -2, -1, 0, 1, 3, 5)
    cases = itertools.product(SHAPES[:5], (-3, -1, 0, 1, 2), numbers, numbers)
    agree(lambda m, s, *rest: m.narrow_copy(m.ones(s), *rest), cases)


def test_differences() -> None:
    def what(m: Any, shape: Any, other: Any, n: int, dim: int, grad: bool) -> Any:
        more = {} if other is None else {"append": m.ones(other)}
        out = {"out": m.zeros(0).requires_grad_()} if grad else {}
        return m.diff(m.ones(shape), n, dim, **more, **out)

    shapes = SHAPES[:5]
    agree(
        what, itertools.product(shapes, (None, *shapes), (-1, 0, 1), (-3, -1, 0, 2), (False, True))
    )


def test_windows() -> None:
    agree(
        lambda m, s, k: m.nn.functional.unfold(m.ones(s), k),
        itertools.product((*SHAPES, (0, 1, 2, 3), (1, 0, 2, 3), (1, 1, 0, 3)), (1, 2)),
    )


def test_older_scatters() -> None:
    def what(m: Any, dim: int, index: Any, kind: str, source: Any, other: str) -> Any:
        value = 2.0 if source is None else m.ones(source, dtype=getattr(m, other))
        places = m.zeros(index, dtype=getattr(m, kind))
        return m.scatter(m.ones(2, 3), dim, places, value, reduce="amin")

    cases = itertools.product(
        (-3, 0, 2), ((2, 3), (2,), (3, 9)), KINDS, (None, (2, 3), (1,)), KINDS
    )
    agree(what, cases)


LAYOUTS = {
    "rows": lambda m: m.arange(6.0).reshape(3, 2),
    "columns": lambda m: m.arange(6.0).reshape(3, 2).t(),
    "parts": lambda m: m.arange(12.0).reshape(3, 4)[:, ::2],
    "spread": lambda m: m.arange(3.0)[:, None].expand(3, 2),
    "whole": lambda m: m.arange(6).reshape(3, 2).t(),
    "long": lambda m: m.arange(600.0).reshape(30, 20).t(),
    "one": lambda m: m.tensor(1.0),
}


def test_rows_that_cannot_be_seen_as_one() -> None:
    def isin(m: Any, a: str, b: str) -> Any:
        return m.isin(*(0.5 if k == "number" else LAYOUTS[k](m) for k in (a, b)))

    agree(isin, itertools.product((*LAYOUTS, "number"), repeat=2))
    agree(
        lambda m, a, b: m.take_along_dim(LAYOUTS[a](m), LAYOUTS[b](m).long() % 3),
        itertools.product(LAYOUTS, repeat=2),
    )


@pytest.mark.parametrize("name", ["searchsorted", "bucketize", "isin"])
def test_numbers_have_names_of_their_own(name: str) -> None:
    words = ("self", "input", "x", "element", "elements", "test_element", "test_elements", "other")
    first = {"searchsorted": "sorted_sequence", "bucketize": "boundaries", "isin": "elements"}[name]

    def what(m: Any, word: str, number: bool, both: bool) -> Any:
        row = {} if both else {first: m.arange(3.0)}
        value = 1.0 if number else m.ones(2)
        return getattr(m, name)(*(m.arange(3.0),) * both, **row, **{word: value})

    agree(what, itertools.product(words, (False, True), (False, True)))


def test_ints_given_by_name_are_several() -> None:
    for name, word in (
        ("tile", "dims"),
        ("repeat", "repeats"),
        ("permute", "dims"),
        ("view", "size"),
    ):
        agree(lambda m, v, n=name, w=word: getattr(m.ones(2), n)(**{w: v}), ((2,), ((2,),), ([2],)))


def test_types_of_arguments_come_before_leaves() -> None:
    def what(m: Any, name: str, given: tuple[Any, ...]) -> Any:
        return getattr(m.ones(2).requires_grad_(), name)(*given)

    names = ("as_strided_", "unsqueeze_", "squeeze_", "transpose_", "swapaxes_", "swapdims_", "t_")
    odd = (1, 9, "a", 1.5, (1,), ("a",))
    agree(what, itertools.product(names, [(), *itertools.product(odd)]))
    agree(what, itertools.product(names[:1] + names[3:], itertools.product(odd, odd)))


@pytest.mark.parametrize("form", ["function", "method", "named"])
def test_tiles(form: str) -> None:
    def what(m: Any, dims: Any) -> Any:
        x = m.arange(2.0)
        if form == "named":
            return m.tile(x, dims=dims)
        return m.tile(x, dims) if form == "function" else x.tile(dims)

    agree(what, ((2,), ((2,),), ([2, 3],), ((),), (-1,), ("a",), (1.5,), (None,)))
    agree(lambda m, word: m.split(m.ones(4), 2, **{word: 0})[0], (("dim",), ("axis",)))


def test_conjugates_given_another_size() -> None:
    def what(m: Any, name: str) -> Any:
        out = getattr(m.fft, name)(m.tensor([[-4.0, 1.0]], dtype=m.float64))
        m.column_stack([m.arange(8).reshape(4, 2)], out=out)
        return m.view_as_real(out.resolve_conj() + int(out.untyped_storage().data_ptr() == 0))

    agree(what, (("ihfft",), ("rfft",), ("fft",)))


def test_ranks_of_nothing_are_filled_in() -> None:
    def what(m: Any, shape: tuple[int, ...]) -> Any:
        x = m.ones(3).requires_grad_() * 1
        m.linalg.matrix_rank(m.zeros(shape), out=x[1])
        return m.tensor([x.grad_fn is None, "Copy" in type(x.grad_fn).__name__])

    agree(what, (((0, 0),), ((0, 2),), ((2, 0),)))


def test_bags_of_rows_that_are_counted_first() -> None:
    def what(m: Any, shape: Any, n: Any, at: Any, padding: Any) -> Any:
        indices, offsets = m.zeros(n, dtype=m.int64), m.zeros(at, dtype=m.int64)
        more = (False, 0, False, None, False, padding)
        return m.embedding_bag(m.ones(shape), indices, offsets, *more)[0]

    agree(what, itertools.product(((), (3,), (3, 2), (0, 2)), ((), (2,)), ((), (1,)), (None, 0, 5)))
