"""How many floating-point operations some ops take, by formula.

A product and the sum it goes into count as two. Ops without a formula count as none, as PyTorch's
do (it knows products of matrices, convolutions, `add` and `mul`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from toytorch.facts.size import broadcast_pair


def _mm(a: Any, b: Any) -> int:
    """(n, k) times (k, m), or batches of them."""
    return int(2 * math.prod(a) * b[-1])


def _linear(x: Any, weight: Any) -> int:
    """(…, in) times (out, in)ᵀ."""
    return int(2 * math.prod(x) * weight[0])


def _convolution(args: Sequence[Any]) -> int:
    """Every result sums over a window and the channels of its group; transposed, every input."""
    x, weight, _, stride, padding, dilation, transposed = args[:7]
    places = (
        x.shape[2:]
        if transposed
        else [
            (n + 2 * p - d * (k - 1) - 1) // s + 1
            for n, k, s, p, d in zip(x.shape[2:], weight.shape[2:], stride, padding, dilation)
        ]
    )
    return int(2 * x.shape[0] * math.prod(places) * math.prod(weight.shape))


def _elementwise(args: Sequence[Any]) -> int:
    shape: tuple[int, ...] = ()
    for a in args[:2]:
        shape = broadcast_pair(shape, tuple(getattr(a, "shape", ())))
    return math.prod(shape)


FORMULAS: dict[str, Callable[[Sequence[Any]], int]] = {
    "aten::mm": lambda args: _mm(args[0].shape, args[1].shape),
    "aten::bmm": lambda args: _mm(args[0].shape, args[1].shape),
    "aten::addmm": lambda args: _mm(args[1].shape, args[2].shape),
    "aten::baddbmm": lambda args: _mm(args[1].shape, args[2].shape),
    "aten::linear": lambda args: _linear(args[1].shape, args[2].shape),
    "aten::convolution": _convolution,
    "aten::add": _elementwise,
    "aten::mul": _elementwise,
}


def flops_of(name: str, args: Sequence[Any]) -> int:
    """The count for a call, 0 where there is no formula, or the call is wrong.

    >>> import toytorch as torch
    >>> flops_of("aten::mm", (torch.ones(2, 3), torch.ones(3, 4)))
    48
    """
    formula = FORMULAS.get(name)
    if formula is None:
        return 0
    try:
        return int(formula(args))
    except (AttributeError, IndexError, RuntimeError, TypeError, ZeroDivisionError):
        return 0  # the call itself says what is wrong with it
