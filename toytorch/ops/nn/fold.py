"""Images as columns of windows and back, and elements moved between channels and space."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from toytorch.core.memory_order import kept
from toytorch.core.op import Op
from toytorch.facts.dtype import no_kernel
from toytorch.facts.hints import Array, ArrayModule, Shape
from toytorch.facts.size import wrap_dim
from toytorch.ops.define import in_own_type, internal
from toytorch.ops.nn.conv_arrays import add_columns
from toytorch.ops.nn.windows import inner, padded, sizes_text, taps, windows


def _plan(
    size: Shape, kernel: Shape, dilation: Shape, padding: Shape, stride: Shape
) -> tuple[int, ...]:
    """How many windows there are in each direction, or PyTorch's error."""
    for what, values in (("kernel size", kernel), ("dilation", dilation), ("stride", stride)):
        if min(values) <= 0:
            raise RuntimeError(
                f"{what} should be greater than zero, but got {what}: {sizes_text(values)}"
            )
    if min(padding) < 0:
        raise RuntimeError(
            f"padding should be non-negative, but got padding: {sizes_text(padding)}"
        )
    return tuple(map(taps, size, kernel, stride, padding, dilation))


def _need_fractions(name: str, a: Array) -> None:
    if a.dtype.kind in "iu":
        raise no_kernel(name, a.dtype)


def _im2col(
    xp: ArrayModule, a: Array, kernel: Shape, dilation: Shape, padding: Shape, stride: Shape
) -> Any:
    # Which is where PyTorch finds too few dimensions.
    wrap_dim(2 if a.ndim == 2 and a.shape[1] else 1, a.ndim, wrap_scalar=False)
    if a.ndim not in (3, 4) or 0 in a.shape[a.ndim - 3 :]:
        raise RuntimeError(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and "
            f"other non-zero dimensions for input, but got: {sizes_text(a.shape)}"
        )
    out = _plan(a.shape[-2:], kernel, dilation, padding, stride)
    if min(out) < 1:
        raise RuntimeError(
            f"Given input with spatial size {tuple(a.shape[-2:])}, kernel_size={tuple(kernel)}, "
            f"dilation={tuple(dilation)}, padding={tuple(padding)}, calculated shape of the array "
            f"of sliding blocks as {out}, but its components must be at least one."
        )
    _need_fractions("im2col_out_cpu", a)
    seen = windows(xp, padded(xp, a, padding), kernel, stride, dilation, out)
    rows = a.shape[-3] * math.prod(kernel)
    # A copy also where the windows are single elements, and a view would have the same shape.
    return seen.copy("C").reshape(*a.shape[:-3], rows, math.prod(out))


def _col2im(
    xp: ArrayModule,
    a: Array,
    size: Shape,
    kernel: Shape,
    dilation: Shape,
    padding: Shape,
    stride: Shape,
) -> Any:
    if a.ndim not in (2, 3) or 0 in a.shape[a.ndim - 2 :]:
        raise RuntimeError(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and "
            f"non-zero dimensions for input, but got: {sizes_text(a.shape)}"
        )
    out = _plan(size, kernel, dilation, padding, stride)
    area = math.prod(kernel)
    if a.shape[-2] % area:
        raise RuntimeError(
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, "
            f"but got input.size(1)={a.shape[-2]} and kernel_size={tuple(kernel)}."
        )
    if min(out) < 0:
        raise RuntimeError(
            f"Given output_size={tuple(size)}, kernel_size={tuple(kernel)}, "
            f"dilation={tuple(dilation)}, padding={tuple(padding)}, stride="
            f"{tuple(stride)}, calculated shape of the array of sliding blocks as "
            f"({out[0]}, {out[1]}), which is too small (non-positive)"
        )
    if min(out) < 1 or a.shape[-1] != math.prod(out):
        raise RuntimeError(
            f"Given output_size={tuple(size)}, kernel_size={tuple(kernel)}, "
            f"dilation={tuple(dilation)}, padding={tuple(padding)}, stride={tuple(stride)}, "
            "expected size of input's dimension 2 to match the calculated number of sliding blocks "
            f"{out[0]} * {out[1]} = {math.prod(out)}, but got input.size(2)={a.shape[-1]}."
        )
    channels = a.shape[-2] // area
    images = math.prod(a.shape[:-2])
    _need_fractions("col2im_out_cpu", a)
    wide = xp.zeros((images, channels, *(n + 2 * p for n, p in zip(size, padding))), a.dtype)
    add_columns(wide, a.reshape(images, channels, *kernel, *out), kernel, stride, dilation, out)
    return xp.ascontiguousarray(inner(wide, padding)).reshape(*a.shape[:-2], channels, *size)


im2col: Op = internal(
    "im2col(Tensor self, int[] kernel_size, int[] dilation, int[] padding, int[] stride) -> Tensor",
    _im2col,
    d_self=lambda g, self_shape, kernel_size, dilation, padding, stride: col2im.function(
        g, tuple(self_shape[-2:]), kernel_size, dilation, padding, stride
    ),
    doc="All windows of images (B, C, H, W) as columns (B, C·KH·KW, P).",
)
col2im: Op = internal(
    "col2im(Tensor self, int[] output_size, int[] kernel_size, int[] dilation, int[] padding, "
    "int[] stride) -> Tensor",
    _col2im,
    d_self=lambda g, kernel_size, dilation, padding, stride: im2col.function(
        g, kernel_size, dilation, padding, stride
    ),
    doc="Columns of windows added where they lie in images.",
)

# -- shuffles -------------------------------------------------------------------------------------


def _shuffle_check(name: str, a: Array, factor: int, what: str) -> None:
    if a.ndim < 3:
        raise RuntimeError(
            f"{name} expects input to have at least 3 dimensions, but got input with"
            f" {a.ndim} dimension(s)"
        )
    if factor <= 0:
        raise RuntimeError(f"{name} expects a positive {what}, but got {factor}")


def _fresh(made: Array, a: Array) -> Any:
    """Shuffled images in memory of their own, in rows."""
    if made.__class__ is np.ndarray and np.may_share_memory(made, a):
        return made.copy()
    return made


def _pixel_shuffle(xp: ArrayModule, a: Array, r: int) -> Any:
    _shuffle_check("pixel_shuffle", a, r, "upscale_factor")
    *lead, c, h, w = a.shape
    if c % (r * r):
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square "
            f"of upscale_factor, but input.size(-3)={c} is not divisible by {r * r}"
        )
    n = len(lead)
    parts = a.reshape(*lead, c // (r * r), r, r, h, w)
    order = (*range(n), n, n + 3, n + 1, n + 4, n + 2)
    return _fresh(parts.transpose(order).reshape(*lead, c // (r * r), h * r, w * r), a)


def _pixel_unshuffle(xp: ArrayModule, a: Array, r: int) -> Any:
    _shuffle_check("pixel_unshuffle", a, r, "downscale_factor")
    *lead, c, h, w = a.shape
    for name, size in (("height", h), ("width", w)):
        if size % r:
            raise RuntimeError(
                f"pixel_unshuffle expects {name} to be divisible by downscale_factor, but "
                f"input.size({-2 if name == 'height' else -1})={size} is not divisible by {r}"
            )
    if not a.size:
        return kept(a.copy(), a)  # whatever its shape should become
    n = len(lead)
    parts = a.reshape(*lead, c, h // r, r, w // r, r)
    order = (*range(n), n, n + 2, n + 4, n + 1, n + 3)
    return _fresh(parts.transpose(order).reshape(*lead, c * r * r, h // r, w // r), a)


pixel_shuffle: Op = in_own_type(
    "pixel_shuffle(Tensor self, int upscale_factor) -> Tensor",
    _pixel_shuffle,
    forms="function",
    memory="format",
    d_self=lambda g, upscale_factor: pixel_unshuffle.function(g, upscale_factor),
    doc="(…, C·r², H, W) as (…, C, H·r, W·r); Shi et al. 2016.",
)
pixel_unshuffle: Op = in_own_type(
    "pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor",
    _pixel_unshuffle,
    forms="function",
    memory="format",
    d_self=lambda g, downscale_factor: pixel_shuffle.function(g, downscale_factor),
    doc="(…, C, H·r, W·r) as (…, C·r², H, W).",
)


def _channel_shuffle(xp: ArrayModule, a: Array, groups: int) -> Any:
    if a.ndim < 3:
        raise RuntimeError(
            "channel_shuffle expects input with > 2 dims, but got input with sizes "
            f"{sizes_text(a.shape)}"
        )
    if groups <= 0:
        raise RuntimeError(
            f"Number of groups to divide channels in must be positive. Value of groups:{groups}"
        )
    if a.shape[1] % groups:
        raise RuntimeError(
            "Number of channels must be divisible by groups. Got "
            f"{a.shape[1]} channels and {groups} groups."
        )
    parts = a.reshape(a.shape[0], groups, a.shape[1] // groups, *a.shape[2:])
    return _fresh(parts.swapaxes(1, 2).reshape(a.shape), a)


channel_shuffle: Op = in_own_type(
    "channel_shuffle(Tensor self, int groups) -> Tensor",
    _channel_shuffle,
    forms="function",
    memory="format",
    d_self=lambda g, self_shape, groups: channel_shuffle.function(g, self_shape[1] // groups),
    doc="Channels of groups taken in turns; Zhang et al. 2018.",
)
