"""Dirichlet's distribution."""

from __future__ import annotations

from typing import Any

import toytorch as torch
from toytorch.autograd import Function
from toytorch.autograd.function import once_differentiable
from toytorch.core.tensor import Tensor
from toytorch.distributions import constraints
from toytorch.distributions.exp_family import ExponentialFamily
from toytorch.distributions.utils import Shape, by_formula
from toytorch.nn.functional import one_hot

__all__ = ["Dirichlet"]


def _Dirichlet_backward(x: Tensor, concentration: Tensor, grad_output: Tensor) -> Tensor:
    """The gradient for concentrations. Each moves its own number, and the others make room."""
    total = concentration.sum(-1, True).expand_as(concentration)
    moves = torch._dirichlet_grad(x, concentration, total)
    return moves * (grad_output - (x * grad_output).sum(-1, True))


class _Dirichlet(Function):
    """Numbers that are drawn, as a function of the concentrations."""

    @staticmethod
    def forward(ctx: Any, concentration: Tensor) -> Tensor:
        x: Tensor = torch._sample_dirichlet(concentration)
        ctx.save_for_backward(x, concentration)
        return x

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        x, concentration = ctx.saved_tensors
        return _Dirichlet_backward(x, concentration, grad_output)


class Dirichlet(ExponentialFamily):
    """K numbers that add up to 1, with the density Γ(Σa)/ΠΓ(a) · Πxᵃ⁻¹, where a is `concentration`.

    Its last dimension is that of an event. Raises ValueError where it has none, and for
    concentrations that are not positive. Like `torch.distributions.Dirichlet`.

    >>> Dirichlet(torch.tensor([1.0, 3.0])).mean
    tensor([0.2500, 0.7500])
    """

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True
    _batched = {"concentration": 1}

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        shape = concentration.shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """Gamma numbers divided by their sum."""
        shape = self._extended_shape(sample_shape)
        return _Dirichlet.apply(self.concentration.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        """Σ(a - 1) log x + log Γ(Σa) - Σ log Γ(a)."""
        self._check_sample(value)
        a = self.concentration
        powers = torch.xlogy(a - 1.0, value).sum(-1)
        return powers + torch.lgamma(a.sum(-1)) - torch.lgamma(a).sum(-1)

    mean = by_formula("a/Σa.", lambda self: self.concentration / self.concentration.sum(-1, True))

    @property
    def mode(self) -> Tensor:
        """(a - 1)/Σ(a - 1), without what is below 0; a corner if all concentrations are below 1."""
        above = (self.concentration - 1).clamp(min=0.0)
        mode = above / above.sum(-1, True)
        corner = (self.concentration < 1).all(dim=-1)
        mode[corner] = one_hot(mode[corner].argmax(dim=-1), above.shape[-1]).to(mode)
        return mode

    @property
    def variance(self) -> Tensor:
        """a(s - a)/(s²(s + 1)) with s = Σa."""
        total = self.concentration.sum(-1, True)
        spread = self.concentration * (total - self.concentration)
        return spread / (total.pow(2) * (total + 1))

    def entropy(self) -> Tensor:
        """log B(a) - (K - Σa)ψ(Σa) - Σ(a - 1)ψ(a)."""
        a, total = self.concentration, self.concentration.sum(-1)
        normalizer = torch.lgamma(a).sum(-1) - torch.lgamma(total)
        rest = (a.size(-1) - total) * torch.digamma(total)
        return normalizer - rest - ((a - 1.0) * torch.digamma(a)).sum(-1)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.concentration,)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return x.lgamma().sum(-1) - torch.lgamma(x.sum(-1))
