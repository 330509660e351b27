"""Transforms of transforms: one after the other, perhaps, one of several, in any order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.facts.hints import Array
from toytorch.nn.modules.module import Module
from toytorch.ops.creation.from_data import tensor
from toytorch.ops.creation.random import rand, randint, randperm
from toytorch.ops.creation.random_of import multinomial

__all__ = ["Compose", "Lambda", "RandomApply", "RandomChoice", "RandomOrder"]

Transform = Callable[[Any], Any]


def _listed(name: str, lines: Sequence[Any]) -> str:
    return "\n".join([f"{name}(", *(f"    {line}" for line in lines), ")"])


class Compose:
    """Transforms one after the other.

    >>> from toytorch.vision.transforms import Normalize, ToTensor
    >>> Compose([ToTensor(), Normalize([0.5], [0.5])])
    Compose(
        ToTensor()
        Normalize(mean=[0.5], std=[0.5])
    )
    """

    def __init__(self, transforms: Sequence[Transform]) -> None:
        self.transforms = transforms

    def __call__(self, img: Tensor | Array) -> Any:
        for transform in self.transforms:
            img = transform(img)
        return img

    def __repr__(self) -> str:
        return _listed(type(self).__name__, self.transforms)


class Lambda:
    """A function of the user's as a transform.

    >>> Lambda(lambda x: x + 1)(2)
    3
    """

    def __init__(self, lambd: Transform) -> None:
        if not callable(lambd):
            raise TypeError(f"Argument lambd should be callable, got {type(lambd).__name__!r}")
        self.lambd = lambd

    def __call__(self, img: Tensor | Array) -> Any:
        return self.lambd(img)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class RandomApply(Module):
    """All of the transforms with probability p, else none."""

    def __init__(self, transforms: Sequence[Transform], p: float = 0.5) -> None:
        super().__init__()
        self.transforms, self.p = transforms, p

    def forward(self, img: Tensor | Array) -> Any:
        if self.p < rand(1).item():
            return img
        for transform in self.transforms:
            img = transform(img)
        return img

    def __repr__(self) -> str:
        return _listed(type(self).__name__, [f"p={self.p}", *self.transforms])


class RandomTransforms:
    """What lists of transforms with a random choice share."""

    def __init__(self, transforms: Sequence[Transform]) -> None:
        if not isinstance(transforms, Sequence):
            raise TypeError("Argument transforms should be a sequence")
        self.transforms = transforms

    def __repr__(self) -> str:
        return _listed(type(self).__name__, self.transforms)


class RandomOrder(RandomTransforms):
    """All of the transforms in a random order."""

    def __call__(self, img: Tensor | Array) -> Any:
        for i in randperm(len(self.transforms)).tolist():
            img = self.transforms[i](img)
        return img


class RandomChoice(RandomTransforms):
    """One of the transforms, each as likely as its weight in p says."""

    def __init__(self, transforms: Sequence[Transform], p: Sequence[float] | None = None) -> None:
        super().__init__(transforms)
        if p is not None and not isinstance(p, Sequence):
            raise TypeError("Argument p should be a sequence")
        if p is not None and len(p) != len(transforms):
            raise ValueError(
                f"p should have one weight for each of the {len(transforms)} "
                f"transforms, but got {len(p)}"
            )
        self.p = p

    def __call__(self, img: Tensor | Array) -> Any:
        if self.p is None:
            i = randint(len(self.transforms), (1,)).item()
        else:
            i = multinomial(tensor(list(map(float, self.p))), 1).item()
        return self.transforms[int(i)](img)

    def __repr__(self) -> str:
        return f"{super().__repr__()}(p={self.p})"
