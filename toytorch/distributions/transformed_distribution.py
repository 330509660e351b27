"""What becomes of a distribution when its samples go through transforms."""

from __future__ import annotations

from typing import Any, Self

import toytorch as torch
from toytorch.core.tensor import Tensor
from toytorch.distributions import constraints
from toytorch.distributions.distribution import Distribution
from toytorch.distributions.independent import Independent
from toytorch.distributions.transforms import ComposeTransform, Transform
from toytorch.distributions.utils import Shape, _sum_rightmost
from toytorch.facts.parts import of_part

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """y = f(x) of samples x: log p(y) = log p(x) - log |dy/dx|.

    `transforms` is f, or a list of steps. Raises ValueError for anything else, and if the base has
    too few dimensions for f. Like `torch.distributions.TransformedDistribution`.

    >>> from toytorch.distributions import ExpTransform, Normal
    >>> base = Normal(torch.zeros(1), torch.ones(1))
    >>> TransformedDistribution(base, ExpTransform()).log_prob(torch.tensor([1.0]))
    tensor([-0.9189])
    """

    arg_constraints: dict[str, constraints.Constraint] = {}
    base_dist: Any
    _batched = {}

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Transform | list[Transform],
        validate_args: bool | None = None,
    ) -> None:
        if isinstance(transforms, Transform):
            transforms = [transforms]
        elif not isinstance(transforms, list):
            raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
        elif not all(isinstance(t, Transform) for t in transforms):
            raise ValueError("transforms must be a Transform or a list of Transforms")
        self.transforms = transforms
        whole = ComposeTransform(transforms)
        needed, given = whole.domain.event_dim, len(base_distribution.event_shape)
        base_shape = base_distribution.batch_shape + base_distribution.event_shape
        if len(base_shape) < needed:
            raise ValueError(
                f"base_distribution needs to have shape with size at least {needed}, but got "
                f"{base_shape}."
            )
        # Parameters of the transforms may make the batch larger, and may take batch dimensions
        # for dimensions of an event.
        shape = whole.forward_shape(base_shape)
        wide = whole.inverse_shape(shape)
        if base_shape != wide:
            base_distribution = base_distribution.expand(wide[: len(wide) - given])
        if needed > given:
            base_distribution = Independent(base_distribution, needed - given)
        self.base_dist = base_distribution
        made = whole.codomain.event_dim
        event_dim = max(made, given + made - needed)
        assert len(shape) >= event_dim, (
            f"forward_shape length {len(shape)} must be >= event_dim {event_dim}"
        )
        cut = len(shape) - event_dim
        super().__init__(shape[:cut], shape[cut:], validate_args=validate_args)

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Self:
        """The same of a larger batch."""
        new: Any = super().expand(batch_shape, _instance)
        shape = torch.Size(batch_shape) + self.event_shape
        for t in reversed(self.transforms):
            shape = t.inverse_shape(shape)
        new.base_dist = self.base_dist.expand(shape[: len(shape) - len(self.base_dist.event_shape)])
        new.transforms = self.transforms
        return new

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> constraints.Constraint:
        """What the last transform maps to."""
        if not self.transforms:
            return self.base_dist.support
        region = self.transforms[-1].codomain
        more = len(self.event_shape) - region.event_dim
        return constraints.independent(region, more) if more > 0 else region

    has_rsample = of_part("base_dist.has_rsample", "Whether the base has.")

    def _forward(self, x: Tensor) -> Tensor:
        for transform in self.transforms:
            x = transform(x)
        return x

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        """f of samples of the base."""
        with torch.no_grad():
            return self._forward(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """f of samples of the base."""
        return self._forward(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        """The density of the base where the value comes from, over what each step stretches."""
        self._check_sample(value)
        event_dim = len(self.event_shape)
        log_prob: Any = 0.0
        y = value
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            own = transform.domain.event_dim
            event_dim += own - transform.codomain.event_dim
            log_prob = log_prob - _sum_rightmost(
                transform.log_abs_det_jacobian(x, y), event_dim - own
            )
            y = x
        base = self.base_dist
        return log_prob + _sum_rightmost(base.log_prob(y), event_dim - len(base.event_shape))

    def _monotonize_cdf(self, value: Tensor) -> Tensor:
        """1 - u instead of u if the steps together turn the order around."""
        sign: Any = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        if isinstance(sign, int) and sign == 1:
            return value
        return sign * (value - 0.5) + 0.5

    def cdf(self, value: Tensor) -> Tensor:
        """That of the base where the value comes from."""
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._monotonize_cdf(self.base_dist.cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        """f of that of the base."""
        return self._forward(self.base_dist.icdf(self._monotonize_cdf(value)))
