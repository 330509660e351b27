"""The geometric distribution."""

from __future__ import annotations

import toytorch as torch
from toytorch.core.tensor import Tensor
from toytorch.distributions import constraints
from toytorch.distributions.by_chance import ByChance
from toytorch.distributions.utils import Shape, Value, broadcast_all, by_formula
from toytorch.nn.functional import binary_cross_entropy_with_logits

__all__ = ["Geometric"]


class Geometric(ByChance):
    """How many trials fail before the first that succeeds: P(k) = (1 - p)ᵏp, k = 0, 1, ….

    Raises ValueError for chances outside of (0, 1], and unless one of `probs` and `logits` is given.
    Like `torch.distributions.Geometric`.

    >>> Geometric(torch.tensor([0.25])).mean
    tensor([3.])
    """

    support = constraints.nonnegative_integer
    _batched = ByChance._batched

    def __init__(
        self,
        probs: Value | None = None,
        logits: Value | None = None,
        validate_args: bool | None = None,
    ) -> None:
        super().__init__(probs, logits, validate_args)
        if self._validate_args and probs is not None:
            value, valid = self.probs, self.probs > 0
            if not valid.all():
                raise ValueError(
                    f"Expected parameter probs ({type(value).__name__} of shape "
                    f"{tuple(value.shape)}) of distribution {self!r} to be positive but found "
                    f"invalid values:\n{value.data[~valid]}"
                )

    mean = by_formula("1/p - 1.", lambda self: 1.0 / self.probs - 1.0)
    mode = by_formula("0.", lambda self: torch.zeros_like(self.probs))
    variance = by_formula("(1 - p)/p².", lambda self: (1.0 / self.probs - 1.0) / self.probs)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        """log u/log(1 - p), rounded down, of uniform u."""
        shape, p = self._extended_shape(sample_shape), self.probs
        with torch.no_grad():
            u = p.new_empty(shape).uniform_(torch.finfo(p.dtype).tiny, 1)
            return (u.log() / (-p).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        """k log(1 - p) + log p."""
        self._check_sample(value)
        value, p = broadcast_all(value, self.probs)
        p = p.masked_fill((p == 1) & (value == 0), 0)  # 0·log 0 is 0
        return value * (-p).log1p() + self.probs.log()

    def entropy(self) -> Tensor:
        """That of one trial, 1/p times."""
        each = binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")
        return each / self.probs
