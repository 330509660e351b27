"""Pareto's distribution."""

from __future__ import annotations

from toytorch.core.tensor import Tensor
from toytorch.distributions import constraints
from toytorch.distributions.exponential import Exponential
from toytorch.distributions.transformed_distribution import TransformedDistribution
from toytorch.distributions.transforms import AffineTransform, ExpTransform
from toytorch.distributions.utils import Value, broadcast_all
from toytorch.facts.parts import of_part

__all__ = ["Pareto"]


class Pareto(TransformedDistribution):
    """Numbers from s on whose tail is a power: P(X > x) = (s/x)ᵃ, s = `scale`, a = `alpha`.

    Raises ValueError for parameters that are not positive. Like `torch.distributions.Pareto`.

    >>> Pareto(torch.tensor([1.0]), torch.tensor([2.0])).mean
    tensor([2.])
    """

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}
    _batched = {"scale": 0, "alpha": 0}

    def __init__(self, scale: Value, alpha: Value, validate_args: bool | None = None) -> None:
        self.scale, self.alpha = broadcast_all(scale, alpha)
        base = Exponential(self.alpha, validate_args=validate_args)
        steps = [ExpTransform(), AffineTransform(loc=0, scale=self.scale)]
        super().__init__(base, steps, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """as/(a - 1) with a > 1, else ∞."""
        a = self.alpha.clamp(min=1)
        return a * self.scale / (a - 1)

    mode = of_part("scale", "s.")

    @property
    def variance(self) -> Tensor:
        """s²a/((a - 1)²(a - 2)) with a > 2, else ∞."""
        a = self.alpha.clamp(min=2)
        return self.scale.pow(2) * a / ((a - 1).pow(2) * (a - 2))

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> constraints.Constraint:
        """From s on."""
        return constraints.greater_than_eq(self.scale)

    def entropy(self) -> Tensor:
        """log(s/a) + 1 + 1/a."""
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())
