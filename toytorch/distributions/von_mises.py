"""Angles around a direction."""

from __future__ import annotations

import math
from collections.abc import Sequence

import toytorch as torch
from toytorch.core.tensor import Tensor
from toytorch.distributions import constraints
from toytorch.distributions.around import Around
from toytorch.distributions.utils import Shape, broadcast_all, lazy_property

__all__ = ["VonMises"]

# Abramowitz and Stegun, 9.8.1 to 9.8.4: I₀ and I₁/x below x = 3.75, √x·e⁻ˣI above, in powers of
# (x/3.75)² and of 3.75/x.
SMALL = (
    (1.0, 3.5156229, 3.0899424, 1.2067492, 0.2659732, 0.0360768, 0.0045813),
    (0.5, 0.87890594, 0.51498869, 0.15084934, 0.02658733, 0.00301532, 0.00032411),
)
LARGE = (
    (0.39894228, 0.01328592, 0.00225319, -0.00157565, 0.00916281, -0.02057706, 0.02635537)
    + (-0.01647633, 0.00392377),
    (0.39894228, -0.03988024, -0.00362018, 0.00163801, -0.01031555, 0.02282967, -0.02895312)
    + (0.01787654, -0.00420059),
)


def _polynomial(y: Tensor, coefficients: Sequence[float]) -> Tensor:
    """The sum of cₖyᵏ."""
    *rest, last = coefficients
    result = last * torch.ones_like(y)
    for c in reversed(rest):
        result = c + y * result
    return result


def _log_modified_bessel_fn(x: Tensor, order: int = 0) -> Tensor:
    """log Iₙ(x) for positive x and n = 0 or 1."""
    small = _polynomial((x / 3.75) ** 2, SMALL[order])
    small = (x.abs() * small if order == 1 else small).log()
    large = x - 0.5 * x.log() + _polynomial(3.75 / x, LARGE[order]).log()
    return torch.where(x < 3.75, small, large)


class VonMises(Around):
    """Angles in [-π, π): p(x) = exp(κ cos(x - m))/2πI₀(κ), m = `loc`, κ = `concentration`.

    Samples are drawn by rejection from a wrapped Cauchy distribution (Best and Fisher 1979). Raises
    ValueError for concentrations that are not positive. Like `torch.distributions.VonMises`.

    >>> VonMises(torch.tensor([0.0]), torch.tensor([1.0])).variance
    tensor([0.5536])
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False
    _batched = {"loc": 0, "concentration": 0}

    def __init__(
        self, loc: Tensor, concentration: Tensor, validate_args: bool | None = None
    ) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, torch.Size(), validate_args)

    def log_prob(self, value: Tensor) -> Tensor:
        """κ cos(x - m) - log 2π - log I₀(κ)."""
        self._check_sample(value)
        exponent = self.concentration * torch.cos(value - self.loc)
        bessel = _log_modified_bessel_fn(self.concentration, order=0)
        return exponent - math.log(2 * math.pi) - bessel

    @lazy_property
    def _loc(self) -> Tensor:
        return self.loc.to(torch.double)

    @lazy_property
    def _concentration(self) -> Tensor:
        return self.concentration.to(torch.double)

    @lazy_property
    def _proposal_r(self) -> Tensor:
        """The parameter of the Cauchy distribution, or its series for small κ."""
        kappa = self._concentration
        tau = 1 + (1 + 4 * kappa**2).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * kappa)
        return torch.where(kappa < 1e-5, 1 / kappa + kappa, (1 + rho**2) / (2 * rho))

    @torch.no_grad()
    def sample(self, sample_shape: Shape = ()) -> Tensor:
        """Angles. All of them are proposed anew until the last one is accepted."""
        shape = self._extended_shape(sample_shape)
        kappa, r = self._concentration, self._proposal_r
        angle = torch.empty(shape, dtype=kappa.dtype, device=kappa.device)
        done = torch.zeros(shape, dtype=torch.bool, device=kappa.device)
        while not done.all():
            u = torch.rand((3, *shape), dtype=kappa.dtype, device=kappa.device)
            u1, u2, u3 = u.unbind()
            z = torch.cos(math.pi * u1)
            f = (1 + r * z) / (r + z)
            c = kappa * (r - f)
            accept = (c * (2 - c) - u2 > 0) | ((c / u2).log() + 1 - c >= 0)
            if accept.any():
                angle = torch.where(accept, (u3 - 0.5).sign() * f.acos(), angle)
                done = done | accept
        wrapped = (angle + math.pi + self._loc) % (2 * math.pi) - math.pi
        return wrapped.to(self.loc.dtype)

    @lazy_property
    def variance(self) -> Tensor:
        """1 - I₁(κ)/I₀(κ), the circular variance."""
        kappa = self.concentration
        ratio = _log_modified_bessel_fn(kappa, order=1) - _log_modified_bessel_fn(kappa, order=0)
        return 1 - ratio.exp()
