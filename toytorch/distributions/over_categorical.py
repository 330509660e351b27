"""Distributions over a choice between categories."""

from __future__ import annotations

from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.distributions.categorical import Categorical
from toytorch.distributions.distribution import Distribution
from toytorch.facts.size import Size


class OverCategorical(Distribution):
    """A distribution that has a `Categorical`, whose chances are its own."""

    _categorical: Categorical

    def _choose(self, probs: Tensor | None, logits: Tensor | None) -> tuple[Size, Size]:
        """Makes the choice; returns its batch and the shape of one set of chances."""
        self._categorical = Categorical(probs, logits)
        return self._categorical.batch_shape, self._categorical.param_shape[-1:]

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._categorical._new(*args, **kwargs)

    @property
    def _param(self) -> Tensor:
        return self._categorical._param

    @property
    def probs(self) -> Tensor:
        """The chances."""
        return self._categorical.probs

    @property
    def logits(self) -> Tensor:
        """Their logs."""
        return self._categorical.logits

    @property
    def param_shape(self) -> Size:
        """The shape of the chances."""
        return self._categorical.param_shape
