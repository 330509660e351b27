"""Fourier transforms of rows in lanes: values, layouts, lengths of other factors, threads."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import toytorch
from toytorch.kernels import fourier
from toytorch.kernels.fourier_rows import transform
from toytorch.loops.runtime import jit

pytestmark = pytest.mark.skipif(not jit.works(), reason="NumPy does it where there is no compiler")
WAYS = ["fft", "ifft", "rfft", "irfft"]
LENGTHS = (2, 3, 4, 6, 7, 8, 10, 15, 22, 28, 39, 48, 90, 256)
AROUND = [(16, 1), (33, 1), (4, 1), (2, 40), (1, 17), (3, 4), (1, 64)]  # rows, and those beside


@pytest.fixture(autouse=True)
def loaded() -> None:
    """From here on small calls are compiled, too."""
    toytorch.randn(5000)


def numbers(way: str, kind: str, *shape: int) -> np.ndarray:
    rng = np.random.default_rng(sum(shape))
    a = rng.standard_normal(shape)
    if way == "rfft":
        return a.astype(kind)
    return (a + 1j * rng.standard_normal(shape)).astype(kind.upper())


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", "fd")
def test_rows(way: str, kind: str) -> None:
    made = 0
    for n, (outer, inner) in itertools.product(LENGTHS, AROUND):
        a = numbers(way, kind, outer, n // 2 + 1 if way == "irfft" else n, inner)
        found = transform(way, a, n, 1, 0.5)
        if (n % 2 or n == 2) and way in ("rfft", "irfft"):
            assert found is None
            continue
        assert found is not None
        wide = a.astype("d" if way == "rfft" else "D")
        expected = getattr(np.fft, way)(wide, n, 1) * (0.5 * n if way[0] == "i" else 0.5)
        assert found.dtype.char == (kind if way == "irfft" else kind.upper())
        off = np.abs(found - expected).max() / np.abs(expected).max()
        assert off < (4e-7 if kind == "f" else 1.2e-15), (n, outer, inner, off)
        made += 1
    assert made > 30


@pytest.mark.parametrize("n", [17, 34, 51, 8192, 1])
def test_other_lengths_are_left_to_numpy(n: int) -> None:
    assert transform("fft", numbers("fft", "f", 8, n), n, 1, 1.0) is None


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("n", range(1, 8))
def test_many_short_rows(way: str, n: int) -> None:
    """Rows of few places, of which half are fewer still, are what NumPy makes of them."""
    numbers = np.random.default_rng(n).standard_normal((3000, n // 2 + 1 if way == "irfft" else n))
    a = numbers.astype("d" if way == "rfft" else "D")
    more = {"n": n} if way == "irfft" else {}
    made = getattr(toytorch.fft, way)(toytorch.tensor(a), **more).numpy()
    np.testing.assert_allclose(made, getattr(np.fft, way)(a, **more), 1e-12, 1e-12)


@pytest.mark.parametrize("way", WAYS)
def test_a_row_is_computed_alike_wherever_it_lies(way: str) -> None:
    """Also where another row is not finite, and where several threads take part."""
    a = numbers(way, "f", 100, 65 if way == "irfft" else 128)
    found = transform(way, a, 128, 1, 1.0)
    last = transform(way, np.ascontiguousarray(a[60:]), 128, 1, 1.0)
    np.testing.assert_array_equal(found[60:], last)
    a[:50] = np.nan
    np.testing.assert_array_equal(transform(way, a, 128, 1, 1.0)[50:], found[50:])
    many = np.tile(a[50:], (20, 1))
    before = toytorch.get_num_threads()
    made = []
    for threads in (1, 2, 4):
        toytorch.set_num_threads(threads)
        made.append(transform(way, many, 128, 1, 1.0))
    toytorch.set_num_threads(before)
    np.testing.assert_array_equal(made[0], np.tile(found[50:], (20, 1)))
    assert all((x == made[0]).all() for x in made)


def test_the_ends_of_half_a_spectrum_are_real() -> None:
    a = numbers("irfft", "d", 16, 9)
    real = a.copy()
    real[:, [0, -1]] = real[:, [0, -1]].real
    np.testing.assert_array_equal(
        transform("irfft", a, 16, 1, 1.0), transform("irfft", real, 16, 1, 1.0)
    )


@pytest.mark.parametrize("n", [16, 15])
def test_spectra_of_real_values_are_whole(n: int) -> None:
    a = numbers("rfft", "d", 4, n, 8)
    found = fourier.along("fft", a, n, 1, "ortho")
    np.testing.assert_allclose(found, np.fft.fft(a, n, 1, "ortho"), atol=1e-14)


@pytest.mark.parametrize("n", [2048, 8192, 6000, 2 * 8191, 1 << 16])
@pytest.mark.parametrize("way", ["fft", "ifft"])
def test_long_rows_are_transformed_as_matrices(way: str, n: int) -> None:
    a = numbers(way, "f", 2, n)
    found = fourier.along(way, a, n, 1, "backward")
    expected = getattr(np.fft, way)(a.astype("D"), n, 1)
    assert (fourier.in_two_steps(way, a, 1.0) is None) == (n == 2 * 8191)
    assert np.abs(found - expected).max() < 4e-7 * np.abs(expected).max()
