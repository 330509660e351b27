"""From regions to transforms that map all numbers into them.

`biject_to(constraint)` maps one to one, as variational inference needs it; `transform_to(constraint)`
may map several numbers to one, and is easier on an optimizer. Both are tables by class, which
`register` adds to.

>>> biject_to(constraints.simplex), transform_to(constraints.simplex)
(StickBreakingTransform(), SoftmaxTransform())
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from toytorch.distributions import constraints, transforms
from toytorch.distributions.constraints import Constraint
from toytorch.distributions.transforms import Transform
from toytorch.distributions.utils import NUMBERS

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]

Factory: TypeAlias = Callable[[Any], Transform]


class ConstraintRegistry:
    """A table from regions to functions that make transforms."""

    def __init__(self) -> None:
        self._registry: dict[type[Constraint], Factory] = {}

    def register(
        self, constraint: Constraint | type[Constraint], factory: Factory | None = None
    ) -> Any:
        """Says how a transform is made for a class of regions. Without `factory` a decorator.

        Raises TypeError for what is neither a region nor a class of them.
        """
        if factory is None:
            return lambda made: self.register(constraint, made)
        kind = type(constraint) if isinstance(constraint, Constraint) else constraint
        if not isinstance(kind, type) or not issubclass(kind, Constraint):
            raise TypeError(
                "Expected constraint to be either a Constraint subclass or instance, but got "
                f"{kind}"
            )
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint: Constraint) -> Transform:
        """A transform into the region. Raises NotImplementedError if none is registered."""
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints")
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def to_real(constraint: Constraint) -> Transform:
    """The numbers themselves."""
    return transforms.identity_transform


def to_above(constraint: Any) -> Transform:
    """lower + eˣ."""
    shift = transforms.AffineTransform(constraint.lower_bound, 1)
    return transforms.ComposeTransform([transforms.ExpTransform(), shift])


def to_below(constraint: Any) -> Transform:
    """upper - eˣ."""
    shift = transforms.AffineTransform(constraint.upper_bound, -1)
    return transforms.ComposeTransform([transforms.ExpTransform(), shift])


def to_interval(constraint: Any) -> Transform:
    """lower + (upper - lower)·sigmoid(x)."""
    low, high = constraint.lower_bound, constraint.upper_bound
    if isinstance(low, NUMBERS) and isinstance(high, NUMBERS) and low == 0 and high == 1:
        return transforms.SigmoidTransform()
    shift = transforms.AffineTransform(low, high - low)
    return transforms.ComposeTransform([transforms.SigmoidTransform(), shift])


BOTH: list[tuple[Constraint | type[Constraint], Factory]] = [
    (constraints.real, to_real),
    (constraints.greater_than, to_above),
    (constraints.greater_than_eq, to_above),
    (constraints.less_than, to_below),
    (constraints.interval, to_interval),
    (constraints.half_open_interval, to_interval),
    (constraints.corr_cholesky, lambda constraint: transforms.CorrCholeskyTransform()),
]
for _constraint, _factory in BOTH:
    biject_to.register(_constraint, _factory)
    transform_to.register(_constraint, _factory)

biject_to.register(constraints.simplex, lambda _: transforms.StickBreakingTransform())
transform_to.register(constraints.simplex, lambda _: transforms.SoftmaxTransform())
transform_to.register(constraints.lower_cholesky, lambda _: transforms.LowerCholeskyTransform())
for _constraint in (constraints.positive_definite, constraints.positive_semidefinite):
    transform_to.register(_constraint, lambda _: transforms.PositiveDefiniteTransform())


def register_parts(registry: ConstraintRegistry) -> None:
    """Regions made of regions: transforms made of what the same table has for these."""

    def to_independent(constraint: Any) -> Transform:
        each = registry(constraint.base_constraint)
        return transforms.IndependentTransform(each, constraint.reinterpreted_batch_ndims)

    def to_cat(constraint: Any) -> Transform:
        parts = [registry(c) for c in constraint.cseq]
        return transforms.CatTransform(parts, constraint.dim, constraint.lengths)

    def to_stack(constraint: Any) -> Transform:
        return transforms.StackTransform([registry(c) for c in constraint.cseq], constraint.dim)

    registry.register(constraints.independent, to_independent)
    registry.register(constraints.cat, to_cat)
    registry.register(constraints.stack, to_stack)


register_parts(biject_to)
register_parts(transform_to)
