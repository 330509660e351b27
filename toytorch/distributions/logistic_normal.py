"""Points of a simplex from normal numbers."""

from __future__ import annotations

from toytorch.distributions import constraints
from toytorch.distributions.independent import Independent
from toytorch.distributions.normal import Normal
from toytorch.distributions.transformed_distribution import TransformedDistribution
from toytorch.distributions.transforms import StickBreakingTransform
from toytorch.distributions.utils import Value
from toytorch.facts.parts import of_part

__all__ = ["LogisticNormal"]


class LogisticNormal(TransformedDistribution):
    """K + 1 numbers that add up to 1: a stick broken at the sigmoids of K normal numbers.

    Raises ValueError for scales that are not positive. Like `torch.distributions.LogisticNormal`.

    >>> LogisticNormal(torch.zeros(3), torch.ones(3)).event_shape
    torch.Size([4])
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True
    base_dist: Independent[Normal]
    _batched = {}

    def __init__(self, loc: Value, scale: Value, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand((1,))
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    loc = of_part("base_dist.base_dist.loc", "The means of the normal numbers.")
    scale = of_part("base_dist.base_dist.scale", "Their standard deviations.")
