"""Pooling on arrays: the largest element of each window and where it is, and averages as maps."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from types import EllipsisType
from typing import Any

import numpy as np

from toytorch.backends.generic import attempt
from toytorch.facts.hints import Array, ArrayModule, Shape, Sizes
from toytorch.ops.nn.linear_maps import Map

# The sizes of images, of the windows in them, their steps, padding, and the results' sizes.
Sides = tuple[Sizes, Sizes, Sizes, Sizes, Sizes]


def pooled_size(
    size: int, kernel: int, stride: int, pad: int, dilation: int, ceil_mode: bool
) -> int:
    """How many windows there are; with ceil_mode also those that stick out at the end."""
    reach = size + 2 * pad - dilation * (kernel - 1) - 1
    n = (-(-reach // stride) if ceil_mode else reach // stride) + 1
    return n - 1 if ceil_mode and (n - 1) * stride >= size + pad else n


def max_arrays(xp: ArrayModule, a: Array, *how: Sizes) -> tuple[Any, Any]:
    """The maxima of windows, and their places in the flattened image; `how` as of `taps_of`."""
    n = len(how[0])
    parts, jumps, starts = taps_of(a.shape[-n:], *map(tuple, how))
    seen, into = zip(*parts)
    best, which = largest(xp, [a[part] for part in seen], into, (*a.shape[:-n], *how[-1]))
    places = xp.take(xp.asarray(jumps), which)
    for start in starts:
        places += xp.asarray(start)
    return best, places


@functools.lru_cache(256)
def taps_of(
    sizes: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, out: Sizes
) -> tuple[Any, Any, Any]:
    """What windows see at each place of the kernel (see `reached`), how far in the flattened image it
    lies from the window's beginning, and along each dimension where windows begin."""
    taps = list(itertools.product(*map(range, kernel)))
    parts = [reached(place, sizes, stride, padding, dilation, out) for place in taps]
    strides = [math.prod(sizes[d + 1 :]) for d in range(len(sizes))]
    jumps = np.array(
        [sum(k * d * s for k, d, s in zip(place, dilation, strides)) for place in taps], np.int64
    )
    starts = []
    for d, (o, s, p) in enumerate(zip(out, stride, padding)):
        start = (np.arange(o, dtype=np.int64) * s - p) * strides[d]
        starts.append(start.reshape(-1, *(1,) * (len(out) - 1 - d)))
    return parts, jumps, starts


def reached(
    place: Sizes, sizes: Shape, stride: Shape, padding: Shape, dilation: Shape, out: Shape
) -> tuple[Any, Any]:
    """What all windows see at one place of the kernel, and which windows those are.

    Windows that stick out see nothing there, so no border has to be made.
    """
    seen: list[Any] = [...]
    into: list[Any] = [...]
    for k, n, s, p, d, o in zip(place, sizes, stride, padding, dilation, out):
        first = k * d - p
        low = max(0, -(first // s))
        high = max(low, min(o, (n - 1 - first) // s + 1))
        start = first + low * s
        into.append(slice(low, high))
        seen.append(
            slice(start, start + (high - low - 1) * s + 1, s) if high > low else slice(0, 0)
        )
    return tuple(seen), tuple(into)


def largest(
    xp: ArrayModule,
    views: Sequence[Array],
    places: Sequence[tuple[EllipsisType | slice, ...]],
    shape: Sizes,
) -> tuple[Any, Any]:
    """The elementwise maximum of arrays, and the number of the first that has it (NaN: the last).

    Array k covers the part places[k] of the result. Comparing with the maximum afterwards, from
    the last array to the first, takes less memory traffic than keeping maximum and number up to
    date together.
    """
    kind = views[0].dtype
    best = xp.full(shape, -np.inf if kind.kind == "f" else np.iinfo(kind).min, kind)
    for v, part in zip(views, places):
        xp.maximum(best[part], v, out=best[part])
    which = xp.zeros(shape, np.uint8 if len(views) <= 256 else np.int64)
    for k in range(len(views) - 1, -1, -1):
        hit = views[k] == best[places[k]]
        xp.copyto(which[places[k]], which.dtype.type(k), where=hit)
    if best.dtype.kind == "f" and best.size and xp.isnan(best.max()):
        for k, v in enumerate(views):
            xp.copyto(which[places[k]], which.dtype.type(k), where=xp.isnan(v))
    return best, which


def window_table(*spans: tuple[Any, Any, Any]) -> Any:
    """Where the windows along each dimension begin and end, and what means over them divide by, as
    kernels read it: as volumes, for each place of the result."""
    ahead = [np.array([[0, 1, 1]])] * (3 - len(spans))
    columns = [np.stack(np.broadcast_arrays(*v), -1) for v in spans]
    lead = columns[0].shape[:-2]  # where each plane has windows of its own
    whole = [np.broadcast_to(v, (*lead, *v.shape[-2:])).reshape(*lead, -1) for v in ahead + columns]
    return np.ascontiguousarray(np.concatenate(whole, -1), np.int64)


@functools.lru_cache(256)
def adaptive_table(sizes: Sizes, out: Sizes) -> Any:
    """The table of even bins."""
    spans = []
    for n, o in zip(sizes, out):
        i = np.arange(o)
        low, high = i * n // max(o, 1), -(-(i + 1) * n // max(o, 1))
        spans.append((low, high, high - low))
    return window_table(*spans)


@functools.lru_cache(256)
def average_spans(sides: Sides, include: bool) -> list[tuple[Any, Any, Any, Any]]:
    """Along each dimension of an average pool: where windows begin (before the image where padding
    does), the first and the end of the places that they see, and how many count."""
    spans = []
    for n, k, s, p, o in zip(*sides):
        low = np.arange(o) * s - p
        high = np.minimum(low + k, n + p)
        first, end = np.maximum(low, 0), np.minimum(high, n)
        spans.append((low, first, end, high - low if include else np.maximum(end - first, 0)))
    return spans


@functools.lru_cache(256)
def average_table(sides: Sides, include: bool, divisor: int | None) -> Any:
    """The table of an average pool."""
    return window_table(
        *(
            (first, end, count if divisor is None else 1 if d else divisor)
            for d, (_, first, end, count) in enumerate(average_spans(sides, include))
        )
    )


def bin_places(size: int, out: int) -> Any:
    """For each adaptive bin the places it holds, the last one repeated where a bin is shorter."""
    i = np.arange(out)
    low, high = i * size // max(out, 1), -(-(i + 1) * size // max(out, 1))
    return np.minimum(
        low[:, None] + np.arange(max(int((high - low).max(initial=1)), 1)), high[:, None] - 1
    )


def adaptive_max_arrays(xp: ArrayModule, a: Array, out: Shape) -> tuple[Any, Any]:
    """The maxima of even bins, and their places in the flattened image."""
    sizes = a.shape[-len(out) :]
    table = adaptive_table(tuple(sizes), tuple(out))
    found = attempt(xp, "largest_of_windows", a, table, tuple(out), (1,) * len(out))
    if found is not None:
        return found
    bins = [bin_places(n, o) for n, o in zip(sizes, out)]
    views, jumps = [], []
    for taps in itertools.product(*(range(b.shape[1]) for b in bins)):
        grid = np.ix_(*(b[:, t] for b, t in zip(bins, taps)))
        views.append(a[(..., *map(xp.asarray, grid))])
        jumps.append(np.ravel_multi_index(grid, sizes) if 0 not in out else np.zeros(out, int))
    best, which = largest(xp, views, [(...,)] * len(views), (*a.shape[: -len(out)], *out))
    places = xp.asarray(np.stack(jumps).reshape(len(jumps), -1))
    column = xp.arange(math.prod(out)).reshape(out)
    return best, places[which, column]


def added_flat(
    xp: ArrayModule, g: Array, places: Array, sizes: Sequence[int], disjoint: bool = False
) -> Any:
    """The gradient of picking: g added at places of zero images (…, *sizes)."""
    made = attempt(xp, "put_at_places", g, places, tuple(sizes))
    return put_flat(xp, g, places, sizes, disjoint) if made is None else made


def put_flat(xp: ArrayModule, g: Array, places: Array, sizes: Sequence[int], disjoint: bool) -> Any:
    """g at places of zero images (…, *sizes), added where these are not disjoint."""
    area, images = math.prod(sizes), math.prod(g.shape[: g.ndim - len(sizes)])
    flat = places.reshape(images, math.prod(g.shape[g.ndim - len(sizes) :]))
    values = g.reshape(flat.shape)
    if disjoint:
        made = xp.zeros((images, area), g.dtype)
        xp.put_along_axis(made, flat, values, 1)
    else:
        whole = (flat + xp.arange(images, dtype=np.int64)[:, None] * area).reshape(-1)
        made = xp.bincount(whole, values.reshape(-1), images * area).astype(g.dtype)
    return made.reshape(*g.shape[: g.ndim - len(sizes)], *sizes)


@functools.lru_cache(256)
def average_maps(sides: Sides, include: bool) -> tuple[tuple[Map, ...], tuple[Any, ...]]:
    """For each dimension the sums over its windows, and by how much each is to be divided."""
    maps, counts = [], []
    for n, k, (low, _, end, count) in zip(*sides[:2], average_spans(sides, include)):
        places = low[:, None] + np.arange(k)
        inside = (places >= 0) & (places < end[:, None])
        maps.append(Map(np.clip(places, 0, max(n - 1, 0)), inside.astype(np.float64), n))
        counts.append(count)
    return tuple(maps), tuple(counts)


def fractional_starts(xp: ArrayModule, samples: Array, size: int, out: int, kernel: int) -> Any:
    """Where windows of pseudo-random steps start (Graham 2014), for samples (…): (…, out)."""
    if out == 1:
        return xp.full((*samples.shape, 1), size - kernel, np.int64)
    kind = samples.dtype.type
    alpha = kind(size - kernel) / kind(max(out - 1, 1))
    i = xp.arange(out, dtype=samples.dtype)
    starts = xp.trunc((i + samples[..., None]) * alpha) - xp.trunc(samples[..., None] * alpha)
    starts[..., -1:] = size - kernel  # there may be none
    return starts.astype(np.int64)


def fractional_max_arrays(
    xp: ArrayModule, a: Array, kernel: Shape, out: Shape, samples: Array
) -> tuple[Any, Any]:
    """The maxima of windows with pseudo-random steps, and their places in the flattened image."""
    n, sizes = len(out), a.shape[-len(out) :]
    order = (1, 0) if n == 2 else (0, 1, 2)  # PyTorch's samples for images are (width, height)
    strides = [math.prod(sizes[d + 1 :]) for d in range(n)]
    corner: Any = 0
    begin = [
        fractional_starts(xp, samples[..., order[d]], sizes[d], out[d], kernel[d]) for d in range(n)
    ]
    inside = a.size and all(
        k > 0 and start.size and start.min() >= 0 and start.max() + k <= size
        for start, k, size in zip(begin, kernel, sizes)
    )
    if a.__class__ is np.ndarray and inside:  # as no samples but those between 0 and 1 are
        table = window_table(*((start, start + k, k) for start, k in zip(begin, kernel)))
        table = table.reshape(math.prod(table.shape[:-1]), table.shape[-1])
        found = attempt(xp, "largest_of_windows", a, table, tuple(out), (1,) * n)
        if found is not None:
            return found
    for d, starts in enumerate(begin):
        starts = starts * strides[d]
        corner = corner + starts.reshape(*starts.shape[:-1], *(1,) * d, out[d], *(1,) * (n - 1 - d))
    lead = a.shape[:-n]
    corner = xp.broadcast_to(corner.reshape(*lead, *corner.shape[-n:]), (*lead, *out))
    flat = a.reshape(*lead, math.prod(sizes))
    jumps = [
        sum(k * s for k, s in zip(place, strides))
        for place in itertools.product(*map(range, kernel))
    ]
    at = corner.reshape(*lead, math.prod(out))
    views = [xp.take_along_axis(flat, at + jump, -1) for jump in jumps]
    best, which = largest(xp, views, [(...,)] * len(views), at.shape)
    places = at + xp.asarray(np.array(jumps, np.int64))[which]
    return best.reshape(*lead, *out), places.reshape(*lead, *out)
