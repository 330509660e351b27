"""The gamma distribution."""

from __future__ import annotations

import toytorch as torch
from toytorch.core.tensor import Tensor
from toytorch.distributions import constraints
from toytorch.distributions.exp_family import ExponentialFamily
from toytorch.distributions.utils import Shape, Value, broadcast_all, by_formula

__all__ = ["Gamma"]


def _standard_gamma(concentration: Tensor) -> Tensor:
    return torch._standard_gamma(concentration)


class Gamma(ExponentialFamily):
    """Positive numbers with the density bᵃxᵃ⁻¹e⁻ᵇˣ/Γ(a), a = `concentration`, b = `rate`.

    Raises ValueError for parameters that are not positive. Like `torch.distributions.Gamma`.

    >>> Gamma(torch.tensor([3.0]), torch.tensor([2.0])).mean
    tensor([1.5000])
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0
    _batched = {"concentration": 0, "rate": 0}

    def __init__(
        self, concentration: Value, rate: Value, validate_args: bool | None = None
    ) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.size(), validate_args=validate_args)

    mean = by_formula("a/b.", lambda self: self.concentration / self.rate)

    @property
    def mode(self) -> Tensor:
        """(a - 1)/b, or 0."""
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    variance = by_formula("a/b².", lambda self: self.concentration / self.rate.pow(2))

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """Standard gamma numbers over b, none of them 0."""
        shape = self._extended_shape(sample_shape)
        value = _standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)
        value.detach().clamp_(min=torch.finfo(value.dtype).tiny)  # the gradient stays as it is
        return value

    def log_prob(self, value: Tensor) -> Tensor:
        """a log b + (a - 1) log x - bx - log Γ(a)."""
        a, b = self.concentration, self.rate
        value = torch.as_tensor(value, dtype=b.dtype, device=b.device)
        self._check_sample(value)
        return torch.xlogy(a, b) + torch.xlogy(a - 1, value) - b * value - torch.lgamma(a)

    def cdf(self, value: Tensor) -> Tensor:
        """P(a, bx)."""
        self._check_sample(value)
        return torch.special.gammainc(self.concentration, self.rate * value)

    def entropy(self) -> Tensor:
        """a - log b + log Γ(a) + (1 - a)ψ(a)."""
        a = self.concentration
        return a - torch.log(self.rate) + torch.lgamma(a) + (1.0 - a) * torch.digamma(a)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.concentration - 1, -self.rate)

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.lgamma(x + 1) + (x + 1) * torch.log(-y.reciprocal())
