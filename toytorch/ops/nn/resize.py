"""Records that change the size of images: interpolation and adaptive averages."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from toytorch.backends.generic import attempt
from toytorch.core.memory_order import has_channels_last, in_format
from toytorch.core.op import Op
from toytorch.core.tensor import Tensor
from toytorch.facts.dtype import no_kernel
from toytorch.facts.hints import Array, ArrayModule, Ints, Sizes
from toytorch.ops.define import internal, public, takes_words
from toytorch.ops.indexing.by_index import type_name
from toytorch.ops.nn import linear_maps
from toytorch.ops.nn.linear_maps import apply_all
from toytorch.ops.nn.pool_arrays import adaptive_table
from toytorch.ops.nn.windows import checked_gradient, sizes_text

AXES = {1: "W", 2: "HW", 3: "DHW"}


def _check(a: Array, out: Sizes, n: int) -> None:
    """Raises PyTorch's errors."""
    if len(out) != n:
        raise RuntimeError(f"It is expected output_size equals to {n}, but got size {len(out)}")
    if a.ndim != n + 2:
        raise RuntimeError(f"It is expected input_size equals to {n + 2}, but got size {a.ndim}")
    if min(a.shape[2:]) <= 0 or min(out) <= 0:
        was = ", ".join(f"{k}: {v}" for k, v in zip(AXES[n], a.shape[2:]))
        now = ", ".join(f"{k}: {v}" for k, v in zip(AXES[n], out))
        raise RuntimeError(
            f"Input and output sizes should be greater than 0, but got input ({was}) output ({now})"
        )
    if a.shape[1] == 0:
        raise RuntimeError(
            f"Non-empty {n + 2}D data tensor expected but got a tensor with sizes "
            f"{sizes_text(a.shape)}"
        )


def _resampler(name: str, n: int, map_of: Any, doc: str, weights: str = "") -> Op:
    """A record that resizes the last n dimensions, and its derivative.

    map_of(size, out, align_corners, scale) gives the map of one dimension; `weights` is what they are
    called in errors.
    """

    def kernel(a: Array) -> str:
        """The one of PyTorch's that would be asked about the type."""
        small = n == 2 and weights != "cubic"  # images; of larger ones it depends on the threads
        if small or (n == 3 and a.shape[1] > 3 and has_channels_last(a)):
            return f"{name.strip('_').replace('_exact', '')}_channels_last"
        return f"compute_indices_weights_{weights}"

    def maps(
        sizes: Sizes, out: Sizes, align_corners: bool, scales: tuple[float, ...] | None
    ) -> Any:
        return [
            map_of(size, int(to), align_corners, scale)
            for size, to, scale in zip(sizes[-n:], out, scales or (None,) * n)
        ]

    def forward(
        xp: ArrayModule, a: Array, out: Sizes, align_corners: bool, scales: tuple[float, ...] | None
    ) -> Any:
        _check(a, out, n)
        if a.dtype.kind != "f" and a.dtype.char != "B":
            raise no_kernel(kernel(a) if weights else name, a.dtype)
        plan = maps(a.shape, out, align_corners, scales)
        if a.dtype.kind == "f" or plan[0].weights is None:
            return apply_all(xp, a, plan)
        if n != 2:
            raise no_kernel("compute_indices_weights_linear", a.dtype)
        for k in reversed(range(n)):  # bytes are rounded after each dimension, the last one first
            made = linear_maps.apply(
                xp, a.astype("float64"), a.ndim - n + k, linear_maps.quantized(plan[k])
            )
            a = xp.clip(xp.floor(made + 0.5), 0, 255).astype(a.dtype)
        return a

    def backward(
        xp: ArrayModule,
        g: Array,
        out: Sizes,
        shape: Sizes,
        align_corners: bool,
        scales: tuple[float, ...] | None,
    ) -> Any:
        return apply_all(xp, g, maps(shape, out, align_corners, scales), transposed=True)

    share = internal(
        f"{name}_backward(Tensor grad_output, int[] output_size, int[] input_size, "
        "bool align_corners, float[]? scales) -> Tensor",
        backward,
        memory="format",
        doc=f"The gradient of {name}.",
        d_grad_output=lambda g, output_size, align_corners, scales: record.function(
            g, output_size, align_corners, scales
        ),
    )
    record: Op = internal(
        f"{name}(Tensor self, int[] output_size, bool align_corners, float[]? scales) -> Tensor",
        forward,
        memory="format",
        doc=doc,
        d_self=lambda g, self_shape, output_size, align_corners, scales: share.function(
            g, output_size, tuple(self_shape), align_corners, scales
        ),
    )
    return record


def _nearest(exact: bool) -> Any:
    return lambda size, out, align_corners, scale: linear_maps.nearest(size, out, exact, scale)


LINEAR = {
    n: _resampler(
        f"upsample_{name}{n}d",
        n,
        linear_maps.linear,
        "Resizes with straight lines between neighbours.",
        "linear",
    )
    for n, name in ((1, "linear"), (2, "bilinear"), (3, "trilinear"))
}
NEAREST = {
    n: _resampler(
        f"upsample_nearest{n}d",
        n,
        _nearest(False),
        "Resizes by copying the nearest element.",
        "nearest",
    )
    for n in (1, 2, 3)
}
EXACT = {
    n: _resampler(
        f"_upsample_nearest_exact{n}d",
        n,
        _nearest(True),
        "Resizes by copying the nearest element, measured from the centers.",
        "nearest",
    )
    for n in (1, 2, 3)
}
bicubic = _resampler(
    "upsample_bicubic2d",
    2,
    linear_maps.cubic,
    "Resizes with cubic polynomials between neighbours.",
    "cubic",
)
bilinear_antialias = _resampler(
    "_upsample_bilinear2d_aa",
    2,
    partial(linear_maps.antialiased, 1),
    "Resizes with a triangular kernel as wide as the step.",
)
bicubic_antialias = _resampler(
    "_upsample_bicubic2d_aa",
    2,
    partial(linear_maps.antialiased, 2),
    "Resizes with a cubic kernel as wide as the step.",
)


# -- adaptive averages ----------------------------------------------------------------------------


def _adaptive_average(n: int) -> Op:
    def maps(sizes: Sizes, out: Sizes) -> Any:
        return [linear_maps.averages(size, int(to)) for size, to in zip(sizes[-n:], out)]

    def forward(xp: ArrayModule, a: Array, out: Sizes) -> Any:
        if a.dtype.kind != "f" and (a.size or n == 3):
            raise NotImplementedError(
                f"\"adaptive_avg_pool{n}d{'_cpu' * (n == 3)}\" not implemented for '{type_name(a)}'"
            )
        to = tuple(map(int, out))
        table = adaptive_table(a.shape[-n:], to)
        made = attempt(xp, "mean_of_windows", a, table, to, (1,) * n)
        if made is not None:
            return made
        return apply_all(xp, a, maps(a.shape, out)).astype(a.dtype, copy=False)

    def backward(xp: ArrayModule, g: Array, shape: tuple[int, ...]) -> Any:
        sizes = tuple(shape[-n:])
        table = adaptive_table(sizes, g.shape[-n:])
        made = attempt(xp, "mean_of_windows_backward", g, table, sizes, (1,) * n)
        if made is not None:
            return made
        return apply_all(xp, g, maps(shape, g.shape[-n:]), transposed=True)

    share = internal(
        f"_adaptive_avg_pool{n}d_backward(Tensor grad_output, int[] shape) -> Tensor",
        backward,
        doc=f"The gradient of _adaptive_avg_pool{n}d.",
        d_grad_output=lambda g, grad_output_shape: record.function(
            g, tuple(grad_output_shape[-n:])
        ),
    )
    record: Op = internal(
        f"_adaptive_avg_pool{n}d(Tensor self, int[] output_size) -> Tensor",
        forward,
        d_self=lambda g, self: linear_maps.tied(
            share.function(checked_gradient(g, f"adaptive_avg_pool{n}d"), tuple(self.shape)), self
        ),
        memory="format" if n == 2 else "rows",
        amp="float32" if n == 3 else "",
        doc="The means of even bins, whatever the size.",
    )
    return record


ADAPTIVE = {n: _adaptive_average(n) for n in (2, 3)}


def wrong_dims(name: str, input: Tensor) -> RuntimeError:
    """What pools of lines say of other than (C, L) and (B, C, L)."""
    return RuntimeError(
        f"Expected 2 to 3 dimensions, but got {input.ndim}-dimensional tensor for argument #1 'self' "
        f"(while checking arguments for {name.rstrip('()')})"
    )


def adaptive_sizes(
    name: str,
    input: Tensor,
    output_size: Sequence[int | None] | int | None,
    n: int,
    of_nothing: bool = False,
) -> Sizes:
    """The sizes an adaptive pool makes; None keeps a dimension, `of_nothing` lets all of them be 0."""
    if isinstance(output_size, int) or output_size is None:
        sizes = (output_size,) * n
    else:
        sizes = tuple(output_size)
    if len(sizes) != n:
        raise RuntimeError(f"{name}: output_size must be {n}")
    shape = input.shape
    if sizes == (1,) * n and n > 1 and of_nothing:
        return (1,) * n  # a mean, which asks for no channels
    if len(shape) not in (n + 1, n + 2):
        raise (
            wrong_dims(name, input)
            if n == 1
            else RuntimeError(
                f"{name.rstrip('()')}(): Expected {n + 1}D or {n + 2}D tensor, but got"
                f"{'' if of_nothing else ':'} {sizes_text(shape)}"
            )
        )
    spatial = len(shape) == n + 1 or (of_nothing and n < 3)
    for d in range(-n, 0) if spatial else range(1 - len(shape), 0):
        if shape[d] == 0 and not (of_nothing and sizes == (1,) * n):
            raise RuntimeError(
                f"{name}: Expected input to have non-zero size for non-batch dimensions, but input "
                f"has sizes {sizes_text(shape)} with dimension {len(shape) + d} being empty"
            )
    made = tuple(input.shape[d - n] if s is None else int(s) for d, s in enumerate(sizes))
    if any(s < 0 for s in made):
        raise RuntimeError(
            f"{name}: elements of output_size must be greater than or equal to 0 "
            f"but received {list(made)}"
        )
    return made


def adaptive_average(
    n: int, input: Tensor, output_size: Sequence[int | None] | int | None
) -> Tensor:
    """Adaptive average pooling over n dimensions."""
    name = f"adaptive_avg_pool{n}d"
    sizes = adaptive_sizes(name, input, output_size, n, of_nothing=True)  # a mean, which is NaN
    if all(s == 1 for s in sizes):
        made = input.mean(list(range(-n, 0)), True)
        if has_channels_last(input._array):
            made._array = in_format(made._array, True)
        return made
    return ADAPTIVE[n].function(input, sizes)


@public("adaptive_avg_pool1d")
@takes_words()
def adaptive_avg_pool1d(input: Tensor, output_size: Ints) -> Tensor:
    """The means of even bins along one dimension."""
    (size,) = adaptive_sizes("adaptive_avg_pool1d", input, output_size, 1, of_nothing=True)
    if size == 1:
        return input.unsqueeze(-2).mean((-1, -2), True).squeeze(-2)
    made = ADAPTIVE[2].function(input.unsqueeze(-2), (1, size))
    return made.squeeze(-2)
