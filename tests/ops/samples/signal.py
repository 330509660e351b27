"""Samples of windows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.ops.samples.base import Sample, V, entry, f64


def _windows(**options: Any) -> Any:
    def draw() -> Iterator[Sample]:
        for n in (0, 1, 2, 5, 8):
            for sym in (True, False):
                yield V(n, sym=sym, **options)
        yield V(6, dtype=f64, **options)

    return draw


OPTIONS: dict[str, dict[str, Any]] = {
    "gaussian": {"std": 1.5}, "kaiser": {"beta": 8.0}, "exponential": {"tau": 2.0},
    "general_hamming": {"alpha": 0.6}, "general_cosine": {"a": [0.4, 0.3, 0.2]},
}  # fmt: skip
for name in ("bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine",
             "general_hamming", "hamming", "hann", "kaiser", "nuttall"):  # fmt: skip
    entry(f"signal.windows.{name}", _windows(**OPTIONS.get(name, {})), slack=10)


def _older(*more: Any) -> Any:
    def draw() -> Iterator[Sample]:
        for n in (0, 1, 2, 5, 8):
            for periodic in (True, False):
                yield V(n, periodic)
        yield V(6, True, *more, dtype=f64)

    return draw


for name in ("hann_window", "blackman_window", "bartlett_window"):
    entry(name, _older(), slack=10)
entry("hamming_window", _older(0.6, 0.4), slack=10)
entry("kaiser_window", _older(8.0), slack=10)
