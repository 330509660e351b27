"""The gradient of a convolution's weight: sums over pixels, without a matrix of windows.

A row of the kernel's tile is an input channel, at a place of the window: the channels at all places
of a line of a window are one run of memory. The images are divided into parts that have sums of
their own, the same parts for any number of threads, so that their number does not change the result.
Where the weight is large there is one part, and threads share its tiles.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

import numpy as np

from toytorch.facts.hints import Array, Sizes
from toytorch.kernels import few_channels
from toytorch.kernels.chain import Chain, Lies, Step
from toytorch.kernels.conv_grid import Grid, fits, vectors_of
from toytorch.kernels.conv_tile import rows, tile, tiles_of
from toytorch.kernels.copy import in_rows
from toytorch.kernels.image_steps import pack
from toytorch.kernels.memory_format import channels_last, chunk_of, lines_of, plain
from toytorch.loops import processor

PARTS = 4
ENOUGH_PIXELS = 48  # a tile's sums over so many take ten times what reading and writing them does
# A unit's images take this part of the second-level cache: they are read again for each line of a
# window, and the sums lie there, too.
HELD = 4


def weight_gradient(
    x: Array, g: Array, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int
) -> Any:
    """The gradient (O, C/groups, kh, kw) of the weight, from x (N, C, H, W) and g (N, O, H', W')."""
    if not fits(g, x, g.shape[1], groups):
        steps = tuple(stride), tuple(padding), tuple(dilation)
        made = few_channels.weight_gradient(x, g, tuple(kernel), *steps, groups)
        if made is not None and channels_last(x):
            flat = in_rows(made.transpose(0, 2, 3, 1)).reshape(-1)  # its strides are told anew
            made = flat.reshape(len(made), *kernel, -1).transpose(0, 3, 1, 2)
        return made
    inner, outer, (kh, kw) = x.shape[1] // groups, g.shape[1] // groups, kernel
    last, x, g = channels_last(x), plain(x), plain(g)
    # As many outputs as g has: a transposed convolution's output padding may leave room for more.
    whole = lines_of(x) is not None, lines_of(g) is not None
    how = tuple(zip(padding, stride, dilation, kernel, g.shape[2:]))
    call, shape = plan(x.dtype.char, x.shape, g.shape, whole, how, groups)
    made = np.zeros(shape, x.dtype)
    call(x=x, g=g, made=made)
    total = made.sum(0) if len(made) > 1 else made[0]
    total = total[:, :, :, : kw * inner // shape[3], :outer].reshape(groups, kh, kw, inner, outer)
    if last:
        w = total.transpose(0, 4, 1, 2, 3).reshape(g.shape[1], kh, kw, inner)
        return in_rows(w).transpose(0, 3, 1, 2)
    return in_rows(total.transpose(0, 4, 3, 1, 2)).reshape(g.shape[1], inner, kh, kw)


def lines_at_a_time(kind: str, count: int, pixels: int, size: int) -> int:
    """How many of `count` lines, with so many pixels and elements each, a tile sums at a time.

    The lines stay in the first-level cache for all tiles, but a tile sums enough pixels that
    reading and writing its sums counts for little.
    """
    held = processor.this().l1 // 2 // (size * np.dtype(kind).itemsize)
    most = min(count, max(held, -(-ENOUGH_PIXELS // pixels)))
    return -(-count // -(-count // most))  # as many turns, the last of them little shorter


@functools.lru_cache(1024)
def plan(
    kind: str,
    x_size: Sizes,
    g_size: Sizes,
    last: tuple[bool, bool],
    how: tuple[Sizes, ...],
    groups: int,
) -> tuple[Chain, Sizes]:
    """The steps, and the shape of what they make: (parts, groups, lines of a window, runs of memory
    in a line, rows, columns). `last` says whether x and g lie with their channels last."""
    down, along = (Grid(-pad, step, apart, taps, count) for pad, step, apart, taps, count in how)
    grids, (images, channels, height, width) = (down, along), x_size
    inner, outer = channels // groups, g_size[1] // groups
    lanes, item = processor.this().lanes(kind), np.dtype(kind).itemsize
    run = along.dilation == 1 and groups == 1
    runs, length = (1, along.taps * inner) if run else (along.taps, inner)
    vectors = vectors_of(-(-outer // lanes))
    tall = rows(length, vectors)
    length = -(-length // tall) * tall  # rows past the end are computed and left out
    columns, wide = -(-outer // lanes) * lanes, -(-g_size[1] // lanes) * lanes
    sums = groups * down.taps * runs * length * columns
    parts = PARTS if images >= PARTS and PARTS * sums * item <= processor.this().l2 else 1
    pixels, each_g = math.prod(x_size[1:]), math.prod(g_size[1:])
    most = min(chunk_of(HELD * (pixels + each_g), item), -(-images // parts))
    each = next(k for k in range(most, 0, -1) if images % k == 0)
    left, right = -along.start, max(0, along.at(along.count - 1, along.taps - 1) + 1 - width)
    line = width + left + right
    scratch = {"lines of x": (each * height * line * channels + tall) * item}
    of_g = "g"
    steps = [pack("x", (each, *x_size[1:]), last[0], item, "lines of x", line, left, channels)]
    if wide != g_size[1] or not last[1]:
        of_g = "lines of g"
        scratch[of_g] = each * math.prod(g_size[2:]) * wide * item
        steps.append(pack("g", (each, *g_size[1:]), last[1], item, of_g, g_size[3], 0, wide))
    made = (parts, groups, down.taps, runs, length, columns)
    lines, pixels_of = (height, line, channels), (g_size[2], g_size[3], wide)
    names = "lines of x", of_g
    steps += pixel_steps(kind, each, grids, lines, pixels_of, outer, made, names)
    arrays = {
        "x": Lies(each * pixels * item),
        "g": Lies(each * each_g * item),
        "made": Lies(0, sums * item),
    }
    units = images // each
    return Chain(steps, arrays, scratch, units, -(-units // parts)), made


def pixel_steps(
    kind: str,
    each: int,
    grids: tuple[Grid, Grid],
    images: tuple[int, int, int],
    pixels: tuple[int, int, int],
    outer: int,
    made: Sizes,
    names: tuple[str, str],
) -> list[Step]:
    """The steps for each group, line of the window, and run of memory in it, for `each` images.

    images  lines, length of a line with its zeros, channels: of x
    pixels  lines, length of a line, channels (in whole vectors): of g; outer: those of a group
    names   of the lines of both
    """
    (down, along), (height, line, channels), (h, w, wide) = grids, images, pixels
    _, groups, kh, runs, length, columns = made
    vectors = vectors_of(columns // processor.this().lanes(kind))
    vector, item = vectors * processor.this().lanes(kind), np.dtype(kind).itemsize
    tall = rows(length, vectors)
    kernel = tile(kind, tall, vectors, 1, True)
    per = lines_at_a_time(kind, down.count, along.count, line * channels + w * vector)
    lines_in = (down.stride * line * channels, w * wide)
    words = {
        "n1": columns // vector, "b1": vector, "c1": vector,
        "n3": length, "a3": 1, "c3": columns, "row": columns,
        "sa1": lines_in[0], "sb1": lines_in[1],
        "sum2": along.count, "sa2": along.stride * channels, "sb2": wide,
        "a2": per * lines_in[0], "b2": per * lines_in[1],
    }  # fmt: skip
    image = (height * line * channels, h * w * wide)
    if per == down.count:  # small images are summed together; of large ones, some lines
        words |= {"sum0": each, "sa0": image[0], "sb0": image[1]}
    else:
        words |= {"n0": each, "a0": image[0], "b0": image[1]}
    steps = []
    for group, m, q in itertools.product(range(groups), range(kh), range(runs)):
        place = down.at(0, m)
        inside = range(max(0, -(place // down.stride)), (height - 1 - place) // down.stride + 1)
        inside = inside[: max(0, down.count - inside.start)]
        c = ((group * kh + m) * runs + q) * length * columns
        whole, rest = divmod(len(inside), per)
        for first, blocks, count in ((0, whole, per), (whole * per, 1, rest)):
            if not blocks or not count:
                continue
            i = inside[first]
            a = (down.at(i, m) * line + q * along.dilation) * channels
            b = i * w * wide + group * outer
            starts = (a + group * (channels // groups)) * item, b * item, c * item, c * item
            told = {**words, "n2": blocks, "sum1": count}
            steps.append(tiles_of(kernel, told, tall, (*names, "made", "made"), starts))
    return steps
