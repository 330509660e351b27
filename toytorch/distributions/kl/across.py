"""Divergences of distributions of two classes: KL(p‖q) = -H(p) - E_p[log q(x)].

log q is simple in x, log x or e^(-x/s). So each q needs a few averages over p, whatever p is, and
one formula serves several pairs. Where q never gives what p does, the divergence is ∞.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import toytorch as torch
from toytorch.core.tensor import Tensor
from toytorch.distributions.bernoulli import Bernoulli
from toytorch.distributions.beta import Beta
from toytorch.distributions.binomial import Binomial
from toytorch.distributions.continuous_bernoulli import ContinuousBernoulli
from toytorch.distributions.distribution import Distribution
from toytorch.distributions.exponential import Exponential
from toytorch.distributions.gamma import Gamma
from toytorch.distributions.gumbel import Gumbel
from toytorch.distributions.kl.registry import Formula, register_kl
from toytorch.distributions.laplace import Laplace
from toytorch.distributions.normal import Normal
from toytorch.distributions.pareto import Pareto
from toytorch.distributions.poisson import Poisson
from toytorch.distributions.uniform import Uniform
from toytorch.distributions.utils import euler_constant


def register(kinds_p: Sequence[type], *kinds_q: type) -> Callable[[Formula], Formula]:
    """A decorator: one function for many pairs."""

    def mark(function: Formula) -> Formula:
        for p in kinds_p:
            for q in kinds_q:
                register_kl(p, q)(function)
        return function

    return mark


# -- averages over p -------------------------------------------------------------------------------


def mean_log(p: Any) -> Tensor:
    """E[log x]."""
    if isinstance(p, Beta):
        return p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma()
    if isinstance(p, Exponential):
        return -(p.rate.log() + euler_constant)
    if isinstance(p, Pareto):
        return p.scale.log() + p.alpha.reciprocal()
    return mean_log_between(p.low, p.high)


def mean_log_between(low: Tensor, high: Tensor) -> Tensor:
    """E[log x] of uniform numbers."""
    return (torch.xlogy(high, high) - torch.xlogy(low, low)) / (high - low) - 1


def mean_decay(p: Any, scale: Tensor) -> Tensor:
    """E[e^(-x/s)]."""
    if isinstance(p, Exponential):
        product = p.rate * scale
        return product / (product + 1)
    if isinstance(p, Gamma):
        return (1 + (p.rate * scale).reciprocal()).pow(-p.concentration)
    if isinstance(p, Normal):
        return torch.exp(0.5 * (p.scale / scale).pow(2) - p.loc / scale)
    ends = torch.exp(-p.low / scale) - torch.exp(-p.high / scale)
    return ends * scale / (p.high - p.low)


# -- by q ------------------------------------------------------------------------------------------

PROPER = (Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Laplace, Uniform)


def _to_normal(p: Distribution, q: Normal) -> Tensor:
    """E[(x - m)²] is the variance and the square of how far the mean is off."""
    square = (p.variance + (p.mean - q.loc).pow(2)) / (2 * q.scale.pow(2))
    return square + q.scale.log() + 0.5 * math.log(2 * math.pi) - p.entropy()


for _kind in PROPER:
    register_kl(_kind, Normal)(_to_normal)

register_kl(Pareto, Normal)(lambda p, q: _to_normal(p, q).masked_fill(p.alpha <= 2, math.inf))


@register((Beta, ContinuousBernoulli, Gamma), Exponential)
def _to_exponential(p: Distribution, q: Exponential) -> Tensor:
    return q.rate * p.mean - q.rate.log() - p.entropy()


@register_kl(Pareto, Exponential)
def _pareto_to_exponential(p: Pareto, q: Exponential) -> Tensor:
    return _to_exponential(p, q).masked_fill(p.alpha <= 1, math.inf)


@register_kl(Uniform, Exponential)
def _uniform_to_exponential(p: Uniform, q: Exponential) -> Tensor:
    return _to_exponential(p, q).masked_fill(p.low < 0, math.inf)


@register((Beta, Exponential), Gamma)
def _to_gamma(p: Distribution, q: Gamma) -> Tensor:
    a, b = q.concentration, q.rate
    return a.lgamma() - a * b.log() - (a - 1) * mean_log(p) + b * p.mean - p.entropy()


register_kl(Pareto, Gamma)(lambda p, q: _to_gamma(p, q).masked_fill(p.alpha <= 1, math.inf))
register_kl(Uniform, Gamma)(lambda p, q: _to_gamma(p, q).masked_fill(p.low < 0, math.inf))


@register((Exponential, Gamma, Normal, Uniform), Gumbel)
def _to_gumbel(p: Distribution, q: Gumbel) -> Tensor:
    """-log q = z + e⁻ᶻ + log s."""
    decay = torch.exp(q.loc / q.scale) * mean_decay(p, q.scale)
    return (p.mean - q.loc) / q.scale + decay + q.scale.log() - p.entropy()


@register_kl(Normal, Laplace)
def _normal_to_laplace(p: Normal, q: Laplace) -> Tensor:
    """E|x - m| of a normal number has a part in the bell's middle and one in its tails."""
    off = p.loc - q.loc
    z = off / p.scale
    middle = math.sqrt(2 / math.pi) * p.scale * torch.exp(-0.5 * z.pow(2))
    distance = middle + off * torch.erf(math.sqrt(0.5) * z)
    return distance / q.scale + torch.log(2 * q.scale) - p.entropy()


register_kl(Bernoulli, Poisson)(lambda p, q: q.rate - p.probs * q.rate.log() - p.entropy())


def _to_continuous_bernoulli(p: Distribution, q: ContinuousBernoulli) -> Tensor:
    normalizer = q._cont_bern_log_norm() + torch.log1p(-q.probs)
    return -p.entropy() - p.mean * q.logits - normalizer


register_kl(Beta, ContinuousBernoulli)(_to_continuous_bernoulli)


@register_kl(Uniform, ContinuousBernoulli)
def _uniform_to_continuous_bernoulli(p: Uniform, q: ContinuousBernoulli) -> Tensor:
    """∞ also where p reaches an end of [0, 1], as in PyTorch."""
    outside = (p.high >= 1) | (p.low <= 0)
    return _to_continuous_bernoulli(p, q).masked_fill(outside, math.inf)


@register_kl(Uniform, Beta)
def _uniform_to_beta(p: Uniform, q: Beta) -> Tensor:
    a, b = q.concentration1, q.concentration0
    volume = a.lgamma() + b.lgamma() - (a + b).lgamma()
    powers = (a - 1) * mean_log(p) + (b - 1) * mean_log_between(1 - p.high, 1 - p.low)
    found = volume - powers - p.entropy()
    return found.masked_fill((p.high > 1) | (p.low < 0), math.inf)


@register_kl(Uniform, Pareto)
def _uniform_to_pareto(p: Uniform, q: Pareto) -> Tensor:
    found = (q.alpha + 1) * mean_log(p) - (q.alpha * q.scale.pow(q.alpha)).log() - p.entropy()
    return found.masked_fill(p.low < q.scale, math.inf)


@register_kl(Beta, Uniform)
def _beta_to_uniform(p: Beta, q: Uniform) -> Tensor:
    found = (q.high - q.low).log() - p.entropy()
    return found.masked_fill((q.low > 0) | (q.high < 1), math.inf)


@register_kl(ContinuousBernoulli, Uniform)
def _continuous_bernoulli_to_uniform(p: ContinuousBernoulli, q: Uniform) -> Tensor:
    """∞ also where q reaches no further than [0, 1], as in PyTorch."""
    found = (q.high - q.low).log() - p.entropy()
    return found.masked_fill((q.low >= 0) | (q.high <= 1), math.inf)


# -- what q never gives ----------------------------------------------------------------------------

POSITIVE = (Exponential, Gamma)
EVERYWHERE = (Gumbel, Laplace, Normal)
WITHIN = (Beta, ContinuousBernoulli, Uniform)  # an interval


@register((Beta, ContinuousBernoulli), Pareto)
@register(POSITIVE, *WITHIN, Pareto)
@register(EVERYWHERE, *WITHIN, *POSITIVE, Pareto)
@register((Pareto,), *WITHIN)
@register((Poisson,), Bernoulli, Binomial)
def _kl_infinity(p: Any, q: Distribution) -> Tensor:
    first = vars(p)[next(name for name in p._batched if name in vars(p))]
    like = first.concentration[..., 0] if isinstance(p, Beta) else first
    return torch.full_like(like, math.inf)
