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


# -- the tables of `bessel` -----------------------------------------------------------------------


def scaled_equation(order: int, sign: int) -> Callable[[Decimal], Parts]:
    """The equation of e^{-x}·Iₙ(x) (sign 1) and e^x·Kₙ(x) (sign -1), around c:
    x²y'' + (x + 2·sign·x²)y' + (sign·x - n²)y = 0 with x = c + h."""
    one, two = Decimal(1), Decimal(2 * sign)

    def parts(c: Decimal) -> Parts:
        return (
            (c * c, 2 * c, one),
            (c + two * c * c, 1 + 2 * two * c, two),
            (sign * c - order, Decimal(sign), Decimal(0)),
        )

    return parts


# e·K₀(1) and e·K₁(1), to 62 digits
K_AT_ONE = (
    Decimal("1.1444630798068950146990413035668315202336959069476949513894367"),
    Decimal("1.6361534862632582465133111312645264047487522280948752508836437"),
)


def table_k(order: int, size: float, rows: int, terms: int) -> Any:
    """Taylor coefficients of e^x·Kₙ(x) around 1, 1 + size, …."""
    value, other = K_AT_ONE[order], K_AT_ONE[1 - order]
    equation = scaled_equation(order, -1)
    with localcontext() as context:
        context.prec = DIGITS
        slope = value - other if order == 0 else -other
        return np.array(solution(equation, Decimal(1), value, slope, Decimal(size), rows, terms))


# Y₀ and its slope at the double beside its first zero, to 62 digits
Y_BESIDE_ZERO = (
    Decimal("-2.3389279284062103118692153934154297488502404725203238513342235e-17"),
    Decimal("0.87942080249719479722972442056326108668875702920551851587700806"),
)


def zero_of_y(place: float) -> Any:
    """Taylor coefficients of Y₀ around the double beside its first zero, from xy'' + y' + xy = 0."""
    c, zero, one = Decimal(place), Decimal(0), Decimal(1)
    with localcontext() as context:
        context.prec = DIGITS
        parts = (c, one, zero), (one, zero, zero), (c, one, zero)
        return np.array([[float(v) for v in coefficients(parts, *Y_BESIDE_ZERO, 18)]])


AI_AT_ZERO = (  # the value and the slope, to 62 digits
    Decimal("0.35502805388781723926006318600418317639797917419917724058332651"),
    Decimal("-0.25881940379280679840518356018920396347909113835493458221000181"),
)


def _airy_equation(c: Decimal) -> Parts:
    """y'' = (c + h)·y."""
    zero, one = Decimal(0), Decimal(1)
    return (one, zero, zero), (zero, zero, zero), (-c, -one, zero)


def table_airy(size: float, rows: int, terms: int) -> Any:
    """Taylor coefficients of Ai around …, -size, 0, size, …, so many rows to either side."""
    step = Decimal(size)
    down, up = (
        solution(_airy_equation, Decimal(0), *AI_AT_ZERO, s, rows, terms) for s in (-step, step)
    )
    return np.array([*down[::-1], *up[1:]])
