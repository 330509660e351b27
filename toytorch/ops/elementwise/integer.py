"""Number theory of integers: greatest common divisors and least common multiples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toytorch.facts.hints import DType
from toytorch.ops.define import pointwise


def _only_integers(name: str) -> Any:
    def check(common: DType, args: Sequence[Any]) -> None:
        if common.rank != 1:
            raise NotImplementedError(f"\"{name}_cpu\" not implemented for '{common.legacy}'")

    return check


gcd = pointwise(
    "gcd(Tensor self, Tensor other) -> Tensor",
    formula="gcd(self, other)",
    checks=_only_integers("gcd"),
    doc="The greatest common divisor.",
    out_history="none",
)
lcm = pointwise(
    "lcm(Tensor self, Tensor other) -> Tensor",
    formula="lcm(self, other)",
    checks=_only_integers("lcm"),
    doc="The least common multiple.",
    out_history="none",
)
