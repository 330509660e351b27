"""Large ops make their result and nothing else: no hidden copies."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

import toytorch as tt

N = 1_000_000
SLACK = 64 * 1024  # the objects around the arrays

CASES: dict[str, tuple[Callable[[Any, Any], Any], int]] = {
    "add": (lambda a, b: a + b, 4 * N),
    "multiply by a number": (lambda a, b: a * 2.0, 4 * N),
    "exp": (lambda a, b: a.exp(), 4 * N),
    "tanh": (lambda a, b: a.tanh(), 4 * N),
    "sigmoid": (lambda a, b: a.sigmoid(), 4 * N),
    "relu": (lambda a, b: a.relu(), 4 * N),
    "gelu": (lambda a, b: tt.nn.functional.gelu(a), 4 * N),
    "sum": (lambda a, b: a.sum(), 4),
    "mean over dim 0": (lambda a, b: a.mean(0), 4 * 1000),
    "mean over dim 1": (lambda a, b: a.mean(1), 4 * 1000),
    "softmax": (lambda a, b: a.softmax(1), 4 * N),
    "layer norm": (lambda a, b: tt.nn.functional.layer_norm(a, (1000,)), 4 * N + 8 * 1000),
    "add in place": (lambda a, b: a.add_(b), 0),
    "add a number in place": (lambda a, b: a.add_(1.0), 0),
    "view": (lambda a, b: a.view(-1).t()[2:], 0),
}


@pytest.mark.parametrize("name", CASES)
def test_allocates_its_result_only(name: str) -> None:
    work, size = CASES[name]
    a, b = tt.rand(1000, 1000), tt.rand(1000, 1000)
    with tt.no_grad():
        for _ in range(2):  # compiles what has to be compiled, and has threads begin
            work(a, b)
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        made = work(a, b)
        peak = tracemalloc.get_traced_memory()[1] - before
        tracemalloc.stop()
    assert made is not None
    assert peak <= size + SLACK, f"{peak} bytes for a result of {size}"
