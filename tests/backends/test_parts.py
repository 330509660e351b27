"""Large work is divided among threads, and comes out as on one."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import toytorch as torch
from toytorch.kernels import split
from toytorch.loops import set_thread_count
from toytorch.loops.runtime import jit
from toytorch.loops.runtime import threads as parallel
from toytorch.nn import functional as F

pytestmark = pytest.mark.skipif(not jit.works(), reason="only compiled code is divided")


@pytest.fixture
def divided(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Everything is divided; the list has how many parts each piece of work had."""
    seen: list[int] = []
    plain = split.executor

    def executor(threads: int) -> Any:
        seen.append(threads + 1)
        return plain(threads)

    monkeypatch.setattr(split, "LEAST", 1)
    monkeypatch.setattr(split, "executor", executor)
    set_thread_count(3)
    yield seen
    parallel._count = 0
    parallel.note_threads()


def both(f: Any, *shapes: tuple[int, ...], last: bool = False) -> tuple[Any, Any]:
    """Values and gradients of f on three threads and on one."""
    results = []
    for threads in (3, 1):
        set_thread_count(threads)
        rng = np.random.default_rng(0)
        given = [torch.from_numpy(rng.standard_normal(s).astype("float32")) for s in shapes]
        if last:
            given[0] = given[0].to(memory_format=torch.channels_last)
        for x in given:
            x.requires_grad_()
        y = f(*given)
        y.backward(torch.cos(torch.arange(float(y.numel()))).reshape(y.shape))
        results.append([y.detach(), *(x.grad for x in given)])
    return results[0], results[1]


@pytest.mark.parametrize(("n", "last"), list(itertools.product((1, 2, 7), (False, True))))
@pytest.mark.parametrize(
    "how", [{}, {"stride": 2, "padding": 1}, {"padding": 2, "dilation": 2}, {"groups": 2}], ids=str
)
def test_convolution(divided: list[int], n: int, last: bool, how: dict[str, Any]) -> None:
    inner = 32 // how.get("groups", 1)
    a, b = both(
        lambda x, w, bias: F.conv2d(x, w, bias, **how),
        (n, 32, 19, 23),
        (32, inner, 3, 3),
        (32,),
        last=last,
    )
    torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-3)
    assert max(divided, default=1) == min(n, 3)


@pytest.mark.parametrize(
    "f",
    [lambda x: x.softmax(1), lambda x: x.log_softmax(-1), lambda x: x.sum(1), lambda x: x.mean(-1)],
)
def test_rows(f: Any) -> None:
    """Rows, which kernels share among their own helpers."""
    try:
        a, b = both(f, (1501, 600))
    finally:
        parallel._count = 0
        parallel.note_threads()
    torch.testing.assert_close(a, b, rtol=0, atol=0)


def test_an_error_in_one_part_is_raised(divided: list[int]) -> None:
    def broken(start: int, end: int) -> int:
        if start:
            raise KeyError(start)
        return end

    with pytest.raises(KeyError):
        split.in_parts(30, 30, broken)
    assert split.in_parts(30, 30, lambda start, end: (start, end)) == [(0, 10), (10, 20), (20, 30)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_process_has_threads_of_its_own(divided: list[int]) -> None:
    assert len(split.in_parts(9, 9, lambda start, end: end)) == 3
    child = os.fork()
    if not child:
        os._exit(0 if split.in_parts(9, 9, lambda start, end: end) == [3, 6, 9] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
