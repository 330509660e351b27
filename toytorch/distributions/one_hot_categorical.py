"""Choices between categories as vectors."""

from __future__ import annotations

import toytorch as torch
from toytorch.core.tensor import Tensor
from toytorch.distributions import constraints
from toytorch.distributions.over_categorical import OverCategorical
from toytorch.distributions.utils import Shape, by_formula
from toytorch.facts.parts import of_part
from toytorch.nn.functional import one_hot

__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]


class OneHotCategorical(OverCategorical):
    """A `Categorical` whose samples are vectors (K,) with a 1 at the category.

    Raises ValueError as `Categorical` does. Like `torch.distributions.OneHotCategorical`.

    >>> OneHotCategorical(torch.tensor([1.0, 3.0])).mean
    tensor([0.2500, 0.7500])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.one_hot
    has_enumerate_support = True
    _batched = {"_categorical": 0}

    def __init__(
        self,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        super().__init__(*self._choose(probs, logits), validate_args=validate_args)

    mean = of_part("probs", "p.")

    @property
    def mode(self) -> Tensor:
        """The first of the likeliest categories."""
        return one_hot(self.probs.argmax(dim=-1), self.probs.shape[-1]).to(self.probs)

    variance = by_formula("p(1 - p).", lambda self: self.probs * (1 - self.probs))

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        """Vectors of one 1."""
        chosen = self._categorical.sample(torch.Size(sample_shape))
        return one_hot(chosen, self._categorical._num_events).to(self.probs)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logit of the category."""
        self._check_sample(value)
        return self._categorical.log_prob(value.max(-1)[1])

    def entropy(self) -> Tensor:
        """-Σ p log p."""
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """The rows of the identity."""
        n = self.event_shape[0]
        values = torch.eye(n, dtype=self._param.dtype, device=self._param.device)
        values = values.view((n,) + (1,) * len(self.batch_shape) + (n,))
        return values.expand((n,) + self.batch_shape + (n,)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """A `OneHotCategorical` whose samples have the gradient of the chances (Bengio et al. 2013).

    Raises ValueError as `Categorical` does. Like
    `torch.distributions.OneHotCategoricalStraightThrough`.

    >>> OneHotCategoricalStraightThrough(torch.tensor([1.0])).rsample()
    tensor([1.])
    """

    has_rsample = True

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """Vectors of one 1, which move as the chances do."""
        samples, probs = self.sample(sample_shape), self.probs
        return samples + (probs - probs.detach())
