"""Large work is divided among threads, and comes out as on one."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import toytorch as torch
from toytorch.kernels.hashed_mask import mask
from toytorch.kernels.matmul import is_symmetric
from toytorch.kernels.memory_format import transpose, transposition
from toytorch.kernels.rows import add_rows, take_rows
from toytorch.loops import set_thread_count
from toytorch.loops.runtime import jit
from toytorch.loops.runtime import threads as parallel
from toytorch.loops.runtime.array_call import ArrayCall
from toytorch.loops.runtime.thread_pool import ThreadPool
from toytorch.nn import functional as F

pytestmark = pytest.mark.skipif(not jit.works(), reason="only compiled code is divided")


@pytest.fixture
def divided(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Everything is divided that can be; the list has the ranges that were shared."""
    seen: list[int] = []
    plain = ThreadPool.share

    def share(self: ThreadPool, run: int, table: int, total: int, *parts: int) -> bool:
        done = plain(self, run, table, total, *parts)
        seen.append(total)
        assert done
        return done

    def call(self: ArrayCall, *arrays: Any) -> None:
        if parallel.thread_count() > 1 and self.work >= jit.WORK:
            seen.append(self.total)
        at_once(self, *arrays)

    at_once = ArrayCall.__call__
    monkeypatch.setattr(jit, "WORK", 1)
    monkeypatch.setattr(ThreadPool, "share", share)
    monkeypatch.setattr(ArrayCall, "__call__", call)
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
    assert max(divided) >= n  # by images, or one image by tiles


@pytest.mark.parametrize(
    "f",
    [lambda x: x.softmax(1), lambda x: x.log_softmax(-1), lambda x: x.sum(1), lambda x: x.mean(-1)],
)
def test_rows(f: Any) -> None:
    """Rows, which kernels share among their own workers."""
    try:
        a, b = both(f, (1501, 600))
    finally:
        parallel._count = 0
        parallel.note_threads()
    torch.testing.assert_close(a, b, rtol=0, atol=0)


@pytest.mark.parametrize("last", [False, True])
def test_pools(divided: list[int], last: bool) -> None:
    for f in (lambda x: F.max_pool2d(x, 3, 2, 1), lambda x: F.avg_pool2d(x, 2)):
        a, b = both(f, (3, 24, 31, 37), last=last)
        torch.testing.assert_close(a, b, rtol=0, atol=0)
    assert divided


def test_masks() -> None:
    made = []
    for threads in (3, 1):
        set_thread_count(threads)
        made.append(mask((1301, 777), np.dtype("float32"), 0.3, key=9))
    parallel._count = 0
    parallel.note_threads()
    np.testing.assert_array_equal(*made)


def test_rows_by_number(divided: list[int]) -> None:
    table = np.random.default_rng(0).standard_normal((50, 64)).astype("float32")
    numbers = np.random.default_rng(1).integers(0, 50, 999)
    np.testing.assert_array_equal(take_rows(table, numbers), table[numbers])
    assert divided == [999]
    want = np.zeros_like(table)
    np.add.at(want, numbers, table[numbers])
    np.testing.assert_allclose(add_rows(table[numbers], numbers, 50), want, rtol=1e-4, atol=1e-5)
    assert divided == [999]  # two threads might add to one row


def test_symmetry(divided: list[int]) -> None:
    a = np.random.default_rng(0).standard_normal((200, 200))
    a = a + a.T
    assert is_symmetric(a)
    a[3, 150] += 1
    assert not is_symmetric(a)
    transposed = np.empty((90, 100), "float32")
    x = np.arange(9000, dtype="float32").reshape(100, 90)
    places = transposed.ctypes.data, x.ctypes.data
    words = 1, 0, 0, 1, 0, 0, 100, 90, 400, 360
    transpose("f", (*places, *words))
    np.testing.assert_array_equal(transposed, x.T)
    assert divided == [13, 13, transposition("f", *words)[1]]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_process_has_threads_of_its_own(divided: list[int]) -> None:
    table, numbers = np.ones((9, 500), "float32"), np.arange(9)

    def shared() -> bool:
        assert (take_rows(table, numbers) == 1).all()
        return len(divided) == 1

    assert shared()
    child = os.fork()
    if not child:
        divided.clear()
        os._exit(0 if shared() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_processes_that_end_at_once_end_well() -> None:
    """Workers still run when the interpreter frees what it has; several at once make that likely."""
    line = "import toytorch as t; t.set_num_threads(2); print(t.randn(300, 300).exp().sum() > 0)"
    for _ in range(3):
        started = [
            subprocess.Popen([sys.executable, "-c", line], stdout=subprocess.PIPE, text=True)
            for _ in range(4)
        ]
        for process in started:
            said, _ = process.communicate(timeout=60)
            assert (process.returncode, said) == (0, "tensor(True)\n")
