"""Bernoulli numbers, relaxed to have gradients."""

from __future__ import annotations

import toytorch as torch
from toytorch.core.tensor import Tensor
from toytorch.distributions import constraints
from toytorch.distributions.by_chance import ByChance
from toytorch.distributions.transformed_distribution import TransformedDistribution
from toytorch.distributions.transforms import SigmoidTransform
from toytorch.distributions.utils import Shape, Value, broadcast_all, clamp_probs
from toytorch.facts.parts import of_part

__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli"]


class LogitRelaxedBernoulli(ByChance):
    """Logits of relaxed Bernoulli numbers: (logit p + a logistic number)/t, t = `temperature`.

    Raises ValueError as `Bernoulli` does. Like
    `torch.distributions.relaxed_bernoulli.LogitRelaxedBernoulli`.

    >>> LogitRelaxedBernoulli(torch.tensor([1.0]), 0.5).log_prob(torch.tensor([0.0])).exp()
    tensor([0.2500])
    """

    support = constraints.real
    _batched = ByChance._batched
    _same = ("temperature",)

    def __init__(
        self,
        temperature: Tensor,
        probs: Value | None = None,
        logits: Value | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self.temperature = temperature
        super().__init__(probs, logits, validate_args)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """Logits of numbers between 0 and 1."""
        shape = self._extended_shape(sample_shape)
        p = clamp_probs(self.probs.expand(shape))
        u = clamp_probs(torch.rand(shape, dtype=p.dtype, device=p.device))
        return (u.log() - (-u).log1p() + p.log() - (-p).log1p()) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        """log t + d - 2 log(1 + eᵈ) with d = logit p - tx."""
        self._check_sample(value)
        logits, value = broadcast_all(self.logits, value)
        off = logits - value.mul(self.temperature)
        return self.temperature.log() + off - 2 * off.exp().log1p()


class RelaxedBernoulli(TransformedDistribution):
    """Numbers between 0 and 1 that are Bernoulli numbers as `temperature` goes to 0.

    They are functions of p, so gradients flow (Maddison, Mnih and Teh; Jang, Gu and Poole 2017).
    Raises ValueError as `Bernoulli` does. Like `torch.distributions.RelaxedBernoulli`.

    >>> RelaxedBernoulli(torch.tensor([2.2]), torch.tensor([0.1, 0.2])).batch_shape
    torch.Size([2])
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    base_dist: LogitRelaxedBernoulli
    _batched = {}

    temperature = of_part("base_dist.temperature", "t.")
    logits = of_part("base_dist.logits", "log p/(1 - p).")
    probs = of_part("base_dist.probs", "p.")

    def __init__(
        self,
        temperature: Tensor,
        probs: Value | None = None,
        logits: Value | None = None,
        validate_args: bool | None = None,
    ) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)
