"""Choices between categories, relaxed to have gradients."""

from __future__ import annotations

import toytorch as torch
from toytorch.core.tensor import Tensor
from toytorch.distributions import constraints
from toytorch.distributions.over_categorical import OverCategorical
from toytorch.distributions.transformed_distribution import TransformedDistribution
from toytorch.distributions.transforms import ExpTransform
from toytorch.distributions.utils import Shape, broadcast_all, clamp_probs
from toytorch.facts.parts import of_part

__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]


class ExpRelaxedCategorical(OverCategorical):
    """Logs of relaxed one-hot vectors: log softmax((log p + Gumbel numbers)/t), t = `temperature`.

    Raises ValueError as `Categorical` does. Like
    `torch.distributions.relaxed_categorical.ExpRelaxedCategorical`.

    >>> ExpRelaxedCategorical(torch.tensor(1.0), torch.ones(3)).event_shape
    torch.Size([3])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.real_vector
    has_rsample = True
    _batched = {"_categorical": 0}
    _same = ("temperature",)

    def __init__(
        self,
        temperature: Tensor,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self.temperature = temperature
        super().__init__(*self._choose(probs, logits), validate_args=validate_args)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """Logs of points of the simplex."""
        shape, of = self._extended_shape(sample_shape), self.logits
        u = clamp_probs(torch.rand(shape, dtype=of.dtype, device=of.device))
        scores = (of - (-u.log()).log()) / self.temperature
        return scores - scores.logsumexp(dim=-1, keepdim=True)

    def log_prob(self, value: Tensor) -> Tensor:
        """log (K - 1)! + (K - 1) log t + Σ log softmax(log p - tx)."""
        self._check_sample(value)
        K, t = self._categorical._num_events, self.temperature
        logits, value = broadcast_all(self.logits, value)
        scale = torch.full_like(t, float(K)).lgamma() - t.log().mul(-(K - 1))
        score = logits - value.mul(t)
        return (score - score.logsumexp(dim=-1, keepdim=True)).sum(-1) + scale


class RelaxedOneHotCategorical(TransformedDistribution):
    """Points of a simplex that are one-hot vectors as `temperature` goes to 0.

    They are functions of the chances, so gradients flow (Maddison, Mnih and Teh; Jang, Gu and Poole
    2017). Raises ValueError as `Categorical` does. Like `torch.distributions.RelaxedOneHotCategorical`.

    >>> RelaxedOneHotCategorical(torch.tensor(2.2), torch.ones(4)).sample().sum().round(decimals=4)
    tensor(1.)
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    has_rsample = True
    base_dist: ExpRelaxedCategorical
    _batched = {}

    temperature = of_part("base_dist.temperature", "t.")
    logits = of_part("base_dist.logits", "The logs of the chances.")
    probs = of_part("base_dist.probs", "The chances.")

    def __init__(
        self,
        temperature: Tensor,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)
