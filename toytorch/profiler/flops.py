"""How many floating-point operations a call took, by the formula in the op's record.

Ops without a formula count as none, as PyTorch's do (it knows products of matrices, convolutions,
`add` and `mul`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toytorch.core.op import registry


def flops_of(name: str, args: Sequence[Any]) -> int:
    """The count for a call, 0 where there is no formula, or the call is wrong.

    >>> flops_of("aten::mm", (torch.ones(2, 3), torch.ones(3, 4)))
    48
    """
    op = registry.get(name.removeprefix("aten::"))
    if op is None or op.flops is None:
        return 0
    try:
        return op.flops(*args)
    except (AttributeError, IndexError, RuntimeError, TypeError, ZeroDivisionError):
        return 0  # the call itself says what is wrong with it
