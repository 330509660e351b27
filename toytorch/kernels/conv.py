"""Convolution of images without a matrix of windows: the gradients are convolutions too.

Along each dimension a Grid says what meets what: output t = first + every·i sees the input at
start + i·stride + m·dilation with tap m. Forward there is one grid. The gradient of the input is
the same kernel on g with flipped weights, stride 1; where the convolution had a stride s, every
s-th output sees the same taps, so it is one convolution for each of s·s phases, and no zeros are
put between the elements of g. The gradient of the weight sums over pixels (`weight_gradient`).

What lies outside the image is left out of the sums: outputs that see the same taps are done
together. Only where windows reach far over the ends of a line is it copied between zeros.

Each function returns None where the caller should multiply matrices instead.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from toytorch.facts.hints import Array
from toytorch.kernels.conv_tile import WORDS, most_rows, rows, table, tile
from toytorch.kernels.memory_format import (
    channels_last,
    chunk_of,
    empty_images,
    lines_of,
    pack,
    padded_taps,
    plain,
    unpack,
)
from toytorch.loops import processor
from toytorch.loops.runtime import jit, thread_pool, threads

ACROSS = 8  # images, from which a tile of the pixels in a corner is made
# Into so many parts the images are divided where there are too few tiles for threads to share. It is
# the same for any number of threads, so that their number does not change the result.
PARTS = 4
ENOUGH_PIXELS = 64  # a tile's sums over so many take ten times what reading and writing them does
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
        made.append(
            (
                Grid(
                    start,
                    1,
                    dilation // math.gcd(stride, dilation),
                    len(fitting),
                    -(-(size - first) // stride),
                    first,
                    stride,
                ),
                fitting,
            )
        )
    return made


# -- the three functions --------------------------------------------------------------------------


def forward(
    x: Array,
    w: Array,
    stride: Sequence[int],
    padding: tuple[int, ...],
    dilation: Sequence[int],
    groups: int,
    bias: Array | None = None,
) -> Any:
    """The convolution (N, O, H', W') of x (N, C, H, W) with w (O, C/groups, kh, kw)."""
    if not fits(x, w, x.shape[0], w.shape[0], groups):
        return None
    grids = [
        forward_grid(*each) for each in zip(x.shape[2:], w.shape[2:], stride, padding, dilation)
    ]
    if math.prod(g.count for g in grids) * w.size * x.shape[0] < SMALLEST:
        return None
    taps = by_group(w, groups)
    shape = (x.shape[0], w.shape[0], *(g.count for g in grids))
    return correlate(x, [(taps, *grids)], bias, shape, groups)


def input_gradient(
    g: Array,
    w: Array,
    sizes: tuple[int, ...],
    stride: Sequence[int],
    padding: tuple[int, ...],
    dilation: Sequence[int],
    groups: int,
) -> Any:
    """The gradient (N, C, *sizes) of the input: also the transposed convolution of g."""
    if (
        not fits(g, w, g.shape[0], w.shape[1] * groups, groups)
        or g.size * w.size // w.shape[0] < SMALLEST
    ):
        return None
    taps = by_group(w, groups).swapaxes(3, 4)
    jobs = []
    for (down, ys), (along, xs) in itertools.product(
        *(phases(*each) for each in zip(sizes, w.shape[2:], stride, padding, dilation))
    ):
        jobs.append((taps[:, run_of(ys), run_of(xs)], down, along))
    return correlate(g, jobs, None, (g.shape[0], w.shape[1] * groups, *sizes), groups)


def run_of(taps: list[int]) -> slice:
    """Taps at equal distances, the last first, as a slice.

    >>> run_of([2, 0]), run_of([])
    (slice(2, None, -2), slice(0, 0, 1))
    """
    if not taps:
        return slice(0, 0, 1)
    step = taps[0] - taps[1] if len(taps) > 1 else 1
    return slice(taps[0], taps[-1] - step if taps[-1] >= step else None, -step)


def by_group(w: Array, groups: int) -> Any:
    """Weights (O, C/groups, kh, kw) as (groups, kh, kw, C/groups, O/groups)."""
    return w.reshape(groups, -1, *w.shape[1:]).transpose(0, 3, 4, 2, 1)


def fits(x: Array, w: Array, images: int, outputs: int, groups: int) -> bool:
    """Whether there are enough outputs to fill vectors, and arrays this can read."""
    kind = x.dtype.char
    if kind not in "fd" or w.dtype.char != kind or x.ndim != 4 or not jit.works():
        return False
    lanes, each = processor.this().lanes(kind), outputs // groups
    return bool(x.size and w.size and (each % lanes == 0 or (groups == 1 and each >= lanes // 2)))


def vectors_of(columns: int) -> int:
    """How many vectors a row of the register tile should have, of so many altogether."""
    return next(k for k in (2, 3, 1) if columns % k == 0)


# -- sums over windows ----------------------------------------------------------------------------


def correlate(
    x: Array,
    jobs: Sequence[tuple[Any, ...]],
    bias: Array | None,
    shape: tuple[int, ...],
    groups: int,
) -> Any:
    """Images of a shape, made by jobs (weights by group, grid of lines, grid along lines)."""
    last, x = channels_last(x), plain(x)
    y = empty_images(shape, x.dtype, last)
    lanes = processor.this().lanes(x.dtype.char)
    wide = -(-shape[1] // lanes) * lanes  # channels of the output, in whole vectors
    start = np.zeros(wide, x.dtype)
    if bias is not None:
        start[: shape[1]] = bias
    left, right = borders(jobs, x.shape[3])
    direct_in = not left and not right and lines_of(x) is not None
    direct_out = wide == shape[1] and lines_of(y) is not None
    line = x.shape[3] + left + right
    each = max(x[0].size, math.prod(shape[1:]))
    step = len(x) if direct_in and direct_out else min(chunk_of(each, x.itemsize), len(x))
    inside = None if direct_in else np.zeros((step, x.shape[2], line, x.shape[1]), x.dtype)
    outside = None if direct_out else np.empty((step, *shape[2:], wide), x.dtype)
    fewest = len(x) % step or step
    calls = [plan(job, x.shape, line, left, wide, shape, groups, fewest) for job in jobs]
    for i in range(0, len(x), step):
        images, made = x[i : i + step], y[i : i + step]
        source = lines_of(images) if direct_in else inside
        if not direct_in:
            pack(images, inside, left)
        result = lines_of(made) if direct_out else outside
        for job in calls:
            job.run(len(images), source, job.weights, result, start)
        if not direct_out:
            unpack(outside, made)
    return y


def borders(jobs: Sequence[tuple[Any, ...]], size: int) -> tuple[int, int]:
    """The zeros that lines of an input of this size need at their ends.

    One output at an end that sees less than the others is computed by itself instead.
    """
    seen = [
        (-along.start, along.at(along.count - 1, along.taps - 1) + 1 - size)
        for _, _, along in jobs
        if along.taps
    ]
    left, right = max([0, *(v for v, _ in seen)]), max([0, *(v for _, v in seen)])
    return (0, 0) if left <= 1 and right <= 1 else (left, right)


class Calls:
    """Runs of the kernel on some images, and the outputs that see nothing (they get the bias).

    calls     the kernels, their rows, and their places in A, B, C and `start`, in elements
    words     a line for each of them: what it is told
    images    for each line, which of its words is the number of images
    """

    N0, N3, C0, C1, SHARED = (WORDS.index(w) for w in ("n0", "n3", "c0", "c1", "shared"))
    SIZES = tuple(k for k, w in enumerate(WORDS) if w[0] == "n" or w in ("sum0", "sum1", "sum2"))

    def __init__(
        self,
        calls: Any,
        words: Any,
        images: Array | int,
        item: int,
        fills: Sequence[tuple[Any, ...]] = (),
        weights: Any = None,
    ) -> None:
        self.words = words.copy()  # two threads may run the same: each has its own
        self.images, self.fills, self.weights = (np.arange(len(words)), images), fills, weights
        first, line = self.words.ctypes.data, words.strides[0]
        kernels, self.rows, places = calls
        self.kernels = [(kernel, first + k * line) for k, kernel in enumerate(kernels)]
        self.places, self.addresses = places * item, self.words[:, -4:]

    def run(self, images: int, a: Any, b: Any, c: Any, start: Any) -> None:
        """Runs them; large ones are divided by images, or by tiles where there is one image or
        all add to the same sums."""
        words = self.words
        words[self.images] = images
        np.add(self.places, [m.ctypes.data for m in (a, b, c, start)], out=self.addresses)
        if threads.thread_count() > 1:
            some = (words[:, self.N0] > 1) & (words[:, self.C0] != 0)
            words[:, self.SHARED] = np.where(some, 0, 3)
            totals = np.where(some, words[:, self.N0], -(-words[:, self.N3] // self.rows))
            work = words[:, self.SIZES].prod(1) * words[:, self.C1]
            # A part of some tiles reads all pixels: so each thread gets one, and reads them once.
            parts = np.where(some, thread_pool.PARTS, 1)
            for (kernel, at), *job in zip(
                self.kernels, totals.tolist(), work.tolist(), parts.tolist()
            ):
                kernel.on(at, *job)
        else:
            words[:, self.SHARED] = 0
            for (kernel, at), total in zip(self.kernels, words[:, self.N0].tolist()):
                kernel.run(at, 0, total)
        for grid, part in self.fills:
            c[(slice(images), *grid)][(slice(None), *part)] = start


def plan(
    job: Any,
    size: Sequence[int],
    line: int,
    left: int,
    wide: int,
    shape: Sequence[int],
    groups: int,
    fewest: int,
) -> Calls:
    """The calls for one job on input images of a size, whose lines are `line` long with zeros.

    fewest   the smallest number of images that are done at a time
    """
    taps, down, along = job
    lanes, outer = processor.this().lanes(taps.dtype.char), taps.shape[4]
    vectors = vectors_of(-(-outer // lanes))
    layout = Layout(tuple(size), line, left, wide, tuple(shape), groups)
    weights = taps
    if taps.size:
        weights = np.stack([padded_taps(t, lanes, vectors) for t in taps])
    calls, words, images, fills = pieces(
        taps.dtype.char, down, along, layout, taps.shape[1:], vectors, fewest >= ACROSS
    )
    return Calls(calls, words, images, taps.itemsize, fills, weights)


@dataclass(frozen=True)
class Layout:
    """Input images of a size in lines of a length, `left` zeros at their start; output images of
    a shape with `wide` channels each."""

    size: tuple[int, ...]
    line: int
    left: int
    wide: int
    shape: tuple[int, ...]
    groups: int


@functools.lru_cache(1024)
def pieces(
    kind: str,
    down: Grid,
    along: Grid,
    layout: Layout,
    taps: tuple[int, ...],
    vectors: int,
    many: bool,
) -> tuple[Any, Any, Any, list[Any]]:
    """Calls, their words and which of those are the images, and fills: for each group and block of
    outputs that see the same taps. With `many` images, tiles of corners lie across images."""
    kh, kw = taps[:2]
    plain = not layout.left and layout.line == layout.size[3]
    across = along.bands(layout.size[3]) if plain else [(0, along.count, 0, kw)]
    calls: list[Any] = []
    words: list[list[int]] = []
    images: list[int] = []
    fills: list[Any] = []
    grid = slice(down.first, None, down.every), slice(along.first, None, along.every)
    for i, j in itertools.product(
        down.bands(layout.size[2]) if kh else [(0, down.count, 0, 0)],
        across if kw else [(0, along.count, 0, 0)],
    ):
        if i[2] == i[3] or j[2] == j[3]:
            fills.append((grid, (slice(*i[:2]), slice(*j[:2]))))
            continue
        for group in range(layout.groups):
            call, told = block_call(kind, (down, i), (along, j), layout, taps, vectors, group, many)
            calls.append(call)
            words.append(table(told))
            images.append(WORDS.index("n3" if "step" in told else "n0"))
    told_all = np.array(words, np.int64).reshape(-1, len(WORDS))
    return packed(calls), told_all, np.array(images, int), fills


def packed(calls: list[Any]) -> tuple[list[Any], Any, Any]:
    """The kernels, their rows, and their places in A, B, C and `start`."""
    rows = np.array([rows for _, rows, *_ in calls], np.int64)
    places = np.array([p for _, _, *p in calls], np.int64).reshape(-1, 4)
    return [kernel for kernel, *_ in calls], rows, places


def block_call(
    kind: str,
    lines: Any,
    columns: Any,
    layout: Layout,
    taps: Any,
    vectors: int,
    group: int,
    many: bool,
) -> tuple[Any, dict[str, int]]:
    """The call for outputs (i, end) x (j, end), which see taps (m, last) x (q, last)."""
    (down, (i, i_end, m, m_end)), (along, (j, j_end, q, q_end)) = lines, columns
    _, kw, inner, outer = taps
    channels, vector = layout.size[1], vectors * processor.this().lanes(kind)
    line, height, breadth, wide = layout.line, *layout.shape[2:], layout.wide
    # How far it is, in A and in C, from a line to the next and from a column to the next.
    ways = [
        (i_end - i, down.stride * line * channels, down.every * breadth * wide),
        (j_end - j, along.stride * channels, along.every * wide),
    ]
    if ways[1][0] < min(ways[0][0], most_rows(kind, vectors)):
        ways.reverse()  # tiles lie along the longer side
    (n2, a2, c2), (n3, step, row) = ways
    # Where windows do not step over pixels, a line of a window is one run of memory.
    run = along.dilation == 1 and layout.groups == 1
    words = {
        "a0": layout.size[2] * line * channels,
        "c0": height * breadth * wide,
        "n1": -(-outer // vector),
        "b1": taps[0] * kw * inner * vector,
        "c1": vector,
        "n2": n2,
        "a2": a2,
        "c2": c2,
        "n3": n3,
        "a3": step,
        "c3": row,
        "row": row,
        "sum0": m_end - m,
        "sa0": down.dilation * line * channels,
        "sb0": kw * inner * vector,
        "sum1": 1 if run else q_end - q,
        "sa1": along.dilation * channels,
        "sb1": inner * vector,
        "sum2": (q_end - q) * inner if run else inner,
        "sa2": 1,
        "sb2": vector,
    }
    a = (down.at(i, m) * line + along.at(j, q) + layout.left) * channels + group * inner
    b = (group * words["n1"] * taps[0] * kw + m * kw + q) * inner * vector
    c = (
        (down.first + i * down.every) * breadth + along.first + j * along.every
    ) * wide + group * outer
    if many and n2 == n3 == 1:  # a corner: one pixel would wait for each of its sums
        words |= {
            "n0": 1,
            "a3": words["a0"],
            "c3": words["c0"],
            "row": words["c0"],
            "step": words["a0"],
        }
        tall, step = min(ACROSS, most_rows(kind, vectors)), 0
    else:
        tall = rows(n3, kind, vectors)
    kernel = tile(kind, tall, vectors, step, False)
    return (kernel, tall, a, b, c, group * outer), words


# -- sums over pixels -----------------------------------------------------------------------------


def weight_gradient(
    x: Array,
    g: Array,
    kernel: tuple[int, ...],
    stride: Sequence[int],
    padding: tuple[int, ...],
    dilation: Sequence[int],
    groups: int,
) -> Any:
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
    lanes = processor.this().lanes(x.dtype.char)
    # As many outputs as g has: a transposed convolution's output padding may leave room for more.
    down, along = (
        Grid(-pad, step, apart, taps, count)
        for pad, step, apart, taps, count in zip(padding, stride, dilation, kernel, g.shape[2:])
    )
    run = along.dilation == 1 and groups == 1
    runs, length = (1, kw * inner) if run else (kw, inner)
    vectors = vectors_of(-(-outer // lanes))
    tall = rows(length, x.dtype.char, vectors)
    length = -(-length // tall) * tall  # rows past the end are computed and left out
    wide = -(-g.shape[1] // lanes) * lanes
    left, right = padding[1], max(0, along.at(along.count - 1, kw - 1) + 1 - x.shape[3])
    line = x.shape[3] + left + right
    # For any number of threads as many images at a time: the order of a sum's parts is the same.
    step = min(chunk_of(x[0].size + g[0].size, x.itemsize, 1), len(x))
    direct = wide == g.shape[1] and lines_of(g) is not None
    columns = -(-outer // lanes) * lanes
    tiles = length // tall * columns // (vectors * lanes)
    parts = PARTS if tiles < 2 * PARTS and len(x) % PARTS == 0 else 1
    step = max(step // parts, 1) * parts
    made = np.zeros((parts, groups, kh, runs, length, columns), x.dtype)
    buffer = np.zeros(step * x.shape[2] * line * x.shape[1] + tall, x.dtype)
    inside = buffer[:-tall].reshape(step, x.shape[2], line, x.shape[1])
    outside = None if direct else np.zeros((step, *g.shape[2:], wide), x.dtype)
    calls, words, of_images = pixel_calls(
        x.dtype.char,
        (down, along),
        (x.shape[2], line, x.shape[1]),
        (*g.shape[2:], wide),
        outer,
        made.shape,
        tall,
        vectors,
    )
    job = Calls(calls, words, WORDS.index(of_images), x.itemsize)
    for i in range(0, len(x), step):
        images, share = x[i : i + step], g[i : i + step]
        pack(images, inside, left)
        if not direct:
            pack(share, outside, 0)
        seen = lines_of(share) if direct else outside
        job.run(len(images) // parts, inside, seen, made, made)
    made = made.sum(0) if parts > 1 else made[0]
    made = made[:, :, :, : kw * inner // runs, :outer].reshape(groups, kh, kw, inner, outer)
    w = made.transpose(0, 4, 3, 1, 2).reshape(g.shape[1], inner, kh, kw)
    if last:
        return np.ascontiguousarray(w.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    return np.ascontiguousarray(w)


def lines_at_a_time(kind: str, count: int, pixels: int, size: int) -> int:
    """How many of `count` lines, with so many pixels and elements each, a tile sums at a time.

    The lines stay in the first-level cache for all tiles, but a tile sums enough pixels that
    reading and writing its sums counts for little.
    """
    held = processor.this().l1 // 2 // (size * np.dtype(kind).itemsize)
    most = min(count, max(held, -(-ENOUGH_PIXELS // pixels)))
    return -(-count // -(-count // most))  # as many turns, the last of them little shorter


@functools.lru_cache(1024)
def pixel_calls(
    kind: str,
    grids: tuple[Grid, Grid],
    images: tuple[int, int, int],
    pixels: tuple[int, int, int],
    outer: int,
    made: tuple[int, ...],
    tall: int,
    vectors: int,
) -> tuple[Any, Any, str]:
    """Calls for each group, line of the window, and run of memory in it; their words; and which
    of those is the number of images.

    images  lines, length of a line with its zeros, channels: of x
    pixels  lines, length of a line, channels (in whole vectors): of g; outer: those of a group
    """
    (down, along), (height, line, channels), (h, w, wide) = grids, images, pixels
    parts, groups, kh, runs, length, columns = made
    vector = vectors * processor.this().lanes(kind)
    kernel = tile(kind, tall, vectors, 1, True)
    per = lines_at_a_time(kind, down.count, along.count, line * channels + w * vector)
    image = (height * line * channels, h * w * wide)
    lines_in = (down.stride * line * channels, w * wide)
    words = {
        "n1": columns // vector,
        "b1": vector,
        "c1": vector,
        "n3": length,
        "a3": 1,
        "c3": columns,
        "row": columns,
        "sa1": lines_in[0],
        "sb1": lines_in[1],
        "sum2": along.count,
        "sa2": along.stride * channels,
        "sb2": wide,
        "a2": per * lines_in[0],
        "b2": per * lines_in[1],
    }
    of_images = "n0"
    if parts > 1:  # each has images of its own, and its own sums
        of_images, per = "sum0", down.count
        words |= {"n0": parts, "c0": math.prod(made[1:])}
        words |= {"a0": image[0], "b0": image[1], "sa0": parts * image[0], "sb0": parts * image[1]}
    elif per == down.count:  # small images are summed together; of large ones, some lines
        of_images = "sum0"
        words |= {"sa0": image[0], "sb0": image[1]}
    else:
        words |= {"a0": image[0], "b0": image[1]}
    calls, told = [], []
    for group, m, q in itertools.product(range(groups), range(kh), range(runs)):
        inside = [i for i in range(down.count) if 0 <= down.at(i, m) < height]
        c = ((group * kh + m) * runs + q) * length * columns
        whole, rest = divmod(len(inside), per)
        for first, blocks, each in ((0, whole, per), (whole * per, 1, rest)):
            if not blocks or not each:
                continue
            i = inside[first]
            a = (down.at(i, m) * line + q * along.dilation) * channels
            b = i * w * wide + group * outer
            calls.append((kernel, tall, a + group * (channels // groups), b, c, c))
            told.append(table({**words, "n2": blocks, "sum1": each}))
    return packed(calls), np.array(told, np.int64).reshape(-1, len(WORDS)), of_images
