"""Numbers of which nobody knows beforehand how many uniform ones they take: one after the other.

Each function takes a stream (`one` and `one_normal`), the parameters of one element, and what rounds
to the type of the tensors. The order of the draws and of the roundings is PyTorch's, of its functions
of the same names. For many elements the text of this file is compiled (`kernels/sequential.py`), so
it keeps to numbers, `if`, `while`, `continue` and `return`.
"""

from __future__ import annotations

import math
from typing import Any

SURE = 0.07  # from which a squeeze accepts without a logarithm
STIRLING = (
    0.0810614667953272,
    0.0413406959554092,
    0.0276779256849983,
    0.02079067210376509,
    0.0166446911898211,
    0.0138761288230707,
    0.0118967099458917,
    0.0104112652619720,
    0.00925546218271273,
    0.00833056343336287,
)  # what Stirling's formula lacks of log k!
LISTED = len(STIRLING)


def poisson(stream: Any, rate: float, rounded: Any = float) -> float:
    """How many events there are: by the product of uniform numbers, or for rates of 10 and more by
    transformed rejection (Hörmann 1993)."""
    if rate == 0:
        return 0.0
    if rate < 10:
        limit, product, found = math.exp(-rate), stream.one(), 0.0
        while product > limit:
            product *= stream.one()
            found += 1
        return found
    log_rate = math.log(rate)
    b = 0.931 + 2.53 * math.sqrt(rate)
    a = -0.059 + 0.02483 * b
    scale, sure = 1.1239 + 1.1328 / (b - 3.4), 0.9277 - 3.6224 / (b - 2)
    while True:
        u, v = stream.one() - 0.5, stream.one()
        us = 0.5 - abs(u)
        if us == 0:
            continue
        k = math.floor((2 * a / us + b) * u + rate + 0.43)
        if us >= SURE and v <= sure:
            return float(k)
        if k < 0 or (us < 0.013 and v > us):
            continue
        weight = log(v) + math.log(scale) - math.log(a / (us * us) + b)
        if weight <= -rate + k * log_rate - math.lgamma(k + 1):
            return float(k)


def log(x: float) -> float:
    """The logarithm, which is -∞ at 0."""
    return math.log(x) if x > 0 else -math.inf


def binomial(stream: Any, count: float, chance: float, rounded: Any = float) -> float:
    """How many of `count` trials succeed. `rounded` rounds to the type of the tensors."""
    if count <= 0 or chance <= 0:
        return 0.0
    if chance >= 1:
        return count
    if chance != chance:
        return math.nan
    other = rounded(1.0 - chance)
    less = chance if chance <= 0.5 else other
    if rounded(count * less) >= 10:
        found = by_rejection(stream, count, less, rounded)
    else:
        found = by_gaps(stream, count, less, rounded)
    return found if chance <= 0.5 else count - found


def by_gaps(stream: Any, count: float, chance: float, rounded: Any) -> float:
    """By the numbers of trials from success to success."""
    base, trials, found = rounded(math.log1p(-chance)), 0.0, 0.0
    while True:
        u = stream.one()
        trials += math.ceil(math.log(u) / base) if u > 0 else math.inf
        if trials > count:
            return found
        found += 1


def by_rejection(stream: Any, count: float, chance: float, rounded: Any) -> float:
    """By transformed rejection (Hörmann 1993, BTRS)."""
    rest = rounded(1 - chance)
    mean = rounded(count * chance)
    spread = rounded(math.sqrt(rounded(mean * rest)))
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * chance
    c, sure = mean + 0.5, 0.92 - 4.2 / b
    odds = rounded(chance / rest)
    alpha = (2.83 + 5.1 / b) * spread
    more = rounded(count + 1)
    mode = math.floor(rounded(more * chance))
    while True:
        u, v = stream.one() - 0.5, stream.one()
        us = 0.5 - abs(u)
        if us == 0:
            continue
        k = rounded(math.floor((2 * a / us + b) * u + c))
        if k < 0 or k > count:
            continue
        if us >= SURE and v <= sure:
            return float(k)
        left = rounded(rounded(count - k) + 1)
        bound = (
            (mode + 0.5) * math.log((mode + 1) / (odds * (count - mode + 1)))
            + more * math.log((count - mode + 1) / left)
            + (k + 0.5) * math.log(odds * left / rounded(k + 1))
            + stirling(mode)
            + stirling(count - mode)
            - stirling(k)
            - stirling(rounded(count - k))
        )
        if log(v * alpha / (a / (us * us) + b)) <= bound:
            return float(k)


def stirling(k: float) -> float:
    """log k! less Stirling's formula for it."""
    if k < LISTED:
        return STIRLING[int(k)]
    square = (k + 1) * (k + 1)
    return (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / (k + 1)


THIRD, SQUEEZE = 0.3333333432674408, 0.03310000151395798  # 1/3 and 0.0331 in float32


def gamma(stream: Any, shape: float, rounded: Any = float) -> float:
    """A number of the gamma distribution (Marsaglia and Tsang 2000)."""
    scale = 1.0
    if shape < 1:
        if shape == 0:
            return 0.0
        scale = math.pow(1 - stream.one(), rounded(1 / shape))
        shape = rounded(shape + 1)
    d = rounded(shape - THIRD)
    c = 1 / math.sqrt(9 * d)
    while True:
        y = 0.0
        while y <= 0:
            x = stream.one_normal()
            y = 1 + c * x
        v, u, xx = y * y * y, 1 - stream.one(), x * x
        if u < 1 - SQUEEZE * xx * xx or math.log(u) < 0.5 * xx + d * (1 - v + math.log(v)):
            return scale * d * v
