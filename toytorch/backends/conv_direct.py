"""Convolution of images without a matrix of windows: the gradients are convolutions too.

Along each dimension a Grid says what meets what: output t = first + every·i sees the input at
start + i·stride + m·dilation with tap m. Forward there is one grid. The gradient of the input is
the same kernel on g with flipped weights, stride 1; where the convolution had a stride s, every
s-th output sees the same taps, so it is one convolution for each of s·s phases, and no zeros are
put between the elements of g. The gradient of the weight sums over pixels (`weight_gradient`).

Lines of the input that lie outside the image are left out of the sums, so a border of zeros is
needed at the ends of lines only.

Each function returns None where the caller should multiply matrices instead.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from toytorch.backends import native
from toytorch.backends.conv_code import width
from toytorch.backends.conv_pack import (
    CHUNK,
    channels_last,
    empty_images,
    lines_of,
    pack,
    padded_taps,
    plain,
    unpack,
)
from toytorch.backends.conv_tile import WORDS, rows, tile
from toytorch.backends.loops import machine

SMALLEST = 1 << 18  # multiplications; below, a call of NumPy's is as fast


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
            inside = [m for m in range(self.taps) if 0 <= self.at(i, m) < size]
            seen = (inside[0], inside[-1] + 1) if inside else (0, 0)
            if made and made[-1][2:] == seen:
                made[-1] = (made[-1][0], i + 1, *seen)
            else:
                made.append((i, i + 1, *seen))
        return made


def forward_grid(size: int, kernel: int, stride: int, pad: int, dilation: int) -> Grid:
    count = (size + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1
    return Grid(-pad, stride, dilation, kernel, count)


def phases(size: int, kernel: int, stride: int, pad: int,
           dilation: int) -> list[tuple[Grid, list[int]]]:
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
        made.append((Grid(start, 1, dilation // math.gcd(stride, dilation), len(fitting),
                          -(-(size - first) // stride), first, stride), fitting))
    return made


# -- the three functions --------------------------------------------------------------------------


def forward(x: Any, w: Any, bias: Any, stride: Any, padding: Any, dilation: Any,
            groups: int) -> Any:
    """The convolution (N, O, H', W') of x (N, C, H, W) with w (O, C/groups, kh, kw)."""
    if not fits(x, w, x.shape[0], w.shape[0], groups):
        return None
    grids = [forward_grid(*each) for each in zip(x.shape[2:], w.shape[2:], stride, padding,
                                                 dilation)]
    if math.prod(g.count for g in grids) * w.size * x.shape[0] < SMALLEST:
        return None
    taps = by_group(w, groups)
    shape = (x.shape[0], w.shape[0], *(g.count for g in grids))
    return correlate(x, [(taps, *grids)], bias, shape, groups)


def input_gradient(g: Any, w: Any, sizes: Any, stride: Any, padding: Any, dilation: Any,
                   groups: int) -> Any:
    """The gradient (N, C, *sizes) of the input: also the transposed convolution of g."""
    if not fits(g, w, g.shape[0], w.shape[1] * groups, groups) or g.size * w.size // w.shape[
            0] < SMALLEST:
        return None
    taps = by_group(w, groups).swapaxes(3, 4)
    jobs = []
    for (down, ys), (along, xs) in itertools.product(*(
            phases(*each) for each in zip(sizes, w.shape[2:], stride, padding, dilation))):
        jobs.append((taps[:, ys][:, :, xs], down, along))
    return correlate(g, jobs, None, (g.shape[0], w.shape[1] * groups, *sizes), groups)


def by_group(w: Any, groups: int) -> Any:
    """Weights (O, C/groups, kh, kw) as (groups, kh, kw, C/groups, O/groups)."""
    return w.reshape(groups, -1, *w.shape[1:]).transpose(0, 3, 4, 2, 1)


def fits(x: Any, w: Any, images: int, outputs: int, groups: int) -> bool:
    """Whether there are enough outputs to fill vectors, and arrays this can read."""
    kind = x.dtype.char
    if kind not in "fd" or w.dtype.char != kind or x.ndim != 4 or not machine.works():
        return False
    lanes, each = width(kind), outputs // groups
    return bool(x.size and w.size and native.ENABLED and (
        each % lanes == 0 or (groups == 1 and each >= lanes // 2)))


def blocks_of(columns: int) -> int:
    """How many vectors a tile should have, of so many altogether."""
    return next(k for k in (2, 3, 1) if columns % k == 0)


# -- sums over windows ----------------------------------------------------------------------------


def correlate(x: Any, jobs: Any, bias: Any, shape: Any, groups: int) -> Any:
    """Images of a shape, made by jobs (weights by group, grid of lines, grid along lines)."""
    last, x = channels_last(x), plain(x)
    y = empty_images(shape, x.dtype, last)
    lanes = width(x.dtype.char)
    wide = -(-shape[1] // lanes) * lanes  # channels of the output, in whole vectors
    start = np.zeros(wide, x.dtype)
    if bias is not None:
        start[:shape[1]] = bias
    left = max(0, *(-along.start for _, _, along in jobs))
    right = max(0, *(along.at(along.count - 1, along.taps - 1) + 1 - x.shape[3]
                     for _, _, along in jobs))
    direct_in = not left and not right and lines_of(x) is not None
    direct_out = wide == shape[1] and lines_of(y) is not None
    line = x.shape[3] + left + right
    each = max(x[0].size, math.prod(shape[1:]))
    step = max(1, min(len(x), CHUNK // each))
    inside = None if direct_in else np.zeros((step, x.shape[2], line, x.shape[1]), x.dtype)
    outside = None if direct_out else np.empty((step, *shape[2:], wide), x.dtype)
    calls = [call for job in jobs for call in plan(job, x.shape, line, left, wide, shape, groups)]
    for i in range(0, len(x), step):
        part, made = x[i:i + step], y[i:i + step]
        source = lines_of(part) if direct_in else inside
        if not direct_in:
            pack(part, inside, left)
        result = lines_of(made) if direct_out else outside
        for call in calls:
            call(len(part), source, result, start)
        if not direct_out:
            unpack(outside, made)
    return y


class Call:
    """One run of the kernel on some images, from given places in their arrays."""

    def __init__(self, kernel: Any, words: dict[str, int], weights: Any, places: Any) -> None:
        self.kernel, self.weights, self.places = kernel, weights, places
        self.words = table(words)
        self.address, self.b = self.words.ctypes.data, weights.ctypes.data

    def __call__(self, images: int, source: Any, result: Any, start: Any) -> None:
        self.words[0] = images
        a, b, c, s = (p * source.itemsize for p in self.places)
        self.kernel(self.address, source.ctypes.data + a, self.b + b, result.ctypes.data + c,
                    start.ctypes.data + s)


class Fill:
    """What outputs that see nothing get: the bias."""

    def __init__(self, down: Grid, along: Grid, band: slice) -> None:
        self.lines = slice(down.first, None, down.every), slice(along.first, None, along.every)
        self.band = band

    def __call__(self, images: int, source: Any, result: Any, start: Any) -> None:
        result[(slice(images), *self.lines)][:, self.band] = start


def table(words: dict[str, int]) -> Any:
    """The words of a call as the kernel reads them; sizes that are not given are 1."""
    return np.array([words.get(w, int(w[0] == "n" or w in ("sum0", "sum1", "sum2")))
                     for w in WORDS], np.int64)


def plan(job: Any, size: Any, line: int, left: int, wide: int, shape: Any,
         groups: int) -> list[Any]:
    """The calls for one job: one for each group and each band of lines."""
    taps, down, along = job
    _, kh, kw, inner, outer = taps.shape
    if not kh or not kw:
        return [Fill(down, along, slice(None))]
    kind, channels = taps.dtype.char, size[1]
    lanes = width(kind)
    blocks = blocks_of(-(-outer // lanes))
    vector = blocks * lanes
    step = along.stride * channels
    kernel = tile(kind, rows(along.count, kind, blocks), blocks, step, False)
    # Where windows do not step over pixels, a line of a window is one run of memory.
    run = along.dilation == 1 and groups == 1
    words = {
        "a0": size[2] * line * channels, "c0": shape[2] * shape[3] * wide,
        "n1": -(-outer // vector), "b1": kh * kw * inner * vector, "c1": vector,
        "a2": down.stride * line * channels, "c2": down.every * shape[3] * wide,
        "n3": along.count, "a3": step, "c3": along.every * wide, "row": along.every * wide,
        "sa0": down.dilation * line * channels, "sb0": kw * inner * vector,
        "sum1": 1 if run else kw, "sa1": along.dilation * channels, "sb1": inner * vector,
        "sum2": kw * inner if run else inner, "sa2": 1, "sb2": vector}
    made: list[Any] = []
    for group in range(groups):
        weights = padded_taps(taps[group], lanes, blocks)
        for i, end, m, last in down.bands(size[2]):
            if m == last:
                made.append(Fill(down, along, slice(i, end)))
                continue
            a = (down.at(i, m) * line + along.start + left) * channels + group * inner
            c = ((down.first + i * down.every) * shape[3] + along.first) * wide + group * outer
            made.append(Call(kernel, {**words, "n2": end - i, "sum0": last - m}, weights,
                             (a, m * words["sb0"], c, group * outer)))
    return made


# -- sums over pixels -----------------------------------------------------------------------------


def weight_gradient(x: Any, g: Any, kernel: Any, stride: Any, padding: Any, dilation: Any,
                    groups: int) -> Any:
    """The gradient (O, C/groups, kh, kw) of the weight, from x (N, C, H, W) and g (N, O, H', W').

    A row of the kernel's tile is an input channel, at a place of the window: the channels at all
    places of a line of a window are one run of memory.
    """
    if not fits(g, x, x.shape[0], g.shape[1], groups):
        return None
    inner, outer, (kh, kw) = x.shape[1] // groups, g.shape[1] // groups, kernel
    if g.size * inner * kh * kw < SMALLEST:
        return None
    last, x, g = channels_last(x), plain(x), plain(g)
    lanes = width(x.dtype.char)
    down, along = (forward_grid(*each) for each in zip(x.shape[2:], kernel, stride, padding,
                                                       dilation))
    run = along.dilation == 1 and groups == 1
    runs, length = (1, kw * inner) if run else (kw, inner)
    blocks = blocks_of(-(-outer // lanes))
    tall = rows(length, x.dtype.char, blocks)
    length = -(-length // tall) * tall  # rows past the end are computed and left out
    wide = -(-g.shape[1] // lanes) * lanes
    made = np.zeros((groups, kh, runs, length, -(-outer // lanes) * lanes), x.dtype)
    left, right = padding[1], max(0, along.at(along.count - 1, kw - 1) + 1 - x.shape[3])
    line = x.shape[3] + left + right
    step = max(1, min(len(x), CHUNK // max(x[0].size, g[0].size)))
    room = np.zeros(step * x.shape[2] * line * x.shape[1] + tall, x.dtype)
    inside = room[:-tall].reshape(step, x.shape[2], line, x.shape[1])
    direct = wide == g.shape[1] and lines_of(g) is not None
    outside = None if direct else np.zeros((step, *g.shape[2:], wide), x.dtype)
    calls = pixel_calls(x, g, made, (down, along), (line, left, wide), tall, blocks, groups)
    for i in range(0, len(x), step):
        part, share = x[i:i + step], g[i:i + step]
        pack(part, inside, left)
        if not direct:
            pack(share, outside, 0)
        seen = lines_of(share) if direct else outside
        for call in calls:
            call(len(part), inside, seen, made)
    made = made[:, :, :, :kw * inner // runs, :outer].reshape(groups, kh, kw, inner, outer)
    w = made.transpose(0, 4, 3, 1, 2).reshape(g.shape[1], inner, kh, kw)
    if last:
        return np.ascontiguousarray(w.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    return np.ascontiguousarray(w)


class PixelCall:
    """One run of the kernel that sums over pixels; `made` holds the sums so far."""

    def __init__(self, kernel: Any, words: dict[str, int], places: Any) -> None:
        self.kernel, self.words, self.places = kernel, table(words), places
        self.address, self.images = self.words.ctypes.data, WORDS.index("sum0")

    def __call__(self, images: int, x: Any, g: Any, made: Any) -> None:
        self.words[self.images] = images
        a, b, c = (p * x.itemsize for p in self.places)
        place = made.ctypes.data + c
        self.kernel(self.address, x.ctypes.data + a, g.ctypes.data + b, place, place)


def pixel_calls(x: Any, g: Any, made: Any, grids: Any, layout: Any, tall: int, blocks: int,
                groups: int) -> list[PixelCall]:
    """One call for each group, line of the window, and run of memory in it."""
    (down, along), (line, left, wide) = grids, layout
    kind, channels = x.dtype.char, x.shape[1]
    _, kh, runs, length, columns = made.shape
    vector = blocks * width(kind)
    kernel = tile(kind, tall, blocks, 1, True)
    words = {
        "n1": columns // vector, "b1": vector, "c1": vector, "n3": length, "a3": 1, "c3": columns,
        "row": columns, "sa0": x.shape[2] * line * channels,
        "sb0": g.shape[2] * g.shape[3] * wide, "sa1": down.stride * line * channels,
        "sb1": g.shape[3] * wide, "sum2": along.count, "sa2": along.stride * channels,
        "sb2": wide}
    calls = []
    for group, m, q in itertools.product(range(groups), range(kh), range(runs)):
        inside = [i for i in range(down.count) if 0 <= down.at(i, m) < x.shape[2]]
        if not inside:
            continue
        a = (down.at(inside[0], m) * line + along.at(0, q) + left) * channels \
            + group * (channels // groups)
        b = inside[0] * g.shape[3] * wide + group * (g.shape[1] // groups)
        c = ((group * kh + m) * runs + q) * length * columns
        calls.append(PixelCall(kernel, {**words, "sum1": len(inside)}, (a, b, c)))
    return calls
