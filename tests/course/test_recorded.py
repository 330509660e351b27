"""What exercises record as PyTorch's answers is what PyTorch answers."""

from __future__ import annotations

from typing import Any

import pytest

from course.exercises.ch02.common import _cells
from course.exercises.ch02.contiguous import CONTIGUOUS
from course.exercises.ch02.expand import EXPANDED
from course.exercises.ch02.strides import ROW_MAJOR
from course.exercises.ch02.view import VIEWS, view
from course.exercises.ch02.windows import WINDOWS
from course.exercises.ch04.unbroadcast import UNBROADCAST
from course.exercises.ch06.swish import (
    SWISH_BETA,
    SWISH_FIRST,
    SWISH_SECOND,
    SWISH_X,
    SWISH_Y,
)
from course.exercises.ch10.fit import FIT_LOSSES, FIT_WEIGHTS, FIT_X, FIT_Y

real: Any = pytest.importorskip("torch")


@pytest.mark.parametrize("shape", ROW_MAJOR)
def test_row_major(shape: tuple[int, ...]) -> None:
    assert real.empty(shape).stride() == ROW_MAJOR[shape]


@pytest.mark.parametrize("given", CONTIGUOUS, ids=str)
def test_contiguous(given: Any) -> None:
    assert real.empty(1000).as_strided(*given).is_contiguous() is CONTIGUOUS[given]


@pytest.mark.parametrize("given", VIEWS, ids=str)
def test_views(given: Any) -> None:
    shape, stride, new = given
    x = real.arange(1000).as_strided(shape, stride)
    if not VIEWS[given]:
        with pytest.raises(RuntimeError, match="view size is not compatible"):
            x.view(new)
        return
    assert x.view(new).flatten().tolist() == _cells(shape, stride)
    found = view.answer.value(shape, stride, new)
    assert _cells(new, found) == _cells(shape, stride)


@pytest.mark.parametrize("given", EXPANDED, ids=str)
def test_expand(given: Any) -> None:
    shape, stride, new = given
    assert real.empty(1000).as_strided(shape, stride).expand(new).stride() == EXPANDED[given]


def test_windows() -> None:
    x = real.arange(9.0).reshape(3, 3)
    assert x.unfold(0, 2, 1).unfold(1, 2, 1).tolist() == WINDOWS


@pytest.mark.parametrize("shape", UNBROADCAST, ids=str)
def test_unbroadcast(shape: tuple[int, ...]) -> None:
    g = real.arange(24.0).reshape(2, 3, 4)
    p = real.zeros(shape, requires_grad=True)
    (p + real.zeros(2, 3, 4)).backward(g)
    recorded = UNBROADCAST[shape]
    assert p.grad.tolist() == (g.tolist() if recorded is None else recorded)


def test_fit() -> None:
    x, y = real.tensor(FIT_X), real.tensor(FIT_Y)
    weight, losses = real.zeros(2, 2, requires_grad=True), []
    optimizer = real.optim.SGD([weight], 1.0)
    for _ in range(2):
        total = 0.0
        for some in (slice(0, 2), slice(2, 3)):
            optimizer.zero_grad()
            loss = real.nn.functional.cross_entropy(x[some] @ weight, y[some])
            loss.backward()
            optimizer.step()
            total += loss.item() * len(y[some])
        losses.append(total / 3)
    assert losses == pytest.approx(FIT_LOSSES)
    for row, wanted in zip(weight.tolist(), FIT_WEIGHTS, strict=True):
        assert row == pytest.approx(wanted)


def test_swish() -> None:
    x = real.tensor(SWISH_X, dtype=real.float64, requires_grad=True)
    beta = real.tensor(2.0, dtype=real.float64, requires_grad=True)
    y = x * (beta * x).sigmoid()
    weights = real.tensor([1.0, 2.0, 3.0, 4.0], dtype=real.float64)
    by_x, by_beta = real.autograd.grad(y, (x, beta), weights, retain_graph=True)
    (slope,) = real.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = real.autograd.grad(slope.sum(), x)
    assert y.tolist() == pytest.approx(SWISH_Y)
    assert by_x.tolist() == pytest.approx(SWISH_FIRST)
    assert by_beta.item() == pytest.approx(SWISH_BETA)
    assert second.tolist() == pytest.approx(SWISH_SECOND)
