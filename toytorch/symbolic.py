"""Numbers that may be sizes of a graph: here they are Python's, like `torch.sym_max` of plain numbers.

>>> sym_int(2.7), sym_max(2, 3.0), sym_ite(True, 1, 2)
(2, 3.0, 1)
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TypeVar

Real = int | float
T = TypeVar("T")


class SymInt:
    """A size that is not known yet. toytorch has none: the class is there to be asked about."""


class SymFloat:
    """A number that is not known yet; there are none."""


class SymBool:
    """A truth value that is not known yet; there are none."""


def sym_int(a: Real) -> int:
    """The whole number towards 0."""
    return math.trunc(a)


def sym_float(a: Real) -> float:
    """The number as a float."""
    return float(a)


def sym_max(a: Real, b: Real) -> Real:
    """The larger one, a float if one of them is."""
    return _as_both(max(a, b), a, b)


def sym_min(a: Real, b: Real) -> Real:
    """The smaller one, a float if one of them is."""
    return _as_both(min(a, b), a, b)


def _as_both(found: Real, a: Real, b: Real) -> Real:
    return float(found) if isinstance(a, float) or isinstance(b, float) else found


def sym_not(a: bool) -> bool:
    """Not."""
    return not a


def sym_sqrt(a: Real) -> float:
    """The root."""
    return math.sqrt(a)


def sym_sum(args: Iterable[Real]) -> Real:
    """The sum."""
    return sum(args)


def sym_ite(b: bool, t: T, f: T) -> T:
    """One or the other."""
    return t if b else f
