"""Convolution of images without a matrix of windows: the gradients are convolutions too.

The gradient of the input is the same kernel on g, in phases (`conv_grid.py`); that of the weight
sums over pixels (`conv_weight.py`). What lies outside the image is left out of the sums: outputs
that see the same taps are done together. Only where windows reach far over the ends of a line is it
copied between zeros.

A convolution is a chain of steps on a few images: they are put in order, the tiles multiply, and
what they made is put in order. Each function returns None where the caller should multiply matrices
instead.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from toytorch.facts.hints import Array, Shape, Sizes
from toytorch.kernels import few_channels
from toytorch.kernels.chain import Chain, Lies, Step
from toytorch.kernels.conv_grid import Grid, fits, forward_grid, phases, run_of, vectors_of
from toytorch.kernels.conv_tile import most_rows, rows, tile, tiles_of
from toytorch.kernels.copy import in_rows
from toytorch.kernels.image_steps import copy, pack, unpack
from toytorch.kernels.memory_format import channels_last, empty_images, plain
from toytorch.loops import processor

# Images that a tile of the pixels in a corner lies across, so that its sums wait less for each other
ACROSS = 4
UNITS = 8  # at least, for threads to share


# -- the two functions ----------------------------------------------------------------------------


def forward(
    x: Array,
    w: Array,
    stride: Shape,
    padding: Sizes,
    dilation: Shape,
    groups: int,
    bias: Array | None = None,
) -> Any:
    """The convolution (N, O, H', W') of x (N, C, H, W) with w (O, C/groups, kh, kw)."""
    if not fits(x, w, w.shape[0], groups):
        steps = tuple(stride), tuple(padding), tuple(dilation)
        return few_channels.forward(x, w, *steps, groups, bias)
    how = tuple(stride), tuple(padding), tuple(dilation), groups
    job = forward_job(x.dtype.char, x.shape, w.shape, *how, channels_last(x))
    return correlate(x, [by_group(w, groups)], bias, job)


def input_gradient(
    g: Array, w: Array, sizes: Sizes, stride: Shape, padding: Sizes, dilation: Shape, groups: int
) -> Any:
    """The gradient (N, C, *sizes) of the input: also the transposed convolution of g."""
    if not fits(g, w, w.shape[1] * groups, groups):
        steps = tuple(stride), tuple(padding), tuple(dilation)
        return few_channels.input_gradient(g, w, tuple(sizes), *steps, groups)
    how = tuple(stride), tuple(padding), tuple(dilation), groups
    job = gradient_job(g.dtype.char, g.shape, w.shape, tuple(sizes), *how, channels_last(g))
    taps = by_group(w, groups).swapaxes(3, 4)
    return correlate(g, [taps[run] for run in job.runs], None, job)


def by_group(w: Array, groups: int) -> Any:
    """Weights (O, C/groups, kh, kw) as (groups, kh, kw, C/groups, O/groups)."""
    return w.reshape(groups, -1, *w.shape[1:]).transpose(0, 3, 4, 2, 1)


@dataclass(frozen=True)
class Job:
    """What a call with arguments of these shapes does.

    shape  of the images that it makes; last: whether these have channels last, as those it reads
    runs   for each part, which taps (groups, kh, kw, …) it takes of the weights
    """

    shape: Sizes
    last: bool
    runs: tuple[tuple[slice, slice, slice], ...]
    lanes: int
    vectors: int
    chain: Chain


@functools.lru_cache(1024)
def forward_job(
    kind: str,
    size: Sizes,
    weight: Sizes,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    groups: int,
    last: bool,
) -> Job:
    """`forward` for shapes of images and weights."""
    grids = [forward_grid(*each) for each in zip(size[2:], weight[2:], stride, padding, dilation)]
    shape = (size[0], weight[0], *(g.count for g in grids))
    taps = (*weight[2:], weight[1], weight[0] // groups)
    everything = (slice(None), slice(None), slice(None))
    return job_of(kind, size, shape, last, groups, [(everything, taps, grids[0], grids[1])])


@functools.lru_cache(1024)
def gradient_job(
    kind: str,
    size: Sizes,
    weight: Sizes,
    made: Sizes,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    groups: int,
    last: bool,
) -> Job:
    """`input_gradient` for shapes of gradients and weights, and the sizes of the input."""
    parts = []
    for (down, ys), (along, xs) in itertools.product(
        *(phases(*each) for each in zip(made, weight[2:], stride, padding, dilation))
    ):
        taps = (len(ys), len(xs), weight[0] // groups, weight[1])
        parts.append(((slice(None), run_of(ys), run_of(xs)), taps, down, along))
    return job_of(kind, size, (size[0], weight[1] * groups, *made), last, groups, parts)


def job_of(kind: str, size: Sizes, shape: Sizes, last: bool, groups: int, parts: Any) -> Job:
    """A job of parts (which taps, their sizes, grid of lines, grid along lines)."""
    lanes = processor.this().lanes(kind)
    # One channel, and one pixel, lie with channels last whatever was meant.
    whole = tuple(last or s[1] == 1 or s[2] * s[3] == 1 for s in (size, shape))
    grids = tuple((taps, down, along) for _, taps, down, along in parts)
    chain = plan(kind, size, (whole[0], whole[1]), grids, shape, groups)
    vectors = vectors_of(-(-parts[0][1][3] // lanes))
    return Job(shape, last, tuple(run for run, *_ in parts), lanes, vectors, chain)


# -- sums over windows ----------------------------------------------------------------------------


def correlate(x: Array, taps: Sequence[Array], bias: Array | None, job: Job) -> Any:
    """The images of a job, with the weights by group of each of its parts."""
    y = empty_images(job.shape, x.dtype, job.last)
    outputs, lanes = job.shape[1], job.lanes
    start = np.zeros(-(-outputs // lanes) * lanes, x.dtype)  # of the output, in whole vectors
    if bias is not None:
        start[:outputs] = bias
    weights = {f"w{k}": packed_taps(t, lanes, job.vectors) for k, t in enumerate(taps)}
    job.chain(x=plain(x), y=y, start=start, **weights)
    return y


def borders(grids: Sequence[Grid], size: int) -> tuple[int, int]:
    """The zeros that lines of an input of this size need at their ends.

    One output at an end that sees less than the others is computed by itself instead.
    """
    seen = [(-g.start, g.at(g.count - 1, g.taps - 1) + 1 - size) for g in grids if g.taps]
    left, right = max([0, *(v for v, _ in seen)]), max([0, *(v for _, v in seen)])
    return (0, 0) if left <= 1 and right <= 1 else (left, right)


def packed_taps(taps: Any, lanes: int, vectors: int) -> Any:
    """Weights (groups, kh, kw, C, F) as panels (groups, F / (vectors·lanes), kh, kw, C,
    vectors·lanes), with zeros after the last F."""
    groups, kh, kw, c, f = taps.shape
    wide = vectors * lanes
    full = -(-f // wide) * wide
    if f < full:
        padded = np.zeros((groups, kh, kw, c, full), taps.dtype)
        padded[..., :f] = taps
        taps = padded
    panels = taps.reshape(groups, kh, kw, c, full // wide, wide).transpose(0, 4, 1, 2, 3, 5)
    return in_rows(panels)


@dataclass(frozen=True)
class Layout:
    """A unit of input images of a size in lines of a length, `left` zeros at their start; output
    images of a shape with `wide` channels each."""

    size: Sizes
    line: int
    left: int
    wide: int
    shape: Sizes
    groups: int


def plan(
    kind: str,
    size: Sizes,
    last: tuple[bool, bool],
    jobs: tuple[tuple[Sizes, Grid, Grid], ...],
    shape: Sizes,
    groups: int,
) -> Chain:
    """The steps of a convolution.

    size, shape  of all images that are read and made; last: whether they lie with channels last
    jobs         sizes of the weights (kh, kw, C, O) of a group, grid of lines, grid along lines
    """
    lanes, item = processor.this().lanes(kind), np.dtype(kind).itemsize
    wide = -(-shape[1] // lanes) * lanes
    left, right = borders([along for _, _, along in jobs], size[3])
    line, images = left + size[3] + right, size[0]
    each = next(k for k in (ACROSS, 2, 1) if images % k == 0 and (k == 1 or images // k >= UNITS))
    layout = Layout((each, *size[1:]), line, left, wide, (each, *shape[1:]), groups)
    x, y, scratch, before, after = "x", "y", {}, [], []
    if left or right or not last[0]:
        x, scratch["lines of x"] = "lines of x", each * size[2] * line * size[1] * item
        before.append(pack("x", layout.size, last[0], item, x, line, left, size[1]))
    if wide != shape[1] or not last[1]:
        y, scratch["lines of y"] = "lines of y", each * math.prod(shape[2:]) * wide * item
        after.append(unpack(y, layout.shape, last[1], item, "y", wide))
    steps = [
        step
        for k, (taps, down, along) in enumerate(jobs)
        for step in pieces(kind, down, along, layout, taps, (x, f"w{k}", y))
    ]
    arrays = {
        "x": Lies(each * math.prod(size[1:]) * item),
        "y": Lies(each * math.prod(shape[1:]) * item),
        **{name: Lies() for name in ("start", *(f"w{k}" for k in range(len(jobs))))},
    }
    return Chain([*before, *steps, *after], arrays, scratch, images // each)


def pieces(
    kind: str, down: Grid, along: Grid, layout: Layout, taps: Sizes, names: tuple[str, str, str]
) -> list[Step]:
    """The steps of one job: for each group and block of outputs that see the same taps. Outputs
    that see nothing get the bias.

    names  of the lines that are read, of the weights, and of the lines that are made
    """
    kh, kw = taps[:2]
    whole = not layout.left and layout.line == layout.size[3]
    steps = []
    for i, j in itertools.product(
        down.bands(layout.size[2]) if kh else [(0, down.count, 0, 0)],
        along.bands(layout.size[3]) if whole and kw else [(0, along.count, 0, kw)],
    ):
        if i[2] == i[3] or j[2] == j[3]:
            steps.append(biases(np.dtype(kind).itemsize, (down, i), (along, j), layout, names[2]))
            continue
        for group in range(layout.groups):
            steps.append(block(kind, (down, i), (along, j), layout, taps, group, names))
    return steps


def biases(
    item: int, lines: tuple[Grid, Any], columns: tuple[Grid, Any], layout: Layout, to: str
) -> Step:
    """The step that fills outputs (i, end) x (j, end) with the bias."""
    (down, (i, i_end, *_)), (along, (j, j_end, *_)) = lines, columns
    (images, _, height, breadth), pixel = layout.shape, layout.wide * item
    first = (down.first + i * down.every) * breadth + along.first + j * along.every
    dims = (
        (images, height * breadth * pixel, 0),
        (i_end - i, down.every * breadth * pixel, 0),
        (j_end - j, along.every * pixel, 0),
        (layout.wide, item, item),
    )
    return copy(item, dims, ((0, to, first * pixel), (1, "start", 0)))


def block(
    kind: str,
    lines: tuple[Grid, Any],
    columns: tuple[Grid, Any],
    layout: Layout,
    taps: Sizes,
    group: int,
    names: tuple[str, str, str],
) -> Step:
    """The step for outputs (i, end) x (j, end), which see taps (m, last) x (q, last)."""
    (down, (i, i_end, m, m_end)), (along, (j, j_end, q, q_end)) = lines, columns
    _, kw, inner, outer = taps
    lanes, item = processor.this().lanes(kind), np.dtype(kind).itemsize
    vectors = vectors_of(-(-outer // lanes))
    images, channels, vector = layout.size[0], layout.size[1], vectors * lanes
    line, height, breadth, wide = layout.line, *layout.shape[2:], layout.wide
    # How far it is, in A and in C, from a line to the next and from a column to the next.
    ways = [
        (i_end - i, down.stride * line * channels, down.every * breadth * wide),
        (j_end - j, along.stride * channels, along.every * wide),
    ]
    if ways[1][0] < min(ways[0][0], most_rows(vectors)):
        ways.reverse()  # tiles lie along the longer side
    (n2, a2, c2), (n3, step, row) = ways
    # Where windows do not step over pixels, a line of a window is one run of memory.
    run = along.dilation == 1 and layout.groups == 1
    words = {
        "n0": images, "a0": layout.size[2] * line * channels, "c0": height * breadth * wide,
        "n1": -(-outer // vector), "b1": taps[0] * kw * inner * vector, "c1": vector,
        "n2": n2, "a2": a2, "c2": c2,
        "n3": n3, "a3": step, "c3": row, "row": row,
        "sum0": m_end - m, "sa0": down.dilation * line * channels, "sb0": kw * inner * vector,
        "sum1": 1 if run else q_end - q, "sa1": along.dilation * channels, "sb1": inner * vector,
        "sum2": (q_end - q) * inner if run else inner, "sa2": 1, "sb2": vector,
    }  # fmt: skip
    a = (down.at(i, m) * line + along.at(j, q) + layout.left) * channels + group * inner
    b = (group * words["n1"] * taps[0] * kw + m * kw + q) * inner * vector
    first = (down.first + i * down.every) * breadth + along.first + j * along.every
    c, start = first * wide + group * outer, group * outer
    if n2 == n3 == 1:  # a corner: one pixel would wait for each of its sums
        words |= {"n0": 1, "n3": images, "a3": words["a0"], "c3": words["c0"], "row": words["c0"]}
        words["step"] = words["a0"]
        tall, step = min(images, most_rows(vectors)), 0
    else:
        tall = rows(n3, vectors)
    starts = a * item, b * item, c * item, start * item
    return tiles_of(tile(kind, tall, vectors, step, False), words, tall, (*names, "start"), starts)
