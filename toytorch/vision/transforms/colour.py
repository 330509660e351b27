"""Brightness, contrast, saturation and hue of pictures (…, C, H, W)."""

from __future__ import annotations

from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.facts.dtype import float32
from toytorch.facts.hints import Array
from toytorch.ops.overloads import where
from toytorch.ops.shaping import rearrange


def _channels(img: Tensor | Array, allowed: tuple[int, ...]) -> int:
    if not isinstance(img, Tensor) or img.ndim < 2:
        raise TypeError(f"img should be a Tensor image (..., C, H, W), but got {type(img)}")
    channels = int(img.shape[-3]) if img.ndim > 2 else 1
    if channels not in allowed:
        raise TypeError(
            f"Input image tensor permitted channel values are {list(allowed)}, but found {channels}"
        )
    return channels


def _blend(one: Tensor, other: Any, ratio: float) -> Tensor:
    """ratio·one + (1 - ratio)·other, kept between black and white."""
    mixed = ratio * one + (1.0 - ratio) * other
    return mixed.clamp(0, 1.0 if one.is_floating_point() else 255.0).to(one.dtype)


def _positive(name: str, factor: float) -> None:
    if factor < 0:
        raise ValueError(f"{name}_factor ({factor}) is not non-negative.")


def rgb_to_grayscale(img: Tensor, num_output_channels: int = 1) -> Tensor:
    """Grey of 0.2989 red, 0.587 green and 0.114 blue, in one channel or three equal ones."""
    channels = _channels(img, (1, 3))
    if num_output_channels not in (1, 3):
        raise ValueError("num_output_channels should be either 1 or 3")
    grey = img
    if channels == 3:
        red, green, blue = img.unbind(-3)
        grey = (0.2989 * red + 0.587 * green + 0.114 * blue).to(img.dtype).unsqueeze(-3)
    if num_output_channels == 1:
        return grey.clone() if grey is img else grey
    return grey.expand(*img.shape[:-3], 3, *img.shape[-2:]).clone()


def adjust_brightness(img: Tensor, brightness_factor: float) -> Tensor:
    """factor·x: 0 is black, 1 the picture.

    >>> adjust_brightness(torch.tensor([[[0.2, 0.8]]]), 2.)
    tensor([[[0.4000, 1.0000]]])
    """
    _positive("brightness", brightness_factor)
    _channels(img, (1, 3))
    return _blend(img, 0, brightness_factor)


def adjust_contrast(img: Tensor, contrast_factor: float) -> Tensor:
    """factor·x + (1 - factor)·m, where m is the mean grey: 0 is grey, 1 the picture."""
    _positive("contrast", contrast_factor)
    kind = img.dtype if img.is_floating_point() else float32
    grey = rgb_to_grayscale(img) if _channels(img, (1, 3)) == 3 else img
    return _blend(img, grey.to(kind).mean((-3, -2, -1), keepdim=True), contrast_factor)


def adjust_saturation(img: Tensor, saturation_factor: float) -> Tensor:
    """factor·x + (1 - factor)·grey(x): 0 is black and white, 1 the picture."""
    _positive("saturation", saturation_factor)
    if _channels(img, (1, 3)) == 1:
        return img
    return _blend(img, rgb_to_grayscale(img), saturation_factor)


def adjust_hue(img: Tensor, hue_factor: float) -> Tensor:
    """The colours turned round the colour wheel by hue_factor of a full turn, in -0.5..0.5."""
    if not -0.5 <= hue_factor <= 0.5:
        raise ValueError(f"hue_factor ({hue_factor}) is not in [-0.5, 0.5].")
    if _channels(img, (1, 3)) == 1:
        return img
    scaled = img if img.is_floating_point() else img.to(float32) / 255
    hue, saturation, value = _to_hsv(scaled)
    turned = _to_rgb((hue + hue_factor) % 1.0, saturation, value)
    if img.is_floating_point():
        return turned
    return (turned * (256 - 1e-3)).to(img.dtype)


def _to_hsv(img: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Hue in turns, saturation and value of a picture in 0..1."""
    red, green, blue = img.unbind(-3)
    largest, smallest = img.amax(-3), img.amin(-3)
    span = largest - smallest
    plain = span == 0  # grey has no hue: any will do
    safe = where(plain, 1.0, span)
    sector = where(
        largest == red,
        ((green - blue) / safe) % 6,
        where(largest == green, (blue - red) / safe + 2, (red - green) / safe + 4),
    )
    hue = where(plain, 0.0, sector / 6)
    return hue, span / where(largest == 0, 1.0, largest), largest


def _to_rgb(hue: Tensor, saturation: Tensor, value: Tensor) -> Tensor:
    """value·(1 - saturation·clamp(min(k, 4 - k), 0, 1)) with k = (n + 6·hue) mod 6, n = 5, 3, 1."""
    channels = []
    for n in (5, 3, 1):
        k = (n + 6 * hue) % 6
        least = where(k < 4 - k, k, 4 - k).clamp(0, 1)
        channels.append(value * (1 - saturation * least))
    return rearrange.stack.function(channels, -3)


__all__ = [
    "adjust_brightness",
    "adjust_contrast",
    "adjust_hue",
    "adjust_saturation",
    "rgb_to_grayscale",
]
