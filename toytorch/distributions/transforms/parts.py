"""Transforms of the parts of a tensor, each by its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import toytorch as torch
from toytorch.core.tensor import Tensor
from toytorch.distributions import constraints
from toytorch.distributions.constraints import Constraint
from toytorch.distributions.transforms.base import Transform
from toytorch.distributions.utils import _sum_rightmost, lazy_property


class Parted(Transform):
    """Transforms for parts along the dimension `dim`."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        assert all(isinstance(t, Transform) for t in tseq), (
            "All elements of tseq must be Transform instances"
        )
        if cache_size:
            tseq = [t.with_cache(cache_size) for t in tseq]
        super().__init__(cache_size=cache_size)
        self.transforms = list(tseq)
        self.dim = dim

    def _options(self) -> dict[str, Any]:
        return {"tseq": self.transforms, "dim": self.dim}

    @property
    def bijective(self) -> bool:
        """Whether every part is."""
        return all(t.bijective for t in self.transforms)

    def refuse(self, name: str, value: Tensor, of: str, size: int, said: str) -> None:
        """Refuses tensors that do not have `size` along the dimension."""
        assert -value.dim() <= self.dim < value.dim(), (
            f"dim {self.dim} out of range for {of} with {value.dim()} dimensions"
        )
        assert value.size(self.dim) == size, (
            f"{name}.size({self.dim}) = {value.size(self.dim)} must equal {said} {size}"
        )


class CatTransform(Parted):
    """Pieces of these `lengths` one after the other, each through its own transform.

    Raises AssertionError where the lengths do not add up. Like `torch.distributions.CatTransform`.

    >>> from toytorch.distributions import ExpTransform, identity_transform
    >>> CatTransform([ExpTransform(), identity_transform], 0, [1, 2])(torch.zeros(3))
    tensor([1., 0., 0.])
    """

    def __init__(
        self,
        tseq: Sequence[Transform],
        dim: int = 0,
        lengths: Sequence[int] | None = None,
        cache_size: int = 0,
    ) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        assert len(self.lengths) == len(self.transforms), (
            f"lengths ({len(self.lengths)}) must match transforms ({len(self.transforms)})"
        )

    def _options(self) -> dict[str, Any]:
        return {**super()._options(), "lengths": self.lengths}

    @lazy_property
    def event_dim(self) -> int:
        """That of the piece that has most."""
        return max(t.event_dim for t in self.transforms)

    @lazy_property
    def length(self) -> int:
        """Of all pieces together."""
        return sum(self.lengths)

    def _pieces(self, value: Tensor) -> list[Tensor]:
        """The pieces of a tensor."""
        return list(value.split(self.lengths, self.dim))

    def _each(self, name: str, value: Tensor, of: Callable[[Transform], Transform]) -> Tensor:
        self.refuse(name, value, "tensor", self.length, "length")
        pieces = [of(t)(piece) for t, piece in zip(self.transforms, self._pieces(value))]
        return torch.cat(pieces, dim=self.dim)

    def _call(self, x: Tensor) -> Tensor:
        return self._each("x", x, lambda t: t)

    def _inverse(self, y: Tensor) -> Tensor:
        return self._each("y", y, lambda t: t.inv)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Those of the pieces, one after the other, or their sum if the dimension is the event's."""
        self.refuse("x", x, "x", self.length, "length")
        self.refuse("y", y, "y", self.length, "length")
        found = [
            _sum_rightmost(t.log_abs_det_jacobian(a, b), self.event_dim - t.event_dim)
            for t, a, b in zip(self.transforms, self._pieces(x), self._pieces(y))
        ]
        dim = (self.dim if self.dim < 0 else self.dim - x.dim()) + self.event_dim
        total: Any = torch.cat(found, dim=dim) if dim < 0 else sum(found)
        return total

    @constraints.dependent_property
    def domain(self) -> Constraint:
        """Those of the pieces."""
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self) -> Constraint:
        """Those of the pieces."""
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)


class StackTransform(Parted):
    """Slices along a dimension, each through its own transform.

    Raises AssertionError for other numbers of slices. Like `torch.distributions.StackTransform`.

    >>> from toytorch.distributions import ExpTransform, identity_transform
    >>> StackTransform([ExpTransform(), identity_transform])(torch.zeros(2))
    tensor([1., 0.])
    """

    def _slices(self, name: str, value: Tensor, of: str) -> tuple[Tensor, ...]:
        self.refuse(name, value, of, len(self.transforms), "len(transforms)")
        return value.unbind(self.dim)

    def _call(self, x: Tensor) -> Tensor:
        made = [t(v) for v, t in zip(self._slices("x", x, "tensor"), self.transforms)]
        return torch.stack(made, dim=self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        made = [t.inv(v) for v, t in zip(self._slices("y", y, "tensor"), self.transforms)]
        return torch.stack(made, dim=self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Those of the slices."""
        pairs = zip(self._slices("x", x, "x"), self._slices("y", y, "y"))
        found = [t.log_abs_det_jacobian(*pair) for pair, t in zip(pairs, self.transforms)]
        return torch.stack(found, dim=self.dim)

    @constraints.dependent_property
    def domain(self) -> Constraint:
        """Those of the slices."""
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self) -> Constraint:
        """Those of the slices."""
        return constraints.stack([t.codomain for t in self.transforms], self.dim)
