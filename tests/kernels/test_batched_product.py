"""Products of stacks of matrices, beside NumPy's, on one thread and on two."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.oracle import torch, tt
from toytorch.kernels import batched_product
from toytorch.loops import processor
from toytorch.loops.runtime import jit
from toytorch.loops.runtime import threads as parallel
from toytorch.loops.runtime.threads import set_thread_count

pytestmark = pytest.mark.skipif(
    not jit.works(), reason="without llvmlite the kernel leaves all to NumPy"
)


def stack(rng: np.random.Generator, how: str, batch: tuple[int, ...], m: int, n: int) -> Any:
    """Matrices (…, m, n): in rows, in columns, with the last dimension of the batch behind the
    rows (as heads of attention lie), with gaps, or one matrix for all."""
    if how == "columns":
        return rng.standard_normal((*batch, n, m)).swapaxes(-1, -2)
    if how == "heads":
        return rng.standard_normal((*batch[:-1], m, batch[-1], n)).swapaxes(-2, -3)
    if how == "gaps":
        return rng.standard_normal((*batch, m, 2 * n))[..., 3 : 3 + n]
    if how == "one":
        return np.broadcast_to(rng.standard_normal((m, n)), (*batch, m, n))
    return rng.standard_normal((*batch, m, n))


HOW = ["rows", "columns", "heads", "gaps", "one"]


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("sizes", [(64, 64, 64), (33, 40, 70), (9, 100, 50), (100, 8, 33)])
@pytest.mark.parametrize("right", HOW)
@pytest.mark.parametrize("left", HOW)
def test_products(threads: int, left: str, right: str, sizes: tuple[int, ...], kind: str) -> None:
    m, k, n = sizes
    rng = np.random.default_rng(m)
    a = stack(rng, left, (5, 4), m, k)
    b = stack(rng, right, (5, 4), k, n)
    if kind == "float32":
        a, b = as_float32(a), as_float32(b)
    made = batched_product.product(a, b)
    if (
        made is None
    ):  # too few multiplications, or a factor that one thread's first cache cannot hold
        large = k * n * a.itemsize > processor.this().l1
        assert m * k * n * 20 < batched_product.FEWEST_OF_STACKS or (large and threads == 1)
        return
    assert made.dtype == a.dtype
    want = np.matmul(a.astype("float64"), b.astype("float64"))
    np.testing.assert_allclose(made, want, rtol=0, atol=2e-5 if kind == "float32" else 1e-12)


@pytest.mark.parametrize("right", HOW)
@pytest.mark.parametrize("left", HOW)
@pytest.mark.parametrize("into", ["rows", "columns", "heads", "gaps"])
@pytest.mark.parametrize("sizes", [(64, 64, 64), (33, 40, 70), (300, 60, 40), (4, 3, 5)])
def test_products_in_memory_that_is_there(
    threads: int, into: str, left: str, right: str, sizes: tuple[int, ...]
) -> None:
    m, k, n = sizes
    rng = np.random.default_rng(n)
    a, b = stack(rng, left, (5, 4), m, k), stack(rng, right, (5, 4), k, n)
    out, want = (stack(np.random.default_rng(1), into, (5, 4), m, n) for _ in range(2))
    assert batched_product.product_into(a, b, out) is out
    np.matmul(a, b, out=want)
    held = [made if made.base is None else made.base for made in (out, want)]
    np.testing.assert_allclose(*held, rtol=0, atol=1e-12)  # what lies between is as it was


def as_float32(a: Any) -> Any:
    """The elements as float32, with strides like theirs."""
    made = np.zeros(a.base.size if a.base is not None else a.size, "float32")
    lying = np.lib.stride_tricks.as_strided(made, a.shape, [s // 2 for s in a.strides])
    lying[...] = a
    return lying


def test_threads_change_no_bit() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((12, 64, 48)), rng.standard_normal((12, 48, 64))
    made = []
    for count in (1, 2, 4):
        set_thread_count(count)
        made.append(batched_product.product(a, b))
    parallel._count = 0
    parallel.note_threads()
    assert made[0] is not None
    for other in made[1:]:
        np.testing.assert_array_equal(other, made[0])


@pytest.mark.parametrize("text", ["bik,bkj->bij", "bhid,bhjd->bhij", "bhij,bhjd->bhid"])
def test_einsum(threads: int, text: str) -> None:
    terms = text.split("->")[0].split(",")
    sizes = {"b": 6, "h": 4, "i": 64, "j": 48, "k": 40, "d": 32}
    x, y = (torch.randn([sizes[c] for c in term]) for term in terms)
    got = tt.einsum(text, tt.tensor(x.numpy()), tt.tensor(y.numpy()))
    want = torch.einsum(text, x, y)
    assert got.shape == want.shape
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=0, atol=2e-5)
