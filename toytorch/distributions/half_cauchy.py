"""The half of Cauchy's distribution."""

from __future__ import annotations

import toytorch as torch
from toytorch.core.tensor import Tensor
from toytorch.distributions.cauchy import Cauchy
from toytorch.distributions.half import Half
from toytorch.facts.parts import of_part

__all__ = ["HalfCauchy"]


class HalfCauchy(Half):
    """The absolute value of a Cauchy number around 0: p(x) = 2/(πs(1 + (x/s)²)), s = `scale`.

    Raises ValueError for scales that are not positive. Like `torch.distributions.HalfCauchy`.

    >>> HalfCauchy(torch.tensor([1.0])).cdf(torch.tensor([1.0]))
    tensor([0.5000])
    """

    base_dist: Cauchy
    whole = Cauchy
    _batched = {}

    mean = of_part("base_dist.variance", "∞.")
    variance = of_part("base_dist.variance", "∞.")

    def log_prob(self, value: Tensor) -> Tensor:
        """log 2 more than the whole one's; -∞ below 0."""
        self._check_sample(value)
        value = torch.as_tensor(value, dtype=self.scale.dtype, device=self.scale.device)
        return super().log_prob(value)
