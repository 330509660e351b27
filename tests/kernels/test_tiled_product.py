"""Products by register tiles: any shape and order of memory, and the same bits on any threads."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import toytorch
from toytorch.kernels import tiled_product
from toytorch.kernels.tiled_product import Factor, linear, plan, run, zeros
from toytorch.loops import processor
from toytorch.loops.llvm.builder import BLOCK
from toytorch.loops.runtime import blas, jit
from toytorch.loops.runtime.array_call import ArrayCall

pytestmark = pytest.mark.skipif(not jit.works(), reason="compiled code needs llvmlite")
SIZES = [(8, 33, 8), (9, 40, 17), (13, 64, 32), (31, 97, 64), (64, 256, 100), (50, 32, 300)]


@pytest.fixture
def threads() -> Iterator[None]:
    before = toytorch.get_num_threads()
    yield
    toytorch.set_num_threads(before)


def whole(*shape: int, kind: str = "f") -> Any:
    """Whole numbers, whose sums of products are exact in any order."""
    return np.random.default_rng(5).integers(-9, 9, shape).astype(kind)


def narrow(kind: str) -> bool:
    """Whether panels are too narrow for blocks that are transposed, as float64's are on SSE4."""
    return tiled_product.wide(kind) < BLOCK


def orders(a: Any) -> Iterator[Any]:
    """A matrix in rows, in columns, and as part of a larger one whose other elements are NaN."""
    yield a
    yield np.asfortranarray(a)
    yield np.pad(a, ((2, 1), (3, 5)), constant_values=np.nan)[2:-1, 3:-5]


@pytest.mark.parametrize("kind", ["f", "d"])
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_any_order(size: tuple[int, int, int], kind: str) -> None:
    m, n, k = size
    n = max(n, tiled_product.wide(kind))
    for a, b in itertools.product(orders(whole(m, k, kind=kind)), orders(whole(k, n, kind=kind))):
        lines = b.strides[1] == b.itemsize
        calls = plan(kind, m, n, k, a.strides, b.strides, lines)
        if not lines and narrow(kind):
            assert calls is None
            continue
        assert calls is not None
        made = np.full((m, n), np.nan, kind)
        run(calls, a, b, made, zeros(n, a.dtype))
        np.testing.assert_array_equal(made, a @ b)


@pytest.mark.parametrize("kind", ["f", "d"])
@pytest.mark.parametrize(
    "size", [(64, 64, 64), (3, 320, 100), (150, 128, 128), (16, 48, 90), (999, 16, 80)], ids=str
)
def test_small_products_without_blas(size: tuple[int, int, int], kind: str) -> None:
    m, n, k = size
    tiles = processor.this().vector == 32
    for a, b in itertools.product(orders(whole(m, k, kind=kind)), orders(whole(k, n, kind=kind))):
        made = tiled_product.small(a, b)
        if made is None:
            item = b.itemsize
            packed = m < 96 or a.strides[1] > item
            assert not tiles or b.strides[1] > item or (packed and b.strides[0] * k >= 1 << 15)
        else:
            np.testing.assert_array_equal(made, a @ b)
        x, y = toytorch.from_numpy(a), toytorch.from_numpy(b)
        np.testing.assert_array_equal(x.mm(y).numpy(), a @ b)
    assert tiled_product.small(whole(8, 8, kind=kind), whole(8, 8, kind=kind)) is None


@pytest.fixture
def small_cache(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A processor whose cache holds little and whose BLAS is slow: products go by blocks of rows."""
    here = processor.this()._replace(l2=1 << 13)
    monkeypatch.setattr(tiled_product.processor, "this", lambda: here)
    monkeypatch.setattr(tiled_product, "beats_blas", lambda: True)
    monkeypatch.setattr(tiled_product, "HIGH", 30)
    plan.cache_clear()
    yield
    plan.cache_clear()


@pytest.mark.parametrize("kind", ["f", "d"])
@pytest.mark.parametrize("size", [(30, 64, 50), (61, 33, 70), (150, 100, 40)], ids=str)
def test_blocks_of_rows(size: tuple[int, int, int], kind: str, small_cache: None) -> None:
    m, n, k = size
    for a, b in itertools.product(orders(whole(m, k, kind=kind)), orders(whole(k, n, kind=kind))):
        calls = plan(kind, m, n, k, a.strides, b.strides, True)
        if narrow(kind) and b.strides[1] != b.itemsize:
            assert calls is None
            continue
        assert calls is not None and calls[0], "both are too large, so that B is packed"
        made = np.full((m, n), np.nan, kind)
        run(calls, a, b, made, zeros(n, a.dtype))
        np.testing.assert_array_equal(made, a @ b)


@pytest.mark.skipif(processor.this().vector < 64, reason="tiles are for vectors of 512 bits")
@pytest.mark.parametrize("size", [(64, 64, 64), (200, 1024, 300), (300, 40, 1024)], ids=str)
def test_any_size_where_blas_is_narrow(
    size: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiled_product, "beats_blas", lambda: True)
    monkeypatch.setattr(tiled_product, "fewest", lambda: tiled_product.FEWEST_OF_LAYERS)  # is kept
    m, n, k = size
    for a, b in itertools.product(orders(whole(m, k)), orders(whole(k, n))):
        made = tiled_product.multiply(a, b)
        if made is None:  # a factor of a layer has gaps
            assert b.strides[1] != b.itemsize
            continue
        np.testing.assert_array_equal(made, a @ b)


def test_vectors_of_blas(monkeypatch: pytest.MonkeyPatch) -> None:
    def names(core: bytes | None) -> Any:
        return lambda what: None if core is None else lambda: core

    for core, size in ((b"Haswell", 32), (b"Nehalem", 16), (b"SkylakeX", 64), (None, 64)):
        blas.vector.cache_clear()
        made = names(core)
        monkeypatch.setattr(blas, "_function", made)
        assert blas.vector() == size
    blas.vector.cache_clear()


@pytest.mark.parametrize("kind", ["f", "d"])
@pytest.mark.parametrize(
    ("m", "n", "k"), [(64, 64, 64), (16, 200, 80), (300, 65, 33), (200, 40, 100)]
)
def test_a_layer(m: int, n: int, k: int, kind: str) -> None:
    x, weight, bias = whole(m, k, kind=kind), whole(n, k, kind=kind), whole(n, kind=kind)
    made = linear(x, weight, bias)
    if narrow(kind):
        assert made is None
        return
    assert made is not None
    np.testing.assert_array_equal(made, x @ weight.T + bias)
    assert linear(x[:, ::2], weight[:, ::2], bias) is None  # not in rows
    assert linear(x.astype("int64"), weight.astype("int64"), bias.astype("int64")) is None


def test_one_factor_of_many() -> None:
    for b in (whole(40, 64), whole(64, 40).T, whole(1024, 2048)[:40]):
        factor = Factor(b)
        for rows in (3, 8, 33, 33):
            a, made = whole(rows, 40), np.empty((rows, b.shape[1]), "f")
            factor.times(a, made)
            np.testing.assert_array_equal(made, a @ b)
    few = Factor(whole(40, 5))
    made = np.empty((16, 5), "f")
    few.times(whole(16, 40), made)
    np.testing.assert_array_equal(made, whole(16, 40) @ whole(40, 5))


@pytest.mark.parametrize("shape", [(256, 256, 200), (64, 784, 256)])
def test_threads_change_no_bit(shape: tuple[int, int, int], threads: None) -> None:
    m, k, n = shape
    x, w, b = (np.random.default_rng(1).standard_normal(s).astype("f") for s in ((m, k), (n, k), n))
    made = []
    for count in (1, 2, 3):
        toytorch.set_num_threads(count)
        made.append((linear(x, w, b), tiled_product.multiply(x, np.ascontiguousarray(w.T))))
    for other in made[1:]:
        for one, two in zip(made[0], other):
            assert (one is None) == (two is None)
            if one is not None:
                np.testing.assert_array_equal(one, two)


def test_a_table_has_room() -> None:
    with pytest.raises(AssertionError, match="no more"):
        ArrayCall(tiled_product.tile("f", 4, 2, 1, False), [0] * 65, (0,), 1, 1)


# Where tiles gain nothing, products of any length are BLAS's, whose sums are not divided so.
@pytest.mark.skipif(
    not tiled_product.beats_blas(), reason="BLAS does long products on this processor, not tiles"
)
@pytest.mark.parametrize("kind", ["f", "d"])
def test_long_sums_are_added_up_from_parts(threads: None, kind: str) -> None:
    a, b = whole(40, 5001, kind=kind), whole(5001, 48, kind=kind)
    for x, y in itertools.product(orders(a), orders(b)):
        assert (tiled_product.multiply(x, y) == a @ b).all()
    x = toytorch.from_numpy(a).sin()
    made = []
    for count in (1, 2, 4):
        toytorch.set_num_threads(count)
        made.append(x @ x.cos().t()[:, :48])
    assert made[0].equal(made[1])
    assert made[0].equal(made[2])
