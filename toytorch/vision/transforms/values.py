"""Transforms of a picture's values: types, ranges, colours, a rectangle that is blotted out."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.facts.dtype import dtype as DType
from toytorch.facts.dtype import float32
from toytorch.facts.parts import shows
from toytorch.nn.modules.module import Module
from toytorch.ops.creation.from_data import tensor
from toytorch.ops.creation.random import rand, randint, randn, randperm
from toytorch.vision.transforms import functional as F

__all__ = [
    "ColorJitter", "ConvertImageDtype", "Grayscale", "Normalize", "PILToTensor", "RandomErasing",
    "ToTensor",
]  # fmt: skip


def uniform(low: float, high: float) -> float:
    """A number between low and high, from the default generator."""
    return low + (high - low) * float(rand(1).item())


class ToTensor:
    """A picture (H, W, C) of NumPy or PIL as a tensor (C, H, W); uint8 0..255 becomes 0..1."""

    def __call__(self, pic: Any) -> Tensor:
        return F.to_tensor(pic)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class PILToTensor:
    """A picture (H, W, C) as a tensor (C, H, W) with the values it has."""

    def __call__(self, pic: Any) -> Tensor:
        return F.pil_to_tensor(pic)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class ConvertImageDtype(Module):
    """The values in another type, scaled: floats span 0..1, integers 0 to their largest."""

    def __init__(self, dtype: DType = float32) -> None:
        super().__init__()
        self.dtype = dtype

    def forward(self, image: Tensor) -> Tensor:
        return F.convert_image_dtype(image, self.dtype)


class Normalize(Module):
    """(x - mean) / std, channel by channel; not in place unless asked.

    >>> Normalize([0.5], [0.25])
    Normalize(mean=[0.5], std=[0.25])
    """

    def __init__(self, mean: Any, std: Any, inplace: bool = False) -> None:
        super().__init__()
        self.mean, self.std, self.inplace = mean, std, inplace

    def forward(self, tensor: Tensor) -> Tensor:
        return F.normalize(tensor, self.mean, self.std, self.inplace)

    extra_repr = shows("mean std")


class Grayscale(Module):
    """Grey of three channels: 0.2989 red, 0.587 green, 0.114 blue."""

    def __init__(self, num_output_channels: int = 1) -> None:
        super().__init__()
        self.num_output_channels = num_output_channels

    def forward(self, img: Tensor) -> Tensor:
        return F.rgb_to_grayscale(img, self.num_output_channels)

    extra_repr = shows("num_output_channels")


Range = tuple[float, float]


def _range(
    name: str, value: object, center: float = 1.0, bound: Range = (0.0, math.inf)
) -> Range | None:
    """What to draw a factor from: `value` around the centre, or given; None changes nothing."""
    if isinstance(value, (int, float)):
        if value < 0:
            raise ValueError(f"If {name} is a single number, it must be non negative.")
        low, high = center - float(value), center + float(value)
        if center == 1.0:
            low = max(low, 0.0)
    elif isinstance(value, (tuple, list)) and len(value) == 2:
        low, high = float(value[0]), float(value[1])
    else:
        raise TypeError(f"{name} should be a single number or a list/tuple with length 2.")
    if not bound[0] <= low <= high <= bound[1]:
        raise ValueError(f"{name} values should be between {bound}, but got {[low, high]}.")
    return None if low == high == center else (low, high)


class ColorJitter(Module):
    """Brightness, contrast, saturation and hue changed by random factors, in random order.

    A number b draws from [max(0, 1 - b), 1 + b] (hue: [-b, b], at most 0.5); a pair is the range.
    """

    def __init__(
        self, brightness: Any = 0, contrast: Any = 0, saturation: Any = 0, hue: Any = 0
    ) -> None:
        super().__init__()
        self.brightness = _range("brightness", brightness)
        self.contrast = _range("contrast", contrast)
        self.saturation = _range("saturation", saturation)
        self.hue = _range("hue", hue, center=0.0, bound=(-0.5, 0.5))

    def forward(self, img: Tensor) -> Tensor:
        steps = (
            (F.adjust_brightness, self.brightness),
            (F.adjust_contrast, self.contrast),
            (F.adjust_saturation, self.saturation),
            (F.adjust_hue, self.hue),
        )
        order = randperm(4).tolist()
        factors = [None if limits is None else uniform(*limits) for _, limits in steps]
        for i in order:
            if factors[i] is not None:
                img = steps[i][0](img, factors[i])
        return img

    extra_repr = shows("brightness contrast saturation hue")


class RandomErasing(Module):
    """A random rectangle set to `value` with probability p; "random" is normal noise.

    Its area is `scale` of the picture's, its height to width `ratio`. After Z. Zhong et al.,
    *Random Erasing Data Augmentation* (2017).
    """

    def __init__(
        self,
        p: float = 0.5,
        scale: Sequence[float] = (0.02, 0.33),
        ratio: Sequence[float] = (0.3, 3.3),
        value: Any = 0,
        inplace: bool = False,
    ) -> None:
        super().__init__()
        if not isinstance(value, (int, float, str, tuple, list)):
            raise TypeError("Argument value should be either a number or str or a sequence")
        if isinstance(value, str) and value != "random":
            raise ValueError("If value is str, it should be 'random'")
        if not isinstance(scale, Sequence):
            raise TypeError("Scale should be a sequence")
        if not isinstance(ratio, Sequence):
            raise TypeError("Ratio should be a sequence")
        if scale[0] > scale[1] or ratio[0] > ratio[1]:
            warnings.warn("Scale and ratio should be of kind (min, max)", stacklevel=2)
        if scale[0] < 0 or scale[1] > 1:
            raise ValueError("Scale should be between 0 and 1")
        if p < 0 or p > 1:
            raise ValueError("Random erasing probability should be between 0 and 1")
        self.p, self.scale, self.ratio = p, scale, ratio
        self.value, self.inplace = value, inplace

    @staticmethod
    def get_params(
        img: Tensor,
        scale: Sequence[float],
        ratio: Sequence[float],
        value: list[float] | None = None,
    ) -> tuple[int, int, int, int, Any]:
        """(top, left, height, width, values) of a rectangle; the whole picture if none fits."""
        channels, height, width = F.get_dimensions(img)
        for _ in range(10):
            area = height * width * uniform(scale[0], scale[1])
            aspect = math.exp(uniform(math.log(ratio[0]), math.log(ratio[1])))
            h, w = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
            if not (h < height and w < width):
                continue
            if value is None:
                filling = randn(channels, h, w).to(img.dtype)
            else:
                filling = tensor(value, dtype=img.dtype)[:, None, None]
            top = int(randint(0, height - h + 1, (1,)).item())
            left = int(randint(0, width - w + 1, (1,)).item())
            return top, left, h, w, filling
        return 0, 0, height, width, img

    def forward(self, img: Tensor) -> Tensor:
        if rand(1).item() >= self.p:
            return img
        given = self.value
        value = (
            None
            if given == "random"
            else ([float(given)] if isinstance(given, (int, float)) else [float(v) for v in given])
        )
        if value is not None and len(value) not in (1, img.shape[-3]):
            raise ValueError(
                "If value is a sequence, it should have either a single value or "
                f"{img.shape[-3]} (number of input channels)"
            )
        top, left, h, w, filling = self.get_params(img, self.scale, self.ratio, value)
        return F.erase(img, top, left, h, w, filling, self.inplace)

    extra_repr = shows("p scale ratio value inplace")
