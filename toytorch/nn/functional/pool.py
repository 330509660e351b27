"""Pooling: the maximum, the average or the p-norm of windows.

>>> max_pool2d(torch.arange(16.).view(1, 4, 4), 2)
tensor([[[ 5.,  7.],
         [13., 15.]]])
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Iterable
from typing import Any

from toytorch.core.arguments import no_ints, plain_ints, takes, too_large
from toytorch.core.tensor import Tensor, wrap
from toytorch.core.views import counted, of_its_own, quick
from toytorch.core.write import refuse_grad
from toytorch.facts import state
from toytorch.facts.composed import called, composed
from toytorch.facts.hints import Fn, Ints, OutputSize, Sizes
from toytorch.facts.size import wrap_dim
from toytorch.ops.define import asks, takes_words, tensor_first
from toytorch.ops.nn import pool as pools
from toytorch.ops.nn import resize
from toytorch.ops.nn.pool_arrays import pooled_size
from toytorch.ops.nn.resize import adaptive_avg_pool1d
from toytorch.ops.nn.windows import sizes_text

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices", "adaptive_max_pool2d", "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d", "adaptive_max_pool3d_with_indices", "avg_pool1d", "avg_pool2d",
    "avg_pool3d", "fractional_max_pool2d", "fractional_max_pool2d_with_indices",
    "fractional_max_pool3d", "fractional_max_pool3d_with_indices", "lp_pool1d", "lp_pool2d",
    "lp_pool3d", "max_pool1d", "max_pool1d_with_indices", "max_pool2d", "max_pool2d_with_indices",
    "max_pool3d", "max_pool3d_with_indices", "max_unpool1d", "max_unpool2d", "max_unpool3d",
]  # fmt: skip

Pair = tuple[Tensor, Tensor]
SHAPES = {1: "(B, C, L)", 2: "(B, C, H, W)", 3: "(B, C, D, H, W)"}


def _one(name: str, what: str, value: Any) -> Any:
    """An argument of a pool over one dimension as an int."""
    return value if value is None else pools.full(name, what, value, 1)[0]


# -- maxima ---------------------------------------------------------------------------------------


def _named(name: str, doc: str, maxima: Fn) -> tuple[Any, Any]:
    """Two functions under public names: of maxima and their places, and of maxima, whose places
    `return_indices` asks for."""
    arguments = inspect.signature(maxima).bind

    @functools.wraps(maxima)
    def pair(*args: object, **kwargs: object) -> Pair:
        return maxima(**{**arguments(*args, **kwargs).arguments, "return_indices": True})

    called(f"{name}_with_indices", f"{doc}, and their places.", pair)
    called(name, f"{doc}.", maxima)
    return (
        composed(returns="(Tensor, Tensor)")(pair),
        composed(returns="(Tensor, Tensor) if return_indices else Tensor")(maxima),
    )


def _check_line(
    input: Tensor, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool
) -> None:
    """Raises PyTorch's errors for max_pool1d."""
    if input.ndim not in (2, 3) or 0 in input.shape[-2:]:
        raise RuntimeError(
            "max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim "
            f"batch size for input, but got:{sizes_text(input.shape)}"
        )
    for what, value in (("kernel_size", kernel), ("stride", stride), ("dilation", dilation)):
        if value <= 0:
            raise RuntimeError(f"max_pool1d() {what} must be greater than zero, but got {value}")
    made = pooled_size(input.shape[-1], kernel, stride, padding, dilation, ceil_mode)
    if padding >= 0 and padding <= (dilation * (kernel - 1) + 1) // 2 and made <= 0:
        raise RuntimeError(f"max_pool1d() Invalid computed output size: {made}")


def _of_line(
    input: Tensor, kernel_size: Ints, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
) -> tuple[int, int, int, int]:
    """The sizes of max_pool1d as ints."""
    name = "max_pool1d"
    kernel, padding, dilation = (
        _one(name, what, v)
        for what, v in (("kernel_size", kernel_size), ("padding", padding), ("dilation", dilation))
    )
    stride = kernel if stride is None or stride == () else _one(name, "stride", stride)
    _check_line(input, kernel, stride, padding, dilation, ceil_mode)
    return kernel, stride, padding, dilation


def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: Ints,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Pair:
    """The maxima of windows of (B, C, L), and their places."""
    how = _of_line(input, kernel_size, stride, padding, dilation, ceil_mode)
    pairs = zip((1, 1, 0, 1), how)
    values, places = pools.MAX[2].function(input.unsqueeze(-2), *pairs, ceil_mode)
    return values.squeeze(-2), places.squeeze(-2)


@asks
@composed(returns="(Tensor, Tensor) if return_indices else Tensor")
def max_pool1d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest element of every window of (B, C, L)."""
    wanted = state.local.grad and input._requires_grad  # without, PyTorch's kernel makes plain rows
    if not return_indices and not wanted and input.dtype.plain and quick(input):
        how = _of_line(input, kernel_size, stride, padding, dilation, ceil_mode)
        pairs = zip((1, 1, 0, 1), how)
        values = pools.maxima(input._array[..., None, :], *pairs, ceil_mode)
        largest = wrap(values[..., 0, :])
        return counted(largest, 1) if input.ndim == 2 else largest
    made = max_pool1d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)
    if return_indices:
        return made
    if wanted:
        return made[0]
    if not input.is_floating_point():
        raise NotImplementedError(f"\"max_pool1d_impl\" not implemented for '{input.dtype.legacy}'")
    values = of_its_own(made[0].contiguous())
    return counted(values, 1) if input.ndim == 2 else values


def _max_pool(n: int) -> tuple[Any, ...]:
    def maxima(
        input: Tensor,
        kernel_size: Ints,
        stride: Ints | None = None,
        padding: Ints = 0,
        dilation: Ints = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        made = record.function(input, kernel_size, stride, padding, dilation, ceil_mode)
        return tuple(made) if return_indices else made[0]

    record = pools.MAX[n]
    doc = f"The largest elements of windows of {SHAPES[n]}"
    return tuple(map(asks, _named(f"max_pool{n}d", doc, maxima)))


max_pool2d_with_indices, max_pool2d = _max_pool(2)
max_pool3d_with_indices, max_pool3d = _max_pool(3)


def _adaptive_max(n: int, input: Tensor, output_size: Any) -> Pair:
    name = f"adaptive_max_pool{n}d"
    output_size = _asked_sizes(name, input, output_size, n)
    sizes = (output_size,) * n if isinstance(output_size, int) else tuple(output_size)
    if len(sizes) != n:
        raise RuntimeError(
            "adaptive_max_pool1d(): argument 'output_size' should contain one int, "
            f"got {len(sizes)}"
            if n == 1
            else f"{name}(): internal error: output_size.size() must be {n}"
        )
    if any(s is not None and s < 0 for s in sizes):
        raise RuntimeError(
            "Trying to create tensor with negative dimension "
            f"{min(s for s in sizes if s is not None)}: {list(sizes)}"
        )
    sizes = resize.adaptive_sizes(f"{name}()", input, sizes, n)
    if n == 1:
        values, places = pools.ADAPTIVE_MAX[2].function(input.unsqueeze(-2), (1, *sizes))
        return values.squeeze(-2), places.squeeze(-2)
    return tuple(pools.ADAPTIVE_MAX[n].function(input, sizes))


def _asked_sizes(name: str, input: Tensor, output_size: Any, n: int) -> Any:
    """The sizes that an adaptive pool is asked for; images of fewer dimensions are refused."""
    if n > 1 and not isinstance(output_size, int) and input.ndim <= len(output_size):
        raise ValueError(f"Input dimension should be at least {len(output_size) + 1}")
    listed = isinstance(output_size, (tuple, list))
    sizes = [0 if s is None else s for s in output_size] if listed and n > 1 else output_size
    if not takes("int[]", "output_size", sizes):
        values = tuple(sizes) if listed else (sizes,)
        raise TypeError(no_ints(() if listed else values, values, name, "output_size", 2))
    found = too_large("int[]", sizes, f"{name}(): argument 'output_size'")
    if found is not None:
        raise found
    return output_size if listed else plain_ints(output_size)


def _adaptive_max_pool(n: int) -> tuple[Any, Any]:
    def maxima(input: Tensor, output_size: OutputSize, return_indices: bool = False) -> Any:
        made = _adaptive_max(n, input, output_size)
        return made if return_indices else made[0]

    doc = f"The largest elements of even bins of {SHAPES[n]}"
    return _named(f"adaptive_max_pool{n}d", doc, maxima)


adaptive_max_pool1d_with_indices, adaptive_max_pool1d = map(tensor_first, _adaptive_max_pool(1))
adaptive_max_pool2d_with_indices, adaptive_max_pool2d = _adaptive_max_pool(2)
adaptive_max_pool3d_with_indices, adaptive_max_pool3d = _adaptive_max_pool(3)


# -- averages -------------------------------------------------------------------------------------


@tensor_first
@takes_words()
def avg_pool1d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """The mean of every window of (B, C, L)."""
    name = "avg_pool1d"
    kernel, padding = _one(name, "kernel_size", kernel_size), _one(name, "padding", padding)
    stride = kernel if stride is None or stride == () else _one(name, "stride", stride)
    if input.ndim not in (2, 3):
        raise resize.wrong_dims(name, input)
    made = pools.AVERAGE[2].function(
        input.unsqueeze(-2), (1, kernel), (1, stride), (0, padding), ceil_mode, count_include_pad
    )
    return made.squeeze(-2)


def _avg_pool(n: int) -> Any:
    def function(
        input: Tensor,
        kernel_size: Ints,
        stride: Ints | None = None,
        padding: Ints = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
        *,
        out: Tensor | None = None,
    ) -> Tensor:
        if n == 2 and isinstance(input, Tensor) and input.ndim < 3:  # found last; others by the op
            pools.arguments(name, 2, kernel_size, stride, padding, 1)
            if out is not None:
                refuse_grad(name, (input,), out)
            if divisor_override == 0:
                raise RuntimeError("divisor must be not zero")
            wrap_dim(-3, input.ndim)
        how = kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
        return average(input, *how, out=out)

    name, average = f"avg_pool{n}d", pools.AVERAGE[n].function
    return takes_words()(called(name, f"The mean of every window of {SHAPES[n]}.", function))


avg_pool2d, avg_pool3d = _avg_pool(2), _avg_pool(3)


def _even_mean(n: int, input: Tensor, output_size: OutputSize) -> Tensor:
    one = output_size == 1 or (output_size is not None and output_size in ((1,) * n, [1] * n))
    if one and input.ndim <= n:  # one bin is a mean in PyTorch, which asks for no more dimensions
        return input.mean(tuple(range(-1, -n - 1, -1)), True)
    return resize.adaptive_average(n, input, output_size)


def adaptive_avg_pool2d(input: Tensor, output_size: OutputSize) -> Tensor:
    """The means of even bins of (B, C, H, W)."""
    return _even_mean(2, input, _asked_sizes("adaptive_avg_pool2d", input, output_size, 2))


def adaptive_avg_pool3d(input: Tensor, output_size: OutputSize) -> Tensor:
    """The means of even bins of (B, C, D, H, W)."""
    return _even_mean(3, input, _asked_sizes("adaptive_avg_pool3d", input, output_size, 3))


MAXIMA = {1: max_pool1d, 2: max_pool2d, 3: max_pool3d}


def _power_mean(n: int, pool: Fn) -> Any:
    name = f"lp_pool{n}d"

    def function(
        input: Tensor,
        norm_type: float,
        kernel_size: Ints,
        stride: Ints | None = None,
        ceil_mode: bool = False,
    ) -> Tensor:
        size = math.prod(pools.full(name, "kernel_size", kernel_size, n))
        if math.isinf(norm_type):
            sign = math.copysign(1, norm_type)
            return MAXIMA[n](input.abs() * sign, kernel_size, stride, 0, 1, ceil_mode) * sign
        means = pool(input.pow(norm_type), kernel_size, stride, 0, ceil_mode)
        return (means.sgn() * means.abs().relu() * size).relu().pow(1 / norm_type)

    doc = f"(Σ xᵖ)^{{1/p}} of every window of {SHAPES[n]}; a negative sum counts as 0."
    return called(name, doc, function)


lp_pool1d, lp_pool2d = _power_mean(1, avg_pool1d), _power_mean(2, avg_pool2d)
lp_pool3d = _power_mean(3, avg_pool3d)


# -- with chance, and back ------------------------------------------------------------------------


def _one_or_all(name: str, what: str, value: Any, n: int) -> Any:
    """A size for each dimension, given as one for all or as that many."""
    if isinstance(value, (tuple, list)) and len(value) != n:
        several = "tuple of Ints" if n == 2 else "tuple of three Ints"
        raise RuntimeError(f"{name}: {what} must either be a single Int or {several}")
    return pools.full(name, what, value, n)


def check_samples(samples: Tensor, images: Tensor, n: int) -> None:
    """Refuses random numbers that are not one for each channel of each image and dimension."""
    shape = (*samples.shape, 0, 0, 0)
    if shape[0] < images.shape[0]:
        raise RuntimeError("Expect _random_samples.size(0) no less then input batch size.")
    if shape[1] != images.shape[1]:
        raise RuntimeError("Expect _random_samples.size(1) equals to input channel size.")
    if shape[2] != n:
        raise RuntimeError(f"Expect _random_samples.size(2) equals to {n}; got {shape[2]}.")


def _fractional(
    n: int,
    input: Tensor,
    kernel_size: Ints | None,
    output_size: OutputSize,
    output_ratio: Any,
    samples: Tensor | None,
) -> Pair:
    name = f"fractional_max_pool{n}d"
    wrap_dim(-n - 1, input.ndim)  # where PyTorch finds too few dimensions
    if output_size is None and output_ratio is None:
        raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
    if output_size is None:
        ratios = (output_ratio,) * n if isinstance(output_ratio, float) else tuple(output_ratio)
        if len(ratios) != n:
            several = "tuple of Ints." if n == 2 else "tuple of three Ints."
            raise ValueError(f"{name} requires output_ratio to either be a single Int or {several}")
        output_size = [int(s * r) for s, r in zip(input.shape[-n:], ratios)]
    kernel = _one_or_all(name, "kernel_size", kernel_size, n)
    out = _one_or_all(name, "output_size", output_size, n)
    single = input.ndim == n + 1
    images = input.unsqueeze(0) if single else input
    if images.ndim != n + 2:
        raise RuntimeError(
            f"{name if n == 2 else name + '_out'}(): Expected {n + 1}D or {n + 2}D tensor, but got: "
            f"{sizes_text(input.shape)}"
        )
    if 0 in images.shape[1:]:
        empty = images.shape[1:].index(0) + (not single)
        raise RuntimeError(
            f"{name if n == 2 else name + '_out'}(): Expected input to have non-zero size for "
            f"non-batch dimensions, but got{sizes_text(input.shape)} with dimension {empty} being "
            "empty."
        )
    if samples is None:
        samples = images.detach().new_empty([*images.shape[:2], n]).uniform_()
    elif samples.dtype is not input.dtype:
        raise RuntimeError("Expect _random_samples to have the same dtype as input")
    else:
        check_samples(samples, images, n)
        samples = samples[: images.shape[0]]
    values, places = pools.FRACTIONAL_MAX[n].function(images, kernel, out, samples)
    return (values.squeeze(0), places.squeeze(0)) if single else (values, places)


def _fractional_max_pool(n: int) -> tuple[Any, Any]:
    def maxima(
        input: Tensor,
        kernel_size: Ints,
        output_size: OutputSize = None,
        output_ratio: tuple[float, ...] | None = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> Any:
        made = _fractional(n, input, kernel_size, output_size, output_ratio, _random_samples)
        return made if return_indices else made[0]

    doc = f"Maxima of windows of {SHAPES[n]} with pseudo-random steps (Graham 2014)"
    return _named(f"fractional_max_pool{n}d", doc, maxima)


fractional_max_pool2d_with_indices, fractional_max_pool2d = _fractional_max_pool(2)
fractional_max_pool3d_with_indices, fractional_max_pool3d = _fractional_max_pool(3)
fractional_max_pool2d = tensor_first(fractional_max_pool2d)


def _unpooled_sizes(
    input: Tensor, n: int, kernel_size: Any, stride: Any, padding: Any, output_size: Any
) -> Sizes:
    """The sizes that max_unpool makes: those asked for, or those that pooling may come from."""
    kernel, stride, padding = (
        tuple(v) if isinstance(v, Iterable) else (v,) * n
        for v in (kernel_size, kernel_size if stride is None else stride, padding)
    )
    n = len(kernel)
    usual = tuple(  # of a tuple that is too short, Python says so
        (input.shape[d - n] - 1) * stride[d] + kernel[d] - 2 * padding[d] for d in range(n)
    )
    if output_size is None:
        return usual
    wanted = tuple(output_size)
    wanted = wanted[2:] if len(wanted) == n + 2 else wanted
    if len(wanted) != n:
        raise ValueError(
            f"output_size should be a sequence containing {n} or {n + 2} elements, "
            f"but it has a length of '{len(wanted)}'"
        )
    for d, (size, base, s) in enumerate(zip(wanted, usual, stride)):
        if not base - s < size < base + s:
            raise ValueError(
                f"invalid output_size {list(wanted)} (dim {d} must be between "
                f"{base - s} and {base + s})"
            )
    return wanted


def _max_unpool(n: int) -> Any:
    def function(
        input: Tensor,
        indices: Tensor,
        kernel_size: Ints,
        stride: Ints | None = None,
        padding: Ints = 0,
        output_size: OutputSize = None,
    ) -> Tensor:
        sizes = _unpooled_sizes(input, n, kernel_size, stride, padding, output_size)
        if n > 1:
            return pools.MAX_UNPOOL[n].function(input, indices, sizes)
        made = pools.MAX_UNPOOL[2].function(input.unsqueeze(-1), indices.unsqueeze(-1), (*sizes, 1))
        return made.squeeze(-1)

    name = f"max_unpool{n}d"
    return called(name, f"Puts maxima {SHAPES[n]} back where max_pool{n}d found them.", function)


max_unpool1d, max_unpool2d, max_unpool3d = map(_max_unpool, (1, 2, 3))
