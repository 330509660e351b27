"""Data sets that are drawn rather than read: as many points or signals as are wanted.

All draw from toytorch's default generator, or from the one that is given: the same seed gives the
same data. Everything comes back as (inputs float32, labels int64), the classes mixed.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from toytorch.core.random import Generator, generator_of
from toytorch.core.tensor import Tensor
from toytorch.facts.device import cpu
from toytorch.ops.creation.from_data import tensor

Array = np.ndarray[Any, Any]

LENGTH = 40  # samples of a signal
_RAW = 72  # samples before it is thinned out
_SHORTEST, _LONGEST = 36, 60  # lengths that a sketch is stretched to, of _RAW

# One line per class: the height of a pen that draws something like the digit, left to right. The
# idea is Greydanus's; the sketches are our own.
SKETCHES = np.array([
    [6, 7, 8, 8, 7, 6, 5, 3, 1, 1, 3, 5],
    [4, 3, 2, 1, 1, 2, 4, 6, 8, 6, 4, 4],
    [2, 5, 8, 8, 7, 5, 3, 1, 0, 3, 4, 4],
    [5, 8, 7, 5, 6, 8, 7, 4, 1, 0, 1, 3],
    [8, 6, 4, 2, 2, 3, 3, 8, 5, 2, 1, 0],
    [7, 7, 6, 5, 5, 7, 5, 2, 0, 0, 1, 2],
    [8, 6, 3, 1, 0, 1, 3, 4, 4, 2, 1, 2],
    [5, 6, 6, 7, 7, 8, 7, 5, 3, 2, 1, 0],
    [5, 7, 5, 3, 5, 7, 3, 0, 2, 4, 2, 4],
    [4, 6, 8, 7, 5, 4, 6, 8, 5, 3, 1, 0],
], dtype=np.float64)  # fmt: skip


def spirals(
    n: int = 300, classes: int = 3, noise: float = 0.2, generator: Generator | None = None
) -> tuple[Tensor, Tensor]:
    """Points on arms that wind around the origin, one arm per class: (n, 2) in -1..1.

    A point of arm k at radius r has the angle 2πk/classes + 4r + noise·z, z standard normal.

    >>> points, labels = spirals(6, classes=3)
    >>> points.shape, labels.bincount()
    (torch.Size([6, 2]), tensor([2, 2, 2]))
    """
    _check(n, noise)
    if classes < 1:
        raise ValueError(f"spirals needs at least one class, but got classes={classes}")
    rng = generator_of(cpu, generator)
    labels = rng.permutation(n) % classes
    radius = rng.uniform(n, float, 0.02, 1)
    angle = 2 * math.pi * labels / classes + 4 * radius + noise * rng.normal(n, float)
    points = radius[:, None] * np.stack([np.sin(angle), np.cos(angle)], axis=1)
    return _pair(points, labels)


def moons(
    n: int = 200, noise: float = 0.1, generator: Generator | None = None
) -> tuple[Tensor, Tensor]:
    """Two half circles that reach into each other, one per class: (n, 2).

    Class 0 is (cos t, sin t), class 1 is (1 - cos t, 1/2 - sin t), t in 0..π, plus normal noise of
    that standard deviation; `sklearn.datasets.make_moons` is the relative.

    >>> points, labels = moons(4, noise=0.)
    >>> points.shape, labels.bincount()
    (torch.Size([4, 2]), tensor([2, 2]))
    """
    _check(n, noise)
    rng = generator_of(cpu, generator)
    labels = rng.permutation(n) % 2
    t = rng.uniform(n, float, 0, math.pi)
    upper = np.stack([np.cos(t), np.sin(t)], axis=1)
    lower = np.stack([1 - np.cos(t), 0.5 - np.sin(t)], axis=1)
    points = np.where(labels[:, None] == 0, upper, lower)
    return _pair(points + noise * rng.normal(2 * n, float).reshape(n, 2), labels)


def signals(
    n: int = 1000, noise: float = 0.25, generator: Generator | None = None
) -> tuple[Tensor, Tensor]:
    """Signals of 40 samples in ten classes, in the manner of MNIST-1D: (n, 40).

    A class's sketch of 12 heights is stretched to a random length, set at a random place in
    silence, scaled by 0.6 to 1.4, tilted, and covered with noise, most of it correlated along the
    signal; then it is thinned to 40 samples. Linear models do badly on it, convolutions do well.
    After S. Greydanus, *Scaling Down Deep Learning* (2020), with sketches of our own.

    >>> inputs, labels = signals(20)
    >>> inputs.shape, labels.bincount()
    (torch.Size([20, 40]), tensor([2, 2, 2, 2, 2, 2, 2, 2, 2, 2]))
    """
    _check(n, noise)
    rng = generator_of(cpu, generator)
    labels = rng.permutation(n) % len(SKETCHES)
    clean = (
        np.stack([_placed(SKETCHES[label], rng) for label in labels]) if n else np.zeros((0, _RAW))
    )
    clean = clean * rng.uniform(n, float, 0.6, 1.4)[:, None]
    tilt = rng.uniform(n, float, -0.75, 0.75)[:, None] * np.linspace(-1, 1, _RAW)
    smooth, rough = (rng.normal(n * _RAW, float).reshape(n, _RAW) for _ in range(2))
    noisy = clean + tilt + noise * (_smooth(smooth) + 0.2 * rough)
    at = np.linspace(0, _RAW - 1, LENGTH).round().astype(int)
    return _pair(noisy[:, at], labels)


def _placed(sketch: Array, rng: Any) -> Array:
    """A sketch stretched to a random length, at a random place in `_RAW` samples of silence."""
    length = int(rng.integers(1, _SHORTEST, _LONGEST + 1)[0])
    start = int(rng.integers(1, 0, _RAW - length + 1)[0])
    heights = (sketch - sketch.mean()) / sketch.std()
    out = np.zeros(_RAW)
    out[start : start + length] = np.interp(
        np.linspace(0, len(sketch) - 1, length), np.arange(len(sketch)), heights
    )
    return out


def _smooth(noise: Array) -> Array:
    """White noise correlated over a few neighbours, still of variance 1."""
    reach = np.arange(-6, 7)
    kernel = np.exp(-0.5 * (reach / 2) ** 2)
    kernel /= np.sqrt((kernel**2).sum())
    wide = np.pad(noise, ((0, 0), (6, 6)), mode="wrap")
    windows = np.lib.stride_tricks.sliding_window_view(wide, 13, axis=1)
    return windows @ kernel


def _check(n: int, noise: float) -> None:
    if n < 0:
        raise ValueError(f"the number of examples must not be negative, but got n={n}")
    if noise < 0:
        raise ValueError(f"noise is a standard deviation and not negative, but got noise={noise}")


def _pair(inputs: Array, labels: Array) -> tuple[Tensor, Tensor]:
    return tensor(inputs.astype(np.float32)), tensor(labels.astype(np.int64))
