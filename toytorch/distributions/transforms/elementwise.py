"""Transforms of each number by itself."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import toytorch as torch
from toytorch.core.tensor import Tensor
from toytorch.distributions import constraints
from toytorch.distributions.constraints import Constraint
from toytorch.distributions.transforms.base import Transform, widened
from toytorch.distributions.utils import NUMBERS, Value, broadcast_all, lazy_property
from toytorch.facts.parts import of_part
from toytorch.facts.size import Size
from toytorch.nn.functional import softplus

if TYPE_CHECKING:
    from toytorch.distributions.distribution import Distribution


class Plain(Transform):
    """A transform without parameters: all of one class are equal."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self))


class Rising(Plain):
    """A plain one of all numbers that rises everywhere."""

    domain = constraints.real
    bijective = True
    sign = +1


class ExpTransform(Rising):
    """y = eˣ. Like `torch.distributions.ExpTransform`.

    >>> ExpTransform().inv(torch.tensor([1.0]))
    tensor([0.])
    """

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """x."""
        return x


class PowerTransform(Transform):
    """y = xᵃ of positive x, a = `exponent`. Like `torch.distributions.PowerTransform`.

    >>> PowerTransform(torch.tensor(2.0))(torch.tensor([3.0]))
    tensor([9.])
    """

    domain = constraints.positive
    codomain = constraints.positive
    bijective = True

    def __init__(self, exponent: Value, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        (self.exponent,) = broadcast_all(exponent)

    def _options(self) -> dict[str, Any]:
        return {"exponent": self.exponent}

    @lazy_property
    def sign(self) -> Tensor:
        """That of the exponent."""
        return self.exponent.sign()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PowerTransform):
            return False
        return bool(self.exponent.eq(other.exponent).all())

    def _call(self, x: Tensor) -> Tensor:
        return x.pow(self.exponent)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """log |ay/x|."""
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Size) -> Size:
        """Broadcast with the exponent."""
        return torch.broadcast_shapes(shape, self.exponent.shape)

    inverse_shape = forward_shape


def _clipped_sigmoid(x: Tensor) -> Tensor:
    """1/(1 + e⁻ˣ), away from 0 and 1 by the rounding of the type."""
    limits = torch.finfo(x.dtype)
    return torch.clamp(torch.sigmoid(x), min=limits.tiny, max=1.0 - limits.eps)


class SigmoidTransform(Rising):
    """y = 1/(1 + e⁻ˣ). Like `torch.distributions.SigmoidTransform`.

    >>> SigmoidTransform()(torch.tensor([0.0]))
    tensor([0.5000])
    """

    codomain = constraints.unit_interval

    def _call(self, x: Tensor) -> Tensor:
        return _clipped_sigmoid(x)

    def _inverse(self, y: Tensor) -> Tensor:
        limits = torch.finfo(y.dtype)
        y = y.clamp(min=limits.tiny, max=1.0 - limits.eps)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """log y(1 - y)."""
        return -softplus(-x) - softplus(x)


class SoftplusTransform(Rising):
    """y = log(1 + eˣ). Like `torch.distributions.SoftplusTransform`.

    >>> SoftplusTransform()(torch.tensor([0.0]))
    tensor([0.6931])
    """

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return softplus(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """log of the sigmoid."""
        return -softplus(-x)


class TanhTransform(Rising):
    """y = tanh x. Like `torch.distributions.TanhTransform`.

    >>> TanhTransform()(torch.tensor([0.0]))
    tensor([0.])
    """

    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        return torch.atanh(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """log(1 - y²), by x since y rounds to 1."""
        return 2.0 * (math.log(2.0) - x - softplus(-2.0 * x))


class AbsTransform(Plain):
    """y = |x|, whose inverse takes x to be positive. Like `torch.distributions.AbsTransform`.

    >>> AbsTransform()(torch.tensor([-1.0]))
    tensor([1.])
    """

    domain = constraints.real
    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


class AffineTransform(Transform):
    """y = m + sx, m = `loc`, s = `scale`, of values of `event_dim` dimensions.

    Like `torch.distributions.AffineTransform`.

    >>> AffineTransform(1.0, 2.0)(torch.tensor([3.0]))
    tensor([7.])
    """

    bijective = True

    def __init__(self, loc: Value, scale: Value, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.loc = loc
        self.scale = scale
        self._event_dim = event_dim

    def _options(self) -> dict[str, Any]:
        return {"loc": self.loc, "scale": self.scale, "event_dim": self.event_dim}

    event_dim = of_part("_event_dim", "The dimensions of one value.")

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Constraint:
        """All numbers."""
        return widened(constraints.real, self.event_dim)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Constraint:
        """All numbers."""
        return widened(constraints.real, self.event_dim)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AffineTransform):
            return False
        return _equal(self.loc, other.loc) and _equal(self.scale, other.scale)

    @property
    def sign(self) -> Any:
        """That of s."""
        if isinstance(self.scale, NUMBERS):
            return (self.scale > 0) - (self.scale < 0)
        return self.scale.sign()

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """log |s| for each number of a value."""
        shape, scale = x.shape, self.scale
        if isinstance(scale, NUMBERS):
            result = torch.full_like(x, math.log(abs(scale)))
        else:
            result = torch.abs(scale).log()
        if self.event_dim:
            result = result.view(result.size()[: -self.event_dim] + (-1,)).sum(-1)
            shape = shape[: -self.event_dim]
        return result.expand(shape)

    def forward_shape(self, shape: Size) -> Size:
        """Broadcast with m and s."""
        own = (getattr(v, "shape", ()) for v in (self.loc, self.scale))
        return torch.broadcast_shapes(shape, *own)

    inverse_shape = forward_shape


def _equal(a: Value, b: Value) -> bool:
    """Whether numbers or tensors are."""
    same = a == b
    return same if isinstance(same, bool) else bool(same.all())


class CumulativeDistributionTransform(Transform):
    """y = P(X ≤ x) of a distribution. Like `torch.distributions.CumulativeDistributionTransform`.

    >>> from toytorch.distributions import Normal
    >>> CumulativeDistributionTransform(Normal(0.0, 1.0))(torch.tensor([0.0]))
    tensor([0.5000])
    """

    bijective = True
    codomain = constraints.unit_interval
    sign = +1

    def __init__(self, distribution: Distribution, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.distribution = distribution

    def _options(self) -> dict[str, Any]:
        return {"distribution": self.distribution}

    domain = of_part("distribution.support", "The support of the distribution.")

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The log of the density."""
        return self.distribution.log_prob(x)
