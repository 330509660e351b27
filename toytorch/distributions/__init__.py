"""Probability distributions: batches of them, whose samples and densities have gradients.

>>> d = Normal(torch.tensor([0.0, 1.0]), torch.tensor([1.0, 2.0]))
>>> d.log_prob(torch.tensor([0.0, 1.0]))
tensor([-0.9189, -1.6121])

A family is a file: its density, moments and samples. `constraints` says which values are valid,
`transforms` maps between such regions (`biject_to`, `transform_to`), `kl` compares two distributions.
"""

import toytorch as torch  # for the example
from toytorch.distributions import constraints, kl, transforms
from toytorch.distributions.bernoulli import Bernoulli
from toytorch.distributions.beta import Beta
from toytorch.distributions.binomial import Binomial
from toytorch.distributions.categorical import Categorical
from toytorch.distributions.cauchy import Cauchy
from toytorch.distributions.chi2 import Chi2
from toytorch.distributions.constraint_registry import biject_to, transform_to
from toytorch.distributions.continuous_bernoulli import ContinuousBernoulli
from toytorch.distributions.dirichlet import Dirichlet
from toytorch.distributions.distribution import Distribution
from toytorch.distributions.exp_family import ExponentialFamily
from toytorch.distributions.exponential import Exponential
from toytorch.distributions.fishersnedecor import FisherSnedecor
from toytorch.distributions.gamma import Gamma
from toytorch.distributions.generalized_pareto import GeneralizedPareto
from toytorch.distributions.geometric import Geometric
from toytorch.distributions.gumbel import Gumbel
from toytorch.distributions.half_cauchy import HalfCauchy
from toytorch.distributions.half_normal import HalfNormal
from toytorch.distributions.independent import Independent
from toytorch.distributions.inverse_gamma import InverseGamma
from toytorch.distributions.kl import kl_divergence, register_kl
from toytorch.distributions.kumaraswamy import Kumaraswamy
from toytorch.distributions.laplace import Laplace
from toytorch.distributions.lkj_cholesky import LKJCholesky
from toytorch.distributions.log_normal import LogNormal
from toytorch.distributions.logistic_normal import LogisticNormal
from toytorch.distributions.lowrank_multivariate_normal import LowRankMultivariateNormal
from toytorch.distributions.mixture_same_family import MixtureSameFamily
from toytorch.distributions.multinomial import Multinomial
from toytorch.distributions.multivariate_normal import MultivariateNormal
from toytorch.distributions.negative_binomial import NegativeBinomial
from toytorch.distributions.normal import Normal
from toytorch.distributions.one_hot_categorical import (
    OneHotCategorical,
    OneHotCategoricalStraightThrough,
)
from toytorch.distributions.pareto import Pareto
from toytorch.distributions.poisson import Poisson
from toytorch.distributions.relaxed_bernoulli import RelaxedBernoulli
from toytorch.distributions.relaxed_categorical import RelaxedOneHotCategorical
from toytorch.distributions.studentT import StudentT
from toytorch.distributions.transformed_distribution import TransformedDistribution
from toytorch.distributions.transforms import *
from toytorch.distributions.uniform import Uniform
from toytorch.distributions.von_mises import VonMises
from toytorch.distributions.weibull import Weibull
from toytorch.distributions.wishart import Wishart
from toytorch.facts.package import show as _show

_show(globals())
