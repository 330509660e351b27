"""Leaves whose `data` has another shape or type by now, and what graphs from before make of it."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from tests.oracle import torch, tt

pytestmark = pytest.mark.filterwarnings("ignore")

SHAPES: tuple[tuple[int, ...], ...] = ((3, 3), (1, 1), (3,), (2, 3, 3), (1, 3))
HELD = {
    "nothing": lambda v: None,
    "view": lambda v: v[...],
    "product": lambda v: v * v,
    "gone": lambda v: (v * v, None)[1],
}


def backward(m: Any, v: Any, held: Any) -> Any:
    (v * v).abs().sum().backward()
    return v.grad


def grad(m: Any, v: Any, held: Any) -> Any:
    return m.autograd.grad((v * v).abs().sum(), v)[0]


def of_before(m: Any, v: Any, held: Any) -> Any:
    return None if held is None else m.autograd.grad(held.sum(), v, allow_unused=True)[0]


@pytest.mark.parametrize("ask", [backward, grad, of_before])
@pytest.mark.parametrize("held", HELD)
def test_data_of_another_form(held: str, ask: Any) -> None:
    for shape, other, kind in itertools.product(SHAPES, SHAPES, ("float32", "float64")):

        def told(m: Any, case: Any = (shape, other, kind)) -> Any:
            shape, other, kind = case
            v = (m.zeros(shape) + 2).requires_grad_()
            kept = HELD[held](v)
            v.data = m.ones(other, dtype=getattr(m, kind)) * 2
            try:
                made = ask(m, v, kept)
            except Exception as e:
                return type(e).__name__
            return made if made is None else (str(made.dtype)[-7:], made.tolist())

        assert told(tt) == told(torch), (shape, other, kind)


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_what_knows_a_leaf_by_another_type_is_not_run_for_it(kind: str) -> None:
    def told(m: Any) -> Any:
        v = m.ones(3).requires_grad_()
        w = v * 0.5
        v.data = m.ones(3, dtype=getattr(m, kind))
        made = m.autograd.grad(w.abs().sum(), v, allow_unused=True)[0]
        try:
            w.sum().backward()  # of a node that ran, nothing is left
        except RuntimeError as e:
            return made.tolist(), str(e)[:30]
        return made, v.grad.tolist()

    assert told(tt) == told(torch)
