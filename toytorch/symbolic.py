"""Numbers that may be sizes of a graph: here they are Python's, like `torch.sym_max` of plain numbers.

>>> sym_int(2.7), sym_max(2, 3.0), sym_ite(True, 1, 2)
(2, 3.0, 1)
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, TypeVar

Real = int | float
T = TypeVar("T")


class SymInt:
    """A size that is not one number: toytorch has the sizes of nested tensors (`RaggedSize`)."""


class RaggedSize(SymInt):
    """The size of a dimension in which the parts of a nested tensor differ, printed as `j1`.

    Two are equal where they belong to the same offsets; a number times one is its multiple.

    >>> j = RaggedSize(7)
    >>> j, 2 * j, j == RaggedSize(7), j == RaggedSize(8), j >= 2
    (j7, 2*j7, True, False, True)
    >>> j > 5
    Traceback (most recent call last):
    ValueError: ge: relation is indeterminate
    """

    def __init__(self, number: int, factor: int = 1) -> None:
        self.number, self.factor = number, factor

    def __repr__(self) -> str:
        return f"j{self.number}" if self.factor == 1 else f"{self.factor}*j{self.number}"

    def __mul__(self, other: Any) -> RaggedSize:
        if not isinstance(other, int):
            raise ValueError(f"unsupported: {type(other)}")
        return RaggedSize(self.number, self.factor * other)

    __rmul__ = __mul__

    def __index__(self) -> Any:
        return self  # what a shape keeps of it (see `facts.size.whole`)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RaggedSize) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((self.number, self.factor))

    def __ge__(self, other: Any) -> bool:
        if isinstance(other, RaggedSize) and other.number == self.number:
            return self.factor >= other.factor
        if isinstance(other, int) and other <= 2:
            return True
        raise ValueError("ge: relation is indeterminate")

    def __gt__(self, other: Any) -> bool:
        if isinstance(other, RaggedSize):
            return not other >= self
        if other < 2:
            return True
        raise ValueError("ge: relation is indeterminate")

    def __lt__(self, other: Any) -> bool:
        return not self >= other

    def __le__(self, other: Any) -> bool:
        return not self > other


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
