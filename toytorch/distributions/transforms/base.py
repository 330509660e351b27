"""`Transform`: a function with its inverse and what it does to volumes; and how they are combined."""

from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING, Any

import toytorch as torch
from toytorch.core.tensor import Tensor
from toytorch.distributions import constraints
from toytorch.distributions.constraints import Constraint
from toytorch.distributions.utils import _sum_rightmost, lazy_property
from toytorch.facts.parts import of_part
from toytorch.facts.size import Size


class Transform:
    """A function y = f(x) from the region `domain` into `codomain`, one to one if `bijective`.

    A subclass states the regions, `_call`, `_inverse` and `log_abs_det_jacobian`. With
    `cache_size=1` it remembers the last pair, so that the inverse of what it has just given costs
    nothing and is exact. Raises ValueError for other sizes.
    """

    if TYPE_CHECKING:  # subclasses state these as class attributes, or compute them

        @property
        def domain(self) -> Any: ...

        @property
        def codomain(self) -> Any: ...

        @property
        def bijective(self) -> bool: ...

    else:
        bijective = False

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ValueError("cache_size must be 0 or 1")
        self._cache_size = cache_size
        self._inv: Transform | None = None
        self._cached_x_y: tuple[Tensor | None, Tensor | None] = (None, None)
        super().__init__()  # of a module that is a transform, too

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_inv": None}

    @property
    def event_dim(self) -> int:
        """The dimensions of one value, if it has as many before as after."""
        if self.domain.event_dim == self.codomain.event_dim:
            return self.domain.event_dim
        raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")

    @property
    def inv(self) -> Transform:
        """The inverse, whose inverse is this one."""
        if self._inv is None:
            self._inv = _InverseTransform(self)
        return self._inv

    @property
    def sign(self) -> Any:
        """1 where it rises, -1 where it falls: of functions of one number."""
        raise NotImplementedError  # a subclass says it, or has none, as in PyTorch

    def _options(self) -> dict[str, Any]:
        """What another one like it is made with, less the size of the cache."""
        if type(self).__init__ is Transform.__init__:
            return {}
        raise NotImplementedError(f"{type(self)}.with_cache is not implemented")

    def with_cache(self, cache_size: int = 1) -> Transform:
        """The same with such a cache."""
        if self._cache_size == cache_size:
            return self
        return type(self)(**self._options(), cache_size=cache_size)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __call__(self, x: Tensor) -> Tensor:
        """y."""
        if self._cache_size == 0:
            return self._call(x)
        last, y = self._cached_x_y
        if y is None or x is not last:
            y = self._call(x)
            self._cached_x_y = x, y
        return y

    def _inv_call(self, y: Tensor) -> Tensor:
        if self._cache_size == 0:
            return self._inverse(y)
        x, last = self._cached_x_y
        if x is None or y is not last:
            x = self._inverse(y)
            self._cached_x_y = x, y
        return x

    def _call(self, x: Tensor) -> Tensor:
        raise NotImplementedError  # a subclass says it, or has none, as in PyTorch

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError  # a subclass says it, or has none, as in PyTorch

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """log |det dy/dx|, one number for each value."""
        raise NotImplementedError  # a subclass says it, or has none, as in PyTorch

    def __repr__(self) -> str:
        return type(self).__name__ + "()"

    def forward_shape(self, shape: Size) -> Size:
        """The shape of y for one of x. Raises ValueError where there is none."""
        return shape

    def inverse_shape(self, shape: Size) -> Size:
        """The shape of x for one of y."""
        return shape


class _InverseTransform(Transform):
    """The inverse of a transform."""

    _inv: Transform

    def __init__(self, transform: Transform) -> None:
        super().__init__(cache_size=transform._cache_size)
        self._inv = transform

    def __getstate__(self) -> dict[str, Any]:
        return dict(vars(self))  # it is nothing without the one that it inverts

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Constraint:
        """The region that the other one maps into."""
        return self._inv.codomain

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Constraint:
        """The region that the other one maps from."""
        return self._inv.domain

    bijective = of_part("_inv.bijective", "Whether the other one is.")
    sign = of_part("_inv.sign", "That of the other one.")
    inv = of_part("_inv", "The other one.")

    def with_cache(self, cache_size: int = 1) -> Transform:
        """The inverse of the other one with such a cache."""
        return self._inv.with_cache(cache_size).inv

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _InverseTransform) and self._inv == other._inv

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._inv!r})"

    def __call__(self, x: Tensor) -> Tensor:
        """What the other one maps to x."""
        return self._inv._inv_call(x)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The other one's with the sign turned."""
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Size) -> Size:
        """That of x of the other one."""
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape: Size) -> Size:
        """That of y of the other one."""
        return self._inv.forward_shape(shape)


class ComposeTransform(Transform):
    """One transform after the other. Like `torch.distributions.ComposeTransform`.

    >>> from toytorch.distributions import AffineTransform, ExpTransform
    >>> ComposeTransform([AffineTransform(0.0, 2.0), ExpTransform()])(torch.tensor([0.0]))
    tensor([1.])
    """

    def __init__(self, parts: list[Transform], cache_size: int = 0) -> None:
        if cache_size:
            parts = [part.with_cache(cache_size) for part in parts]
        super().__init__(cache_size=cache_size)
        self.parts = parts

    def _options(self) -> dict[str, Any]:
        return {"parts": self.parts}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Constraint:
        """That of the first part, with as many dimensions as any part needs."""
        if not self.parts:
            return constraints.real
        event_dim = self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            needed = part.domain.event_dim
            event_dim = max(event_dim + needed - part.codomain.event_dim, needed)
        return widened(self.parts[0].domain, event_dim)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Constraint:
        """That of the last part, with as many dimensions as any part makes."""
        if not self.parts:
            return constraints.real
        event_dim = self.parts[0].domain.event_dim
        for part in self.parts:
            made = part.codomain.event_dim
            event_dim = max(event_dim + made - part.domain.event_dim, made)
        return widened(self.parts[-1].codomain, event_dim)

    @lazy_property
    def bijective(self) -> bool:
        """Whether every part is."""
        return all(p.bijective for p in self.parts)

    @lazy_property
    def sign(self) -> Any:
        """The product of theirs."""
        return functools.reduce(operator.mul, (p.sign for p in self.parts), 1)

    @property
    def inv(self) -> Transform:
        """The inverses in the opposite order."""
        if self._inv is None:
            self._inv = ComposeTransform([p.inv for p in reversed(self.parts)])
            self._inv._inv = self
        return self._inv

    def __call__(self, x: Tensor) -> Tensor:
        """y."""
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The sum of theirs, each over the dimensions that are part of an event here."""
        if not self.parts:
            return torch.zeros_like(x)
        steps = [x]
        for part in self.parts[:-1]:
            steps.append(part(steps[-1]))
        steps.append(y)
        terms = []
        event_dim = self.domain.event_dim
        for part, before, after in zip(self.parts, steps, steps[1:]):
            own = part.domain.event_dim
            each = part.log_abs_det_jacobian(before, after)
            terms.append(_sum_rightmost(each, event_dim - own))
            event_dim += part.codomain.event_dim - own
        return functools.reduce(operator.add, terms)

    def forward_shape(self, shape: Size) -> Size:
        """What the parts make of it in turn."""
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Size) -> Size:
        """What the inverses make of it in turn."""
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self) -> str:
        parts = ",\n    ".join(map(repr, self.parts))
        return f"{type(self).__name__}(\n    {parts}\n)"


def widened(region: Constraint, event_dim: int) -> Constraint:
    """A region of values of more dimensions."""
    more = event_dim - region.event_dim
    return constraints.independent(region, more) if more > 0 else region


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """A transform of values whose last batch dimensions count as part of one event.

    Like `torch.distributions.IndependentTransform`.

    >>> from toytorch.distributions import ExpTransform
    >>> x = torch.ones(2, 3)
    >>> IndependentTransform(ExpTransform(), 1).log_abs_det_jacobian(x, x.exp())
    tensor([3., 3.])
    """

    def __init__(
        self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size=cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    def _options(self) -> dict[str, Any]:
        more = self.reinterpreted_batch_ndims
        return {"base_transform": self.base_transform, "reinterpreted_batch_ndims": more}

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Constraint:
        """Groups of the base's."""
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Constraint:
        """Groups of the base's."""
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    bijective = of_part("base_transform.bijective", "Whether the base is.")
    sign = of_part("base_transform.sign", "That of the base.")

    def _call(self, x: Tensor) -> Tensor:
        if x.dim() < self.domain.event_dim:
            raise ValueError("Too few dimensions on input")
        return self.base_transform(x)

    def _inverse(self, y: Tensor) -> Tensor:
        if y.dim() < self.codomain.event_dim:
            raise ValueError("Too few dimensions on input")
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The sum over each group."""
        each = self.base_transform.log_abs_det_jacobian(x, y)
        return _sum_rightmost(each, self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_transform!r}, {self.reinterpreted_batch_ndims})"

    def forward_shape(self, shape: Size) -> Size:
        """That of the base."""
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Size) -> Size:
        """That of the base."""
        return self.base_transform.inverse_shape(shape)
