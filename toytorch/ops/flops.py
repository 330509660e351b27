"""How many floating-point operations ops take: functions of their arguments, for records.

A product and the sum it goes into count as two.
"""

from __future__ import annotations

import math

from toytorch.core.tensor import Tensor
from toytorch.facts.hints import Shape, Sizes
from toytorch.facts.size import broadcast_pair


def matrices(a: Tensor, b: Tensor, *rest: object) -> int:
    """(n, k) times (k, m), or batches of them."""
    return int(2 * math.prod(a.shape) * b.shape[-1])


def added_matrices(c: Tensor, a: Tensor, b: Tensor, *rest: object) -> int:
    """A product of matrices; what it is added to counts as nothing."""
    return matrices(a, b)


def layer(bias: Tensor, x: Tensor, weight: Tensor) -> int:
    """(…, in) times (out, in)ᵀ."""
    return int(2 * math.prod(x.shape) * weight.shape[0])


def windows(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    stride: Shape,
    padding: Shape,
    dilation: Shape,
    transposed: bool,
    *rest: object,
) -> int:
    """Every result sums over a window and the channels of its group; transposed, every input."""
    places = (
        x.shape[2:]
        if transposed
        else [
            (n + 2 * p - d * (k - 1) - 1) // s + 1
            for n, k, s, p, d in zip(x.shape[2:], weight.shape[2:], stride, padding, dilation)
        ]
    )
    return int(2 * x.shape[0] * math.prod(places) * math.prod(weight.shape))


def elements(a: Tensor, b: Tensor, *rest: object) -> int:
    """One for each element."""
    shape: Sizes = ()
    for operand in (a, b):
        shape = broadcast_pair(shape, tuple(getattr(operand, "shape", ())))
    return math.prod(shape)
