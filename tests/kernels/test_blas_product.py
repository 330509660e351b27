"""Products that threads of the one pool ask BLAS for, piece by piece."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
import pytest

from tests.oracle import SELFTEST
from toytorch.kernels import blas_product
from toytorch.kernels.blas_product import LEAST, address, matmul
from toytorch.loops.runtime import blas, threads
from toytorch.settings import set_num_threads

if SELFTEST or address("f") is None:
    pytest.skip("NumPy's library shows no BLAS, or nothing is compiled", allow_module_level=True)

# Matrices, rows, inner size, columns: tall, wide, of odd sizes, with pieces that are left over, few.
SHAPES = [
    ((), 300, 100, 70), ((), 70, 100, 300), ((), 1, 1200, 900), ((), 900, 1300, 1), ((), 257, 129, 131),
    ((), 33, 64, 1000), ((3,), 100, 65, 90), ((2, 5), 64, 33, 61), ((40,), 30, 31, 32), ((), 512, 512, 512),
]  # fmt: skip
ORDERS = ["rows", "columns", "gaps", "columns with gaps"]


@pytest.fixture(autouse=True)
def threads_as_before() -> Iterator[None]:
    before = threads.thread_count()
    yield
    set_num_threads(before)


def matrices(rng: np.random.Generator, shape: tuple[int, ...], kind: str, order: str) -> np.ndarray:
    """Normal numbers, which lie in memory in an order."""
    turned = order.startswith("columns")
    *stack, rows, columns = shape
    lying = (*stack, columns, rows) if turned else shape
    wide = (*lying[:-1], lying[-1] + (5 if order.endswith("gaps") else 0))
    made = rng.standard_normal(wide).astype(kind)[..., : lying[-1]]
    return made.swapaxes(-1, -2) if turned else made


@pytest.mark.parametrize("kind", ["f", "d"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_it_is_numpys(shape: tuple, kind: str) -> None:
    stack, m, k, n = shape
    rng = np.random.default_rng(0)
    for order in ORDERS:
        for other in ORDERS:
            a = matrices(rng, (*stack, m, k), kind, order)
            b = matrices(rng, (*stack, k, n), kind, other)
            want = a.astype("d") @ b.astype("d")
            for count in (1, 2, 3, 4):
                set_num_threads(count)
                made = matmul(a, b)
                assert made.dtype == a.dtype
                near = 1e-5 if kind == "f" else 1e-13
                np.testing.assert_allclose(made, want, rtol=near, atol=near * k)
                out = np.full((*want.shape[:-1], n + 3), 7, kind)[..., :n]
                assert matmul(a, b, out) is out
                np.testing.assert_allclose(out, want, rtol=near, atol=near * k)
                assert (out.base.reshape(*want.shape[:-1], n + 3)[..., n:] == 7).all()


def test_it_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    """Large products go to it with several threads, and small ones and those of one thread do not."""
    calls: list[int] = []
    plan = blas_product.plan
    monkeypatch.setattr(
        blas_product, "plan", lambda *given: calls.append(given[-1]) or plan(*given)
    )
    large, small = np.ones((256, 256), "f"), np.ones((64, 64), "f")
    assert large.size * 256 >= LEAST > small.size * 64
    for count in (1, 2):
        set_num_threads(count)
        for a in (large, small):
            assert (matmul(a, a) == len(a)).all()
    assert calls == [2]


def test_factors_of_several_types_or_ranks_are_numpys() -> None:
    set_num_threads(2)
    a = np.ones((128, 256), "f")
    assert matmul(a, np.ones((256, 128), "d")).dtype == np.dtype("d")
    assert matmul(a, np.ones((4, 256, 128), "f")).shape == (4, 128, 128)
    assert matmul(a, np.ones((256, 128), "f")[:, ::2]).shape == (128, 64)
    assert matmul(a, np.broadcast_to(np.ones(128, "f"), (256, 128)))[3, 4] == 256
    with pytest.raises(ValueError, match="mismatch"):
        matmul(a, np.ones((128, 256), "f"))


def test_rows_are_those_of_one_thread() -> None:
    """A piece has whole tiles of BLAS, so that each sum is the same as in the whole product."""
    rng = np.random.default_rng(1)
    for kind in "fd":
        a, b = (rng.standard_normal(shape).astype(kind) for shape in ((500, 300), (300, 200)))
        set_num_threads(1)
        want = matmul(a, b)
        for count in (2, 3, 4):
            set_num_threads(count)
            assert (matmul(a, b) == want).all()


def test_blas_has_its_threads_back() -> None:
    set_num_threads(3)
    with blas.one_thread:
        assert blas._function("get_num_threads")() == 1
        assert blas.threads() == 3  # as everybody else is told
        with blas.one_thread:
            assert blas._function("get_num_threads")() == 1
        assert blas._function("get_num_threads")() == 1
    assert blas._function("get_num_threads")() == 3
    with blas.one_thread:
        set_num_threads(2)
        assert blas._function("get_num_threads")() == 1
    assert blas._function("get_num_threads")() == 2 == blas.threads()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_process_is_not_inside() -> None:
    set_num_threads(2)
    with blas.one_thread:
        child = os.fork()
        if not child:
            os._exit(blas.one_thread.inside + 10 * blas._function("get_num_threads")())
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 20
