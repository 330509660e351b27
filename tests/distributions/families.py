"""Every distribution with parameters of each kind, as both packages make them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.oracle import Side, torch

Rng = np.random.Generator
Shape = tuple[int, ...]


def _psd(rng: Rng, batch: Shape) -> Any:
    a = rng.normal(size=(*batch, 3, 3))
    return a @ np.swapaxes(a, -1, -2) + np.eye(3)


KINDS: dict[str, Callable[[Rng, Shape], Any]] = {  # draws of parameters
    "real": lambda rng, batch: rng.normal(size=batch),
    "positive": lambda rng, batch: rng.uniform(0.3, 3, batch),
    "small": lambda rng, batch: rng.uniform(0.01, 0.3, batch),
    "large": lambda rng, batch: rng.uniform(4, 30, batch),
    "unit": lambda rng, batch: rng.uniform(0.05, 0.95, batch),
    "half": lambda rng, batch: rng.uniform(0.4995, 0.5005, batch),
    "count": lambda rng, batch: rng.integers(1, 7, batch).astype(float),
    "five": lambda rng, batch: np.full(batch, 5.0),
    "below": lambda rng, batch: rng.uniform(-2, -0.5, batch),
    "above": lambda rng, batch: rng.uniform(0.5, 2, batch),
    "simplex": lambda rng, batch: rng.dirichlet(np.ones(3), batch),
    "vector": lambda rng, batch: rng.normal(size=(*batch, 3)),
    "positives": lambda rng, batch: rng.uniform(0.3, 3, (*batch, 3)),
    "covariance": _psd,
    "tril": lambda rng, batch: np.linalg.cholesky(_psd(rng, batch)),
    "factor": lambda rng, batch: rng.normal(size=(*batch, 3, 2)),
    "temperature": lambda rng, batch: np.asarray(rng.uniform(0.5, 2)),
}


@dataclass(frozen=True)
class Case:
    """A way to make a distribution: `make(package, **parameters)`."""

    name: str
    make: Callable[..., Any]
    kinds: dict[str, str]
    moves: bool = True  # gradients of samples exist
    wide: bool = True  # PyTorch computes it in float64
    slack: float = 1.0  # of gradients of samples: those of gamma numbers have three digits

    def parameters(self, batch: Shape, dtype: Any, seed: int = 0) -> dict[str, Any]:
        """PyTorch's tensors."""
        dtype = dtype if self.wide else torch.float32
        rng = np.random.default_rng([seed, len(batch), *self.name.encode()])
        return {
            name: torch.from_numpy(np.array(KINDS[kind](rng, batch))).to(dtype)
            for name, kind in self.kinds.items()
        }

    def on(self, side: Side, parameters: dict[str, Any], **more: Any) -> Any:
        """The distribution on one side."""
        return self.make(side.root.distributions, **side.carry(parameters), **more)


def _case(
    name: str,
    class_name: str = "",
    *,
    slack: float = 1.0,
    wide: bool = True,
    moves: bool = True,
    **kinds: str,
) -> Case:
    class_name = class_name or name
    fixed = {k: int(v) for k, v in kinds.items() if v.isdigit()}
    drawn = {k: v for k, v in kinds.items() if not v.isdigit()}

    def make(m: Any, **parameters: Any) -> Any:
        return getattr(m, class_name)(**fixed, **parameters)

    return Case(name, make, drawn, moves, wide, slack)


def _independent(m: Any, **p: Any) -> Any:
    return m.Independent(m.Normal(p["loc"], p["scale"]), 1)


def _mixture(m: Any, **p: Any) -> Any:
    return m.MixtureSameFamily(m.Categorical(p["probs"]), m.Normal(p["loc"], p["scale"]))


def _mixture_of_vectors(m: Any, **p: Any) -> Any:
    components = m.Independent(m.Normal(p["loc"].unsqueeze(-1), p["scale"].unsqueeze(-1)), 1)
    return m.MixtureSameFamily(m.Categorical(p["probs"]), components)


def _transformed(m: Any, **p: Any) -> Any:
    steps = [m.AffineTransform(p["shift"], -2.0), m.SigmoidTransform()]
    return m.TransformedDistribution(m.Normal(p["loc"], p["scale"]), steps)


def _low_rank(m: Any, **p: Any) -> Any:
    return m.LowRankMultivariateNormal(p["loc"], p["cov_factor"], p["cov_diag"])


GAMMA = 1e5  # slack for 1e-2 in float64
CASES = [
    _case("Bernoulli", probs="unit"),
    _case("Bernoulli of logits", "Bernoulli", logits="real"),
    _case("Beta", concentration1="positive", concentration0="positive", slack=GAMMA),
    _case("Beta small", "Beta", concentration1="small", concentration0="small", slack=GAMMA),
    _case("Binomial", total_count="five", probs="unit"),
    _case("Binomial of counts", "Binomial", total_count="count", logits="real"),
    _case("Categorical", probs="simplex"),
    _case("Categorical of logits", "Categorical", logits="vector"),
    _case("Cauchy", loc="real", scale="positive"),
    _case("Chi2", df="positive", slack=GAMMA),
    _case("ContinuousBernoulli", probs="unit"),
    _case("ContinuousBernoulli of halves", "ContinuousBernoulli", probs="half"),
    _case("ContinuousBernoulli of logits", "ContinuousBernoulli", logits="real"),
    _case("Dirichlet", concentration="positives", slack=GAMMA),
    _case("Exponential", rate="positive"),
    _case("FisherSnedecor", df1="positive", df2="large", slack=GAMMA),
    _case("Gamma", concentration="positive", rate="positive", slack=GAMMA),
    _case("Gamma small", "Gamma", concentration="small", rate="positive", slack=GAMMA),
    _case("Gamma large", "Gamma", concentration="large", rate="positive", slack=GAMMA),
    _case(  # PyTorch compares its concentration with a float32 number
        "GeneralizedPareto", loc="real", scale="positive", concentration="real", wide=False
    ),
    _case("Geometric", probs="unit"),
    _case("Geometric of logits", "Geometric", logits="real"),
    _case("Gumbel", loc="real", scale="positive"),
    _case("HalfCauchy", scale="positive"),
    _case("HalfNormal", scale="positive"),
    Case("Independent", _independent, {"loc": "vector", "scale": "positives"}),
    _case("InverseGamma", concentration="positive", rate="positive", slack=GAMMA),
    _case("Kumaraswamy", concentration1="positive", concentration0="positive"),
    _case("LKJCholesky", dim="3", concentration="positive"),
    _case("Laplace", loc="real", scale="positive"),
    _case("LogNormal", loc="real", scale="positive"),
    _case("LogisticNormal", loc="vector", scale="positives"),
    Case(
        "LowRankMultivariateNormal",
        _low_rank,
        {"loc": "vector", "cov_factor": "factor", "cov_diag": "positives"},
    ),
    Case("Mixture", _mixture, {"probs": "simplex", "loc": "vector", "scale": "positives"}),
    Case(
        "Mixture of vectors",
        _mixture_of_vectors,
        {"probs": "simplex", "loc": "vector", "scale": "positives"},
    ),
    _case("Multinomial", total_count="5", probs="simplex"),
    _case("MultivariateNormal", loc="vector", covariance_matrix="covariance"),
    _case("MultivariateNormal of tril", "MultivariateNormal", loc="vector", scale_tril="tril"),
    _case(
        "MultivariateNormal of precision",
        "MultivariateNormal",
        loc="vector",
        precision_matrix="covariance",
    ),
    _case("NegativeBinomial", total_count="positive", probs="unit"),
    _case("NegativeBinomial of logits", "NegativeBinomial", total_count="count", logits="real"),
    _case("Normal", loc="real", scale="positive"),
    _case("OneHotCategorical", probs="simplex"),
    _case("OneHotCategoricalStraightThrough", logits="vector"),
    _case("Pareto", scale="positive", alpha="positive"),
    _case("Poisson", rate="positive"),
    _case("Poisson large", "Poisson", rate="large"),
    _case("RelaxedBernoulli", temperature="temperature", probs="unit"),
    _case("RelaxedOneHotCategorical", temperature="temperature", logits="vector"),
    _case("StudentT", df="positive", loc="real", scale="positive", slack=GAMMA),
    Case("Transformed", _transformed, {"loc": "real", "scale": "positive", "shift": "real"}),
    _case("Uniform", low="below", high="above"),
    _case("VonMises", loc="real", concentration="positive"),
    _case("Weibull", scale="positive", concentration="positive"),
    # PyTorch's draws change a mask that their gradient needs, and refuse it.
    _case("Wishart", df="large", covariance_matrix="covariance", moves=False),
    _case(
        "Wishart of precision", "Wishart", df="large", precision_matrix="covariance", moves=False
    ),
]
BATCHES: list[Shape] = [(), (3,), (2, 3)]
