"""Families around a place."""

from __future__ import annotations

from toytorch.core.tensor import Tensor
from toytorch.distributions import constraints
from toytorch.distributions.distribution import Distribution
from toytorch.distributions.utils import Value, broadcast_all
from toytorch.facts.parts import of_part


class Around(Distribution):
    """Numbers around m = `loc`, which is the mean and the mode where a family says nothing else."""

    loc: Tensor

    mean = of_part("loc", "m.")
    mode = of_part("loc", "m.")


class LocationScale(Around):
    """m + s·(numbers of one distribution), m = `loc`, s = `scale`."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Value, scale: Value, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.size(), validate_args=validate_args)
