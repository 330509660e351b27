"""Exponential families, whose entropy follows from their normaliser."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import toytorch as torch
from toytorch.core.tensor import Tensor
from toytorch.distributions.distribution import Distribution

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """Distributions with densities p(x; θ) = exp(⟨t(x), θ⟩ - F(θ) + k(x)).

    A subclass states θ (`_natural_params`), F (`_log_normalizer`) and E[k(x)]
    (`_mean_carrier_measure`). Since E[t(x)] = ∇F, the entropy is F - ⟨θ, ∇F⟩ - E[k(x)]
    (Nielsen and Nock 2010).
    """

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise NotImplementedError  # a subclass says it, or has none, as in PyTorch

    if TYPE_CHECKING:  # of as many arguments as there are parameters
        _log_normalizer: Callable[..., Tensor]
    else:

        def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
            raise NotImplementedError  # a subclass says it, or has none, as in PyTorch

    @property
    def _mean_carrier_measure(self) -> float:
        raise NotImplementedError  # a subclass says it, or has none, as in PyTorch

    def entropy(self) -> Tensor:
        """The entropy by derivatives of the normaliser."""
        params = [p.detach().requires_grad_() for p in self._natural_params]
        normalizer = self._log_normalizer(*params)
        slopes = torch.autograd.grad(normalizer.sum(), params, create_graph=True)
        result = normalizer - self._mean_carrier_measure
        for p, slope in zip(params, slopes):
            result = result - (p * slope).reshape(self._batch_shape + (-1,)).sum(-1)
        return result
