"""Functions of images: borders, sizes, pixels moved to channels, sampling at points."""

from __future__ import annotations

import functools
import math
from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.core.views import counted
from toytorch.facts import warned
from toytorch.facts.hints import Ints, Shape
from toytorch.nn.functional.pool import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
)
from toytorch.ops.define import need_tensor, tensor_first
from toytorch.ops.nn import fold, resize
from toytorch.ops.nn import grid_sample as sampling
from toytorch.ops.nn import pad as borders
from toytorch.ops.nn.windows import sizes_text

__all__ = [
    "affine_grid", "channel_shuffle", "grid_sample", "interpolate", "native_channel_shuffle", "pad",
    "pixel_shuffle", "pixel_unshuffle", "upsample", "upsample_bilinear", "upsample_nearest",
]  # fmt: skip

channel_shuffle = native_channel_shuffle = fold.channel_shuffle.function
pixel_shuffle, pixel_unshuffle = fold.pixel_shuffle.function, fold.pixel_unshuffle.function


@functools.partial(need_tensor, name="pad")
def pad(input: Tensor, pad: Shape, mode: str = "constant", value: float | None = None) -> Tensor:
    """A border of a value, or of the tensor mirrored, repeated or taken round.

    `pad` holds pairs (before, after) from the last dimension backwards.

    >>> from toytorch.nn.functional import pad
    >>> pad(torch.tensor([[1., 2., 3.]]), (1, 1), "reflect")
    tensor([[2., 1., 2., 3., 2.]])
    """
    pads = tuple(int(p) for p in pad)
    if mode not in ("constant", "reflect", "replicate", "circular"):
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    if len(pads) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(pads) > 2 * input.ndim:
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input dimension but got "
            f"padding length {len(pads)} and input of dimension {input.ndim}"
        )
    if mode == "constant":
        return borders.constant_pad_nd.function(input, pads, 0 if value is None else value)
    if value is not None and value != 0:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    n = len(pads) // 2
    if mode == "circular" and 1 <= n <= 3 and input.ndim in (n + 1, n + 2):
        made = borders.circular.function(input, pads)
        return counted(made, 1 + sum(p > 0 for p in pads))
    kinds = {"reflect": borders.REFLECT, "replicate": borders.REPLICATE}
    if not 1 <= n <= 3 or input.ndim not in (n + 1, n + 2):
        # PyTorch's class and words: it has no kernel for these sizes either.
        raise NotImplementedError(borders.UNPADDED.format(len(pads), input.ndim))
    return kinds[mode][n - 1].function(input, pads)


# -- sizes ----------------------------------------------------------------------------------------


def _target(input: Tensor, size: Any, scale_factor: Any, recompute: bool | None) -> tuple[Any, Any]:
    """The sizes to make, and the scales to compute with (None: from the sizes)."""
    n = input.ndim - 2
    if (size is None) == (scale_factor is None):
        raise ValueError(
            "only one of size or scale_factor should be defined"
            if size is not None
            else "either size or scale_factor should be defined"
        )
    if size is not None:
        if recompute:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
        if isinstance(size, (list, tuple)):
            if len(size) != n:
                raise ValueError(
                    "Input and output must have the same number of spatial dimensions, but got "
                    f"input with spatial dimensions of {list(input.shape[2:])} and output size of "
                    f"{size}. Please provide input tensor in (N, C, d1, d2, ...,dK) format and "
                    "output size in (o1, o2, ...,oK) format."
                )
            return tuple(size), None
        return (size,) * n, None
    given = isinstance(scale_factor, (list, tuple))
    scales = tuple(scale_factor) if given else (scale_factor,) * max(n, 0)
    if given and len(scales) != n:
        raise ValueError(
            "Input and scale_factor must have the same number of spatial dimensions, "
            f"but got input with spatial dimensions of {list(input.shape[2:])} and "
            f"scale_factor of shape {scale_factor}. Please provide input tensor in (N,"
            " C, d1, d2, ...,dK) format and scale_factor in (s1, s2, ...,sK) format."
        )
    sizes = tuple(math.floor(s * f) for s, f in zip(input.shape[2:], scales))
    return sizes, None if recompute else tuple(map(float, scales))


AREA = {1: adaptive_avg_pool1d, 2: adaptive_avg_pool2d, 3: adaptive_avg_pool3d}
LINEAR = {"linear": 1, "bilinear": 2, "trilinear": 3}


def interpolate(
    input: Tensor,
    size: Ints | None = None,
    scale_factor: float | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Images (B, C, …) in another size, given directly or as a factor.

    >>> interpolate(torch.tensor([[[0., 1.]]]), scale_factor=2)
    tensor([[[0., 0., 1., 1.]]])
    """
    n = input.dim() - 2
    if mode in ("nearest", "area", "nearest-exact") and align_corners is not None:
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: "
            "linear | bilinear | bicubic | trilinear"
        )
    corners = False if align_corners is None else align_corners
    sizes, scales = _target(input, size, scale_factor, recompute_scale_factor)
    if antialias and not (mode in ("bilinear", "bicubic") and input.ndim == 4):
        raise ValueError(
            "Anti-alias option is restricted to bilinear and bicubic modes and "
            "requires a 4-D tensor as input"
        )
    if mode == "area" and 1 <= n <= 3:
        return AREA[n](input, sizes)
    if mode in ("nearest", "nearest-exact") and 1 <= n <= 3:
        record = (resize.NEAREST if mode == "nearest" else resize.EXACT)[n]
    elif LINEAR.get(mode) == n:
        record = resize.bilinear_antialias if antialias else resize.LINEAR[n]
    elif mode == "bicubic" and n == 2:
        record = resize.bicubic_antialias if antialias else resize.bicubic
    else:
        raise NotImplementedError(_no_such_mode(input, mode))
    return record.function(input, sizes, corners, scales)


def _no_such_mode(input: Tensor, mode: str) -> str:
    if mode in LINEAR or mode == "bicubic":
        wanted = LINEAR.get(mode, 2) + 2
        return f"Got {input.ndim}D input, but {mode} mode needs {wanted}D input"
    return (
        "Input Error: Only 3D, 4D and 5D input Tensors supported (got "
        f"{input.ndim}D) for the modes: nearest | linear | bilinear | bicubic | trilinear | lanczos | "
        f"area | nearest-exact (got {mode})"
    )


def upsample(
    input: Tensor,
    size: Shape | None = None,
    scale_factor: float | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """The old name of `interpolate`."""
    _old("upsample", "interpolate")
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(
    input: Tensor, size: Shape | None = None, scale_factor: float | None = None
) -> Tensor:
    """The old name of `interpolate` with mode="nearest"."""
    _old("upsample_nearest", "interpolate")
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(
    input: Tensor, size: Shape | None = None, scale_factor: float | None = None
) -> Tensor:
    """The old name of `interpolate` with mode="bilinear", corners aligned."""
    _old("upsample_bilinear", "interpolate")
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


def _old(name: str, new: str) -> None:
    warned.at_call(f"`nn.functional.{name}` is deprecated. Use `nn.functional.{new}` instead.")


# -- points ---------------------------------------------------------------------------------------


def _warn_of_corners(align_corners: bool | None) -> None:
    if align_corners is None:
        warned.at_call(
            "Default grid_sample and affine_grid behavior has changed to align_corners="
            "False since 1.3.0. Please specify align_corners=True if the old behavior is "
            "desired. See the documentation of grid_sample for details."
        )


@tensor_first
def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """Images read at the points of a grid, in coordinates from -1 to 1; Jaderberg et al. 2015."""
    if mode not in sampling.MODES:
        raise ValueError(
            "nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or"
            f" 'bicubic', but got: '{mode}'"
        )
    if padding_mode not in sampling.PADDING:
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', "
            f"'border', or 'reflection', but got: '{padding_mode}'"
        )
    _warn_of_corners(align_corners)
    return sampling.grid_sampler.function(
        input, grid, sampling.MODES[mode], sampling.PADDING[padding_mode], bool(align_corners)
    )


def affine_grid(theta: Tensor, size: Shape, align_corners: bool | None = None) -> Tensor:
    """The grid for grid_sample that turns, shifts and scales images by matrices (N, n, n + 1)."""
    _warn_of_corners(align_corners)
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    n = len(size) - 2
    if n not in (2, 3):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine "
            f"transforms, respectively. Got size {sizes_text(size)}."
        )
    if theta.ndim != 3 or tuple(theta.shape[-2:]) != (n, n + 1):
        raise ValueError(
            f"Expected a batch of {n}D affine matrices of shape Nx{n}x{n + 1} for size"
            f" {sizes_text(size)}. Got {sizes_text(theta.shape)}."
        )
    if min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    if align_corners and min(size[2:]) == 1:
        warned.at_call(
            "Since version 1.3.0, affine_grid behavior has changed for unit-size grids when "
            "align_corners=True. This is not an intended use case of affine_grid. See the "
            "documentation of affine_grid for details."
        )
    return sampling.affine_grid_generator.function(theta, tuple(size), bool(align_corners))
