"""The log-normal distribution."""

from __future__ import annotations

from toytorch.core.tensor import Tensor
from toytorch.distributions import constraints
from toytorch.distributions.normal import Normal
from toytorch.distributions.transformed_distribution import TransformedDistribution
from toytorch.distributions.transforms import ExpTransform
from toytorch.distributions.utils import Value, by_formula
from toytorch.facts.parts import of_part

__all__ = ["LogNormal"]


class LogNormal(TransformedDistribution):
    """eˣ of normal numbers x: p(y) = exp(-(log y - m)²/2s²)/(ys√2π), m = `loc`, s = `scale`.

    Raises ValueError for scales that are not positive. Like `torch.distributions.LogNormal`.

    >>> LogNormal(torch.tensor([0.0]), torch.tensor([1.0])).mean
    tensor([1.6487])
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True
    base_dist: Normal
    _batched = {}

    loc = of_part("base_dist.loc", "The mean of the log.")
    scale = of_part("base_dist.scale", "The standard deviation of the log.")

    def __init__(self, loc: Value, scale: Value, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    mean = by_formula("exp(m + s²/2).", lambda self: (self.loc + self.scale.pow(2) / 2).exp())
    mode = by_formula("exp(m - s²).", lambda self: (self.loc - self.scale.square()).exp())

    @property
    def variance(self) -> Tensor:
        """(exp(s²) - 1)exp(2m + s²)."""
        square = self.scale.pow(2)
        return square.expm1() * (2 * self.loc + square).exp()

    def entropy(self) -> Tensor:
        """m more than the normal distribution's."""
        return self.base_dist.entropy() + self.loc
