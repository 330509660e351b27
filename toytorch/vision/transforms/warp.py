"""Pictures turned, moved, scaled and sheared: each new pixel looks up where it came from.

A new pixel at (x, y) from the centre shows what lay at A⁻¹(x, y), where A turns, shears, scales
and moves. The places are handed to `grid_sample`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from toytorch.core.tensor import Tensor
from toytorch.facts.dtype import float32
from toytorch.facts.hints import Array
from toytorch.nn import functional as F
from toytorch.ops.creation.from_data import from_numpy, tensor
from toytorch.ops.overloads import where
from toytorch.ops.shaping import rearrange

Matrix = np.ndarray[Any, Any]


def _inverse(
    center: Sequence[float],
    angle: float,
    translate: Sequence[float],
    scale: float,
    shear: Sequence[float],
) -> Matrix:
    """The 2 × 3 matrix from new places to old ones; angles in degrees, clockwise on the screen.

    A = T(translate)·T(center)·R(angle)·Y(shear y)·X(shear x)·scale·T(-center).
    """
    a, sx, sy = (math.radians(v) for v in (angle, *shear))
    turn = np.array([[math.cos(a), -math.sin(a)], [math.sin(a), math.cos(a)]])
    slant_y = np.array([[1, 0], [-math.tan(sy), 1]])
    slant_x = np.array([[1, -math.tan(sx)], [0, 1]])
    linear = turn @ slant_y @ slant_x * scale
    back = np.linalg.inv(linear)
    middle = np.array(center, dtype=np.float64)
    offset = middle - back @ (middle + np.array(translate, dtype=np.float64))
    return np.concatenate([back, offset[:, None]], axis=1)


def _corners_span(matrix: Matrix, width: int, height: int) -> tuple[int, int]:
    """(width, height) of the smallest picture that holds all of the turned one."""
    x, y = width / 2, height / 2
    corners = np.array([[-x, -y], [-x, y], [x, y], [x, -y]]) @ matrix[:, :2].T
    low, high = corners.min(0) + (x, y), corners.max(0) + (x, y)
    # Rounded first, so that a quarter turn does not grow by a rounding error.
    wide, tall = np.ceil(high.round(4)) - np.floor(low.round(4))
    return int(wide), int(tall)


def _sample(
    img: Tensor,
    matrix: Matrix,
    size: tuple[int, int],
    mode: str,
    fill: Sequence[float] | float | None,
) -> Tensor:
    """The picture of `size` (width, height) whose pixels are looked up through the matrix."""
    wide, tall = size
    height, width = int(img.shape[-2]), int(img.shape[-1])
    x, y = np.meshgrid(np.arange(wide) + 0.5 - wide / 2, np.arange(tall) + 0.5 - tall / 2)
    old = np.stack([x, y, np.ones_like(x)], axis=-1) @ matrix.T  # (H, W, 2), from the centre
    places = from_numpy((old / [width / 2, height / 2]).astype(np.float32))
    flat = img.reshape(1, -1, height, width)
    values = flat if img.is_floating_point() else flat.to(float32)
    grid = places.to(values.dtype)[None]
    if fill is None:
        out = F.grid_sample(values, grid, mode=mode, padding_mode="zeros", align_corners=False)
    else:
        covered = values.new_ones((1, 1, height, width))
        both = rearrange.cat.function([values, covered], 1)
        both = F.grid_sample(both, grid, mode=mode, padding_mode="zeros", align_corners=False)
        out, mask = both[:, :-1], both[:, -1:]
        background = _background(img, fill, values)
        if mode == "nearest":
            out = where(mask < 0.5, background, out)
        else:
            out = out * mask + (1 - mask) * background
    if not img.is_floating_point():
        out = out.round().to(img.dtype)
    return out.reshape(*img.shape[:-2], tall, wide)


def _background(img: Tensor, fill: float | Sequence[float], values: Tensor) -> Tensor:
    """The fill, one value or one per channel, for a picture flattened to (1, …·C, H, W)."""
    given = [float(fill)] if isinstance(fill, (int, float)) else [float(v) for v in fill]
    planes, channels = int(values.shape[1]), int(img.shape[-3]) if img.ndim > 2 else 1
    if len(given) not in (1, channels):
        raise ValueError(
            "The number of elements in 'fill' cannot broadcast to match the number of "
            f"channels of the image ({len(given)} != {channels})"
        )
    repeated = given * (planes // len(given))
    return tensor(repeated, dtype=values.dtype, device=values.device).view(1, -1, 1, 1)


def _mode(interpolation: Any) -> str:
    mode = str(interpolation.value)
    if mode not in ("nearest", "bilinear"):
        raise ValueError(
            "This interpolation mode is unsupported with Tensor input; expected "
            f"nearest or bilinear, but got {mode}"
        )
    return mode


def _check(img: Tensor | Array) -> tuple[int, int]:
    if not isinstance(img, Tensor) or img.ndim < 2:
        raise TypeError(f"img should be a Tensor image (..., C, H, W), but got {type(img)}")
    return int(img.shape[-1]), int(img.shape[-2])


def _from_middle(center: Sequence[float] | None, width: int, height: int) -> list[float]:
    return [0.0, 0.0] if center is None else [center[0] - width / 2, center[1] - height / 2]


def rotate(
    img: Tensor,
    angle: float,
    interpolation: object = None,
    expand: bool = False,
    center: Sequence[float] | None = None,
    fill: float | Sequence[float] | None = None,
) -> Tensor:
    """The picture turned by `angle` degrees, against the clock, around its centre or (x, y).

    With `expand` the result is as large as all of the turned picture needs.

    >>> rotate(torch.tensor([[[1., 2.], [3., 4.]]]), 90)
    tensor([[[2., 4.],
             [1., 3.]]])
    """
    width, height = _check(img)
    middle = _from_middle(center, width, height)
    matrix = _inverse(middle, -angle, (0.0, 0.0), 1.0, (0.0, 0.0))
    size = _corners_span(matrix, width, height) if expand else (width, height)
    mode = "nearest" if interpolation is None else _mode(interpolation)
    return _sample(img, matrix, size, mode, fill)


def affine(
    img: Tensor,
    angle: float,
    translate: Sequence[float],
    scale: float,
    shear: float | Sequence[float],
    interpolation: object = None,
    fill: float | Sequence[float] | None = None,
    center: Sequence[float] | None = None,
) -> Tensor:
    """The picture scaled, sheared, turned by `angle` degrees with the clock, and moved.

    `translate` is (right, down) in pixels, `shear` the angle of x, or of (x, y), in degrees.
    Raises ValueError for a scale that is not positive.
    """
    width, height = _check(img)
    if scale <= 0.0:
        raise ValueError("Argument scale should be positive")
    if len(translate) != 2:
        raise ValueError("Argument translate should be a sequence of length 2")
    slants = [shear, 0.0] if isinstance(shear, (int, float)) else list(shear)
    slants = slants * 2 if len(slants) == 1 else slants
    if len(slants) != 2:
        raise ValueError(f"Shear should be a sequence containing two values. Got {shear}")
    middle = _from_middle(center, width, height)
    matrix = _inverse(middle, angle, translate, scale, slants)
    mode = "nearest" if interpolation is None else _mode(interpolation)
    return _sample(img, matrix, (width, height), mode, fill)
