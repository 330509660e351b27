"""Kumaraswamy's distribution."""

from __future__ import annotations

import math

import toytorch as torch
from toytorch.core.tensor import Tensor
from toytorch.distributions import constraints
from toytorch.distributions.transformed_distribution import TransformedDistribution
from toytorch.distributions.transforms import AffineTransform, PowerTransform
from toytorch.distributions.uniform import Uniform
from toytorch.distributions.utils import Value, broadcast_all, by_formula, euler_constant

__all__ = ["Kumaraswamy"]


class Kumaraswamy(TransformedDistribution):
    """Numbers in [0, 1] with P(X ≤ x) = 1 - (1 - xᵃ)ᵇ, a = `concentration1`, b = `concentration0`.

    Close to the beta distribution, but both functions have closed forms. Raises ValueError for
    concentrations that are not positive. Like `torch.distributions.Kumaraswamy`.

    >>> Kumaraswamy(torch.tensor([1.0]), torch.tensor([1.0])).mean
    tensor([0.5000])
    """

    arg_constraints = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval
    has_rsample = True
    _batched = {"concentration1": 0, "concentration0": 0}

    def __init__(
        self, concentration1: Value, concentration0: Value, validate_args: bool | None = None
    ) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        low, high = (torch.full_like(self.concentration0, n) for n in (0, 1))
        base = Uniform(low, high, validate_args=validate_args)
        steps = [
            PowerTransform(exponent=self.concentration0.reciprocal()),
            AffineTransform(loc=1.0, scale=-1.0),
            PowerTransform(exponent=self.concentration1.reciprocal()),
        ]  # (1 - u^(1/b))^(1/a)
        super().__init__(base, steps, validate_args=validate_args)

    def _moment(self, n: int) -> Tensor:
        """E[xⁿ] = bΓ(1 + n/a)Γ(b)/Γ(1 + n/a + b)."""
        b, shifted = self.concentration0, 1 + n / self.concentration1
        log = torch.lgamma(shifted) + torch.lgamma(b) - torch.lgamma(shifted + b)
        return b * torch.exp(log)

    mean = by_formula("bB(1 + 1/a, b).", lambda self: self._moment(1))

    @property
    def mode(self) -> Tensor:
        """Where the density is largest; NaN where that is at an end."""
        a, b = self.concentration1, self.concentration0
        log_mode = b.reciprocal() * (-b).log1p() - (-b * a).log1p()
        return log_mode.masked_fill((b < 1) | (a < 1), math.nan).exp()

    variance = by_formula("E[x²] - E[x]².", lambda self: self._moment(2) - torch.pow(self.mean, 2))

    def entropy(self) -> Tensor:
        """1 - 1/b + (1 - 1/a)H(b) - log ab, with harmonic numbers H."""
        a, b = self.concentration1, self.concentration0
        harmonic = torch.digamma(b + 1) + euler_constant
        bends = (1 - b.reciprocal()) + (1 - a.reciprocal()) * harmonic
        return bends - torch.log(a) - torch.log(b)
