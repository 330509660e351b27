"""The χ² distribution."""

from __future__ import annotations

from toytorch.distributions import constraints
from toytorch.distributions.gamma import Gamma
from toytorch.distributions.utils import Value, by_formula

__all__ = ["Chi2"]


class Chi2(Gamma):
    """The sum of k squares of standard normal numbers, k = `df`: Γ(k/2, 1/2).

    Raises ValueError for degrees of freedom that are not positive. Like `torch.distributions.Chi2`.

    >>> Chi2(torch.tensor([2.0])).mean
    tensor([2.])
    """

    arg_constraints = {"df": constraints.positive}
    _batched = Gamma._batched

    def __init__(self, df: Value, validate_args: bool | None = None) -> None:
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    df = by_formula("k.", lambda self: self.concentration * 2)
