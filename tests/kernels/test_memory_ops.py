"""Compiled loops that move memory give what NumPy gives, whatever the layout, type and threads."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from toytorch.kernels import by_index, convert, distance, masks, scan, top
from toytorch.loops import set_thread_count
from toytorch.loops.runtime import jit
from toytorch.loops.runtime import threads as parallel

pytestmark = pytest.mark.skipif(not jit.works(), reason="the kernels need llvmlite")

TYPES = ("float32", "float64", "int64", "int32", "int16", "uint8", "bool")
SHAPES = ((4099,), (64, 67), (67, 64), (5, 33, 29), (3, 2, 41, 19), (1, 4500), (4500, 1))
CASES = [(s, d) for s in SHAPES for d in range(len(s))]


@pytest.fixture(params=[1, 3])
def threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """One thread, or three that share everything that can be shared."""
    monkeypatch.setattr(jit, "WORK", 1)
    set_thread_count(request.param)
    yield request.param
    parallel._count = 0
    parallel.note_threads()


def numbers(shape: tuple[int, ...], kind: str, seed: int = 0) -> Any:
    values = np.random.default_rng(seed).standard_normal(shape) * 9
    return (np.abs(values) if kind == "uint8" else values).astype(kind)


def places(shape: tuple[int, ...], d: int, seed: int = 1) -> Any:
    """Indices into a dimension, for an array that has 61 places there."""
    size = (*shape[:d], max(61, -(-4200 * shape[d] // np.prod(shape))), *shape[d + 1 :])
    return np.random.default_rng(seed).integers(0, shape[d], size)


@pytest.mark.parametrize(("shape", "d"), CASES, ids=str)
@pytest.mark.parametrize("kind", TYPES)
def test_gather(threads: int, shape: tuple[int, ...], d: int, kind: str) -> None:
    a, i = numbers(shape, kind), places(shape, d)
    wanted = np.take_along_axis(a, i, d)
    assert np.array_equal(by_index.gather(a, d, i), wanted)
    turned = np.asfortranarray(a)
    assert np.array_equal(by_index.gather(turned, d, np.asfortranarray(i)), wanted)
    assert np.array_equal(by_index.gather(a, d, i.astype("int32")), wanted)
    for bad in (-1, shape[d]):
        wrong = i.copy()
        wrong.reshape(-1)[-1] = bad
        assert by_index.gather(a, d, wrong) is None


@pytest.mark.parametrize(("shape", "d"), CASES, ids=str)
@pytest.mark.parametrize("kind", ["float32", "float64", "int64", "int32"])
def test_scatter(threads: int, shape: tuple[int, ...], d: int, kind: str) -> None:
    i = places(shape, d)
    a, values = numbers(shape, kind), numbers(i.shape, kind, 2)
    wanted, got = a.copy(), a.copy()
    at = list(np.indices(i.shape))
    at[d] = i
    np.add.at(wanted, tuple(at), values)
    assert by_index.scatter(got, d, i, values, True)
    assert np.allclose(got, wanted, rtol=1e-5, atol=1e-5)
    got = a.copy()
    assert by_index.scatter(got, d, i, values, False)
    wanted = a.copy()
    for m in range(i.shape[d]):  # the last one counts
        part = (slice(None),) * d + (slice(m, m + 1),)
        np.put_along_axis(wanted, i[part], values[part], d)
    assert np.array_equal(got, wanted)
    i.reshape(-1)[0] = shape[d]
    assert by_index.scatter(a.copy(), d, i, values, True) is None


@pytest.mark.parametrize(("shape", "d"), CASES, ids=str)
@pytest.mark.parametrize("kind", ["float32", "float64", "int64", "int32", "bool"])
def test_index_vector(threads: int, shape: tuple[int, ...], d: int, kind: str) -> None:
    a = numbers(shape, kind)
    i = np.random.default_rng(3).integers(0, shape[d], max(shape[d], 77))
    made = by_index.select(a, d, i)
    assert made is None or np.array_equal(made, a.take(i, d))
    if kind == "bool":
        return
    values = numbers((*shape[:d], i.size, *shape[d + 1 :]), kind, 4)
    wanted, got = a.copy(), a.copy()
    np.add.at(wanted, (slice(None),) * d + (i,), values)
    if by_index.add_slices(got, d, i - shape[d], values):
        assert np.allclose(got, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("top", [0, 7, 4000, 9000])
@pytest.mark.parametrize("least", [0, 5, 5000])
def test_counts(top: int, least: int) -> None:
    a = np.random.default_rng(top).integers(0, top + 1, 4101)
    assert np.array_equal(by_index.counted(a, least), np.bincount(a, minlength=least))
    assert np.array_equal(by_index.counted(a.repeat(2)[::2], least), np.bincount(a, None, least))
    a[-1] = -1
    assert by_index.counted(a, least) is None


@pytest.mark.parametrize("shape", [*SHAPES, (40_001,), (3, 20_000), (20_000, 3)], ids=str)
@pytest.mark.parametrize("share", [0, 0.01, 0.5, 0.99, 1])
def test_masks(threads: int, shape: tuple[int, ...], share: float) -> None:
    mask = np.random.default_rng(5).random(shape) < share
    for kind in TYPES:
        a = numbers(shape, kind)
        assert np.array_equal(masks.picked(a, mask), a[mask])
        assert np.array_equal(masks.picked(a.T, mask.T), a.T[mask.T])
    if len(shape) < 3:
        assert np.array_equal(masks.nonzero(mask), np.argwhere(mask))
        assert np.array_equal(masks.nonzero(mask.T), np.argwhere(mask.T))


def told_apart(a: np.ndarray, values: np.ndarray, d: int) -> bool:
    """Whether each of the values is one element of its row alone."""
    a, values = np.moveaxis(a, d, -1)[..., None, :], np.moveaxis(values, d, -1)[..., None]
    return bool((((a == values) | ((a != a) & (values != values))).sum(-1) == 1).all())


@pytest.mark.parametrize(("shape", "d"), CASES, ids=str)
@pytest.mark.parametrize("kind", ["float32", "float64", "int64", "int32"])
def test_top(threads: int, shape: tuple[int, ...], d: int, kind: str) -> None:
    a = numbers(shape, kind)
    if kind.startswith("float"):
        a = a.round()  # with equal numbers, and what is hard to compare
        for k, value in enumerate((np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0)):
            a.reshape(-1)[k :: 37 + k] = value
    else:
        a.reshape(-1)[::41] = np.iinfo(kind).min
    for k, largest in itertools.product((1, 3, 10), (True, False)):
        found = top.top(a, k, d, largest, True)
        if shape[d] < 2 * k:
            assert found is None
            continue
        order = np.argsort(a, d, kind="stable")
        if largest:
            order = np.argsort(np.flip(a, d), d, kind="stable")
            order = shape[d] - 1 - np.flip(order, d)
        order = order.take(range(k), d)
        assert np.array_equal(found[1], order)
        same = kind.startswith("float")
        assert np.array_equal(found[0], np.take_along_axis(a, order, d), equal_nan=same)
        told = shape[d] <= top.TOLD or a.size < jit.SMALLEST
        assert found[2] == (told and told_apart(a, found[0], d))


@pytest.mark.parametrize(("shape", "d"), CASES, ids=str)
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_running_sum(threads: int, shape: tuple[int, ...], d: int, kind: str) -> None:
    a = numbers(shape, kind)
    wanted = np.add.accumulate(a, d, np.float64).astype(kind)
    assert np.array_equal(scan.running_sum(a, d), wanted)
    rounded = scan.running_sum_rounded(a, d)
    assert np.array_equal(rounded, np.add.accumulate(a, d, kind))
    near = (1 + a / 100).astype(kind)
    product = np.multiply.accumulate(near, d, np.float64).astype(kind)
    assert np.array_equal(scan.running_product(near, d), product)


@pytest.mark.parametrize("half", ["float16", "bfloat16"])
def test_conversions(threads: int, half: str) -> None:
    kind = np.dtype(half) if half == "float16" else pytest.importorskip("ml_dtypes").bfloat16
    scales = (10.0 ** np.arange(-20.0, 45.0)).clip(0, 1e30).astype("float32")
    a = numbers((67, 65), "float32") * scales
    a[0, :6] = np.inf, -np.inf, np.nan, 0, -0.0, 65520
    with np.errstate(all="ignore"):
        wanted = a.astype(kind)
    made = convert.cast(a, np.dtype(kind))
    assert np.array_equal(made.astype("float32"), wanted.astype("float32"), equal_nan=True)
    back = convert.cast(made, np.dtype("float32"))
    assert np.array_equal(back, wanted.astype("float32"), equal_nan=True)


@pytest.mark.parametrize(("n", "m", "d"), [(40, 40, 5), (100, 3, 64), (17, 90, 200), (70, 300, 1),
                                           (2, 1, 5000), (129, 128, 65)])  # fmt: skip
@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("p", [1, 2])
def test_distances(threads: int, n: int, m: int, d: int, kind: str, p: int) -> None:
    a, b = numbers((n, d), kind), numbers((m, d), kind, 6)
    tolerance = {"rtol": 1e-5 if kind == "float32" else 1e-12}
    apart = np.linalg.norm(a.astype("float64")[:, None] - b[None], p, -1)
    assert np.allclose(distance.between(a, b, p), apart, **tolerance)
    apart = np.linalg.norm(a.astype("float64")[:, None] - a[None], p, -1)
    wanted = apart[np.triu_indices(n, 1)]
    made = distance.within(a, p)
    assert made is None or np.allclose(made, wanted, **tolerance)


@pytest.mark.parametrize("n", [92, 97, 128])
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_square_of_pairs(threads: int, n: int, kind: str) -> None:
    a = numbers((n * (n - 1) // 2,), kind)
    wanted = np.zeros((n, n), kind)
    i, j = np.triu_indices(n, 1)
    wanted[i, j] = wanted[j, i] = a
    assert np.array_equal(distance.square(a, n), wanted)
