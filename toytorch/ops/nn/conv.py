"""Convolution, as products of matrices, and its two gradients.

With the windows of x as the columns of a matrix (one row for each place in the kernel), y = W·cols
is one product. The gradient of x is the transposed convolution of g (columns Wᵀ·g, added where the
windows lay); that of W is g·colsᵀ. So three kernels are closed under differentiation:

    y = conv(x, W)      d_x = convᵀ(g, W)     d_W = weight_gradient(x, g)
    y = convᵀ(x, W)     d_x = conv(g, W)      d_W = weight_gradient(g, x)
"""

from __future__ import annotations

import functools
from typing import Any, cast

from toytorch.core.memory_order import channels_rise, has_channels_last, in_format
from toytorch.core.op import Op
from toytorch.core.tensor import Tensor
from toytorch.facts.composed import called
from toytorch.facts.device import channels_last, channels_last_3d
from toytorch.facts.dtype import IN_C, float32, no_kernel
from toytorch.facts.hints import Args, Array, ArrayModule, Fn, Ints, Shape, Sizes
from toytorch.facts.size import WHOLE
from toytorch.ops import flops
from toytorch.ops.define import general, internal, public, takes_words
from toytorch.ops.linalg.matmul import kinds, same_scalar_type
from toytorch.ops.nn.conv_arrays import (
    conv_arrays,
    transposed_arrays,
    transposed_sizes,
    weight_arrays,
)
from toytorch.ops.nn.linear_maps import tied
from toytorch.ops.nn.pad import constant_pad_nd
from toytorch.ops.nn.windows import sizes_text
from toytorch.ops.shaping.view import tensor_kind


def _convolution(
    xp: ArrayModule,
    x: Array,
    w: Array,
    bias: Array | None,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    transposed: bool,
    extra: Sizes,
    groups: int,
) -> Any:
    n = w.ndim - 2
    stride, padding, dilation, extra = (
        tuple(v) * n if len(v) == 1 else tuple(v) for v in (stride, padding, dilation, extra)
    )
    shapes = x.shape, w.shape, None if bias is None else bias.shape
    same_types_before_shapes(x, w, bias, transposed)
    _check(*shapes, stride, padding, dilation, transposed, extra, groups)
    if transposed and x.dtype.kind not in "fc" and x.dtype.itemsize < 8:
        raise no_kernel(f"slow_conv_transpose{max(n, 2)}d_out_cpu", x.dtype)
    if x.dtype.kind == "b":
        raise NotImplementedError("\"slow_conv2d_cpu\" not implemented for 'Bool'")
    same_types(x, w, bias, stride, dilation, groups)
    if not x.size and x.shape[0] and x.shape[1]:
        raise RuntimeError(
            "Only zero batch or zero channel inputs are supported, but got input shape: "
            f"{[*x.shape[:2], *(1,) * (n == 1), *x.shape[2:]]}"
        )
    if not transposed and not x.size:
        out = [
            (s + 2 * p - d * (k - 1) - 1) // t + 1
            for s, p, d, k, t in zip(x.shape[2:], padding, dilation, w.shape[2:], stride)
        ]
        channels = w.shape[0] if x.shape[1] else 0  # of nothing, PyTorch makes nothing
        return xp.zeros((x.shape[0], channels, *out), x.dtype)
    # Where either has channels last, the result has them, too.
    last = n > 1 and (has_channels_last(w) or has_channels_last(x))
    last = last or (n == 1 and (lines_last(w) or (x.flags.c_contiguous and lines_last(x))))
    if not transposed:
        y = conv_arrays(xp, x, w, bias, stride, padding, dilation, groups)
        if not x.shape[1]:  # no channels in are no channels out, in PyTorch
            y = xp.zeros((len(y), 0, *y.shape[2:]), y.dtype)
        return arranged(y, last)
    y = transposed_arrays(xp, x, w, stride, padding, dilation, extra, groups)
    if bias is not None:
        y += bias.reshape(-1, *(1,) * n)
    return arranged(y, last)


def lines_last(a: Array) -> bool:
    """Whether lines (N, C, L) have channels last as images of one row, which PyTorch makes of them."""
    over, channel, step = a.strides
    return bool(
        a.size and step >= channel * a.shape[1] and over >= step * a.shape[2] and over != channel
    )


def arranged(y: Array, last: bool) -> Any:
    """Images, or lines, with their channels last, or in rows."""
    if y.ndim > 3 or not last:
        return in_format(y, last)
    return in_format(y[:, :, None], True)[:, :, 0]


def _convolution_input(
    g: Tensor,
    input_layout: tuple[Sizes, Sizes, int],
    weight: Tensor,
    stride: Shape,
    padding: Shape,
    dilation: Shape,
    transposed: bool,
    groups: int,
) -> Any:
    """The gradient of the input, with channels last where the input's are."""
    shape, strides, _ = input_layout
    if len(shape) > 3 and channels_rise(shape, strides):
        g = g.contiguous(memory_format=channels_last if len(shape) == 4 else channels_last_3d)
    return gradient_of_input(g, shape, weight, stride, padding, dilation, transposed, groups)


def gradient_of_input(
    g: Tensor,
    input_shape: Sizes,
    weight: Tensor,
    stride: Shape,
    padding: Shape,
    dilation: Shape,
    transposed: bool,
    groups: int,
) -> Any:
    n = weight.ndim - 2
    if not input_shape[1]:
        return tied(g.new_zeros(input_shape), weight)
    stride, padding, dilation = (
        tuple(v) * n if len(v) == 1 else v for v in (stride, padding, dilation)
    )
    extra = (0,) * n
    if not transposed:
        made = transposed_sizes(g.shape[2:], weight.shape[2:], stride, padding, dilation, extra)
        extra = tuple(a - b for a, b in zip(input_shape[2:], made))
        return _conv_transposed(g, weight, stride, padding, dilation, extra, groups)
    made = convolution.function(g, weight, None, stride, padding, dilation, False, extra, groups)
    return _cropped(made, input_shape)


def _cropped(made: Tensor, shape: Sizes) -> Any:
    """The first windows: output_padding may have room for more."""
    for d, size in enumerate(shape[2:], 2):
        made = made.narrow(d, 0, size) if made.shape[d] != size else made
    return made


def _conv_transposed(g: Tensor, weight: Tensor, *rest: Ints) -> Any:
    stride, padding, dilation, extra, groups = rest
    return convolution.function(g, weight, None, stride, padding, dilation, True, extra, groups)


def gradient_of_weight(
    g: Tensor,
    input: Tensor,
    weight_shape: Sizes,
    stride: Shape,
    padding: Shape,
    dilation: Shape,
    transposed: bool,
    groups: int,
) -> Any:
    if not input.shape[1]:
        return tied(g.new_zeros(weight_shape), input)
    x, g = (g, input) if transposed else (input, g)
    return weight_gradient.function(
        x, g, tuple(weight_shape[2:]), stride, padding, dilation, groups
    )


def gradient_of_bias(g: Tensor, input: Tensor | None, weight: Tensor) -> Tensor:
    made = g.sum([0, *range(2, g.ndim)]) if g.shape[1] else g.new_zeros(weight.shape[0])
    return tied(made, input, weight)


convolution: Op = general(
    "convolution(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, "
    "int[] dilation, bool transposed, int[] output_padding, int groups) -> Tensor",
    _convolution,
    on_card="types Input weight bias",
    forms="function",
    d_input=_convolution_input,
    d_weight=gradient_of_weight,
    d_bias=gradient_of_bias,
    amp="half",
    fresh=True,
    flops=flops.windows,
    layer=True,
    checks=lambda _, args: need_same_types(args),
    doc="Sums over sliding windows, y[b, o] = bias[o] + Σ_c w[o, c] ⋆ x[b, c].",
)


def _weight_gradient(
    xp: ArrayModule,
    x: Array,
    g: Array,
    kernel: Sizes,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    groups: int,
) -> Any:
    n = len(kernel)
    stride, padding, dilation = (v * n if len(v) == 1 else v for v in (stride, padding, dilation))
    made = weight_arrays(xp, x, g, kernel, stride, padding, dilation, groups)
    if n > 1 and (has_channels_last(x) or has_channels_last(g)):
        return arranged(made, True)
    # Lines are images of one row, whose gradient may have a stride of its own over one place.
    return made.reshape(-1).reshape(made.shape) if kernel == (1,) else made


weight_gradient: Op = internal(
    "convolution_backward(Tensor input, Tensor grad_output, int[] kernel_size, int[] stride, "
    "int[] padding, int[] dilation, int groups) -> Tensor",
    _weight_gradient,
    d_input=lambda g, input_shape, grad_output, stride, padding, dilation, groups: (
        gradient_of_input(grad_output, input_shape, g, stride, padding, dilation, False, groups)
    ),
    d_grad_output=lambda g, input, grad_output_shape, stride, padding, dilation, groups: _cropped(
        convolution.function(input, g, None, stride, padding, dilation, False, (0,), groups),
        grad_output_shape,
    ),
    fresh=True,
    doc="The gradient of a convolution's weight: windows of the input times the gradient.",
)


# -- what is no convolution -----------------------------------------------------------------------


def need_same_types(args: Args) -> None:
    """Both checks of types, of a convolution's arguments."""
    x, w, bias, stride, _, dilation, transposed, _, groups = args
    same_types_before_shapes(x, w, bias, transposed)
    same_types(x, w, bias, stride, dilation, groups)


def same_types_before_shapes(x: Any, w: Any, bias: Any, transposed: bool) -> None:
    """Refuses a bias of another type than the input, and complex inputs of real weights."""
    if bias is not None and bias.dtype != x.dtype and not transposed:
        mine, theirs = (IN_C[kind.name] for kind in kinds(x, bias))
        raise RuntimeError(f"Input type ({mine}) and bias type ({theirs}) should be the same")
    if w.dtype != x.dtype and kinds(x)[0].is_complex:
        raise RuntimeError(
            f"Input type ({tensor_kind(x)}) and weight type ({tensor_kind(w)}) should be the same"
        )


def same_types(x: Any, w: Any, bias: Any, stride: Sizes, dilation: Sizes, groups: int) -> None:
    """Refuses operands of several types, in the words of the library that PyTorch would take."""
    if w.dtype != x.dtype and w.ndim > 2 and kinds(x)[0] is float32:
        height = w.shape[-2] if w.ndim > 3 else 1  # a line is an image of one row
        large = groups > 1 or min(height, w.shape[-1]) > 3 or x.shape[0] > 1
        if large and (max(*stride, *dilation, height, w.shape[-1]) > 1 or x.shape[0] >= 16):
            raise RuntimeError(
                f"Input type ({tensor_kind(x)}) and weight type ({tensor_kind(w)}) should be the "
                "same or input should be a MKLDNN tensor and weight is a dense tensor"
            )
    same_scalar_type(x, w)
    if bias is not None:
        same_scalar_type(x, bias)


@functools.lru_cache(1024)
def _check(
    x: Sizes,
    w: Sizes,
    bias: Sizes | None,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    transposed: bool,
    extra: Sizes,
    groups: int,
) -> None:
    """Raises PyTorch's errors for operands of these shapes."""
    if 0 in w[2:] and 0 not in (*x, *w[:2]):
        names = ": {} x {} x {} (TxHxW)" if len(w) == 5 else " kernel_height: {} kernel_width: {}"
        shape = names.format(*(1,)[len(w) - 3 :], *w[2:])
        raise RuntimeError(f"kernel size should be greater than zero, but got{shape}")
    if any(p < 0 for p in padding):
        raise RuntimeError("negative padding is not supported")
    if any(s <= 0 for s in stride):
        raise RuntimeError("non-positive stride is not supported")
    if any(d <= 0 for d in dilation):
        raise RuntimeError("dilation should be greater than zero")
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")
    shape, sizes = sizes_text(w), sizes_text(x)
    if len(x) != len(w):
        raise RuntimeError(
            f"Expected {len(w)}-dimensional input for {len(w)}-dimensional weight "
            f"{shape}, but got {len(x)}-dimensional input of size {sizes} instead"
        )
    if w[0] < groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be at least {groups} at "
            f"dimension 0, but got weight of size {shape} instead"
        )
    if w[0] % groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at "
            f"dimension 0, but got weight of size {shape} instead"
        )
    made = w[1] * groups if transposed else w[0]
    wanted = w[0] if transposed else w[1] * groups
    if x[1] != wanted:
        how = "transposed=1" if transposed else f"groups={groups}"
        raise RuntimeError(
            f"Given {how}, weight of size {shape}, expected input{sizes} to have "
            f"{wanted} channels, but got {x[1]} channels instead"
        )
    if bias is not None and bias != (made,):
        how = f"transposed={int(transposed)}, " if transposed else ""
        raise RuntimeError(
            f"Given {how}weight of size {shape}, expected bias to be 1-dimensional with {made} "
            f"elements, but got bias of size {sizes_text(bias)} instead"
        )
    if transposed:
        if any(e < 0 or (e >= s and e >= d) for e, s, d in zip(extra, stride, dilation)):
            if len(extra) == 1:  # a line is an image of one row
                extra, stride, dilation = (0, *extra), (1, *stride), (1, *dilation)
            given = {"output_padding": extra, "stride": stride, "dilation": dilation}
            raise RuntimeError(
                "output padding must be smaller than either stride or dilation, but got "
                + " ".join(
                    f"{what}_{axis}: {value}"
                    for what, values in given.items()
                    for axis, value in zip(("depth", "height", "width")[-len(extra) :], values)
                )
            )
        return
    seen = [s + 2 * p for s, p in zip(x[2:], padding)]
    reach = [d * (k - 1) + 1 for d, k in zip(dilation, w[2:])]
    if any(a < b for a, b in zip(seen, reach)):
        per = " x ".join(map(str, seen))
        raise RuntimeError(
            f"Calculated padded input size per channel: ({per}). Kernel size: "
            f"({' x '.join(map(str, reach))}). Kernel size can't be greater than actual input size"
        )


# -- the public functions -------------------------------------------------------------------------


def _sizes(name: str, value: Any, n: int, what: str) -> Sizes:
    """One int for all dimensions, or one for each."""
    if isinstance(value, WHOLE):
        return cast("Sizes", (value,) * n)
    if value.__class__ is tuple and len(value) == n and all(v.__class__ is int for v in value):
        return value
    values = tuple(int(v) for v in value)
    if len(values) not in (1, n):
        raise RuntimeError(
            f"expected {what} to be a single integer value or a list of {n} values to match the "
            f"convolution dimensions, but got {what}={list(values)}"
        )
    return values * n if len(values) == 1 else values


def _batched(name: str, input: Tensor, n: int) -> tuple[Tensor, bool]:
    """The images with a batch dimension, and whether it was added."""
    if input.ndim not in (n + 1, n + 2):
        raise RuntimeError(
            f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to {name}, "
            f"but got input of size: {sizes_text(input.shape)}"
        )
    return (input.unsqueeze(0), True) if input.ndim == n + 1 else (input, False)


def _same(input: Tensor, weight: Tensor, stride: Sizes, dilation: Sizes) -> tuple[Tensor, Any]:
    """What padding="same" means: the input, padded where it must be lopsided, and the padding."""
    if any(s != 1 for s in stride):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    total = [d * (k - 1) for d, k in zip(dilation, weight.shape[2:])]
    if any(p % 2 for p in total):
        from toytorch.facts import warned  # seldom needed

        warned.once(
            "Using padding='same' with even kernel lengths and odd dilation may require a "
            "zero-padded copy of the input be created"
        )
        sides = [side for p in reversed(total) for side in (0, p % 2)]
        input = constant_pad_nd.function(input, sides, 0)
    return input, tuple(p // 2 for p in total)


def convolve(
    n: int,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Ints,
    padding: Ints | str | Shape,
    dilation: Ints,
    groups: int,
) -> Tensor:
    """Convolution over n dimensions, of one image or a batch."""
    name = f"conv{n}d"
    if weight.ndim != n + 2:
        raise RuntimeError(
            f"Expected {weight.ndim}-dimensional input for {weight.ndim}-dimensional"
            f" weight {sizes_text(weight.shape)}, but got {input.ndim}-dimensional "
            f"input of size {sizes_text(input.shape)} instead"
            if weight.ndim > 2
            else "weight should have at least three dimensions"
        )
    images, single = _batched(name, input, n)
    stride = _sizes(name, stride, n, "stride")
    dilation = _sizes(name, dilation, n, "dilation")
    bias_last = isinstance(padding, str) and bias is not None and bias.dtype is not input.dtype
    if padding == "valid":
        padding = 0
    elif padding == "same":
        images, padding = _same(images, weight, stride, dilation)
    elif isinstance(padding, str):
        raise RuntimeError("Invalid padding string: '" + padding + "'")
    window = stride, _sizes(name, padding, n, "padding"), dilation
    if bias_last:  # of words for a padding, PyTorch asks for the bias's type after all else
        convolution.function(images, weight, None, *window, False, (0,) * n, groups)
    made = convolution.function(images, weight, bias, *window, False, (0,) * n, groups)
    return made.squeeze(0) if single else made


def convolve_transposed(
    n: int,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Ints,
    padding: Ints,
    output_padding: Ints,
    groups: int,
    dilation: Ints,
) -> Tensor:
    """Transposed convolution over n dimensions, of one image or a batch."""
    name = f"conv_transpose{n}d"
    images, single = _batched(name, input, n)
    sizes = [
        _sizes(name, v, n, what)
        for v, what in (
            (stride, "stride"),
            (padding, "padding"),
            (dilation, "dilation"),
            (output_padding, "output_padding"),
        )
    ]
    made = convolution.function(images, weight, bias, *sizes[:3], True, sizes[3], groups)
    return made.squeeze(0) if single else made


FORMS = "".join(
    "\n * (Tensor input, Tensor weight, Tensor bias = None, tuple of ints stride = 1, "
    f"{padding}, tuple of ints dilation = 1, int groups = 1)"
    for padding in ("tuple of ints padding = 0", 'str padding = "valid"')
)
PLACES = {1: ("L", "K"), 2: ("H, W", "KH, KW"), 3: ("D, H, W", "KD, KH, KW")}


def _of_dims(n: int, name: str, doc: str, function: Fn, layer: bool = False) -> Any:
    """The function over n dimensions under its public name."""
    return public(name, layer=layer)(takes_words()(called(name, doc, function)))


def _forward_over(n: int) -> Any:
    """The convolution over n dimensions."""

    def function(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Ints = 1,
        padding: Ints | str = 0,
        dilation: Ints = 1,
        groups: int = 1,
    ) -> Tensor:
        return convolve(n, input, weight, bias, stride, padding, dilation, groups)

    function.__dict__["forms"] = FORMS
    doc = f"""Convolution of (B, C, {PLACES[n][0]}) with (O, C/groups, {PLACES[n][1]}).

    >>> torch.conv{n}d(torch.ones(1, 1{", 3" * n}), torch.ones(1, 1{", 2" * n})).shape
    torch.Size([1, 1{", 2" * n}])
    """
    return _of_dims(n, f"conv{n}d", doc, function, layer=True)


def _transposed_over(n: int) -> Any:
    def function(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Ints = 1,
        padding: Ints = 0,
        output_padding: Ints = 0,
        groups: int = 1,
        dilation: Ints = 1,
    ) -> Tensor:
        return convolve_transposed(
            n, input, weight, bias, stride, padding, output_padding, groups, dilation
        )

    doc = "The gradient of conv{}d as a layer: (B, C, {}) with (C, O/groups, {})."
    return _of_dims(n, f"conv_transpose{n}d", doc.format(n, *PLACES[n]), function)


conv1d, conv2d, conv3d = map(_forward_over, (1, 2, 3))
conv_transpose1d, conv_transpose2d, conv_transpose3d = map(_transposed_over, (1, 2, 3))


@public("conv_tbc")
def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """Convolution of (T, B, C) with (K, C, O): conv1d with time first."""
    made = conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad)
    return made.permute(2, 0, 1)
