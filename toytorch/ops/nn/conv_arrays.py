"""Convolution on arrays: compiled where `conv_direct` can, else as one product of matrices.

Images whose channels lie last in memory give images whose channels lie last.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from toytorch.backends.generic import attempt
from toytorch.core.memory_order import has_channels_last
from toytorch.facts.hints import Array, ArrayModule, Shape, Sizes
from toytorch.kernels.copy import in_rows
from toytorch.kernels.memory_format import with_last
from toytorch.loops.runtime.jit import SMALLEST
from toytorch.ops.nn.windows import inner, padded, tap_slices, taps, windows

CHUNK = 1 << 20  # elements of a matrix of columns: a few images at a time stay in the cache


def _batches(images: int, each: int) -> Any:
    """Slices of so many images that their columns are about CHUNK elements."""
    step = max(1, CHUNK // max(each, 1))
    return (slice(i, i + step) for i in range(0, images, step))


def _is_pointwise(kernel: Shape, stride: Shape) -> bool:
    """Whether the windows are the elements themselves."""
    return all(k == 1 for k in kernel) and all(s == 1 for s in stride)


def _columns(
    xp: ArrayModule,
    x: Array,
    kernel: Shape,
    stride: Shape,
    dilation: Shape,
    out: Shape,
    groups: int,
) -> Any:
    """The windows of padded images (B, C, …) as matrices (B, groups, C/groups·K, P)."""
    if not _is_pointwise(kernel, stride):
        x = windows(xp, x, kernel, stride, dilation, out)
    return x.reshape(x.shape[0], groups, -1, math.prod(out))  # copies, unless 1x1


# -- the compiled kernels -------------------------------------------------------------------------


def _direct(
    xp: Any, name: str, volumes: Any, arrays: Sequence[Array], sizes: tuple[Shape, ...], *rest: Any
) -> Any:
    """The kernel of that name on images or lines, which are images of height 1, or what `volumes` makes
    of volumes by it; or None."""
    n = arrays[0].ndim - 2
    if n > 2:
        here = n == 3 and arrays[0].__class__ is np.ndarray
        return volumes(xp, *arrays, sizes, *rest) if here else None
    if n == 2:
        return attempt(xp, name, *arrays, *sizes, *rest)
    flat = [a[:, :, None] for a in arrays]
    wide = [(neutral, *v) for neutral, v in zip((1, 1, 0, 1)[-len(sizes) :], sizes)]
    made = attempt(xp, name, *flat, *wide, *rest)
    return None if made is None else in_rows(made[:, :, 0])  # lines lie in rows, whatever was read


# -- volumes ----------------------------------------------------------------------------------------
#
# The slices of a volume that one window sees are the channels of an image: convolution over volumes is
# that over images, one for each place of a window along the first dimension.


def _slices(
    xp: ArrayModule, x: Array, taps: int, stride: int, padding: int, dilation: int, out: int
) -> Any:
    """Volumes (N, C, D, H, W) as images (N·D', C·taps, H, W)."""
    x = padded(xp, x, (padding, 0, 0))
    seen = [
        x[:, :, k * dilation : k * dilation + stride * (out - 1) + 1 : stride] for k in range(taps)
    ]
    stacked = xp.stack(seen, 3).swapaxes(1, 2)  # (N, D', C, taps, H, W)
    return stacked.reshape(-1, x.shape[1] * taps, *x.shape[3:])


def _flat(a: Array) -> Any:
    """Volumes (N, C, D, H, W) as images (N·D, C, H, W)."""
    return a.swapaxes(1, 2).reshape(-1, a.shape[1], *a.shape[3:])


def _volumes_forward(
    xp: ArrayModule, x: Array, w: Array, sizes: Sequence[Shape], groups: int, bias: Array | None
) -> Any:
    (s, *stride), (p, *padding), (d, *dilation) = sizes
    out = taps(x.shape[2], w.shape[2], s, p, d)
    if x.dtype.char not in "fd" or out < 1 or not x.size:
        return None
    images, flat = _slices(xp, x, w.shape[2], s, p, d, out), w.reshape(len(w), -1, *w.shape[3:])
    y = attempt(xp, "convolution", images, flat, stride, padding, dilation, groups, bias)
    if y is None:
        return None
    return in_rows(y.reshape(len(x), -1, *y.shape[1:]).swapaxes(1, 2))  # `_flat` undone


def _volumes_input(xp: ArrayModule, g: Array, w: Array, sizes: Sequence[Shape], groups: int) -> Any:
    (depth, *size), (s, *stride), (p, *padding), (d, *dilation) = sizes
    if g.dtype.char not in "fd" or not g.size:
        return None
    count, out = w.shape[2], g.shape[2]
    flat, how = w.reshape(len(w), -1, *w.shape[3:]), (size, stride, padding, dilation)
    parts = attempt(xp, "convolution_input", _flat(g), flat, *how, groups)
    if parts is None:
        return None
    parts = parts.reshape(len(g), out, -1, count, *size).transpose(3, 0, 2, 1, 4, 5)
    reach = (out - 1) * s + d * (count - 1) + 1
    made = xp.zeros((*parts.shape[1:3], max(reach, depth + 2 * p), *size), g.dtype)
    for k, part in enumerate(parts):
        made[:, :, k * d : k * d + s * (out - 1) + 1 : s] += part
    return in_rows(made[:, :, p : p + depth])


def _volumes_weight(
    xp: ArrayModule, x: Array, g: Array, sizes: Sequence[Shape], groups: int
) -> Any:
    (count, *kernel), (s, *stride), (p, *padding), (d, *dilation) = sizes
    if g.dtype.char not in "fd" or not x.size or not g.size:
        return None
    images, how = _slices(xp, x, count, s, p, d, g.shape[2]), (kernel, stride, padding, dilation)
    made = attempt(xp, "convolution_weight", images, _flat(g), *how, groups)
    return None if made is None else made.reshape(g.shape[1], -1, count, *kernel)


def _in_order_of(x: Array, w: Array, made: Array) -> Any:
    """The images in the order of memory that x has, or the weights."""
    last = has_channels_last(x) or (w.ndim == 4 and has_channels_last(w))
    return with_last(made) if last else made


# -- the three functions --------------------------------------------------------------------------


def conv_arrays(
    xp: ArrayModule,
    x: Array,
    w: Array,
    bias: Array | None,
    stride: Shape,
    padding: Shape,
    dilation: Shape,
    groups: int,
) -> Any:
    """y (B, O, …) of x (B, C, …) and w (O, C/groups, …), plus a bias (O) or None."""
    y = _direct(
        xp, "convolution", _volumes_forward, (x, w), (stride, padding, dilation), groups, bias
    )
    if y is not None:
        return with_last(y) if w.ndim == 4 and has_channels_last(w) else y
    y = _multiplied(xp, x, w, stride, padding, dilation, groups)
    if bias is not None:
        y += bias.reshape(-1, *(1,) * (x.ndim - 2))
    return _in_order_of(x, w, y)


def _multiplied(
    xp: ArrayModule, x: Array, w: Array, stride: Shape, padding: Shape, dilation: Shape, groups: int
) -> Any:
    """The convolution as products of matrices."""
    kernel, outputs = w.shape[2:], w.shape[0]
    out = tuple(map(taps, x.shape[2:], kernel, stride, padding, dilation))
    y = xp.empty((x.shape[0], outputs, *out), x.dtype)
    if not y.size or not w.size:
        y[...] = 0
        return y
    x = padded(xp, x, padding)
    if w.shape[1] == 1 and outputs == groups and y.size >= SMALLEST:
        return _depthwise(xp, x, w, stride, dilation, y)
    flat = y.reshape(x.shape[0], groups, outputs // groups, -1)
    rows = w.reshape(groups, outputs // groups, -1)
    for part in _batches(x.shape[0], rows.shape[-1] * groups * math.prod(out)):
        columns = _columns(xp, x[part], kernel, stride, dilation, out, groups)
        xp.matmul(rows, columns, out=flat[part])
    return y


def _depthwise(xp: Any, x: Any, w: Any, stride: Shape, dilation: Shape, y: Any) -> Any:
    """Each channel with a kernel of its own: the sum over the places of the kernel."""
    term = xp.empty_like(y)
    ones = (1,) * (w.ndim - 2)
    sizes = map(tuple, (w.shape[2:], stride, dilation, y.shape[2:]))
    for i, (place, at) in enumerate(tap_slices(*sizes)):
        seen = x[at]
        weight = w[(slice(None), 0, *place)].reshape(-1, *ones)
        if i == 0:
            xp.multiply(seen, weight, out=y)
        else:
            y += xp.multiply(seen, weight, out=term)
    return y


def transposed_sizes(
    sizes: Shape, kernel: Shape, stride: Shape, padding: Shape, dilation: Shape, extra: Shape
) -> Sizes:
    """The sizes from which a convolution makes `sizes`."""
    return tuple(
        (n - 1) * s - 2 * p + d * (k - 1) + 1 + e
        for n, k, s, p, d, e in zip(sizes, kernel, stride, padding, dilation, extra)
    )


def transposed_arrays(
    xp: ArrayModule,
    x: Array,
    w: Array,
    stride: Shape,
    padding: Shape,
    dilation: Shape,
    extra: Shape,
    groups: int,
) -> Any:
    """y (B, O, …) of x (B, C, …) and w (C, O/groups, …): every x adds its multiple of a kernel."""
    sizes = transposed_sizes(x.shape[2:], w.shape[2:], stride, padding, dilation, extra)
    y = None
    # Between the steps it multiplies weights by zeros.
    if w.__class__ is not np.ndarray or np.isfinite(w.sum()):
        options = (sizes, stride, padding, dilation)
        y = _direct(xp, "convolution_input", _volumes_input, (x, w), options, groups)
    if y is not None:
        return with_last(y) if w.ndim == 4 and has_channels_last(w) else y
    y = _spread(xp, x, w, sizes, stride, padding, dilation, extra, groups)
    return _in_order_of(x, w, y)


def _spread(
    xp: ArrayModule,
    x: Array,
    w: Array,
    sizes: Shape,
    stride: Shape,
    padding: Shape,
    dilation: Shape,
    extra: Shape,
    groups: int,
) -> Any:
    """The transposed convolution as products of matrices."""
    kernel, images, seen = w.shape[2:], x.shape[0], x.shape[2:]
    outputs = w.shape[1] * groups
    rows = w.reshape(groups, w.shape[0] // groups, -1).swapaxes(1, 2)  # (groups, O/groups·K, C)
    flat = x.reshape(images, groups, x.shape[1] // groups, math.prod(seen))
    if _is_pointwise(kernel, stride) and not any(padding) and not any(extra) and x.size:
        return xp.matmul(rows, flat).reshape(images, outputs, *sizes)
    wide = xp.zeros((images, outputs, *(n + 2 * p for n, p in zip(sizes, padding))), x.dtype)
    if x.size and w.size:
        for part in _batches(images, rows.shape[1] * groups * math.prod(seen)):
            columns = xp.matmul(rows, flat[part]).reshape(-1, outputs, *kernel, *seen)
            add_columns(wide[part], columns, kernel, stride, dilation, seen)
    return inner(wide, padding).copy() if any(padding) else wide  # in memory of its own


def add_columns(
    wide: Any, columns: Any, kernel: Shape, stride: Shape, dilation: Shape, out: Sizes
) -> None:
    """Adds windows (B, C, *kernel, *out) where they lie in padded images."""
    for place, at in tap_slices(*map(tuple, (kernel, stride, dilation, out))):
        wide[at] += columns[(slice(None), slice(None), *place)]


def weight_arrays(
    xp: ArrayModule,
    x: Array,
    g: Array,
    kernel: Shape,
    stride: Shape,
    padding: Shape,
    dilation: Shape,
    groups: int,
) -> Any:
    """The gradient (O, C/groups, *kernel) of the weight, from x (B, C, …) and g (B, O, …)."""
    out, outputs, inputs = g.shape[2:], g.shape[1], x.shape[1] // groups
    sizes = kernel, stride, padding, dilation
    made = _direct(xp, "convolution_weight", _volumes_weight, (x, g), sizes, groups)
    if made is not None:
        return made
    w = xp.zeros((groups, outputs // groups, inputs * math.prod(kernel)), x.dtype)
    if x.size and g.size:
        flat = g.reshape(g.shape[0], groups, outputs // groups, math.prod(out))
        x = padded(xp, x, padding)
        for part in _batches(x.shape[0], w.shape[-1] * groups * math.prod(out)):
            columns = _columns(xp, x[part], kernel, stride, dilation, out, groups)
            product = xp.matmul(flat[part], columns.swapaxes(2, 3))
            w += product[0] if len(product) == 1 else product.sum(0)
    return w.reshape(outputs, inputs, *kernel)
