"""Choices between categories."""

from __future__ import annotations

import math
from typing import Any

import toytorch as torch
from toytorch.core.tensor import Tensor
from toytorch.distributions import constraints
from toytorch.distributions.by_chance import need_one
from toytorch.distributions.distribution import Distribution
from toytorch.distributions.utils import (
    Shape,
    _whole_numbers,
    by_formula,
    lazy_property,
    logits_to_probs,
    probs_to_logits,
)
from toytorch.facts.parts import of_part

__all__ = ["Categorical"]


class Categorical(Distribution):
    """One of K categories, 0 … K - 1, with the chances along the last dimension of `probs`.

    `probs` are weights, which are divided by their sum; `logits` are logs of weights. Both are
    normalised when they are read. Raises ValueError unless one of them is given, for none of at
    least one dimension, and for weights below 0. Like `torch.distributions.Categorical`.

    >>> Categorical(torch.tensor([1.0, 3.0])).log_prob(torch.tensor([0, 1])).exp()
    tensor([0.2500, 0.7500])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    _batched = {"probs": 1, "logits": 1, "_param": 1}
    _same = ("_num_events",)

    def __init__(
        self,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        need_one(probs, logits)
        if probs is not None:
            if probs.dim() < 1:
                raise ValueError("`probs` parameter must be at least one-dimensional.")
            self._param = vars(self)["probs"] = probs / probs.sum(-1, keepdim=True)
        elif logits is not None:
            if logits.dim() < 1:
                raise ValueError("`logits` parameter must be at least one-dimensional.")
            normalized = logits - logits.logsumexp(dim=-1, keepdim=True)
            self._param = vars(self)["logits"] = normalized
        self._num_events = self._param.size()[-1]
        super().__init__(self._param.size()[:-1], validate_args=validate_args)

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._param.new(*args, **kwargs)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:
        """0 … K - 1."""
        return constraints.integer_interval(0, self._num_events - 1)

    @lazy_property
    def logits(self) -> Tensor:
        """The logs of the chances."""
        return probs_to_logits(self.probs)

    @lazy_property
    def probs(self) -> Tensor:
        """The chances."""
        return logits_to_probs(self.logits)

    param_shape = by_formula("The shape of the chances.", lambda self: self._param.size())

    @property
    def mean(self) -> Tensor:
        """NaN: categories are no numbers."""
        return torch.full_like(self.probs[..., 0], math.nan)

    @property
    def mode(self) -> Tensor:
        """The first of the likeliest categories."""
        return self.probs.argmax(dim=-1)

    variance = of_part("mean", "NaN.")

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        """Numbers of categories (int64)."""
        sample_shape = torch.Size(sample_shape)
        rows = self.probs.reshape(-1, self._num_events)
        drawn = torch.multinomial(rows, sample_shape.numel(), True).T
        return drawn.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logit of the category."""
        self._check_sample(value)
        value, logits = torch.broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        return logits.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self) -> Tensor:
        """-Σ p log p; a chance of 0 adds nothing."""
        logits = torch.clamp(self.logits, min=torch.finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All categories."""
        device = self._param.device
        return _whole_numbers(self._num_events, self._batch_shape, expand, torch.long, device)
