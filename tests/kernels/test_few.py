"""Few numbers: what has a kernel that is made for a shape gives what PyTorch gives, and what the same
op gives where there are many."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from tests.oracle import torch, tt
from toytorch.kernels import by_index, few, fourier, norm
from toytorch.loops.runtime import jit

pytestmark = pytest.mark.skipif(not jit.works(), reason="NumPy does it where there is no compiler")
SHAPES = [(1,), (5,), (16,), (8, 8), (3, 4), (2, 3, 4), (1, 7), (7, 1)]
KINDS = ["float32", "float64", "int32", "int64"]


@pytest.fixture(autouse=True)
def loaded() -> None:
    """From here on small calls are compiled, too."""
    tt.randn(5000)


def numbers(shape: tuple[int, ...], kind: str, nan: bool) -> np.ndarray:
    """Whole numbers, of which several are equal; with `nan` a third of them are none."""
    rng = np.random.default_rng(len(shape))
    a = rng.integers(-4, 5, shape).astype(kind)
    return np.where(rng.random(shape) < 0.3, np.nan, a).astype(kind) if nan else a


def agree(name: str, *given: Any, close: bool = False, **more: Any) -> None:
    """A function gives the same on both sides: shapes, types, strides and elements."""
    ours, theirs = (
        getattr(m, name)(
            *(m.from_numpy(v) if isinstance(v, np.ndarray) else v for v in given), **more
        )
        for m in (tt, torch)
    )
    several = isinstance(theirs, tuple)
    for mine, its in zip(ours, theirs) if several else [(ours, theirs)]:
        assert tuple(mine.stride()) == tuple(its.stride())
        x, y = mine.numpy(), its.numpy()
        assert x.dtype == y.dtype and x.shape == y.shape
        if close:
            np.testing.assert_allclose(x, y, rtol=3e-7)
        else:
            np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("nan", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_reductions(shape: tuple[int, ...], kind: str, nan: bool) -> None:
    if nan and kind.startswith("int"):
        return
    a = numbers(shape, kind, nan)
    for name in ("max", "min", "median", "aminmax"):
        agree(name, a)
    for d in range(a.ndim) if not nan else ():  # of NaN PyTorch finds one mode or another
        agree("mode", a, d)
        agree("mode", a, d, True)
    if kind.startswith("float") and a.size > 3:
        for name, less in itertools.product(("std", "var"), (0, 1, 3)):
            agree(name, a, correction=less, close=True)


def test_mode_counts_no_nan() -> None:
    a = np.array([[np.nan, 2.0, np.nan, 1.0], [np.nan] * 4])
    values, places = few.mode(a, 1)
    np.testing.assert_array_equal(values, [1, np.nan])
    np.testing.assert_array_equal(places, [3, 0])


@pytest.mark.parametrize("nan", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_sets_and_places(kind: str, nan: bool) -> None:
    """Also in rows that are not sorted, and of NaN."""
    if nan and kind.startswith("int"):
        return
    a, b = numbers((4, 6), kind, nan), numbers((7,), kind, nan)
    agree("isin", a, b)
    for right, row in itertools.product((False, True), (b, np.sort(b))):
        agree("bucketize", a, row, right=right)


@pytest.mark.parametrize("kind", [*KINDS, "int16", "uint8", "float16", "complex64", "complex128"])
@pytest.mark.parametrize("shape", [(5,), (3, 4), (2, 3, 4)], ids=str)
def test_by_index(shape: tuple[int, ...], kind: str) -> None:
    """Indices of the same size, more of them along the dimension, and fewer along all."""
    rng = np.random.default_rng(1)
    a = rng.integers(0, 5, shape).astype(kind)
    for d in range(-len(shape), len(shape)):
        more = tuple(n + 2 * (k == d % len(shape)) for k, n in enumerate(shape))
        for wanted in (shape, more, tuple(n - 1 for n in shape)):
            i = rng.integers(0, shape[d], wanted)
            b = rng.integers(0, 5, wanted).astype(kind)
            agree("gather", a, d, i)
            agree("gather", a.T.copy().T, d, i)
            for name in ("scatter", "scatter_add"):
                agree(name, a, d, i, b)
        agree("cumsum", a, d)
        agree("cumprod", a, d)


@pytest.mark.parametrize("bad", [4, -1])
def test_indices_outside_are_refused(bad: int) -> None:
    """And nothing is written to the tensor itself."""
    i = np.array([[0, bad]])
    assert by_index.gather(np.ones((1, 4)), 1, i) is None
    x = tt.ones(1, 4)
    for call in (
        lambda m, x: x.gather(1, m.from_numpy(i)),
        lambda m, x: x.scatter_(1, m.from_numpy(i), m.zeros(1, 2)),
        lambda m, x: x.scatter_add_(1, m.from_numpy(i), m.ones(1, 2)),
    ):
        said = []
        for m, tensor in ((tt, x), (torch, torch.ones(1, 4))):
            with pytest.raises(RuntimeError) as error:
                call(m, tensor)
            said.append(str(error.value))
        assert said[0] == said[1]
    assert x.tolist() == [[1.0] * 4]


@pytest.mark.parametrize("way", ["fft", "ifft", "rfft", "irfft"])
def test_transforms_have_the_bits_of_numpy(way: str) -> None:
    rng = np.random.default_rng(2)
    made = 0
    for kind, shape in itertools.product("fdFD", [(1,), (7,), (8,), (3, 5), (2, 4, 6)]):
        a = rng.standard_normal(shape).astype(kind)
        for view, how in itertools.product((a, a.T), ("forward", "backward", "ortho")):
            for d in range(a.ndim):
                for n in (
                    {view.shape[d], 2 * view.shape[d] + 1} if way == "irfft" else {view.shape[d]}
                ):
                    found = fourier.along(way, view, n, d, how)
                    if found is not None:
                        np.testing.assert_array_equal(found, getattr(np.fft, way)(view, n, d, how))
                        made += 1
    assert made > 40


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize(
    "shape", [(2, 4, 3, 3), (1, 4, 5, 5), (2, 2, 10), (2, 4, 1, 9), (2, 4, 2, 2, 3)]
)
def test_norms_as_of_many(
    shape: tuple[int, ...], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(3)
    a = (rng.standard_normal(shape) * 3 + 1).astype(kind)
    w, b, mean, var = (rng.random(shape[1]).astype(kind) + 0.1 for _ in range(4))
    scale = np.reciprocal(np.sqrt(var + var.dtype.type(1e-5)))
    for weight, bias in ((None, None), (w, b), (w, None)):
        quick = norm.batch(a, weight, bias, 1e-5), norm.group(a, weight, bias, 2, 1e-5)
        known = norm.known(a, mean, var, weight, bias, 1e-5)
        with monkeypatch.context() as patch:
            patch.setattr(norm, "few", lambda *arrays: False)
            usual = norm.batch(a, weight, bias, 1e-5), norm.group(a, weight, bias, 2, 1e-5)
            scaled = norm.affine(a, mean, scale if weight is None else scale * weight, bias)
        np.testing.assert_array_equal(known, scaled)
        for one, other in zip(quick, usual):
            for x, y in zip(one, other):
                np.testing.assert_array_equal(x, y)


def test_several_views_share_a_node() -> None:
    """Of a leaf, and of a result; both parts' gradients meet in it."""
    for make in (
        lambda m: m.ones(4, 2, requires_grad=True),
        lambda m: m.ones(4, 2).requires_grad_() * 1,
    ):
        found = []
        for m in (tt, torch):
            x = make(m)
            if x.grad_fn is not None:
                x.retain_grad()
            parts = x.chunk(2)
            assert parts[0].grad_fn.name() == "SplitBackward0"
            first, second = x.unbind(1)
            ((parts[0] * 2).sum() + (parts[1] * 3).sum() + (second * 5).sum()).backward()
            found.append((x.grad.tolist(), [p._is_view() for p in (*parts, first)]))
            with pytest.raises(RuntimeError, match="multiple views"):
                parts[0].add_(1)
        assert found[0] == found[1]


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 0), (2, 1, 3), (70, 5)])
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_of_any_shape(name: str, shape: tuple[int, ...]) -> None:
    """Values and gradients along each dimension, of no dimension and of no elements, too."""
    given = np.random.default_rng(0).standard_normal(shape)
    for dim in range(-max(len(shape), 1), max(len(shape), 1)):
        results = []
        for m in (tt, torch):
            x = m.tensor(given, requires_grad=True)
            y = getattr(x, name)(dim)
            (y * y).sum().backward()
            results.append((y.detach().numpy(), x.grad.numpy()))
        for ours, theirs in zip(*results):
            np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-14)
