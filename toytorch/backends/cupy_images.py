"""Convolutions and pools on NVIDIA's cards: windows are copied into a matrix, and one product of
matrices does the rest; every kernel gathers what an element needs, so that no sum depends on the
order of threads.

A card likes one large product: the columns of all images lie side by side, (C·K, B·P) for windows of
K elements at P places of B images. cuDNN needs no such matrix, and multiplies in TF32 unless it is
told otherwise; the sums here are those of float32.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from toytorch.backends.cupy_hand import Each, in_rows, lies_last, with_last
from toytorch.backends.cupy_rows import real
from toytorch.facts.hints import Array, ArrayModule

MOST = 1 << 30  # bytes of columns that are made at once
Sizes = Sequence[int]
SHAPE = "I H, I W, I OH, I OW, I KH, I KW, I SH, I SW, I PH, I PW, I DH, I DW"
WINDOWS = Each(
    """
    const I ow = i % OW, oh = i / OW % OH, b = i / (OW * OH) % B, row = i / (OW * OH * B);
    const I k = row % (KH * KW), c = row / (KH * KW);
    const I y = oh * SH - PH + k / KW * DH, x = ow * SW - PW + k % KW * DW;
    const bool inside = y >= 0 && y < H && x >= 0 && x < W;
    columns[i] = inside ? images[((b * C + c) * H + y) * W + x] : T(0);
    """,
    f"T* columns, const T* images, I B, I C, {SHAPE}",
)
# The other way round: every pixel adds up what the windows say that see it.
TAPS = """
for (I ky = 0; ky < KH; ++ky) {
    const I down = y + PH - ky * DH;
    if (down < 0 || down % SH || down / SH >= OH) continue;
    for (I kx = 0; kx < KW; ++kx) {
        const I along = x + PW - kx * DW;
        if (along < 0 || along % SW || along / SW >= OW) continue;
        const I oh = down / SH, ow = along / SW;
        GIVEN
    }
}
"""
PIXELS = Each(
    "const I x = i % W, y = i / W % H, c = i / (W * H) % C, b = i / (W * H * C);\nT total = 0;\n"
    + TAPS.replace(
        "GIVEN", "total += columns[(((c * KH + ky) * KW + kx) * B + b) * OH * OW + oh * OW + ow];"
    )
    + "images[i] = total;",
    f"T* images, const T* columns, I B, I C, {SHAPE}",
)
TURNED = Each(  # (A, B, P) as (B, A, P), plus a number for each of the A
    """
    const I p = i % P, a = i / P % A, b = i / (P * A);
    made[i] = given[(a * B + b) * P + p] + (has ? bias[a] : T(0));
    """,
    "T* made, const T* given, const T* bias, I has, I A, I B, I P",
)
# Where each channel has kernels of its own (`M` of them), a product of matrices would be a row long.
APART = Each(
    """
    const I ow = i % OW, oh = i / OW % OH, o = i / (OW * OH) % O, b = i / (OW * OH * O);
    const T* image = images + (b * (O / M) + o / M) * H * W;
    const T* own = weight + o * KH * KW;
    T total = has ? bias[o] : T(0);
    for (I ky = 0; ky < KH; ++ky) {
        const I y = oh * SH - PH + ky * DH;
        if (y < 0 || y >= H) continue;
        for (I kx = 0; kx < KW; ++kx) {
            const I x = ow * SW - PW + kx * DW;
            if (x >= 0 && x < W) total += image[y * W + x] * own[ky * KW + kx];
        }
    }
    made[i] = total;
    """,
    f"T* made, const T* images, const T* weight, const T* bias, I has, I O, I M, {SHAPE}",
)
APART_BACK = Each(
    "const I x = i % W, y = i / W % H, c = i / (W * H) % C, b = i / (W * H * C);\nT total = 0;\n"
    "for (I o = c * M; o < (c + 1) * M; ++o) {\n"
    + TAPS.replace(
        "GIVEN",
        "total += g[((b * C * M + o) * OH + oh) * OW + ow] * weight[(o * KH + ky) * KW + kx];",
    )
    + "}\nimages[i] = total;",
    f"T* images, const T* g, const T* weight, I C, I M, {SHAPE}",
)


def flat_shape(sizes: Sizes, out: Sizes, kernel: Sizes, *rest: Sizes) -> list[int]:
    """The arguments that SHAPE names."""
    return [int(n) for pair in (sizes, out, kernel, *rest) for n in pair]


def parts(images: int, bytes_each: int) -> list[slice]:
    """How many images have their columns made together."""
    step = max(1, MOST // max(bytes_each, 1))
    return [slice(i, min(i + step, images)) for i in range(0, images, step)]


def turned(xp: ArrayModule, a: Array, bias: Array | None = None) -> Any:
    """(A, B, …) as (B, A, …), in memory of its own, plus a number for each of the A."""
    A, B, *rest = a.shape
    made = xp.empty((B, A, *rest), a.dtype)
    given = a if bias is None else bias
    TURNED(xp, a.dtype, made.size, made, a, given, int(bias is not None), A, B, math.prod(rest))
    return made


def convolution(
    xp: ArrayModule, x: Array, w: Array, stride: Sizes, padding: Sizes, dilation: Sizes,
    groups: int, bias: Array | None,
) -> Any:  # fmt: skip
    """y (B, O, …) of x (B, C, …) and w (O, C/groups, …), plus a bias, or None."""
    if not (x.size and w.size and real(x, w, bias)):
        return None
    kernel, (B, C, *sizes), outputs = w.shape[2:], x.shape, w.shape[0]
    out = [
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, s, p, d in zip(sizes, kernel, stride, padding, dilation)
    ]
    if min(out) < 1:
        return None
    last, x, w = lies_last(x) or lies_last(w), in_rows(xp, x), in_rows(xp, w)
    how = flat_shape(sizes, out, kernel, stride, padding, dilation)
    made = xp.empty((B, outputs, *out), x.dtype)
    if w.shape[1] == 1 and groups == C:
        given = (w, w, 0) if bias is None else (w, bias, 1)
        numbers = outputs, outputs // C, *how
        APART(xp, x.dtype, made.size, made, x, *given, *numbers, reach=x.size)
        return with_last(xp, made) if last else made
    rows = w.reshape(groups, w.shape[0] // groups, -1)
    each = C * math.prod(kernel) * math.prod(out)
    for part in parts(B, each * x.itemsize):
        columns = columns_of(xp, x[part], kernel, how, out)
        product = xp.matmul(rows, columns.reshape(groups, rows.shape[2], -1))
        wide = product.reshape(outputs, part.stop - part.start, math.prod(out))
        made[part] = turned(xp, wide, bias).reshape(-1, outputs, *out)
    return with_last(xp, made) if last else made


def columns_of(xp: ArrayModule, x: Array, kernel: Sizes, how: list[int], out: Sizes) -> Any:
    """The windows of images as a matrix (C·K, B·P)."""
    B, C = x.shape[:2]
    made = xp.empty((C * math.prod(kernel), B * math.prod(out)), x.dtype)
    WINDOWS(xp, x.dtype, made.size, made, x, B, C, *how, reach=x.size)
    return made


def convolution_input(
    xp: ArrayModule, g: Array, w: Array, sizes: Sizes, stride: Sizes, padding: Sizes,
    dilation: Sizes, groups: int,
) -> Any:  # fmt: skip
    """x (B, C, *sizes) from g (B, O, …) and w (O, C/groups, …), each g times its kernel; or None."""
    if not (g.size and w.size and real(g, w)) or 0 in sizes:
        return None
    kernel, (B, inputs, *out), C = w.shape[2:], g.shape, w.shape[1] * groups
    last, g, w = lies_last(g) or lies_last(w), in_rows(xp, g), in_rows(xp, w)
    how = flat_shape(sizes, out, kernel, stride, padding, dilation)
    made = xp.empty((B, C, *sizes), g.dtype)
    if w.shape[1] == 1:
        APART_BACK(xp, g.dtype, made.size, made, g, w, C, inputs // C, *how, reach=g.size)
        return with_last(xp, made) if last else made
    rows = w.reshape(groups, w.shape[0] // groups, -1).swapaxes(1, 2)
    for part in parts(B, C * math.prod(kernel) * math.prod(out) * g.itemsize):
        some = g[part]
        wide = turned(xp, some).reshape(groups, inputs // groups, -1)
        columns = xp.matmul(rows, wide)
        now = made[part]
        PIXELS(xp, g.dtype, now.size, now, columns, len(some), C, *how, reach=columns.size)
    return with_last(xp, made) if last else made


def convolution_weight(
    xp: ArrayModule, x: Array, g: Array, kernel: Sizes, stride: Sizes, padding: Sizes,
    dilation: Sizes, groups: int,
) -> Any:  # fmt: skip
    """The gradient (O, C/groups, *kernel) of the weight, from x (B, C, …) and g (B, O, …); or None."""
    if not (x.size and g.size and real(x, g)):
        return None
    (B, C, *sizes), (outputs, *out) = x.shape, g.shape[1:]
    x, g = in_rows(xp, x), in_rows(xp, g)
    how = flat_shape(sizes, out, kernel, stride, padding, dilation)
    made = None
    for part in parts(B, C * math.prod(kernel) * math.prod(out) * x.itemsize):
        columns = columns_of(xp, x[part], kernel, how, out).reshape(
            groups, C // groups * math.prod(kernel), -1
        )
        wide = turned(xp, g[part]).reshape(groups, outputs // groups, -1)
        product = xp.matmul(wide, columns.swapaxes(1, 2))
        made = product if made is None else made + product
    assert made is not None  # there is an image, and so a part
    return made.reshape(outputs, C // groups, *kernel)


# -- pools ----------------------------------------------------------------------------------------

MAX_POOL = Each(
    """
    const I ow = i % OW, oh = i / OW % OH, plane = i / (OW * OH);
    I y0 = oh * SH - PH, x0 = ow * SW - PW;
    const I y1 = y0 + (KH - 1) * DH + 1 < H ? y0 + (KH - 1) * DH + 1 : H;
    const I x1 = x0 + (KW - 1) * DW + 1 < W ? x0 + (KW - 1) * DW + 1 : W;
    while (y0 < 0) y0 += DH;
    while (x0 < 0) x0 += DW;
    T best = T(-INFINITY);
    I which = y0 * W + x0;
    for (I y = y0; y < y1; y += DH)
        for (I x = x0; x < x1; x += DW) {
            const T v = images[(plane * H + y) * W + x];
            if (v > best || v != v) best = v, which = y * W + x;
        }
    made[i] = best;
    places[i] = which;
    """,
    f"T* made, const T* images, long long* places, {SHAPE}",
    "#ifndef INFINITY\n#define INFINITY __int_as_float(0x7f800000)\n#endif",
)
# Which windows see a pixel: those that begin early enough, and not too early.
SEEING = """
const I x = i % W, y = i / W % H, plane = i / (W * H);
const I down = y + PH - (KH - 1) * DH, along = x + PW - (KW - 1) * DW;
const I first = down <= 0 ? 0 : (down + SH - 1) / SH, start = along <= 0 ? 0 : (along + SW - 1) / SW;
const I last = (y + PH) / SH < OH - 1 ? (y + PH) / SH : OH - 1;
const I stop = (x + PW) / SW < OW - 1 ? (x + PW) / SW : OW - 1;
T total = 0;
for (I oh = first; oh <= last; ++oh)
    for (I ow = start; ow <= stop; ++ow) {
        const I at = (plane * OH + oh) * OW + ow;
        GIVEN
    }
images[i] = total;
"""
MAX_POOL_BACK = Each(
    SEEING.replace("GIVEN", "if (places[at] == y * W + x) total += g[at];"),
    f"T* images, const T* g, const long long* places, {SHAPE}",
)
MEAN_POOL = Each(
    """
    const I ow = i % OW, oh = i / OW % OH, plane = i / (OW * OH);
    const I y0 = oh * SH - PH, x0 = ow * SW - PW;
    T total = 0;
    for (I y = y0 < 0 ? 0 : y0; y < y0 + KH && y < H; ++y)
        for (I x = x0 < 0 ? 0 : x0; x < x0 + KW && x < W; ++x)
            total += images[(plane * H + y) * W + x];
    made[i] = total * factor[oh * OW + ow];
    """,
    f"T* made, const T* images, const T* factor, {SHAPE}",
)
MEAN_POOL_BACK = Each(
    SEEING.replace("GIVEN", "total += g[at] * factor[oh * OW + ow];"),
    f"T* images, const T* g, const T* factor, {SHAPE}",
)
ONES = (1, 1)


def pooled(
    xp: ArrayModule, kernel: Each, images: Array, size: Sizes, how: list[int], *more: Array
) -> Any:
    """What a kernel makes of images: others of a size, in the same order of memory."""
    given = in_rows(xp, images)
    made = xp.empty((*images.shape[:-2], *size), images.dtype)
    kernel(xp, made.dtype, made.size, made, given, *more, *how, reach=given.size)
    return with_last(xp, made) if lies_last(images) else made


def max_pool(
    xp: ArrayModule, a: Array, window: Sizes, steps: Sizes, pad: Sizes, apart: Sizes, out: Sizes
) -> Any:
    """The largest element of every window, and its place in the flattened image; or None."""
    if not (a.size and real(a)):
        return None
    how = flat_shape(a.shape[-2:], out, window, steps, pad, apart)
    places = xp.empty((*a.shape[:-2], *out), np.int64)
    made = pooled(xp, MAX_POOL, a, out, how, places)
    return made, with_last(xp, places) if lies_last(a) else places


def max_pool_backward(
    xp: ArrayModule, g: Array, places: Array, sizes: Sizes, window: Sizes, steps: Sizes, pad: Sizes,
    apart: Sizes,
) -> Any:  # fmt: skip
    """The gradients where the largest elements were, or None."""
    if not (g.size and real(g)) or 0 in sizes:
        return None
    how = flat_shape(sizes, g.shape[-2:], window, steps, pad, apart)
    return pooled(xp, MAX_POOL_BACK, g, sizes, how, in_rows(xp, places))


def mean_pool(
    xp: ArrayModule, a: Array, window: Sizes, steps: Sizes, pad: Sizes, out: Sizes, factors: Any
) -> Any:
    """The sum of every window times its factor, or None."""
    if not (a.size and real(a)):
        return None
    how = flat_shape(a.shape[-2:], out, window, steps, pad, ONES)
    return pooled(xp, MEAN_POOL, a, out, how, xp.asarray(factors, a.dtype))


def mean_pool_backward(
    xp: ArrayModule, g: Array, sizes: Sizes, window: Sizes, steps: Sizes, pad: Sizes, factors: Any
) -> Any:
    """What every pixel gets from the windows that see it, or None."""
    if not (g.size and real(g)) or 0 in sizes:
        return None
    how = flat_shape(sizes, g.shape[-2:], window, steps, pad, ONES)
    return pooled(xp, MEAN_POOL_BACK, g, sizes, how, xp.asarray(factors, g.dtype))
