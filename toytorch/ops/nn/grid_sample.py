"""Images read at points of a grid, as a spatial transformer does; Jaderberg et al. 2015.

The coordinates of a grid run from -1 to 1 across the image, the last one (width) first.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.core.views import of_its_own
from toytorch.facts.composed import cast_to
from toytorch.facts.size import wrap_dim
from toytorch.ops.define import public
from toytorch.ops.nn.windows import sizes_text

MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
PADDING = {"zeros": 0, "border": 1, "reflection": 2}


def _unnormalized(x: Tensor, size: int, align_corners: bool) -> Any:
    """Coordinates in elements."""
    return (x + 1) / 2 * (size - 1) if align_corners else ((x + 1) * size - 1) / 2


def _held(x: Tensor, size: int, padding: int, align_corners: bool) -> Any:
    """Coordinates outside the image, moved to its border or mirrored."""
    if padding == 0:
        return x
    if padding == 2:
        low = 0.0 if align_corners else -0.5
        span = (size - 1) if align_corners else size
        if span <= 0:
            x = x * 0
        else:
            away = (x - low).abs()
            turns = (away / span).detach().floor()
            extra = away - turns * span
            even = (turns.remainder(2) == 0).to(x.dtype)
            x = even * (extra + low) + (1 - even) * (span - extra + low)
    return x.clamp(0, size - 1).nan_to_num(0.0)  # a grid may hold what is no number


def _read(images: Tensor, places: Sequence[Tensor], sizes: tuple[int, ...]) -> Any:
    """Elements (N, C, P) of flat images at whole coordinates, and 0 outside."""
    inside: Any = None
    flat: Any = None
    for x, size in zip(places, sizes):
        good = (x >= 0) & (x <= size - 1)
        inside = good if inside is None else inside & good
        step = x.clamp(0, size - 1).nan_to_num(0.0)
        flat = step if flat is None else flat * size + step
    n, c = images.shape[:2]
    index = flat.long().flatten(1).unsqueeze(1).expand([n, c, -1])
    values = images.gather(2, index)
    return values * inside.flatten(1).unsqueeze(1).to(values.dtype)


def _linear(images: Tensor, points: Sequence[Tensor], sizes: tuple[int, ...]) -> Any:
    """The 2ⁿ neighbours of points, weighted by nearness."""
    lows = [x.detach().floor() for x in points]
    parts = [x - low for x, low in zip(points, lows)]
    total = None
    for corner in itertools.product((0, 1), repeat=len(points)):
        weight: Any = 1
        for c, part in zip(corner, parts):
            weight = (part if c else 1 - part) * weight
        seen = _read(images, [low + c for low, c in zip(lows, corner)], sizes)
        term = seen * weight.flatten(1).unsqueeze(1)
        total = term if total is None else total + term
    return total


def _cubic_weights(part: Tensor) -> list[Any]:
    """The weights of four neighbours, for a point `part` behind the second (Keys, a = -0.75)."""
    a = -0.75

    def near(d: Tensor) -> Any:
        return ((a + 2) * d - (a + 3)) * d * d + 1

    def far(d: Tensor) -> Any:
        return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a

    return [far(part + 1), near(part), near(1 - part), far(2 - part)]


def _cubic(
    images: Tensor,
    points: Sequence[Tensor],
    sizes: tuple[int, ...],
    padding: int,
    align_corners: bool,
) -> Any:
    lows = [x.detach().floor() for x in points]
    weights = [_cubic_weights(x - low) for x, low in zip(points, lows)]
    total = None
    for taps in itertools.product(range(4), repeat=2):
        places = [
            _held(low + (t - 1), size, padding, align_corners)
            for low, t, size in zip(lows, taps, sizes)
        ]
        weight = weights[0][taps[0]] * weights[1][taps[1]]
        term = _read(images, places, sizes) * weight.flatten(1).unsqueeze(1)
        total = term if total is None else total + term
    return total


def _check(name: str, input: Tensor, grid: Tensor, n: int, mode: int) -> None:
    if input.dtype is not grid.dtype:
        raise RuntimeError(
            f"expected scalar type {input.dtype.legacy} but found {grid.dtype.legacy}"
        )
    if input.shape[0] != grid.shape[0]:
        raise RuntimeError(
            f"{name}(): expected grid and input to have same batch size, but got "
            f"input with sizes {sizes_text(input.shape)} and grid with sizes "
            f"{sizes_text(grid.shape)}"
        )
    if grid.shape[-1] != input.ndim - 2:
        raise RuntimeError(
            f"{name}(): expected grid to have size {input.ndim - 2} in last dimension, but got "
            f"grid with sizes {sizes_text(grid.shape)}"
        )
    if 0 in input.shape[2:]:
        raise RuntimeError(
            f"{name}(): expected input to have non-empty spatial dimensions, but input has sizes "
            f"{sizes_text(input.shape)} with dimension {input.shape.index(0, 2)} being empty"
        )
    if input.ndim != n + 2 or grid.ndim != n + 2:
        raise RuntimeError(
            f"{name}(): expected {n + 2}D input and grid with same number of "
            f"dimensions, but got input with sizes {sizes_text(input.shape)} and "
            f"grid with sizes {sizes_text(grid.shape)}"
        )
    if mode == 2 and n == 3:
        raise RuntimeError(f"{name}(): bicubic interpolation only supports 4D input")


@cast_to("float32")
def sample(
    input: Tensor, grid: Tensor, interpolation: int, padding: int, align_corners: bool, n: int
) -> Tensor:
    """Images (N, C, *sizes) read at the points of a grid (N, *out, n)."""
    wrap_dim(0, input.ndim, wrap_scalar=False)
    _check("grid_sampler", input, grid, n, interpolation)
    if input.dtype.rank != 2:
        kernel = "grid_sampler_2d_cpu_kernel_impl" if n == 2 else "grid_sampler3d_cpu"
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{input.dtype.legacy}'")
    if input.dtype.itemsize == 2:  # coordinates want more digits
        made = sample(input.float(), grid.float(), interpolation, padding, align_corners, n)
        return made.to(input.dtype)
    sizes, out = tuple(input.shape[2:]), tuple(grid.shape[1:-1])
    flat = input.reshape([*input.shape[:2], math.prod(sizes)])
    points = [
        _unnormalized(grid[..., n - 1 - d], size, align_corners) for d, size in enumerate(sizes)
    ]
    if interpolation == 2:
        made = _cubic(flat, points, sizes, padding, align_corners)
    else:
        points = [_held(x, size, padding, align_corners) for x, size in zip(points, sizes)]
        made = (
            _linear(flat, points, sizes)
            if interpolation == 0
            else _read(flat, [x.round() for x in points], sizes)
        )
        if interpolation == 1 and grid._requires_grad:  # whose gradient is 0, and not nothing
            made = made + grid.masked_fill(grid.detach() * 0 != 1, 0)[..., 0].flatten(1).unsqueeze(
                1
            )
    return of_its_own(made.reshape([*input.shape[:2], *out]))


@public("grid_sampler_2d")
def grid_sampler_2d(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """Images (N, C, H, W) read at the points of a grid (N, h, w, 2)."""
    return sample(input, grid, interpolation_mode, padding_mode, align_corners, 2)


@public("grid_sampler_3d")
def grid_sampler_3d(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """Volumes (N, C, D, H, W) read at the points of a grid (N, d, h, w, 3)."""
    return sample(input, grid, interpolation_mode, padding_mode, align_corners, 3)


@public("grid_sampler")
def grid_sampler(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """grid_sampler_2d or grid_sampler_3d, by the input's dimensions."""
    return sample(
        input, grid, interpolation_mode, padding_mode, align_corners, 3 if input.ndim == 5 else 2
    )
