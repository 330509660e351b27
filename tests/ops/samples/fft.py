"""Samples of Fourier transforms, and of complex numbers seen as pairs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.ops.samples.base import S, Sample, V, boolean, c64, c128, entry, f32, f64, i64, t


def _signals(real_only: bool, n: int) -> Iterator[tuple[tuple[int, ...], Any, Any]]:
    for dtype in (f64,) if real_only else (f64, c128):
        yield (n,), dtype, {}
        yield (2, n), dtype, {"norm": "ortho"}
    yield (3, n), f64, {"norm": "forward"}


def _one(real_only: bool) -> Any:
    def draw() -> Iterator[Sample]:
        for n in (4, 5):
            for shape, dtype, options in _signals(real_only, n):
                yield Sample((t(shape, dtype),), options)
        for n in (3, 6, 7):
            yield S(t((2, 5)), n)
        yield S(t((4, 3)), dim=0)
        yield S(t((4, 3), layout="transposed"), 4, 0, "backward")
        for dtype in (f32, i64, boolean):
            yield V(t((2, 4), dtype))
        if not real_only:
            yield V(t((2, 4), c64))

    return draw


def _many(real_only: bool) -> Any:
    def draw() -> Iterator[Sample]:
        for dtype in (f64,) if real_only else (f64, c128):
            yield S(t((2, 3, 4), dtype))
            yield S(t((3, 5), dtype), norm="ortho")
        yield S(t((3, 4)), (2, 5))
        yield S(t((3, 4)), (4, -1), (1, 0), "forward")
        yield V(t((3, 4), f32))
        yield V(t((2, 4), i64))

    return draw


for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    real = name in ("rfft", "ihfft")
    entry(f"fft.{name}", _one(real), slack=10)
    for end in ("2", "n"):
        entry(f"fft.{name}{end}", _many(real), slack=10)
for name in ("fftshift", "ifftshift"):
    entry(f"fft.{name}", lambda: iter([S(t((5,))), S(t((3, 4))), S(t((3, 4)), 1),
          S(t((2, 3, 4)), (0, 2)), V(t((4,), i64))]))  # fmt: skip
for name in ("fftfreq", "rfftfreq"):
    entry(f"fft.{name}", lambda: iter([V(5), V(8, 0.5), V(4, dtype=f64), V(1)]))


def _c2c() -> Iterator[Sample]:
    for way in (0, 1, 2):
        for forward in (True, False):
            yield S(t((3, 4), c128), [0, 1], way, forward)


def _r2c() -> Iterator[Sample]:
    for onesided in (True, False):
        yield S(t((3, 4)), [1], 0, onesided)
        yield S(t((3, 5)), [0, 1], 1, onesided)


def _c2r() -> Iterator[Sample]:
    yield S(t((3, 3), c128), [1], 2, 4)
    yield S(t((3, 3), c128), [0, 1], 1, 5)


entry("_fft_c2c", _c2c, slack=10)
entry("_fft_r2c", _r2c, slack=10)
entry("_fft_c2r", _c2r, slack=10)


def _stft() -> Iterator[Sample]:
    yield S(t((20,)), 8, return_complex=True)
    yield S(t((2, 16)), 6, 2, 4, t((4,), low=0.5), return_complex=True, normalized=True)
    yield S(t((16,)), 6, center=False, onesided=False, return_complex=True)
    yield S(t((16,)), 6, pad_mode="constant", return_complex=False)
    yield S(t((16,)), 6, pad_mode="replicate", return_complex=True)
    yield S(t((12,), c128), 6)
    yield S(t((16,)), 6, 3, 4, center=False, align_to_window=True, return_complex=True)


entry("stft", _stft, slack=10)


def _spectrum(*shape: int) -> Any:
    return t(shape, c128)


def _istft() -> Iterator[Sample]:
    yield S(_spectrum(5, 6), 8)
    yield S(_spectrum(2, 4, 5), 6, 2, 6, t((6,), low=0.5))
    yield S(_spectrum(4, 6), 6, 2, 4, t((4,), low=0.5), normalized=True, length=9)
    yield S(_spectrum(4, 6), 6, center=False)
    yield S(_spectrum(6, 6), 6, onesided=False, return_complex=True)


entry("istft", _istft, slack=10)
