"""Pooling: the maximum or the average of every window."""

from __future__ import annotations

import functools
import math
from typing import Any, cast

import numpy as np

from toytorch.backends.generic import attempt
from toytorch.core.op import Op
from toytorch.core.tensor import Tensor
from toytorch.facts.dtype import no_kernel
from toytorch.facts.hints import Array, ArrayModule, Ints, Shape, Sizes
from toytorch.facts.size import WHOLE
from toytorch.kernels.memory_format import channels_last, in_order
from toytorch.loops.runtime.jit import SMALLEST
from toytorch.ops.define import general, internal
from toytorch.ops.indexing.by_index import type_name
from toytorch.ops.nn.linear_maps import apply_all, tied
from toytorch.ops.nn.pool_arrays import (
    Sides,
    adaptive_max_arrays,
    added_flat,
    average_maps,
    average_table,
    fractional_max_arrays,
    max_arrays,
    pooled_size,
    put_flat,
)
from toytorch.ops.nn.windows import checked_gradient, sizes_text
from toytorch.settings import alert_not_deterministic

COUNT_WORDS = {1: "one", 2: "two", 3: "three"}


def full(name: str, what: str, value: Any, n: int) -> Sizes:
    """An argument of a pool as n ints."""
    many = [value] if isinstance(value, WHOLE) else [int(v) for v in value]
    values = cast("Sizes", tuple(many))
    if len(values) not in (1, n):
        omitted = "be omitted, a single int, or" if what == "stride" else "be a single int, or"
        raise RuntimeError(f"{name}: {what} must either {omitted} a tuple of {COUNT_WORDS[n]} ints")
    return values * n if len(values) == 1 else values


def arguments(
    name: str, n: int, kernel: Ints, stride: Ints | None, padding: Ints, dilation: Ints
) -> tuple[Any, Any, Any, Any]:
    """A pool's sizes, each as n ints; the stride is the kernel's size if not given."""
    window = full(name, "kernel_size", kernel, n)
    given = stride is not None and stride not in ((), [])
    steps = full(name, "stride", stride, n) if given else window
    return window, steps, full(name, "padding", padding, n), full(name, "dilation", dilation, n)


def sized(name: str, shape: Sizes, n: int, *how: Ints | None) -> tuple[Any, Any, Any, Any, Any]:
    """A pool's `arguments`, and the sizes that it makes of images of a shape; `how` is these arguments
    and whether windows may stick out (ceil_mode)."""
    given = [v if v is None or isinstance(v, WHOLE) else tuple(int(i) for i in v) for v in how[:4]]
    found: tuple[Any, Any, Any, Any, Any] = kept_sizes(name, shape, n, *given, how[4])
    return found


@functools.lru_cache(512)
def kept_sizes(name: str, shape: Sizes, n: int, *given: Any) -> Any:
    """`sized`, once for all calls with these arguments."""
    how = arguments(name, n, *given[:4])
    return *how, out_sizes(name, shape, n, how, given[4])


def out_sizes(name: str, shape: Sizes, n: int, how: tuple[Sizes, ...], ceil_mode: bool) -> Sizes:
    """The sizes a pool makes, or PyTorch's error."""
    kernel, stride, padding, dilation = how
    if min(kernel) <= 0:
        raise RuntimeError(
            f"kernel size should be greater than zero, but got kernel_size: {list(kernel)}"
        )
    if min(stride) <= 0:
        raise RuntimeError(
            "stride should not be zero"
            if min(stride) == 0
            else f"stride should be greater than zero, but got {list(stride)}"
        )
    if min(dilation) <= 0:
        raise RuntimeError(f"dilation should be greater than zero, but got {list(dilation)}")
    for k, p, d in zip(kernel, padding, dilation):
        if p < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {p}")
        if p > (d * (k - 1) + 1) // 2:
            raise RuntimeError(
                "pad should be at most half of effective kernel size, but got "
                f"pad={p}, kernel_size={k} and dilation={d}"
            )
    sizes = shape[-n:]
    batched = len(shape) == n + 2
    images = n == 2 and name.startswith("avg")  # whose errors have words of their own
    if len(shape) not in (n + 1, n + 2) and not images:
        raise RuntimeError(f"non-empty {n + 1}D or {n + 2}D (batch mode) tensor expected for input")
    if len(shape) not in (n + 1, n + 2) or 0 in (shape[1:] if batched else shape):
        raise RuntimeError(
            f"{'' if images else f'{name}: '}Expected {n + 1}D or {n + 2}D (batch mode) "
            f"tensor with optional 0 dim batch size for input, but got:{sizes_text(shape)}"
        )
    out = tuple(
        pooled_size(*each, ceil_mode) for each in zip(sizes, kernel, stride, padding, dilation)
    )
    if min(out) < 1:
        planes = shape[-n - 1]
        raise RuntimeError(
            f"Given input size: ({'x'.join(map(str, (planes, *sizes)))}). Calculated output size: "
            f"({'x'.join(map(str, (planes, *out)))}). Output size is too small"
        )
    return out


def _need(name: str, a: Array, kinds: str) -> None:
    if a.dtype.kind not in kinds:
        raise NotImplementedError(f"\"{name}\" not implemented for '{type_name(a)}'")


def _as(a: Array, made: Array) -> Any:
    """Images in the order of memory of others: channels lie last where they did."""
    return in_order(made, True) if channels_last(a) else made


def _picked(g: Tensor, indices: Tensor, n: int) -> Any:
    """The elements of images (…, *sizes) at flat places."""
    return g.flatten(-n).gather(-1, indices.flatten(-n)).view(indices.shape)


@functools.lru_cache(512)
def of_few(
    name: str, shape: Sizes, kind: str, how: tuple[Any, ...], means: tuple[Any, ...] = ()
) -> Any:
    """The function that pools images of a shape, of few numbers in rows, at once; None where there is
    none. `how` are a pool's arguments, `means` those of an average beside them."""
    window, steps, pad, apart, out = sized(name, shape, 2, *how)
    made = "pool of few", "mean" if means else "max", shape, kind, window, steps, pad, apart, out
    if means:
        return attempt(np, *made, factors((shape[-2:], window, steps, pad, out), *means))
    return attempt(np, *made)


@functools.lru_cache(512)
def of_windows(shape: Sizes, kind: str, *how: Sizes) -> Any:
    """The function that has the maxima of planes of few numbers in rows; None where there is none.
    `how` are windows, steps, borders, dilation and the result's sizes, or these alone for even bins."""
    windows = how[:-1] or ((), (), (), (1, 1))
    return attempt(np, "pool of few", "max", shape, kind, *windows, how[-1])


def of_planes(xp: ArrayModule, a: Array, *how: Sizes) -> Any:
    """The maxima of windows of planes, and their places."""
    if a.__class__ is np.ndarray and a.flags.c_contiguous:
        quick = of_windows(a.shape, a.dtype.char, *how)
        if quick is not None:
            return quick(a)
    found = attempt(xp, "max_pool", a, *how)
    return max_arrays(xp, a, *how) if found is None else found


def of_volumes(xp: ArrayModule, a: Array, *how: Sizes) -> Any:
    """The maxima of windows of volumes: those of each plane, and of these along the depth."""
    *lead, depth, height, width = a.shape
    *across, out = (tuple(each[1:]) for each in how)
    *down, deep = (each[0] for each in how)
    area, n = math.prod(out), math.prod(lead)
    best, inside = of_planes(xp, a.reshape(n, depth, height, width), *across, out)
    columns = best.reshape(n, depth, area)
    whole = zip(down, (1, 1, 0, 1))
    best, which = of_planes(xp, columns, *whole, (deep, area))
    inside = xp.take_along_axis(inside.reshape(n, depth * area), which.reshape(n, deep * area), 1)
    places = inside.reshape(which.shape) + which // area * (height * width)
    return tuple(v.reshape(*lead, deep, *out) for v in (best, places))


def quick_pool(name: str, a: Array, *how: Any) -> Any:
    """`of_few` for an array; None also where a list is among a pool's arguments."""
    if a.__class__ is not np.ndarray or not a.flags.c_contiguous:
        return None
    try:
        return of_few(name, a.shape, a.dtype.char, *how)
    except TypeError:  # what cannot be looked up, or is refused below
        return None


def _max_pool(n: int) -> Op:
    name = f"max_pool{n}d"

    def forward(xp: ArrayModule, a: Array, *how: Ints | None) -> Any:
        quick = quick_pool(name, a, how) if n == 2 else None
        if quick is not None:
            return quick(a)
        shape = sized(name, a.shape, n, *how)
        _need(name, a, "fiu")
        if n == 2:
            return of_planes(xp, a, *shape)
        return tuple(_as(a, v) for v in of_volumes(xp, a, *shape))

    def backward(xp: ArrayModule, g: Array, a: Array, *how: Any) -> Any:
        *given, _, indices = how
        window, steps, pad, apart = arguments(name, n, *given)
        found = (
            attempt(xp, "max_pool_backward", g, indices, a.shape[-2:], window, steps, pad, apart)
            if n == 2
            else None
        )
        if found is not None:
            return found
        disjoint = all(s >= d * (k - 1) + 1 for k, s, d in zip(window, steps, apart))
        return _as(a, added_flat(xp, g, indices, a.shape[-n:], disjoint))

    share = internal(
        f"{name}_with_indices_backward(Tensor grad_output, Tensor self, int[] kernel_size, "
        "int[]? stride, int[] padding, int[] dilation, bool ceil_mode, Tensor indices) -> Tensor",
        backward,
        d_grad_output=lambda g, indices: _picked(g, indices, n),
        d_self=lambda g: g.new_zeros(g.shape),
        doc=f"The gradient of max_pool{n}d.",
    )
    return internal(
        f"{name}_with_indices(Tensor self, int[] kernel_size, int[]? stride=None, int[] padding=0, "
        "int[] dilation=1, bool ceil_mode=False) -> (Tensor values, Tensor indices)",
        forward,
        d_self=lambda gs, self, kernel_size, stride, padding, dilation, ceil_mode, result1: (
            share.function(gs[0], self, kernel_size, stride, padding, dilation, ceil_mode, result1)
        ),
        memory="volume" if n == 3 else "format",
        amp="float32" if n == 3 else "",
        doc="The largest element of every window, and its place in the flattened image.",
    )


MAX = {n: _max_pool(n) for n in (2, 3)}


def maxima(a: Array, *how: Any) -> Any:
    """The maxima of windows of planes without their places, in rows."""
    found = None
    if a.size >= SMALLEST:
        found = attempt(np, "max_pool", a, *sized("max_pool2d", a.shape, 2, *how), False)
    found = MAX[2].kernel(np, a, *how) if found is None else found
    return np.ascontiguousarray(found[0])


@functools.lru_cache(256)
def factors(sides: Sides, include: bool, divisor: int | None) -> Any:
    """What the sum of each window of an average pool is multiplied with."""
    if divisor is not None:
        return np.full(sides[4], 1 / divisor)
    return 1 / math.prod(np.ix_(*average_maps(sides, include)[1]))


@functools.lru_cache(256)
def average_plan(sides: Sides, include: bool, divisor: int | None) -> tuple[Any, Any]:
    """The maps of an average pool, and what their result is divided by."""
    maps, counts = average_maps(sides, include)
    if divisor is not None:
        return maps, float(divisor)
    return [m._replace(weights=m.weights / c[:, None]) for m, c in zip(maps, counts)], 1.0


def means(
    xp: ArrayModule, a: Array, sides: Sides, more: tuple[Any, ...], back: bool = False
) -> Any:
    """The means of windows, or the gradient that goes `back` from them; `more` is whether padding
    counts, and the divisor."""
    found = None
    if len(sides[0]) == 2:
        by = factors(sides, *more)
        kernel, given = ("mean_pool_backward", sides[:4]) if back else ("mean_pool", sides[1:])
        found = attempt(xp, kernel, a, *given, by)
    else:
        kernel = "mean_of_windows_backward" if back else "mean_of_windows"
        table, to = average_table(sides, *more), sides[0 if back else 4]
        found = attempt(xp, kernel, a, table, to, (1,) * len(to))
    if found is None:
        maps, rest = average_plan(sides, *more)
        found = _as(a, apply_all(xp, a, maps, transposed=back))
        found = found if rest == 1 else found / found.dtype.type(rest)
    return found


def _average_pool(n: int) -> Op:
    name = f"avg_pool{n}d"

    def forward(xp: ArrayModule, a: Array, *given: Any) -> Any:
        how, more = (*given[:3], 1, given[3]), given[4:]
        include, divisor = more
        if divisor == 0:
            raise RuntimeError("divisor must be not zero")
        quick = quick_pool(name, a, how, more) if n == 2 else None
        if quick is not None:
            return quick(a)
        window, steps, pad, _, out = sized(name, a.shape, n, *how)
        if n == 3 and any(size < k for size, k in zip(a.shape[-3:], window)):
            seen, held = (
                " ".join(f"{p}{axis}: {size}" for axis, size in zip("THW", sizes))
                for p, sizes in (("", a.shape[-3:]), ("k", window))
            )
            raise RuntimeError(f"input image ({seen}) smaller than kernel size ({held})")
        if (a.dtype.kind != "f" and a.dtype != np.int64) or (n == 3 and a.dtype.itemsize == 2):
            raise no_kernel(name + "_out_frame" * (n == 3), a.dtype)
        sides = a.shape[-n:], window, steps, pad, out
        if a.dtype.kind == "i":
            maps, counts = average_maps(sides, include)
            shared = xp.asarray(math.prod(np.ix_(*counts))) if divisor is None else divisor
            return xp.trunc(apply_all(xp, a, maps) / shared).astype(a.dtype)
        return means(xp, a, sides, more)

    def backward(xp: ArrayModule, g: Array, shape: Sizes, *given: Any) -> Any:
        window, steps, pad, _ = arguments(name, n, given[0], given[1], given[2], 1)
        sides = tuple(shape[-n:]), window, steps, pad, tuple(g.shape[-n:])
        return means(xp, g, sides, given[4:], back=True)

    def back(g: Tensor, images: Tensor, *how: Any) -> Any:
        return tied(share.function(g, tuple(images.shape), *how), images)

    share = internal(
        f"{name}_backward(Tensor grad_output, int[] shape, int[] kernel_size, int[]? stride, "
        "int[] padding, bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor",
        backward,
        d_grad_output=lambda g, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override: (
            record.function(
                g, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
            )
        ),
        doc=f"The gradient of avg_pool{n}d.",
    )
    record: Op = general(
        f"{name}(Tensor self, int[] kernel_size, int[]? stride=None, int[] padding=0, "
        "bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
        forward,
        forms="out",
        d_self=lambda g, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override: (
            back(
                g,
                self,
                kernel_size,
                stride,
                padding,
                ceil_mode,
                count_include_pad,
                divisor_override,
            )
        ),
        memory="format" if n == 2 else "rows",
        amp="float32" if n == 3 else "",
        upcast=n == 2,
        out_type="same",
        doc="The mean of every window.",
    )
    return record


AVERAGE = {n: _average_pool(n) for n in (2, 3)}


def _put_record(n: int) -> Op:
    return internal(
        f"_put_flat{n}d(Tensor grad_output, int[] shape, Tensor indices) -> Tensor",
        lambda xp, g, shape, indices: added_flat(xp, g, indices, shape),
        d_grad_output=lambda g, indices: _picked(g, indices, n),
        doc="Elements added at flat places of zero images.",
    )


PUT = {n: _put_record(n) for n in (2, 3)}


def _adaptive_max(n: int) -> Op:
    def forward(xp: ArrayModule, a: Array, out: Shape) -> Any:
        _need(f"adaptive_max_pool{n}d{'_cpu' * (n == 3)}", a, "f")
        if n == 2 and a.__class__ is np.ndarray and a.flags.c_contiguous:
            quick = of_windows(a.shape, a.dtype.char, tuple(out))
            if quick is not None:
                return quick(a)
        return adaptive_max_arrays(xp, a, out)

    return internal(
        f"adaptive_max_pool{n}d(Tensor self, int[] output_size) -> (Tensor values, Tensor indices)",
        forward,
        d_self=lambda gs, self, result1: tied(
            PUT[n].function(
                checked_gradient(gs[0], f"adaptive_max_pool{n}d"), tuple(self.shape[-n:]), result1
            ),
            self,
        ),
        memory="format" if n == 2 else "rows",
        amp="float32" if n == 3 else "",
        doc="The largest elements of even bins, and their places in the flattened image.",
    )


ADAPTIVE_MAX = {n: _adaptive_max(n) for n in (2, 3)}


def _fractional_max(n: int) -> Op:
    def forward(xp: ArrayModule, a: Array, kernel: Shape, out: Shape, samples: Array) -> Any:
        _need(f"fractional_max_pool{n}d", a, "f")
        names = ("time", "height", "width")[-n:]
        for what, size, k, o in zip(names, a.shape[-n:], kernel, out):
            if o < 0:
                shown = [*a.shape[:-n], *out]
                raise RuntimeError(f"Trying to create tensor with negative dimension {o}: {shown}")
            if o + k - 1 > size - (n == 3):
                raise RuntimeError(
                    f"{'fractional_max_pool2d' if n == 2 else 'fractional_max_pool3d_out'}(): pool "
                    f"{what} {k} too large relative to input {what} {size}"
                )
        return fractional_max_arrays(xp, a, kernel, out, samples)

    return internal(
        f"fractional_max_pool{n}d(Tensor self, int[] kernel_size, int[] output_size, "
        "Tensor random_samples) -> (Tensor values, Tensor indices)",
        forward,
        d_self=lambda gs, self, result1: tied(
            PUT[n].function(gs[0], tuple(self.shape[-n:]), result1), self
        ),
        amp="float32",
        doc="Maxima of windows with pseudo-random steps; Graham 2014.",
    )


FRACTIONAL_MAX = {n: _fractional_max(n) for n in (2, 3)}


def need_sizes(n: int, out: Shape) -> None:
    """Refuses sizes of a result that are too few or too many, or below 0."""
    if len(out) != n:
        words = (
            "two elements (height, width)" if n == 2 else "three elements (depth, height, width)"
        )
        raise RuntimeError(
            f"There should be exactly {words} in output_size, but got {len(out)} elements."
        )
    if min(out) < 0:
        bad = next(i for i, size in enumerate(out) if size < 0)
        raise ValueError(
            "max_unpooling: output_size must contain non-negative spatial dimensions, but got "
            f"output_size[{bad}]={out[bad]}"
        )


def _max_unpool(n: int) -> Op:
    def forward(xp: ArrayModule, a: Array, indices: Array, out: Shape) -> Any:
        alert_not_deterministic(f"max_unpooling{n}d_forward_out")
        if n == 2:  # of volumes, the dimensions are asked for first
            need_sizes(n, out)
        if indices.dtype != np.int64:
            raise RuntimeError(f"elements in indices should be type int64 but got: {indices.dtype}")
        if a.shape != indices.shape:
            raise RuntimeError(
                "Expected shape of indices to be same as that of the input tensor "
                f"({sizes_text(a.shape)}) but got indices tensor with shape: "
                f"{sizes_text(indices.shape)}"
            )
        if a.ndim not in (n + 1, n + 2):
            raise RuntimeError(
                f"Input to max_unpooling{n}d should be a {n + 1}d or {n + 2}d "
                f"Tensor, but got a tensor with {a.ndim} dimensions."
            )
        need_sizes(n, out)
        if 0 in a.shape[1:]:
            bad = next(d for d, s in enumerate(a.shape) if d and not s)
            raise RuntimeError(
                f"max_unpooling{n}d_forward_out_cpu(): Expected input to have non-zero size for "
                f"non-batch dimensions, but got {sizes_text(a.shape)} with dimension {bad} being empty."
            )
        _need(f"max_unpool{n}d", a, "f")
        area = math.prod(out)
        if indices.size and (int(indices.min()) < 0 or int(indices.max()) >= area):
            bad = int(indices.max()) if int(indices.max()) >= area else int(indices.min())
            raise RuntimeError(
                f"Found an invalid max index: {bad} (output volumes are of size "
                f"{'x'.join(map(str, out))}"
            )
        return put_flat(xp, a, indices, tuple(out), True)

    return internal(
        f"max_unpool{n}d(Tensor self, Tensor indices, int[] output_size) -> Tensor",
        forward,
        memory="format" if n == 2 else "rows",
        d_self=lambda g, indices: _picked(g, indices, n),
        amp="float32",
        doc="Elements put at flat places of zero images.",
    )


MAX_UNPOOL = {n: _max_unpool(n) for n in (2, 3)}
