"""What meets what in a convolution, one dimension at a time, and which ones are computed so.

Along each dimension a Grid says: output t = first + every·i sees the input at
start + i·stride + m·dilation with tap m. Forward there is one grid. The gradient of the input is a
convolution of g with flipped weights, stride 1; where the convolution had a stride s, every s-th
output sees the same taps, so it is one convolution for each of s·s phases, and no zeros are put
between the elements of g.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from toytorch.facts.hints import Array
from toytorch.loops import processor
from toytorch.loops.runtime import jit


@dataclass(frozen=True)
class Grid:
    """How outputs first + every·i, i < count, see inputs along one dimension."""

    start: int
    stride: int
    dilation: int
    taps: int
    count: int
    first: int = 0
    every: int = 1

    def at(self, i: int, m: int) -> int:
        """The input that output i sees with tap m."""
        return self.start + i * self.stride + m * self.dilation

    def bands(self, size: int) -> list[tuple[int, int, int, int]]:
        """(i, end, m, end): outputs that see the same taps inside an input of this size.

        >>> Grid(start=-1, stride=1, dilation=1, taps=3, count=5).bands(5)
        [(0, 1, 1, 3), (1, 4, 0, 3), (4, 5, 0, 2)]
        """
        made: list[tuple[int, int, int, int]] = []
        for i in range(self.count):
            place = self.start + i * self.stride  # of tap 0
            low = max(0, -(place // self.dilation))
            high = min(self.taps, (size - 1 - place) // self.dilation + 1)
            seen = (low, high) if low < high else (0, 0)
            if made and made[-1][2:] == seen:
                made[-1] = (made[-1][0], i + 1, *seen)
            else:
                made.append((i, i + 1, *seen))
        return made


def forward_grid(size: int, kernel: int, stride: int, pad: int, dilation: int) -> Grid:
    count = (size + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1
    return Grid(-pad, stride, dilation, kernel, count)


def phases(
    size: int, kernel: int, stride: int, pad: int, dilation: int
) -> list[tuple[Grid, list[int]]]:
    """The gradient of an input of this size as convolutions, with the taps each of them uses.

    Input y got tap k of output o where y + pad = o·stride + k·dilation. For y = first + stride·i
    the taps that fit are those with k·dilation ≡ first + pad (mod stride).

    >>> phases(4, kernel=3, stride=2, pad=1, dilation=1)[1]
    (Grid(start=0, stride=1, dilation=1, taps=2, count=2, first=1, every=2), [2, 0])
    """
    made = []
    for first in range(min(stride, size)):
        fitting = [k for k in range(kernel) if (first + pad - k * dilation) % stride == 0][::-1]
        start = (first + pad - fitting[0] * dilation) // stride if fitting else 0
        apart, count = dilation // math.gcd(stride, dilation), -(-(size - first) // stride)
        made.append((Grid(start, 1, apart, len(fitting), count, first, stride), fitting))
    return made


def run_of(taps: list[int]) -> slice:
    """Taps at equal distances, the last first, as a slice.

    >>> run_of([2, 0]), run_of([])
    (slice(2, None, -2), slice(0, 0, 1))
    """
    if not taps:
        return slice(0, 0, 1)
    step = taps[0] - taps[1] if len(taps) > 1 else 1
    return slice(taps[0], taps[-1] - step if taps[-1] >= step else None, -step)


def fits(x: Array, w: Array, outputs: int, groups: int) -> bool:
    """Whether there are enough outputs to fill vectors, and arrays this can read."""
    kind = x.dtype.char
    if kind not in "fd" or w.dtype.char != kind or x.ndim != 4 or not jit.works():
        return False
    lanes, each = processor.this().lanes(kind), outputs // groups
    return bool(x.size and w.size and (each % lanes == 0 or (groups == 1 and each >= lanes // 2)))


def vectors_of(columns: int) -> int:
    """How many vectors a row of the register tile should have, of so many altogether."""
    return 2 if columns % 2 == 0 else 3 if columns % 3 == 0 else 1
