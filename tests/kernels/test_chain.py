"""Chains of kernels: images go through scratch memory of a thread, unit by unit."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from toytorch.kernels.chain import Chain, Lies
from toytorch.kernels.image_steps import pack, unpack
from toytorch.kernels.memory_format import channels_last, empty_images
from toytorch.loops import set_thread_count
from toytorch.loops.runtime import jit
from toytorch.loops.runtime import threads as parallel
from toytorch.loops.runtime.array_call import ArrayCall

pytestmark = pytest.mark.skipif(not jit.works(), reason="a chain is compiled code")
SHAPES = [
    (12, 3, 5, 7),
    (7, 16, 9, 11),
    (9, 8, 8, 8),
    (24, 21, 1, 19),
    (1, 40, 6, 30),
    (5, 1, 4, 4),
]


@pytest.fixture(params=[1, 2, 4])
def count(request: pytest.FixtureRequest) -> Any:
    set_thread_count(request.param)
    yield request.param
    parallel._count = 0
    parallel.note_threads()


def images(shape: tuple[int, ...], kind: str, last: bool) -> Any:
    made = empty_images(shape, kind, last)
    made[...] = np.arange(made.size).reshape(shape)
    return made


def through_lines(shape: tuple[int, ...], kind: str, last: tuple[bool, bool], each: int) -> Chain:
    """Images are read in one order and written in the other, by lines in scratch memory."""
    n, c, h, w = shape
    item, wide, unit = np.dtype(kind).itemsize, c + 3, (each, c, h, w)
    size = each * c * h * w * item
    steps = [
        pack("x", unit, last[0], item, "lines", w, 0, wide),
        unpack("lines", unit, last[1], item, "y", wide),
    ]
    lies = {"x": Lies(size), "y": Lies(size)}
    return Chain(steps, lies, {"lines": each * h * w * wide * item}, n // each)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kind", ["f", "d"])
@pytest.mark.parametrize("last", [(a, b) for a in (False, True) for b in (False, True)])
def test_images_come_through(count: int, shape: Any, kind: str, last: Any) -> None:
    x = images(shape, kind, last[0])
    for each in {1, 3 if shape[0] % 3 == 0 else 1, shape[0]}:
        y = np.full_like(empty_images(shape, kind, last[1]), -1)
        through_lines(shape, kind, last, each)(x=x, y=y)
        np.testing.assert_array_equal(y, x)


@pytest.mark.parametrize("left", [0, 2])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_lines_begin_after_zeros(count: int, shape: Any, last: bool, left: int) -> None:
    """Each image has its own lines; what lies before and after the pixels is not written."""
    n, c, h, w = shape
    x, line = images(shape, "f", last), left + w + 1
    lines = np.zeros((n, h, line, c), "f")
    lies = {"x": Lies(c * h * w * 4), "to": Lies(lines[0].nbytes)}
    Chain([pack("x", (1, c, h, w), last, 4, "to", line, left, c)], lies, {}, n)(x=x, to=lines)
    np.testing.assert_array_equal(lines[:, :, left : left + w], x.transpose(0, 2, 3, 1))
    assert not lines[:, :, :left].any()
    assert not lines[:, :, left + w :].any()


@pytest.mark.parametrize("each", [1, 2, 5])
def test_a_part_has_its_own_place(count: int, each: int) -> None:
    """Units of a part are written to the same place, in their order: the last one stays."""
    x = np.arange(9 * 6, dtype="d").reshape(9, 1, 2, 3)
    parts = -(-9 // each)
    y = np.full((parts, 1, 2, 3), -1.0)
    steps = [unpack("x", (1, 1, 2, 3), False, 8, "y", 1)]
    Chain(steps, {"x": Lies(48), "y": Lies(0, 48)}, {}, 9, each)(x=x, y=y)
    np.testing.assert_array_equal(y, x[[min(9, each * (p + 1)) - 1 for p in range(parts)]])


def test_threads_share_units_or_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many units are shared whole; of few, each step is."""
    monkeypatch.setattr(jit, "WORK", 1)
    set_thread_count(2)
    pool, shared = parallel.thread_pool(), []

    def share(run: int, table: int, total: int, *parts: int) -> bool:
        shared.append(total)
        return True

    def call(self: ArrayCall, *arrays: Any) -> None:
        shared.append(self.total)
        plain(self, *arrays)

    plain = ArrayCall.__call__
    monkeypatch.setattr(ArrayCall, "__call__", call)
    monkeypatch.setattr(parallel, "thread_pool", lambda: pool)
    monkeypatch.setattr(pool, "share", share)
    try:
        for n, ranges in ((24, [24]), (3, [4, 4] * 3)):
            shared.clear()
            x = images((n * 4, 3, 5, 7), "f", False)
            through_lines(x.shape, "f", (False, False), 4)(x=x, y=np.empty_like(x))
            assert shared == ranges
    finally:
        parallel._count = 0
        parallel.note_threads()


def test_two_callers_at_once() -> None:
    """Where the pool is at another job, the caller does all units itself, in memory of its own."""
    set_thread_count(2)
    try:
        given = [images((64, 16, 9, 11), "f", False) + k for k in range(8)]
        chain = through_lines((64, 16, 9, 11), "f", (False, True), 2)

        def work(x: Any) -> Any:
            y = empty_images(x.shape, "f", True)
            chain(x=x, y=y)
            return y

        with ThreadPoolExecutor(4) as callers:
            made = list(callers.map(work, given * 4))
    finally:
        parallel._count = 0
        parallel.note_threads()
    for x, y in zip(given * 4, made):
        assert channels_last(y)
        np.testing.assert_array_equal(x, y)
