"""Large sums, differences, products and quotients on two threads: the same bits as on one."""

from __future__ import annotations

import gc
import sys
from typing import Any

import numpy as np
import pytest

import toytorch as torch
from toytorch.kernels import dispatch_stub
from toytorch.loops import set_thread_count
from toytorch.loops.runtime import jit
from toytorch.loops.runtime import threads as parallel

pytestmark = pytest.mark.skipif(not jit.works(), reason="kernels need llvmlite")
OPS = [torch.add, torch.sub, torch.mul, torch.div]


def normal(*shape: int, dtype: str = "float32") -> Any:
    return torch.from_numpy(np.random.default_rng(1).standard_normal(shape).astype(dtype))


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_the_same_bits(op: Any, dtype: str, threads: int) -> None:
    ufunc = {
        torch.add: np.add,
        torch.sub: np.subtract,
        torch.mul: np.multiply,
        torch.div: np.true_divide,
    }[op]
    for shape, other in (
        ((600, 500), (600, 500)),
        ((600, 500), (500,)),
        ((3, 4), (3, 4)),
        ((600, 500), ()),
        ((), (600, 500)),
    ):
        a, b = normal(*shape, dtype="float64") * 9 + 99, normal(*other, dtype="float64") * 9 + 99
        a, b = (t.to(getattr(torch, dtype)) for t in (a, b))
        want = ufunc(a.numpy(), b.numpy())
        got = op(a, b).numpy()
        np.testing.assert_array_equal(got, want.astype(got.dtype))
        if dtype == "float32":
            np.testing.assert_array_equal(op(a, 3).numpy(), ufunc(a.numpy(), np.float32(3)))
            np.testing.assert_array_equal(
                op(a.t(), 1e300).numpy(), ufunc(a.numpy().T, np.float32(np.inf))
            )


def test_wrong_shapes_are_named(threads: int) -> None:
    with pytest.raises(RuntimeError, match="size of tensor a"):
        _ = normal(600, 500) + normal(600, 501)


def test_a_stub_hands_its_arguments_on() -> None:
    """To the one or the other by size and threads; nothing is lost or kept."""
    calls: list[str] = []
    stub = dispatch_stub.stub(lambda *a: calls.append("plain"), lambda *a: calls.append("large"))
    small, big = np.zeros(10), np.zeros(dispatch_stub.LARGE)
    set_thread_count(2)
    try:
        for a in (small, big, big.reshape(2, -1), np.zeros(()), 3.0):
            stub(a, 1.0)
        assert calls == ["plain", "large", "large", "plain", "plain"]
        set_thread_count(1)
        stub(big, 1.0)
        assert calls[-1] == "plain"
    finally:
        parallel._count = 0
        parallel.note_threads()
    stub = dispatch_stub.stub(np.add, np.subtract)
    gc.collect()
    before = sys.getrefcount(small)
    for _ in range(1000):
        stub(small, small)
    assert abs(sys.getrefcount(small) - before) < 5
    with pytest.raises(TypeError):
        stub(small)
