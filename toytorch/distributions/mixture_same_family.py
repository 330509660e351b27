"""Mixtures of distributions of one kind."""

from __future__ import annotations

import toytorch as torch
from toytorch.core.tensor import Tensor
from toytorch.distributions import constraints
from toytorch.distributions.categorical import Categorical
from toytorch.distributions.constraints import MixtureSameFamilyConstraint
from toytorch.distributions.distribution import Distribution
from toytorch.distributions.utils import Shape, by_formula
from toytorch.facts.parts import of_part

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """A draw from one of K components, which a `Categorical` chooses: p(x) = Σ wₖpₖ(x).

    The components lie along the last batch dimension of one distribution. Raises ValueError for
    other classes, and for batches that do not fit. Like `torch.distributions.MixtureSameFamily`.

    >>> from toytorch.distributions import Normal
    >>> half = Categorical(torch.ones(2))
    >>> MixtureSameFamily(half, Normal(torch.tensor([-1.0, 1.0]), torch.ones(2))).variance
    tensor(2.)
    """

    arg_constraints: dict[str, constraints.Constraint] = {}
    has_rsample = False
    _batched = {"_component_distribution": 1, "_mixture_distribution": 0}
    _same = ("_num_component", "_event_ndims")

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(
                " The Mixture distribution needs to be an  instance of "
                "torch.distributions.Categorical"
            )
        if not isinstance(component_distribution, Distribution):
            raise ValueError(
                "The Component distribution needs to be an instance of "
                "torch.distributions.Distribution"
            )
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        choices = mixture_distribution.batch_shape
        components = component_distribution.batch_shape[:-1]
        for i, j in zip(reversed(choices), reversed(components)):
            if i != 1 and j != 1 and i != j:
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({choices}) is not compatible with "
                    f"`component_distribution.batch_shape`({components})"
                )
        count = mixture_distribution.logits.shape[-1]
        last = component_distribution.batch_shape[-1]
        if count != last:
            raise ValueError(
                f"`mixture_distribution component` ({count}) does not equal "
                f"`component_distribution.batch_shape[-1]` ({last})"
            )
        self._num_component = count
        event_shape = component_distribution.event_shape
        self._event_ndims = len(event_shape)
        super().__init__(components, event_shape, validate_args=validate_args)

    @constraints.dependent_property
    def support(self) -> constraints.Constraint:
        """That of the components."""
        return MixtureSameFamilyConstraint(self._component_distribution.support)

    mixture_distribution = of_part("_mixture_distribution", "Which component.")
    component_distribution = of_part("_component_distribution", "The components.")

    def _pad(self, x: Tensor) -> Tensor:
        """Values with a dimension for the components."""
        return x.unsqueeze(-1 - self._event_ndims)

    def _pad_mixture_dimensions(self, x: Tensor) -> Tensor:
        """Weights (..., K) in the number of dimensions of the components' moments."""
        own = len(self._mixture_distribution.batch_shape)
        more = 0 if own == 1 else len(self.batch_shape) - own
        shape = x.shape[:-1] + (1,) * more + x.shape[-1:] + (1,) * self._event_ndims
        return x.reshape(shape)

    def _averaged(self, each: Tensor) -> Tensor:
        weights = self._pad_mixture_dimensions(self.mixture_distribution.probs)
        return torch.sum(weights * each, dim=-1 - self._event_ndims)

    mean = by_formula("Σ wₖmₖ.", lambda self: self._averaged(self.component_distribution.mean))

    @property
    def variance(self) -> Tensor:
        """Σ wₖvₖ + Σ wₖ(mₖ - m)²."""
        off = self.component_distribution.mean - self._pad(self.mean)
        return self._averaged(self.component_distribution.variance) + self._averaged(off.pow(2.0))

    def cdf(self, x: Tensor) -> Tensor:
        """Σ wₖFₖ(x)."""
        each = self.component_distribution.cdf(self._pad(x))
        return torch.sum(each * self.mixture_distribution.probs, dim=-1)

    def log_prob(self, x: Tensor) -> Tensor:
        """log Σ wₖpₖ(x)."""
        self._check_sample(x)
        each = self.component_distribution.log_prob(self._pad(x))
        weights = torch.log_softmax(self.mixture_distribution.logits, dim=-1)
        return torch.logsumexp(each + weights, dim=-1)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        """Draws of all components, of which one is taken."""
        with torch.no_grad():
            at = len(sample_shape) + len(self.batch_shape)
            chosen = self.mixture_distribution.sample(sample_shape)
            drawn = self.component_distribution.sample(sample_shape)
            event = self.event_shape
            chosen = chosen.reshape(chosen.shape + (1,) * (len(event) + 1))
            chosen = chosen.repeat((1,) * (chosen.dim() - len(event)) + event)
            return torch.gather(drawn, at, chosen).squeeze(at)

    def __repr__(self) -> str:
        parts = f"\n  {self.mixture_distribution},\n  {self.component_distribution}"
        return f"MixtureSameFamily({parts})"
