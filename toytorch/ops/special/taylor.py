"""Tables of Taylor polynomials of functions that solve a linear differential equation.

For (p₀ + p₁h + p₂h²)·y'' + (q₀ + q₁h + q₂h²)·y' + (r₀ + r₁h + r₂h²)·y = 0 the powers of h give
each coefficient of y from those before it. They are computed in decimal numbers of more digits than
are needed, when a function is first called; then every value is one polynomial in a small h, and its
error little more than that of its last addition.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from typing import Any

import numpy as np

from toytorch.facts.hints import Array, ArrayModule

DIGITS = 60
Parts = tuple[Sequence[Decimal], Sequence[Decimal], Sequence[Decimal]]  # p, q and r at a place


def coefficients(parts: Parts, value: Decimal, slope: Decimal, count: int) -> list[Decimal]:
    """The first `count` Taylor coefficients of the solution with this value and slope."""
    p, q, r = parts
    made = [value, slope]
    for k in range(count - 2):
        total = Decimal(0)
        for j in (1, 2):
            if k + 2 - j >= 0 and p[j]:
                total += p[j] * made[k + 2 - j] * (k + 2 - j) * (k + 1 - j)
        for j in (0, 1, 2):
            if k + 1 - j >= 0 and q[j]:
                total += q[j] * made[k + 1 - j] * (k + 1 - j)
            if k - j >= 0 and r[j]:
                total += r[j] * made[k - j]
        made.append(-total / (p[0] * (k + 2) * (k + 1)))
    return made


def solution(
    parts: Callable[[Decimal], Parts],
    start: Decimal,
    value: Decimal,
    slope: Decimal,
    step: Decimal,
    rows: int,
    order: int,
) -> list[list[float]]:
    """Taylor coefficients around start, start + step, …: each row goes on where the last one ends."""
    made = []
    with localcontext() as context:
        context.prec = DIGITS
        place = start
        for _ in range(rows):
            row = coefficients(parts(place), value, slope, order + 60)
            made.append([float(c) for c in row[:order]])
            value = slope = Decimal(0)
            for k in range(len(row) - 1, -1, -1):
                value = value * step + row[k]
                if k:
                    slope = slope * step + row[k] * k
            place += step
    return made


def evaluated(xp: ArrayModule, table: Array, start: float, step: float, x: Array) -> Any:
    """The function of a table at every element, which lie in its range."""
    table = xp.asarray(table)
    row = xp.clip(xp.rint((x - start) / step), 0, len(table) - 1).astype(np.int64)
    h = x - (start + row * step)
    total = table[row, -1]
    for k in range(table.shape[1] - 2, -1, -1):
        total = total * h + table[row, k]
    return total
