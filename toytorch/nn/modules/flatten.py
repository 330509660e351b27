"""Dimensions taken together and apart."""

from __future__ import annotations

from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.facts.hints import Shape
from toytorch.facts.parts import shows
from toytorch.nn.modules.module import Module


class Flatten(Module):
    """Dimensions from start to end as one."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Tensor) -> Tensor:
        return input.flatten(self.start_dim, self.end_dim)

    extra_repr = shows("start_dim end_dim")


class Unflatten(Module):
    """One dimension as several.

    >>> Unflatten(1, (2, 3))(torch.zeros(4, 6)).shape
    torch.Size([4, 2, 3])
    """

    def __init__(self, dim: int, unflattened_size: Shape) -> None:
        super().__init__()
        if isinstance(dim, int):
            self._check(unflattened_size, (tuple, list), int, "ints")
        elif isinstance(dim, str):
            self._check(unflattened_size, (tuple, list), tuple, "tuples")
        else:
            raise TypeError("invalid argument type for dim parameter")
        self.dim, self.unflattened_size = dim, unflattened_size

    @staticmethod
    def _check(size: Shape, kinds: tuple[type, ...], kind: type, word: str) -> None:
        if not isinstance(size, kinds):
            raise TypeError(
                f"unflattened_size must be a tuple of {word}, but found type {type(size).__name__}"
            )
        sizes: Any = size
        for i, element in enumerate(sizes):
            if not isinstance(element, kind):
                raise TypeError(
                    f"unflattened_size must be tuple of {word}, but found element of "
                    f"type {type(element).__name__} at pos {i}"
                )

    def forward(self, input: Tensor) -> Tensor:
        return input.unflatten(self.dim, self.unflattened_size)

    extra_repr = shows("dim unflattened_size")
