"""The half of a normal distribution."""

from __future__ import annotations

import math

from toytorch.distributions.half import Half
from toytorch.distributions.normal import Normal
from toytorch.distributions.utils import by_formula

__all__ = ["HalfNormal"]


class HalfNormal(Half):
    """The absolute value of a normal number around 0: p(x) = √(2/π)/s · exp(-x²/2s²), s = `scale`.

    Raises ValueError for scales that are not positive. Like `torch.distributions.HalfNormal`.

    >>> HalfNormal(torch.tensor([1.0])).mean
    tensor([0.7979])
    """

    base_dist: Normal
    whole = Normal
    _batched = {}

    mean = by_formula("s√(2/π).", lambda self: self.scale * math.sqrt(2 / math.pi))
    variance = by_formula("s²(1 - 2/π).", lambda self: self.scale.pow(2) * (1 - 2 / math.pi))
