"""Distributions that are given chances, or logits instead."""

from __future__ import annotations

from typing import Any, ClassVar

from toytorch.core.tensor import Tensor
from toytorch.distributions import constraints
from toytorch.distributions.distribution import Distribution
from toytorch.distributions.utils import (
    Value,
    broadcast_all,
    by_formula,
    lazy_property,
    logits_to_probs,
    probs_to_logits,
)


def need_one(probs: object, logits: object) -> None:
    """Refuses both of them, and none."""
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")


class ByChance(Distribution):
    """A distribution with one of `probs` and `logits`; the other one is computed when it is read.

    The logit of a chance p is log p/(1 - p).
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    _batched: ClassVar[dict[str, int]] = {"probs": 0, "logits": 0, "_param": 0}
    _param: Tensor  # the one that was given

    def __init__(
        self,
        probs: Value | None = None,
        logits: Value | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._given(probs, logits)
        super().__init__(self._param.size(), validate_args=validate_args)

    def _given(self, probs: Value | None, logits: Value | None, *beside: Value) -> list[Tensor]:
        """Keeps the chances; returns what stands beside them, broadcast with them."""
        need_one(probs, logits)
        name, value = ("probs", probs) if probs is not None else ("logits", logits)
        assert value is not None
        *more, self._param = broadcast_all(*beside, value)
        vars(self)[name] = self._param
        return more

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._param.new(*args, **kwargs)

    @lazy_property
    def logits(self) -> Tensor:
        """log p/(1 - p)."""
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Tensor:
        """The chances p."""
        return logits_to_probs(self.logits, is_binary=True)

    param_shape = by_formula("The shape of what was given.", lambda self: self._param.size())
