"""Pictures as tensors (…, C, H, W): sizes, cuts, borders, values. Nothing here is random."""

from __future__ import annotations

import enum
from collections.abc import Sequence

import numpy as np

from toytorch.core.tensor import Tensor
from toytorch.facts.dtype import bool as bool_type
from toytorch.facts.dtype import dtype as DType
from toytorch.facts.dtype import float32, get_default_dtype, iinfo, int32, int64, uint8
from toytorch.facts.hints import Array, Ints, Shape
from toytorch.nn import functional as F
from toytorch.ops.creation.from_data import as_tensor, from_numpy
from toytorch.vision.transforms.colour import (
    adjust_brightness,
    adjust_contrast,
    adjust_hue,
    adjust_saturation,
    rgb_to_grayscale,
)
from toytorch.vision.transforms.warp import affine, rotate

__all__ = [
    "InterpolationMode", "adjust_brightness", "adjust_contrast", "adjust_hue", "adjust_saturation",
    "affine", "center_crop", "convert_image_dtype", "crop", "erase", "get_dimensions",
    "get_image_size", "hflip", "normalize", "pad", "pil_to_tensor", "resize", "resized_crop",
    "rgb_to_grayscale", "rotate", "to_tensor", "vflip",
]  # fmt: skip


class InterpolationMode(enum.Enum):
    """How values between pixels are found."""

    NEAREST = "nearest"
    NEAREST_EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"


def check_image(img: Tensor | Array) -> None:
    """Raises TypeError for what is no tensor with height and width."""
    if not isinstance(img, Tensor) or img.ndim < 2:
        what = f"a tensor of {img.ndim} dimensions" if isinstance(img, Tensor) else type(img)
        raise TypeError(
            f"img should be a Tensor image (..., C, H, W), but got {what}; ToTensor "
            "makes one of a NumPy array"
        )


def get_image_size(img: Tensor) -> list[int]:
    """[width, height]."""
    check_image(img)
    return [int(img.shape[-1]), int(img.shape[-2])]


def get_dimensions(img: Tensor) -> list[int]:
    """[channels, height, width]."""
    check_image(img)
    return [int(img.shape[-3]) if img.ndim > 2 else 1, int(img.shape[-2]), int(img.shape[-1])]


def pil_to_tensor(pic: Tensor | Array) -> Tensor:
    """A picture (H, W, C) or (H, W) of NumPy or PIL as a tensor (C, H, W), values as they are."""
    if isinstance(pic, Tensor) or not hasattr(pic, "__array__"):
        raise TypeError(f"pic should be PIL Image or ndarray. Got {type(pic)}")
    array = np.asarray(pic)
    if array.ndim not in (2, 3):
        raise ValueError(f"pic should be 2/3 dimensional. Got {array.ndim} dimensions.")
    if array.ndim == 2:
        array = array[:, :, None]
    return from_numpy(np.array(array.transpose(2, 0, 1), order="C"))


def to_tensor(pic: Tensor | Array) -> Tensor:
    """A picture (H, W, C) as a tensor (C, H, W); uint8 0..255 becomes float 0..1.

    >>> to_tensor(np.array([[[0], [255]]], dtype=np.uint8))
    tensor([[[0., 1.]]])
    """
    img = pil_to_tensor(pic)
    return img.to(get_default_dtype()).div(255) if img.dtype is uint8 else img


def convert_image_dtype(image: Tensor, dtype: DType = float32) -> Tensor:
    """The values in another type, scaled: floats span 0..1, integers 0 to their largest.

    >>> convert_image_dtype(torch.tensor([[0, 51, 255]], dtype=torch.uint8))
    tensor([[0.0000, 0.2000, 1.0000]])
    """
    check_image(image)
    old = image.dtype
    if old is dtype:
        return image
    if old.is_floating_point:
        if dtype.is_floating_point:
            return image.to(dtype)
        if dtype is int64 or (old is float32 and dtype is int32):  # more digits than it has
            raise RuntimeError(f"The cast from {old} to {dtype} cannot be performed safely.")
        largest = _largest(dtype)
        # every integer gets an equal share
        return image.mul(largest + 1 - 1e-3).to(dtype)
    if dtype.is_floating_point:
        return image.to(dtype).div(_largest(old))
    had, has = _largest(old), _largest(dtype)
    if had > has:
        fewer = image.floor_divide((had + 1) // (has + 1))
        return fewer.to(dtype)
    return image.to(dtype).mul((has + 1) // (had + 1))


def _largest(dtype: DType) -> int:
    return 1 if dtype is bool_type else int(iinfo(dtype).max)


def normalize(tensor: Tensor, mean: object, std: object, inplace: bool = False) -> Tensor:
    """(x - mean) / std, channel by channel.

    >>> normalize(torch.tensor([[[0., 1.]]]), [0.5], [0.5])
    tensor([[[-1.,  1.]]])
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"img should be Tensor Image. Got {type(tensor)}")
    if not tensor.is_floating_point():
        raise TypeError(f"Input tensor should be a float tensor. Got {tensor.dtype}.")
    if tensor.ndim < 3:
        raise ValueError(
            "Expected tensor to be a tensor image of size (..., C, H, W). Got "
            f"tensor.size() = {tensor.size()}"
        )
    mean, std = (as_tensor(v, dtype=tensor.dtype, device=tensor.device) for v in (mean, std))
    if (std == 0).any():
        raise ValueError(
            f"std evaluated to zero after conversion to {tensor.dtype}, leading to "
            "division by zero."
        )
    mean, std = (v.view(-1, 1, 1) if v.ndim == 1 else v for v in (mean, std))
    out = tensor if inplace else tensor.clone()
    return out.sub_(mean).div_(std)


def resized_sizes(height: int, width: int, size: Shape, max_size: int | None = None) -> list[int]:
    """[height, width] for `Resize(size)`: one number is the shorter side, the ratio is kept."""
    if len(size) == 2:
        return list(size)
    short, long = min(width, height), max(width, height)
    new_short, new_long = size[0], int(size[0] * long / short)
    if max_size is not None:
        if max_size <= size[0]:
            raise ValueError(
                f"max_size = {max_size} must be strictly greater than the requested "
                f"size for the smaller edge size = {size[0]}"
            )
        if new_long > max_size:
            new_short, new_long = int(max_size * new_short / new_long), max_size
    return [new_long, new_short] if width <= height else [new_short, new_long]


def resize(
    img: Tensor,
    size: Ints,
    interpolation: InterpolationMode = InterpolationMode.BILINEAR,
    max_size: int | None = None,
    antialias: bool | None = True,
) -> Tensor:
    """The picture in another size: [h, w], or a number for the shorter side.

    >>> resize(torch.zeros(3, 8, 12), 4).shape
    torch.Size([3, 4, 6])
    """
    check_image(img)
    wanted = [size] if isinstance(size, int) else list(size)
    if len(wanted) not in (1, 2):
        raise ValueError(
            "Size must be an int or a 1 or 2 element tuple/list, not a "
            f"{len(wanted)} element tuple/list"
        )
    if max_size is not None and len(wanted) != 1:
        raise ValueError(
            "max_size should only be passed if size specifies the length of the "
            "smaller edge, i.e. size should be an int or a sequence of length 1"
        )
    _, height, width = get_dimensions(img)
    sizes = resized_sizes(height, width, wanted, max_size)
    if sizes == [height, width]:
        return img
    mode = interpolation.value
    smooth = mode in ("bilinear", "bicubic")
    flat = img.reshape(-1, 1, height, width)
    whole = not img.is_floating_point()
    flat, corners = flat.to(float32) if whole else flat, False if smooth else None
    softly = bool(antialias) and smooth
    out = F.interpolate(flat, size=sizes, mode=mode, align_corners=corners, antialias=softly)
    if whole:
        if mode == "bicubic" and img.dtype is uint8:
            out = out.clamp(0, 255)
        out = out.round().to(img.dtype)
    return out.reshape(*img.shape[:-2], *sizes)


def pad(img: Tensor, padding: Ints, fill: float = 0, padding_mode: str = "constant") -> Tensor:
    """A border: a number, [left/right, top/bottom], or [left, top, right, bottom].

    `padding_mode` is constant (of value `fill`), edge, reflect or symmetric.
    """
    check_image(img)
    sides = [padding] if isinstance(padding, int) else list(padding)
    if len(sides) not in (1, 2, 4):
        raise ValueError(
            "Padding must be an int or a 1, 2, or 4 element tuple, not a "
            f"{len(sides)} element tuple"
        )
    if padding_mode not in ("constant", "edge", "reflect", "symmetric"):
        raise ValueError("Padding mode should be either constant, edge, reflect or symmetric")
    left, top, right, bottom = sides * (4 // len(sides))
    if padding_mode == "constant":
        return F.pad(img, (left, right, top, bottom), value=fill)
    _, height, width = get_dimensions(img)
    rows = _indices(height, top, bottom, padding_mode)
    columns = _indices(width, left, right, padding_mode)
    return img[..., rows[:, None], columns]


def _indices(n: int, before: int, after: int, mode: str) -> Tensor:
    """Which of n pixels stands at each place of the bordered line; negative borders cut."""
    found = np.pad(np.arange(n), (max(before, 0), max(after, 0)), mode=mode)  # type: ignore[call-overload]  # the mode is a string of the caller's
    return from_numpy(found[max(-before, 0) : len(found) - max(-after, 0)])


def crop(img: Tensor, top: int, left: int, height: int, width: int) -> Tensor:
    """The part from (top, left) of that size; where it reaches beyond the picture it is zero."""
    _, h, w = get_dimensions(img)
    bottom, right = top + height, left + width
    part = img[..., max(top, 0) : max(bottom, 0), max(left, 0) : max(right, 0)]
    if left >= 0 and top >= 0 and bottom <= h and right <= w:
        return part
    border = [
        max(min(right, 0) - left, 0),
        max(right - max(w, left), 0),
        max(min(bottom, 0) - top, 0),
        max(bottom - max(h, top), 0),
    ]
    return F.pad(part, border)


def center_crop(img: Tensor, output_size: Ints) -> Tensor:
    """The middle of a picture, with a border of zeros where the picture is smaller."""
    if isinstance(output_size, int):
        height, width = [output_size] * 2
    else:
        height, width = list(output_size) * (3 - len(output_size))
    _, h, w = get_dimensions(img)
    if width > w or height > h:
        across, down = max(width - w, 0), max(height - h, 0)
        img = pad(img, [across // 2, down // 2, (across + 1) // 2, (down + 1) // 2])
        _, h, w = get_dimensions(img)
    return crop(img, round((h - height) / 2), round((w - width) / 2), height, width)


def resized_crop(
    img: Tensor,
    top: int,
    left: int,
    height: int,
    width: int,
    size: Ints,
    interpolation: InterpolationMode = InterpolationMode.BILINEAR,
    antialias: bool | None = True,
) -> Tensor:
    """A part of the picture in another size."""
    return resize(crop(img, top, left, height, width), size, interpolation, antialias=antialias)


def hflip(img: Tensor) -> Tensor:
    """The picture with left and right exchanged."""
    check_image(img)
    return img.flip(-1)


def vflip(img: Tensor) -> Tensor:
    """The picture upside down."""
    check_image(img)
    return img.flip(-2)


def erase(
    img: Tensor, i: int, j: int, h: int, w: int, v: Sequence[float], inplace: bool = False
) -> Tensor:
    """The picture with the rectangle of size (h, w) at (i, j) set to v."""
    check_image(img)
    out = img if inplace else img.clone()
    out[..., i : i + h, j : j + w] = v
    return out
