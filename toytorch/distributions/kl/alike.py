"""Divergences of two distributions of one class."""

from __future__ import annotations

import math
from typing import Any

import toytorch as torch
from toytorch.core.tensor import Tensor
from toytorch.distributions.bernoulli import Bernoulli
from toytorch.distributions.beta import Beta
from toytorch.distributions.binomial import Binomial
from toytorch.distributions.categorical import Categorical
from toytorch.distributions.cauchy import Cauchy
from toytorch.distributions.continuous_bernoulli import ContinuousBernoulli
from toytorch.distributions.dirichlet import Dirichlet
from toytorch.distributions.exp_family import ExponentialFamily
from toytorch.distributions.exponential import Exponential
from toytorch.distributions.gamma import Gamma
from toytorch.distributions.geometric import Geometric
from toytorch.distributions.gumbel import Gumbel
from toytorch.distributions.half_normal import HalfNormal
from toytorch.distributions.independent import Independent
from toytorch.distributions.kl.registry import kl_divergence, register_kl
from toytorch.distributions.laplace import Laplace
from toytorch.distributions.lowrank_multivariate_normal import (
    LowRankMultivariateNormal,
    _batch_lowrank_logdet,
    _batch_lowrank_mahalanobis,
)
from toytorch.distributions.multivariate_normal import (
    MultivariateNormal,
    _batch_mahalanobis,
    log_diagonal,
)
from toytorch.distributions.normal import Normal
from toytorch.distributions.one_hot_categorical import OneHotCategorical
from toytorch.distributions.pareto import Pareto
from toytorch.distributions.poisson import Poisson
from toytorch.distributions.transformed_distribution import TransformedDistribution
from toytorch.distributions.uniform import Uniform
from toytorch.distributions.utils import _sum_rightmost, euler_constant
from toytorch.nn.functional import softplus


@register_kl(ExponentialFamily, ExponentialFamily)
def _kl_expfamily_expfamily(p: Any, q: Any) -> Tensor:
    """F(θq) - F(θp) - ⟨θq - θp, ∇F(θp)⟩ (a Bregman divergence)."""
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot"
            f"{' ' * 28} be computed using Bregman divergences"
        )
    at = [n.detach().requires_grad_() for n in p._natural_params]
    normalizer = p._log_normalizer(*at)
    slopes = torch.autograd.grad(normalizer.sum(), at, create_graph=True)
    result = q._log_normalizer(*q._natural_params) - normalizer
    for own, other, slope in zip(at, q._natural_params, slopes):
        result = result - _sum_rightmost((other - own) * slope, len(q.event_shape))
    return result


# -- chances ---------------------------------------------------------------------------------------


@register_kl(Bernoulli, Bernoulli)
def _kl_bernoulli_bernoulli(p: Bernoulli, q: Bernoulli) -> Tensor:
    one = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    zero = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    return _where_possible(one, p.probs, q.probs) + _where_possible(zero, 1 - p.probs, 1 - q.probs)


def _where_possible(term: Tensor, p: Tensor, q: Tensor) -> Tensor:
    """A term p·log(p/q): ∞ where q never gives what p does, 0 where p never does."""
    return term.masked_fill(q == 0, math.inf).masked_fill(p == 0, 0)


@register_kl(Binomial, Binomial)
def _kl_binomial_binomial(p: Binomial, q: Binomial) -> Tensor:
    if (p.total_count < q.total_count).any():
        raise NotImplementedError(
            "KL between Binomials where q.total_count > p.total_count is not implemented"
        )
    each = p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p()
    return (p.total_count * each).masked_fill(p.total_count > q.total_count, math.inf)


@register_kl(Categorical, Categorical)
def _kl_categorical_categorical(p: Categorical, q: Categorical) -> Tensor:
    term = p.probs * (p.logits - q.logits)
    return _where_possible(term, p.probs, q.probs).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _kl_onehotcategorical_onehotcategorical(p: Any, q: Any) -> Tensor:
    return _kl_categorical_categorical(p._categorical, q._categorical)


@register_kl(Geometric, Geometric)
def _kl_geometric_geometric(p: Geometric, q: Geometric) -> Tensor:
    return -p.entropy() - torch.log1p(-q.probs) / p.probs - q.logits


@register_kl(Poisson, Poisson)
def _kl_poisson_poisson(p: Poisson, q: Poisson) -> Tensor:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


# -- numbers ---------------------------------------------------------------------------------------


@register_kl(Beta, Beta)
def _kl_beta_beta(p: Beta, q: Beta) -> Tensor:
    return _kl_dirichlet_dirichlet(p._dirichlet, q._dirichlet)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _kl_continuous_bernoulli_continuous_bernoulli(p: Any, q: Any) -> Tensor:
    own = p._cont_bern_log_norm() + torch.log1p(-p.probs)
    other = q._cont_bern_log_norm() + torch.log1p(-q.probs)
    return p.mean * (p.logits - q.logits) + own - other


@register_kl(Exponential, Exponential)
def _kl_exponential_exponential(p: Exponential, q: Exponential) -> Tensor:
    ratio = q.rate / p.rate
    return ratio - 1 - ratio.log()


@register_kl(Gamma, Gamma)
def _kl_gamma_gamma(p: Gamma, q: Gamma) -> Tensor:
    a, b = p.concentration, q.concentration
    shapes = torch.lgamma(b) - torch.lgamma(a) + (a - b) * torch.digamma(a)
    return b * (p.rate / q.rate).log() + shapes + (q.rate - p.rate) * (a / p.rate)


@register_kl(Gumbel, Gumbel)
def _kl_gumbel_gumbel(p: Gumbel, q: Gumbel) -> Tensor:
    ratio, off = p.scale / q.scale, (p.loc - q.loc) / q.scale
    tail = torch.exp((1 + ratio).lgamma() - off)
    return off - ratio.log() + ratio * euler_constant + tail - (1 + euler_constant)


@register_kl(Normal, Normal)
def _kl_normal_normal(p: Normal, q: Normal) -> Tensor:
    ratio = (p.scale / q.scale).pow(2)
    off = ((p.loc - q.loc) / q.scale).pow(2)
    return 0.5 * (ratio + off - 1 - ratio.log())


register_kl(HalfNormal, HalfNormal)(lambda p, q: _kl_normal_normal(p.base_dist, q.base_dist))


@register_kl(Laplace, Laplace)
def _kl_laplace_laplace(p: Laplace, q: Laplace) -> Tensor:
    ratio, off = p.scale / q.scale, (p.loc - q.loc).abs()
    return off / q.scale + ratio * torch.exp(-off / p.scale) - ratio.log() - 1


@register_kl(Cauchy, Cauchy)
def _kl_cauchy_cauchy(p: Cauchy, q: Cauchy) -> Tensor:
    squares = (p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)
    return squares.log() - (4 * p.scale * q.scale).log()


@register_kl(Pareto, Pareto)
def _kl_pareto_pareto(p: Pareto, q: Pareto) -> Tensor:
    ratio = q.alpha / p.alpha
    found = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return found.masked_fill(p.scale < q.scale, math.inf)


@register_kl(Uniform, Uniform)
def _kl_uniform_uniform(p: Uniform, q: Uniform) -> Tensor:
    found = ((q.high - q.low) / (p.high - p.low)).log()
    return found.masked_fill((q.low > p.low) | (q.high < p.high), math.inf)


# -- vectors ---------------------------------------------------------------------------------------


@register_kl(Dirichlet, Dirichlet)
def _kl_dirichlet_dirichlet(p: Dirichlet, q: Dirichlet) -> Tensor:
    a, b = p.concentration, q.concentration
    total = a.sum(-1)
    volumes = total.lgamma() - b.sum(-1).lgamma() - (a.lgamma() - b.lgamma()).sum(-1)
    means = a.digamma() - total.digamma().unsqueeze(-1)  # of log x
    return volumes + ((a - b) * means).sum(-1)


def _same_events(p: Any, q: Any, kind: str) -> None:
    if p.event_shape != q.event_shape:
        raise ValueError(
            f"KL-divergence between two {kind} with different event shapes cannot be computed"
        )


def _batch_trace_XXT(bmat: Tensor) -> Tensor:
    """tr(XXᵀ): the sum of all squares."""
    return bmat.reshape((*bmat.shape[:-2], -1)).pow(2).sum(-1)


def _solved(q: MultivariateNormal, *matrices: Tensor) -> Tensor:
    """The sum of tr(XXᵀ) for X = L⁻¹M, L the factor of q's covariance."""
    L = q._unbroadcasted_scale_tril
    total: Any = 0
    for matrix in matrices:
        batch = torch.broadcast_shapes(L.shape[:-2], matrix.shape[:-2])
        wide = matrix.expand(batch + (-1, -1))
        X = torch.linalg.solve_triangular(L.expand(batch + (-1, -1)), wide, upper=False)
        total = total + _batch_trace_XXT(X)
    return total


def _into_low_rank(q: LowRankMultivariateNormal, *matrices: Tensor) -> Tensor:
    """The sum of tr(MᵀΣ⁻¹M), Σ the covariance of q, by Woodbury's identity."""
    W, d = q._factors
    A = torch.linalg.solve_triangular(q._capacitance_tril, W.mT / d.unsqueeze(-2), upper=False)
    total: Any = 0
    for matrix in matrices:
        scaled = _batch_trace_XXT(matrix * d.rsqrt().unsqueeze(-1))
        total = total + scaled - _batch_trace_XXT(A.matmul(matrix))
    return total


def _low_rank_log_det(p: LowRankMultivariateNormal) -> Tensor:
    return _batch_lowrank_logdet(*p._factors, p._capacitance_tril)


def _low_rank_distance(p: Any, q: LowRankMultivariateNormal) -> Tensor:
    W, d = q._factors
    return _batch_lowrank_mahalanobis(W, d, q.loc - p.loc, q._capacitance_tril)


# KL = (log det Σq - log det Σp + tr(Σq⁻¹Σp) + (mq - mp)ᵀΣq⁻¹(mq - mp) - D)/2 of normal vectors.


@register_kl(MultivariateNormal, MultivariateNormal)
def _kl_multivariatenormal_multivariatenormal(p: Any, q: Any) -> Tensor:
    _same_events(p, q, "Multivariate Normals")
    L, M = p._unbroadcasted_scale_tril, q._unbroadcasted_scale_tril
    distance = _batch_mahalanobis(M, q.loc - p.loc)
    size = p.event_shape[0]
    return log_diagonal(M) - log_diagonal(L) + 0.5 * (_solved(q, L) + distance - size)


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _kl_lowrankmultivariatenormal_lowrankmultivariatenormal(p: Any, q: Any) -> Tensor:
    _same_events(p, q, "Low Rank Multivariate Normals")
    W, d = p._factors
    volume = _low_rank_log_det(q) - _low_rank_log_det(p)
    trace = _into_low_rank(q, W, torch.diag_embed(d.sqrt()))
    return 0.5 * (volume + trace + _low_rank_distance(p, q) - p.event_shape[0])


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _kl_multivariatenormal_lowrankmultivariatenormal(p: Any, q: Any) -> Tensor:
    _same_events(p, q, "(Low Rank) Multivariate Normals")
    L = p._unbroadcasted_scale_tril
    volume = _low_rank_log_det(q) - 2 * log_diagonal(L)
    trace = _into_low_rank(q, L)
    return 0.5 * (volume + trace + _low_rank_distance(p, q) - p.event_shape[0])


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _kl_lowrankmultivariatenormal_multivariatenormal(p: Any, q: Any) -> Tensor:
    _same_events(p, q, "(Low Rank) Multivariate Normals")
    W, d = p._factors
    L = q._unbroadcasted_scale_tril
    volume = 2 * log_diagonal(L) - _low_rank_log_det(p)
    distance = _batch_mahalanobis(L, q.loc - p.loc)
    trace = _solved(q, W, torch.diag_embed(d.sqrt()))
    return 0.5 * (volume + trace + distance - p.event_shape[0])


# -- distributions made of others ------------------------------------------------------------------


@register_kl(TransformedDistribution, TransformedDistribution)
def _kl_transformed_transformed(p: Any, q: Any) -> Tensor:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError  # no closed form is known
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Independent, Independent)
def _kl_independent_independent(p: Any, q: Any) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError  # no closed form is known
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)
