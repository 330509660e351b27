"""Distributions over a choice between categories."""

from __future__ import annotations

from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.distributions.categorical import Categorical
from toytorch.distributions.distribution import Distribution
from toytorch.facts.parts import of_part
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

    _param = of_part("_categorical._param")
    probs = of_part("_categorical.probs", "The chances.")
    logits = of_part("_categorical.logits", "Their logs.")
    param_shape = of_part("_categorical.param_shape", "The shape of the chances.")
