"""Transforms of where things are: sizes, cuts, borders, mirrors, turns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.facts.hints import Ints, Shape, Sizes
from toytorch.facts.parts import shows
from toytorch.nn.modules.module import Module
from toytorch.ops.creation.random import rand, randint
from toytorch.vision.transforms import functional as F
from toytorch.vision.transforms.functional import InterpolationMode
from toytorch.vision.transforms.values import uniform

__all__ = [
    "CenterCrop", "Pad", "RandomAffine", "RandomCrop", "RandomHorizontalFlip", "RandomResizedCrop",
    "RandomRotation", "RandomVerticalFlip", "Resize",
]  # fmt: skip


def _pair(size: Ints) -> tuple[int, int]:
    if isinstance(size, int):
        return size, size
    if isinstance(size, Sequence) and len(size) in (1, 2):
        return int(size[0]), int(size[-1])
    raise ValueError("Please provide only two dimensions (h, w) for size.")


class Resize(Module):
    """The picture in another size: (h, w), or a number for the shorter side.

    >>> Resize(4)
    Resize(size=4, interpolation=bilinear, max_size=None, antialias=True)
    """

    def __init__(
        self,
        size: Ints,
        interpolation: InterpolationMode = InterpolationMode.BILINEAR,
        max_size: int | None = None,
        antialias: bool | None = True,
    ) -> None:
        super().__init__()
        if not isinstance(size, (int, Sequence)):
            raise TypeError(f"Size should be int or sequence. Got {type(size)}")
        if isinstance(size, Sequence) and len(size) not in (1, 2):
            raise ValueError("If size is a sequence, it should have 1 or 2 values")
        self.size, self.interpolation = size, interpolation
        self.max_size, self.antialias = max_size, antialias

    def forward(self, img: Tensor) -> Tensor:
        return F.resize(img, self.size, self.interpolation, self.max_size, self.antialias)

    extra_repr = shows("size interpolation.value max_size antialias")


class CenterCrop(Module):
    """The middle of a picture, with a border of zeros where the picture is smaller."""

    def __init__(self, size: Ints) -> None:
        super().__init__()
        self.size = _pair(size)

    def forward(self, img: Tensor) -> Tensor:
        return F.center_crop(img, self.size)

    extra_repr = shows("size")


class Pad(Module):
    """A border: a number, (left/right, top/bottom), or (left, top, right, bottom)."""

    def __init__(self, padding: Ints, fill: float = 0, padding_mode: str = "constant") -> None:
        super().__init__()
        if not isinstance(padding, (int, tuple, list)):
            raise TypeError("Got inappropriate padding arg")
        if padding_mode not in ("constant", "edge", "reflect", "symmetric"):
            raise ValueError("Padding mode should be either constant, edge, reflect or symmetric")
        if not isinstance(padding, int) and len(padding) not in (1, 2, 4):
            raise ValueError(
                "Padding must be an int or a 1, 2, or 4 element tuple, not a "
                f"{len(padding)} element tuple"
            )
        self.padding, self.fill, self.padding_mode = padding, fill, padding_mode

    def forward(self, img: Tensor) -> Tensor:
        return F.pad(img, self.padding, self.fill, self.padding_mode)

    extra_repr = shows("padding fill padding_mode")


class RandomCrop(Module):
    """A part of the given size at a random place, perhaps of the picture with a border.

    Raises ValueError if the picture is smaller, unless `pad_if_needed`.
    """

    def __init__(
        self,
        size: Ints,
        padding: Any = None,
        pad_if_needed: bool = False,
        fill: float = 0,
        padding_mode: str = "constant",
    ) -> None:
        super().__init__()
        self.size, self.padding, self.pad_if_needed = _pair(size), padding, pad_if_needed
        self.fill, self.padding_mode = fill, padding_mode

    @staticmethod
    def get_params(img: Tensor, output_size: tuple[int, int]) -> tuple[int, int, int, int]:
        """(top, left, height, width) of a random part."""
        _, h, w = F.get_dimensions(img)
        height, width = output_size
        if h < height or w < width:
            raise ValueError(
                f"Required crop size {(height, width)} is larger than input image size {(h, w)}"
            )
        if (h, w) == (height, width):
            return 0, 0, h, w
        top = int(randint(0, h - height + 1, (1,)).item())
        left = int(randint(0, w - width + 1, (1,)).item())
        return top, left, height, width

    def forward(self, img: Tensor) -> Tensor:
        if self.padding is not None:
            img = F.pad(img, self.padding, self.fill, self.padding_mode)
        _, h, w = F.get_dimensions(img)
        if self.pad_if_needed:
            down, across = max(self.size[0] - h, 0), max(self.size[1] - w, 0)
            if down or across:
                img = F.pad(img, [across, down], self.fill, self.padding_mode)
        return F.crop(img, *self.get_params(img, self.size))

    extra_repr = shows("size padding")


class RandomHorizontalFlip(Module):
    """Left and right exchanged with probability p."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self.p = p

    def forward(self, img: Tensor) -> Tensor:
        return F.hflip(img) if rand(1).item() < self.p else img

    extra_repr = shows("p")


class RandomVerticalFlip(RandomHorizontalFlip):
    """Upside down with probability p."""

    def forward(self, img: Tensor) -> Tensor:
        return F.vflip(img) if rand(1).item() < self.p else img


class RandomResizedCrop(Module):
    """A random part, brought to a fixed size.

    Its area is `scale` of the picture's, its width to height `ratio`; where ten draws do not fit,
    the middle is taken. After C. Szegedy et al., *Going Deeper with Convolutions* (2014).
    """

    def __init__(
        self,
        size: Ints,
        scale: Sequence[float] = (0.08, 1.0),
        ratio: Sequence[float] = (3.0 / 4.0, 4.0 / 3.0),
        interpolation: InterpolationMode = InterpolationMode.BILINEAR,
        antialias: bool | None = True,
    ) -> None:
        super().__init__()
        self.size, self.scale, self.ratio = _pair(size), scale, ratio
        self.interpolation, self.antialias = interpolation, antialias

    @staticmethod
    def get_params(
        img: Tensor, scale: Sequence[float], ratio: Sequence[float]
    ) -> tuple[int, int, int, int]:
        """(top, left, height, width) of a random part."""
        _, height, width = F.get_dimensions(img)
        for _ in range(10):
            area = height * width * uniform(scale[0], scale[1])
            aspect = math.exp(uniform(math.log(ratio[0]), math.log(ratio[1])))
            w, h = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
            if 0 < w <= width and 0 < h <= height:
                top = int(randint(0, height - h + 1, (1,)).item())
                left = int(randint(0, width - w + 1, (1,)).item())
                return top, left, h, w
        aspect = min(max(width / height, min(ratio)), max(ratio))
        w, h = min(width, round(height * aspect)), min(height, round(width / aspect))
        return (height - h) // 2, (width - w) // 2, h, w

    def forward(self, img: Tensor) -> Tensor:
        part = self.get_params(img, self.scale, self.ratio)
        return F.resized_crop(img, *part, self.size, self.interpolation, self.antialias)

    def __repr__(self) -> str:
        scale, ratio = (tuple(round(v, 4) for v in pair) for pair in (self.scale, self.ratio))
        return (
            f"{type(self).__name__}(size={self.size}, scale={scale}, ratio={ratio}, "
            f"interpolation={self.interpolation.value}, antialias={self.antialias})"
        )


def _angles(name: str, value: float | Sequence[float], sizes: Sizes = (2,)) -> list[float]:
    """A range of angles: a number means from minus it to it."""
    if isinstance(value, (int, float)):
        if value < 0:
            raise ValueError(f"If {name} is a single number, it must be positive.")
        return [-float(value), float(value)]
    if not isinstance(value, Sequence):
        raise TypeError(f"{name} should be a sequence of length {' or '.join(map(str, sizes))}.")
    if len(value) not in sizes:
        raise ValueError(f"{name} should be a sequence of length {' or '.join(map(str, sizes))}.")
    return [float(v) for v in value]


class RandomRotation(Module):
    """Turned by an angle from (-degrees, degrees), or from the given pair."""

    def __init__(
        self,
        degrees: float | Sequence[float],
        interpolation: InterpolationMode = InterpolationMode.NEAREST,
        expand: bool = False,
        center: Sequence[float] | None = None,
        fill: float | Sequence[float] | None = 0,
    ) -> None:
        super().__init__()
        self.degrees = _angles("degrees", degrees)
        if center is not None and len(center) != 2:
            raise ValueError("center should be a sequence of length 2.")
        self.interpolation, self.expand = interpolation, expand
        self.center, self.fill = center, fill

    @staticmethod
    def get_params(degrees: Sequence[float]) -> float:
        """A random angle."""
        return uniform(degrees[0], degrees[1])

    def forward(self, img: Tensor) -> Tensor:
        angle = self.get_params(self.degrees)
        return F.rotate(img, angle, self.interpolation, self.expand, self.center, self.fill)

    def __repr__(self) -> str:
        center = "" if self.center is None else f", center={self.center}"
        return (
            f"{type(self).__name__}(degrees={self.degrees}, interpolation="
            f"{self.interpolation.value}, expand={self.expand}{center}, fill={self.fill})"
        )


class RandomAffine(Module):
    """Turned, moved, scaled and sheared at random, lines staying lines.

    `translate` (a, b) moves by up to a·width and b·height; `scale` is a range of factors; `shear` a
    number or range for x, or four numbers for x and y, in degrees.
    """

    def __init__(
        self,
        degrees: float | Sequence[float],
        translate: Sequence[float] | None = None,
        scale: Sequence[float] | None = None,
        shear: float | Sequence[float] | None = None,
        interpolation: InterpolationMode = InterpolationMode.NEAREST,
        fill: float | Sequence[float] | None = 0,
        center: Sequence[float] | None = None,
    ) -> None:
        super().__init__()
        self.degrees = _angles("degrees", degrees)
        if translate is not None and any(not 0.0 <= t <= 1.0 for t in translate):
            raise ValueError("translation values should be between 0 and 1")
        if scale is not None and any(s <= 0 for s in scale):
            raise ValueError("scale values should be positive")
        self.translate, self.scale = translate, scale
        self.shear = None if shear is None else _angles("shear", shear, (2, 4))
        self.interpolation, self.fill, self.center = interpolation, fill, center

    @staticmethod
    def get_params(
        degrees: Sequence[float],
        translate: Sequence[float] | None,
        scale_ranges: Sequence[float] | None,
        shears: Sequence[float] | None,
        img_size: Shape,
    ) -> tuple[float, tuple[int, int], float, tuple[float, float]]:
        """(angle, (right, down), scale, (shear x, shear y))."""
        angle = uniform(degrees[0], degrees[1])
        moved = (0, 0)
        if translate is not None:
            across, down = (float(t * n) for t, n in zip(translate, img_size))
            moved = round(uniform(-across, across)), round(uniform(-down, down))
        scale = 1.0 if scale_ranges is None else uniform(scale_ranges[0], scale_ranges[1])
        x = y = 0.0
        if shears is not None:
            x = uniform(shears[0], shears[1])
            y = uniform(shears[2], shears[3]) if len(shears) == 4 else 0.0
        return angle, moved, scale, (x, y)

    def forward(self, img: Tensor) -> Tensor:
        drawn = self.get_params(
            self.degrees, self.translate, self.scale, self.shear, F.get_image_size(img)
        )
        return F.affine(
            img, *drawn, interpolation=self.interpolation, fill=self.fill, center=self.center
        )

    def __repr__(self) -> str:
        parts = [f"degrees={self.degrees}"]
        parts += [
            f"{name}={getattr(self, name)}"
            for name in ("translate", "scale", "shear")
            if getattr(self, name) is not None
        ]
        if self.interpolation is not InterpolationMode.NEAREST:
            parts.append(f"interpolation={self.interpolation.value}")
        if self.fill != 0:
            parts.append(f"fill={self.fill}")
        if self.center is not None:
            parts.append(f"center={self.center}")
        return f"{type(self).__name__}({', '.join(parts)})"
