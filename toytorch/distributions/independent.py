"""Members of a batch as one event."""

from __future__ import annotations

from typing import Any, Generic, Self, TypeVar

import toytorch as torch
from toytorch.core.tensor import Tensor
from toytorch.distributions import constraints
from toytorch.distributions.distribution import Distribution
from toytorch.distributions.utils import Shape, _sum_rightmost
from toytorch.facts.parts import of_part

__all__ = ["Independent"]


D = TypeVar("D", bound=Distribution)


class Independent(Distribution, Generic[D]):
    """A distribution whose last `reinterpreted_batch_ndims` batch dimensions are part of the event.

    Their log densities are added up, since the members are drawn independently. Raises ValueError
    if there are not so many dimensions. Like `torch.distributions.Independent`.

    >>> from toytorch.distributions import Normal
    >>> Independent(Normal(torch.zeros(2, 3), torch.ones(2, 3)), 1).log_prob(torch.zeros(3))
    tensor([-2.7568, -2.7568])
    """

    arg_constraints: dict[str, constraints.Constraint] = {}
    base_dist: D
    _batched = {}

    def __init__(
        self,
        base_distribution: D,
        reinterpreted_batch_ndims: int,
        validate_args: bool | None = None,
    ) -> None:
        batch = base_distribution.batch_shape
        if reinterpreted_batch_ndims > len(batch):
            raise ValueError(
                "Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), "
                f"actual {reinterpreted_batch_ndims} vs {len(batch)}"
            )
        shape = batch + base_distribution.event_shape
        cut = len(batch) - reinterpreted_batch_ndims
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        super().__init__(shape[:cut], shape[cut:], validate_args=validate_args)

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Self:
        """The same of a larger batch."""
        new = self._get_checked_instance(Independent, _instance)
        members = self.event_shape[: self.reinterpreted_batch_ndims]
        new.base_dist = self.base_dist.expand(torch.Size(batch_shape) + members)
        new.reinterpreted_batch_ndims = self.reinterpreted_batch_ndims
        return super().expand(batch_shape, new)

    has_rsample = of_part("base_dist.has_rsample", "Whether its members have.")

    @property
    def has_enumerate_support(self) -> bool:
        """Whether its members have, and each is an event of its own."""
        return self.reinterpreted_batch_ndims <= 0 and self.base_dist.has_enumerate_support

    @constraints.dependent_property
    def support(self) -> constraints.Constraint:
        """That of the members, all of them together."""
        region, more = self.base_dist.support, self.reinterpreted_batch_ndims
        return constraints.independent(region, more) if more else region

    mean = of_part("base_dist.mean", "That of the members.")
    mode = of_part("base_dist.mode", "That of the members.")
    variance = of_part("base_dist.variance", "That of the members.")

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        """Those of the members."""
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """Those of the members."""
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        """The sum over the members."""
        return _sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Tensor:
        """The sum over the members."""
        return _sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """Values of the members, if each is an event of its own."""
        if self.reinterpreted_batch_ndims > 0:
            raise NotImplementedError("Enumeration over cartesian product is not implemented")
        return self.base_dist.enumerate_support(expand=expand)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_dist}, {self.reinterpreted_batch_ndims})"
